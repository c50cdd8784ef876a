"""Bytes held and things alive: does the floor go on rising?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakkit.series import Kind, Series
from leakkit.trend import Trend, Verdict
from leakkit.trend.blocks import floors, period, readings, settled, valleys
from leakkit.trend.rise import Rise, against_floors, against_valleys, kept
from leakkit.trend.rules import (
    ALPHA_FLAT,
    ALPHA_LEANS,
    BLOCKS,
    COUNTER,
    EXACT,
    FEWEST,
    FIRST_LOOK,
    LOOK_BACK,
    NOISY,
    SHORT,
    SHORT_RISE,
    LevelRule,
)

Floats = NDArray[np.float64]
RULES = {Kind.EXACT: EXACT, Kind.COUNTER: COUNTER, Kind.NOISY: NOISY}
LARGE, HUGE = 1e100, 1e300  # squares, and differences, would overflow soon above
ENOUGH = 8  # floors; of fewer no order is beyond chance


@dataclass(frozen=True)
class Look:
    """What a level is judged by: values from 0, in units of ``unit``, as are the limits."""

    values: Floats
    unit: float
    rule: LevelRule
    limit: float
    flat_below: float
    least_rise: float
    grain: float
    cadence: int
    final: bool


def judge_level(series: Series, *, limit: float | None, cadence: int, final: bool) -> Trend:
    """Judge one level; see :func:`leakkit.trend.judge`."""
    values = readings(series.values)
    if len(values) < FEWEST:
        return _unsaid(len(values), final, f"{len(values)} values are too few to judge")
    look = _look(series, values, limit, cadence, final)
    judged = settled(look.values)
    width = max(1, len(judged) // BLOCKS, cadence if cadence > 1 else 1)
    points = floors(look.values, width, look.grain)
    if len(points) < 2:
        return _unsaid(len(values), final, f"shorter than two periods of {cadence} steps")
    if points.clean:
        return _judge_clean(look, Rise(points, look.grain))
    return _judge_noisy(look, judged, width)


def _look(series: Series, values: Floats, limit: float | None, cadence: int, final: bool) -> Look:
    rule = RULES[series.quantity.kind]
    most = min(float(np.abs(values).max()), HUGE)
    # A power of two, so that dividing is exact, keeps the squares of huge values finite.
    unit = 1.0 if most < LARGE else 2.0 ** math.ceil(math.log2(most))
    if most == HUGE:
        values = np.clip(values, -HUGE, HUGE)
    coarse = series.quantity.grain / unit
    least = rule.least_rise * (SHORT_RISE if len(values) < SHORT else 1)
    rounding = 8 * float(np.finfo(np.float64).eps) * most / unit
    return Look(
        values=values / unit - values[0] / unit,
        unit=unit,
        rule=rule,
        limit=(rule.limit if limit is None else limit) / unit,
        flat_below=(rule.flat_below if limit is None else limit) / unit,
        least_rise=max(least / unit, 8 * coarse),
        grain=max(coarse, rounding),
        cadence=cadence,
        final=final,
    )


def _judge_clean(look: Look, rise: Rise) -> Trend:
    """Floors never fall: every rise is real, and the question is whether it goes on."""
    last = _last(look, rise, max(LOOK_BACK, len(look.values) // 2, 2 * look.cadence))
    forgiven = int(look.final and len(look.values) >= FIRST_LOOK)
    if last.up.sum() <= forgiven:
        return _say(look, last, Verdict.FLAT, f"did not rise in its last {last.count_all()}")
    steps = kept(look.values, look.grain)
    if steps.stopped(max(LOOK_BACK, 2 * look.cadence)):
        last = _last(look, rise, steps.pause)
        return _say(look, last, Verdict.FLAT, f"stopped rising {steps.pause} steps before the end")
    fault = _fault(look, rise) if look.final else "rises so far"
    if fault is None:
        return _say(look, rise, Verdict.GROWS, f"rose in {rise.count()}")
    regular = steps.bursts(look.limit, look.least_rise) if look.final else 0
    if regular:
        return _say(look, rise, Verdict.GROWS, f"rose in {regular} even bursts")
    if rise.hull()[1] <= look.limit:
        return _say(look, rise, Verdict.FLAT, "the upper bound of its growth is within the limit")
    return _say(look, rise, Verdict.UNDECIDED, fault)


def _last(look: Look, rise: Rise, back: int) -> Rise:
    """The floors of the last ``back`` steps."""
    points = rise.points
    width = points.times[1] if len(points) > 1 else 1
    start = max(0, len(points) - max(2, int(back // width)))
    tail = replace(points, values=points.values[start:], times=points.times[start:])
    return Rise(tail, look.grain)


def _judge_noisy(look: Look, judged: Floats, width: int) -> Trend:
    """Floors fall now and then: blocks must span what repeats, and order must beat chance."""
    tooth = max(period(judged), look.cadence)
    wide = floors(look.values, max(width, math.ceil(1.2 * tooth)), look.grain)
    if wide.clean and len(wide) >= ENOUGH:
        return _judge_clean(look, Rise(wide, look.grain))
    spans = len(wide) >= ENOUGH
    rise = Rise(wide if spans else floors(look.values, width, look.grain), look.grain)
    if not look.final:
        calm = _equivalent(look, rise) if spans else None
        verdict = Verdict.FLAT if calm else Verdict.UNDECIDED
        return _say(look, rise, verdict, calm or "noisy, and may rise")
    fault = _fault(look, rise)
    if fault is None:
        return _say(look, rise, Verdict.GROWS, f"rose in {rise.count()}")
    teeth = _rising_teeth(look)
    if teeth is not None:
        return _say(look, teeth, Verdict.GROWS, f"{len(teeth.points)} valleys rise in a line")
    calm = _equivalent(look, rise)
    if calm is None and not rise.ordered(ALPHA_LEANS):
        if rise.up.sum() >= len(rise.up) - 1:  # a leak, and something large that was freed
            return _say(look, rise, Verdict.UNDECIDED, f"rose in {rise.count()}, but fell once")
        calm = "no growth beyond its own noise"
    if calm is None and rise.jumped():
        calm = "a single change of level, and no growth before it or after it"
    if calm is None and rise.stopped() and rise.pause >= max(LOOK_BACK, 2 * look.cadence):
        calm = f"stopped rising {rise.pause:.0f} steps before the end"
    return _say(look, rise, Verdict.FLAT if calm else Verdict.UNDECIDED, calm or fault)


def _rising_teeth(look: Look) -> Rise | None:
    """The valleys of a sawtooth, when they rise."""
    points = valleys(look.values)
    if points is None:
        return None
    rise = Rise(points, look.grain)
    if float(rise.path[-1]) <= look.least_rise or against_valleys(rise, look.limit):
        return None
    return rise


def _fault(look: Look, rise: Rise) -> str | None:
    fault = against_floors(rise, look.rule, look.limit, len(look.values))
    if fault is None and float(rise.path[-1]) <= look.least_rise:
        return "its whole rise is smaller than the grain of this quantity"
    return fault


def _equivalent(look: Look, rise: Rise) -> str | None:
    """Whether the slope is shown to be small: by its bounds, not by a lack of evidence."""
    low, high = rise.bound(ALPHA_FLAT), rise.bound(ALPHA_FLAT, upper=True)
    bound = look.flat_below
    total = float(rise.points.values[-1] - rise.points.values[0])
    small = total <= bound * float(rise.points.times[-1])
    if high <= bound and high - low <= 2 * bound and small:
        return "the upper bound of its growth is within its noise"
    return None


def _say(look: Look, rise: Rise, verdict: Verdict, reason: str) -> Trend:
    low, high = rise.interval()
    steps, unit = len(look.values), look.unit
    more = 0 if look.final or verdict is Verdict.FLAT else steps
    first = look.values[: max(1, steps // BLOCKS)].min()
    total = float(rise.points.values[-1] - first) * unit
    return Trend(verdict, rise.slope * unit, low * unit, high * unit, total, steps, reason, more)


def _unsaid(steps: int, final: bool, reason: str) -> Trend:
    inf = float("inf")
    more = 0 if final else max(steps, BLOCKS)
    return Trend(Verdict.UNDECIDED, 0.0, -inf, inf, 0.0, steps, reason, more)

"""Step times: does the step slow down, and not the machine?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakkit.series import Series
from leakkit.trend import Trend, Verdict
from leakkit.trend.blocks import readings, settled
from leakkit.trend.fits import shares
from leakkit.trend.rank import pair_slopes, sen_bound
from leakkit.trend.rules import ALPHA_FLAT, ALPHA_GROWS, FIRST_LOOK, LATENCY

Floats = NDArray[np.float64]
LEAST = 1e-9  # seconds; a shorter time is a clock that stood still


@dataclass(frozen=True)
class Ratio:
    """Medians of log(step / control) over blocks, and the slopes between them.

    Args:
        points: shape ``(blocks,)``.
        times: shape ``(blocks,)``, in steps.
        slopes: sorted, of all pairs, per step.
        drift: how fast the control's own medians move, per step, without sign.
    """

    points: Floats
    times: Floats
    slopes: Floats
    drift: float

    @property
    def slope(self) -> float:
        """Theil-Sen slope."""
        return float(np.median(self.slopes))

    def bound(self, alpha: float, *, upper: bool = False) -> float:
        """One-sided bound of the slope."""
        return sen_bound(self.slopes, len(self.points), alpha, upper=upper)

    @property
    def span(self) -> float:
        """Steps between the first and the last median."""
        return float(self.times[-1])


def judge_latency(series: Series, *, limit: float | None, cadence: int, final: bool) -> Trend:
    """Judge step times against their control; see :func:`leakkit.trend.judge`."""
    step, control = _logs(series)
    accepted = LATENCY.limit if limit is None else limit / 100
    ratio = _ratio(step, control)
    if ratio is None:
        return _too_few(len(step), final)
    fine = _ratio(step, control, LATENCY.points) or ratio
    rare = _ratio(*_slowest_phase(step, control, cadence)) if cadence > 1 else None
    reason = "slows down against the control kernel"
    if control is not None and final and _grows(ratio, accepted):
        return _say(ratio, series, step, Verdict.GROWS, reason, final)
    if control is not None and final and rare is not None and _grows(rare, accepted * cadence):
        return _say(ratio, series, step, Verdict.GROWS, f"every {cadence}th step {reason}", final)
    verdict, reason = _otherwise(ratio, fine, accepted, limit is not None, len(step), final)
    if control is None:
        reason += "; without a control kernel a slow machine cannot be told from a slow step"
    return _say(ratio, series, step, verdict, reason, final)


def _otherwise(
    ratio: Ratio, fine: Ratio, accepted: float, asked: bool, steps: int, final: bool
) -> tuple[Verdict, str]:
    """Flat or undecided: a limit that somebody set must be proved, the default not be missed."""
    if ratio.bound(ALPHA_FLAT, upper=True) <= accepted:
        return Verdict.FLAT, "the upper bound of its slow-down is within the limit"
    if asked:
        return Verdict.UNDECIDED, "the bounds of its slow-down hold the limit between them"
    if not _leans(ratio if final else fine, steps, final):
        if final and ratio.bound(0.025, upper=True) > LATENCY.coarse:
            return Verdict.UNDECIDED, "too noisy, or too short, to tell"
        return Verdict.FLAT, "no slow-down against its noise"
    return Verdict.UNDECIDED, "may be slowing down"


def _leans(ratio: Ratio, steps: int, final: bool) -> bool:
    """Whether the evidence is more than a slow-down worth finding would leave to chance.

    What the first look may still miss is plain at the next one, for the error of a slope falls
    with the steps to the power of 1.5: so each doubling asks for an eighth of the chance.
    """
    chance = LATENCY.leans * min(1.0, FIRST_LOOK / steps) ** 3
    return ratio.bound(ALPHA_FLAT if final else chance) > 0


def _grows(ratio: Ratio, accepted: float) -> bool:
    """Whether the lower bound of the slope exceeds all that else explains it, to the end."""
    need = LATENCY.least_rise + LATENCY.drift_share * ratio.drift * ratio.span
    if ratio.bound(ALPHA_GROWS) <= max(accepted, need / ratio.span):
        return False
    half = len(ratio.points) // 2
    for part in (slice(None, half), slice(-half, None)):
        slope = float(np.median(pair_slopes(ratio.points[part], ratio.times[part])))
        if slope < LATENCY.half * ratio.slope:
            return False
    by_line, by_step, _ = shares(ratio.points)
    return by_line > by_step


def _logs(series: Series) -> tuple[Floats, Floats | None]:
    """Log of the step times, and of the control's; both cut to the shorter."""
    step = np.log(np.maximum(readings(series.values), LEAST))
    if series.control is None:
        return step, None
    control = np.log(np.maximum(readings(series.control), LEAST))
    count = min(len(step), len(control))
    return step[:count], control[:count]


def _ratio(step: Floats, control: Floats | None, most: int = LATENCY.blocks) -> Ratio | None:
    """Medians of at most so many blocks of the settled part; ``None`` when it is too short."""
    judged = settled(step if control is None else step - control, LATENCY.settle)
    if len(judged) < LATENCY.fewest_blocks:
        return None
    width = math.ceil(len(judged) / most)
    blocks = len(judged) // width
    points = _medians(judged, blocks, width)
    times = np.arange(blocks, dtype=np.float64) * width
    drift = 0.0
    if control is not None:
        own = _medians(settled(control, LATENCY.settle), blocks, width)
        drift = abs(float(np.median(pair_slopes(own, times))))
    return Ratio(points, times, pair_slopes(points, times), drift)


def _medians(values: Floats, blocks: int, width: int) -> Floats:
    tail = values[len(values) - blocks * width :].reshape(blocks, width)
    return np.asarray(np.median(tail, axis=1), dtype=np.float64)


def _slowest_phase(
    step: Floats, control: Floats | None, cadence: int
) -> tuple[Floats, Floats | None]:
    """Every ``cadence``-th step, from the phase that takes longest: where the rare thing is."""
    ratio = step if control is None else step - control
    medians = [float(np.median(ratio[k::cadence])) for k in range(min(cadence, len(ratio)))]
    phase = int(np.argmax(medians))
    return step[phase::cadence], None if control is None else control[phase::cadence]


def _say(
    ratio: Ratio, series: Series, step: Floats, verdict: Verdict, reason: str, final: bool
) -> Trend:
    """Slopes in percent of a step per step; the total in seconds."""
    low, high = ratio.bound(0.025), ratio.bound(0.025, upper=True)
    typical = math.exp(float(np.median(step)))
    total = typical * math.expm1(min(ratio.slope * ratio.span, 300.0))
    more = 0 if final or verdict is Verdict.FLAT else len(step)
    return Trend(verdict, 100 * ratio.slope, 100 * low, 100 * high, total, len(step), reason, more)


def _too_few(steps: int, final: bool) -> Trend:
    inf = float("inf")
    reason = f"{steps} step times are too few to judge"
    return Trend(Verdict.UNDECIDED, 0.0, -inf, inf, 0.0, steps, reason, 0 if final else FIRST_LOOK)

"""Bytes held and things alive: does the floor go on rising?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from leakkit.series import Kind, Series
from leakkit.trend import Trend, Verdict
from leakkit.trend.blocks import Floors, fold, period, readings, settled
from leakkit.trend.rank import critical_score, pair_slopes, score, sen_bound, t95
from leakkit.trend.rules import (
    ALPHA_FLAT,
    ALPHA_GROWS,
    BLOCKS,
    COUNTER,
    EXACT,
    FEWEST,
    LOOK_BACK,
    NOISY,
    LevelRule,
)

Floats = NDArray[np.float64]
RULES = {Kind.EXACT: EXACT, Kind.COUNTER: COUNTER, Kind.NOISY: NOISY}


def judge_level(series: Series, *, limit: float | None, cadence: int, final: bool) -> Trend:
    """Judge one level; see :func:`leakkit.trend.judge`."""
    rule = RULES[series.quantity.kind]
    accepted = rule.limit if limit is None else limit
    values = readings(series.values)
    if len(values) < FEWEST:
        return _nothing(len(values), final, f"{len(values)} values are too few to judge")
    scale = _scale(values)
    values = values / scale
    grain = max(rule.grain / scale, 8 * float(np.finfo(float).eps) * float(np.abs(values).max()))
    values = values - values[0]
    look = _Look(values, rule, scale, accepted / scale, grain, cadence, final)
    return look.trend()


def _scale(values: Floats) -> float:
    """A power of two that keeps differences and squares of huge values finite; else 1."""
    most = float(np.abs(values).max())
    return 1.0 if most < 1e100 else 2.0 ** math.ceil(math.log2(most))


def _nothing(steps: int, final: bool, reason: str, more: int = 0) -> Trend:
    inf = float("inf")
    more = 0 if final else max(more, BLOCKS)
    return Trend(Verdict.UNDECIDED, 0.0, -inf, inf, 0.0, steps, reason, more)


class _Look:
    """One look at one level: the floors, and what they say."""

    def __init__(
        self,
        values: Floats,
        rule: LevelRule,
        scale: float,
        limit: float,
        grain: float,
        cadence: int,
        final: bool,
    ) -> None:
        self.values, self.rule, self.scale, self.limit = values, rule, scale, limit
        self.grain, self.cadence, self.final = grain, cadence, final
        judged = settled(values)
        width = max(1, len(judged) // BLOCKS, cadence if cadence > 1 else 1)
        self.floors = fold(judged, width, 2 * BLOCKS)
        self.clean = self._clean(judged, width)
        if not self.clean:
            self.floors = self._spanning(judged, width)
        self.rises = np.diff(self.floors.values)
        self.up = self.rises > self.grain
        self.slopes = pair_slopes(self._calm(3.0), self.floors.times)

    def _clean(self, judged: Floats, width: int) -> bool:
        """Whether floors never fall, even of half the blocks."""
        half = fold(judged, max(1, width // 2), len(judged)).values
        return bool((np.diff(half) >= -self.grain).all())

    def _spanning(self, judged: Floats, width: int) -> Floors:
        """Floors of blocks that are longer than the sawtooth in them."""
        tooth = max(period(judged), self.cadence)
        wide = max(width, math.ceil(1.2 * tooth))
        return Floors(fold(judged, wide).values, wide, tooth)

    def _calm(self, most: float) -> Floats:
        """Floors with rises cut at ``most`` times their median: a one-off loses its weight."""
        rises = self.rises
        if self.up.any():
            rises = np.minimum(rises, most * np.median(rises[self.up]))
        return np.concatenate([[0.0], np.cumsum(rises)])

    def trend(self) -> Trend:
        """The verdict with its numbers."""
        if len(self.rises) < 5:
            return self._say(Verdict.UNDECIDED, f"too short for a period of {self.floors.period}")
        fault = self._fault()
        if self.final and fault is None:
            return self._say(Verdict.GROWS, self._count())
        calm = self._stopped()
        if calm is not None:
            return self._say(Verdict.FLAT, calm)
        return self._say(Verdict.UNDECIDED, fault or "it rises so far")

    def _count(self) -> str:
        return f"rose in {int(self.up.sum())} of {len(self.up)} blocks of {self.floors.width} steps"

    def _fault(self) -> str | None:
        """What speaks against growth; ``None`` when nothing does."""
        points = len(self.floors.values)
        critical = critical_score(points, ALPHA_GROWS)
        if critical is None or score(self.floors.values) < critical:
            return f"{self._count()}: no order that chance would not give"
        if sen_bound(self.slopes, points, ALPHA_GROWS) <= self.limit:
            return "the lower bound of the growth is within the limit"
        if self._calm(3.0)[-1] * self.scale <= self.rule.least_rise:
            return "the whole rise is smaller than the noise of this quantity"
        share = self.rule.rising if self.clean else self.rule.rising_noisy
        if self.up.sum() < math.ceil(share * len(self.up)):
            return f"it only {self._count()}"
        return self._ending() or (None if self.clean else self._wandering())

    def _ending(self) -> str | None:
        """Whether the rise had ended, or was ending."""
        gaps = np.diff(np.concatenate([[-1], np.flatnonzero(self.up), [len(self.up)]])) - 1
        if gaps[-1] > max(0 if self.clean else 1, int(gaps[:-1].max())):
            return "the rise had stopped before the end"
        if self.clean and self.rises[-1] < 0.5 * self.rises[:-1].min():
            return "the rise had stopped before the end"
        calm = np.diff(self._calm(3.0))
        half = len(calm) // 2
        if calm[-half:].sum() < 0.5 * calm[:half].sum():
            return "the rise was slowing down"
        return None

    def _wandering(self) -> str | None:
        """Whether a random walk explains the rise."""
        calm = np.diff(self._calm(3.0))
        spread = float(calm.std(ddof=1))
        lag = calm - calm.mean()
        lean = float(lag[1:] @ lag[:-1]) / float(lag @ lag) if spread > 0 else 0.0
        need = 5.0 * spread * math.sqrt(1 + 2 * max(0.0, lean))
        if calm.mean() * math.sqrt(len(calm)) < need:
            return "a random walk would explain the rise"
        return None

    def _stopped(self) -> str | None:
        """Why this is flat; ``None`` when it is not."""
        points = len(self.floors.values)
        high = sen_bound(self.slopes, points, ALPHA_FLAT, upper=True)
        if self.clean:
            back = max(LOOK_BACK, len(self.values) // 2, 2 * self.cadence)
            last = self.up[-max(1, back // self.floors.width - 1) :]
            if last.sum() <= int(self.final):
                return f"did not rise in the last {len(last)} blocks of {self.floors.width} steps"
            return "within the limit" if high <= self.limit else None
        low = sen_bound(self.slopes, points, ALPHA_FLAT)
        bound = max(self.limit, self.rule.flat_below / self.scale)
        total = self.floors.values[-1] - self.floors.values[0]
        if high <= bound and high - low <= 2 * bound and total <= bound * self.floors.times[-1]:
            return "no growth above the noise"
        return None

    def _say(self, verdict: Verdict, reason: str) -> Trend:
        low, slope, high = self._interval()
        steps = len(self.values)
        more = 0 if self.final or verdict is Verdict.FLAT else max(steps, 1)
        total = float(self.floors.values[-1] - self.values[: self.floors.width].min()) * self.scale
        unit = self.scale
        return Trend(verdict, slope * unit, low * unit, high * unit, total, steps, reason, more)

    def _interval(self) -> tuple[float, float, float]:
        """95 % interval: hull of the rank interval and the t interval of the rises."""
        points = len(self.floors.values)
        rises = np.diff(self._calm(3.0)) / self.floors.width
        if len(rises) < 2:
            return float("-inf"), 0.0, float("inf")
        reach = t95(len(rises) - 1) * float(rises.std(ddof=1)) / math.sqrt(len(rises))
        mean = float(rises.mean())
        low = min(sen_bound(self.slopes, points, 0.025), mean - reach)
        high = max(sen_bound(self.slopes, points, 0.025, upper=True), mean + reach)
        return low, float(np.median(self.slopes)), high

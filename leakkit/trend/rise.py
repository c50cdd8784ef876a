"""A rise of a few points, and what speaks against its going on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leakkit.trend.blocks import Points
from leakkit.trend.fits import line, shares
from leakkit.trend.rank import critical_score, pair_slopes, score, sen_bound, t95
from leakkit.trend.rules import (
    ALPHA_GROWS,
    ALPHA_SIDE,
    CLEARLY,
    FADES,
    FADES_SINCE_START,
    FEWEST_BURSTS,
    LEAST_SIDE,
    ONE_OFF,
    OUTGREW,
    PAUSE,
    SHORT,
    SMALL,
    STEADY,
    WALK,
    LevelRule,
)

Floats = NDArray[np.float64]

EVEN = 9  # rates from which the second lowest and highest bound their median at 95 %: 1 - 20/2^9


class Rise:
    """The rises between neighbouring points.

    Args:
        points: at least two, in order of time.
        grain: a rise by at most this is none.
    """

    def __init__(self, points: Points, grain: float) -> None:
        self.points = points
        self.raw = np.diff(points.values)
        self.up = self.raw > grain

    @cached_property
    def calm(self) -> Floats:
        """The rises, each cut at a few times the median one: a one-off loses its weight.

        Falls keep theirs, or a slow sawtooth would look like a leak.
        """
        if not self.up.any():
            return self.raw
        return np.minimum(self.raw, ONE_OFF * np.median(self.raw[self.up]))

    @cached_property
    def path(self) -> Floats:
        """The points with calm rises, from 0."""
        return np.concatenate([[0.0], np.cumsum(self.calm)])

    @cached_property
    def slopes(self) -> Floats:
        """Sorted slopes between all pairs of the calm points."""
        return pair_slopes(self.path, self.points.times)

    @cached_property
    def rates(self) -> Floats:
        """Units per step between neighbouring points."""
        return np.asarray(self.raw / np.diff(self.points.times))

    @cached_property
    def even(self) -> bool:
        """Whether most neighbours are the same distance apart: a line with a few one-offs."""
        low, high = np.quantile(self.rates, (0.25, 0.75))
        return len(self.rates) >= EVEN and bool(high - low <= 1e-9 * abs(high))

    @property
    def slope(self) -> float:
        """Theil-Sen slope, units per step; on an even line its own rate, whatever interrupts it."""
        return float(np.median(self.rates if self.even else self.slopes))

    def bound(self, alpha: float, *, upper: bool = False) -> float:
        """One-sided bound of the slope at ``alpha``."""
        return sen_bound(self.slopes, len(self.points), alpha, upper=upper)

    def interval(self) -> tuple[float, float]:
        """95 % interval to print: on an even line the sign test's of the median rate."""
        if not self.even:
            return self.hull()
        rates = np.sort(self.rates)
        return float(rates[1]), float(rates[-2])

    def hull(self) -> tuple[float, float]:
        """95 % interval: hull of the rank interval and the t interval of the rises.

        The first is right for noise around a line, the second for random rises that add up.
        """
        if len(self.calm) < 2:
            return float("-inf"), float("inf")
        rates = self.calm / np.diff(self.points.times)
        reach = t95(len(rates) - 1) * float(rates.std(ddof=1)) / math.sqrt(len(rates))
        mean = float(rates.mean())
        low, high = self.bound(0.025), self.bound(0.025, upper=True)
        if math.isinf(low):
            low = high = self.slope
        return min(low, mean - reach), max(high, mean + reach)

    def count(self) -> str:
        """``11 of 11 blocks of 30 steps``."""
        return f"{int(self.up.sum())} of {len(self.up)} {self.points.what}"

    def count_all(self) -> str:
        """``7 blocks of 30 steps``."""
        return f"{len(self.points)} {self.points.what}"

    def ordered(self, alpha: float) -> bool:
        """Whether chance gives such an order of points less often than ``alpha``."""
        return _ordered(self.points.values, alpha)

    def jumped(self) -> bool:
        """Whether one change of level is the whole rise: nothing rises before it, or after it."""
        by_line, by_step, at = shares(self.points.values)
        if 1 - by_step > CLEARLY * (1 - by_line):
            return False
        sides = self.points.values[:at], self.points.values[at:]
        return all(len(s) >= LEAST_SIDE and not _ordered(s, ALPHA_SIDE) for s in sides)

    def stopped(self) -> bool:
        """Whether the rise ended before the end: the last pause is longer than any before."""
        marks = np.concatenate([[-1], np.flatnonzero(self.up), [len(self.up)]])
        pauses = np.diff(marks) - 1
        if not self.points.clean:
            return bool(pauses[-1] > max(1, int(pauses[:-1].max(initial=0))))
        last = int(pauses[-1])
        faded = float(self.raw[-1]) < 0.5 * float(self.raw[:-1].min())
        return bool(last > int(pauses[:-1].max(initial=0)) or faded)

    @property
    def pause(self) -> float:
        """Steps since the last point that rose."""
        rose = np.flatnonzero(self.up)
        last = int(rose[-1]) + 1 if len(rose) else 0
        return float(self.points.times[-1] - self.points.times[last])

    def slowing(self, lasting: float) -> bool:
        """Whether later parts grow clearly less than earlier ones.

        Halves show it when it is plain. Else the thirds must differ and the rises fade from
        block to block, for which less evidence is enough when the unjudged beginning grew faster
        still. An end that is steady is no fading, whatever came before it.
        """
        half, third = len(self.calm) // 2, len(self.calm) // 3
        if self.calm[-half:].sum() < 0.5 * self.calm[:half].sum():
            return True
        if third < 2 or self._steady(half):
            return False
        if self.calm[-third:].sum() >= lasting * self.calm[:third].sum():
            return False
        return self._fading() < self._fades_from()

    def _fades_from(self) -> float:
        """t of the rises below which they fade: the more the beginning outgrew them, the milder."""
        rates = self.calm / np.diff(self.points.times)
        mean, early = float(rates.mean()), self.points.early
        if early > OUTGREW * mean:
            return 0.0
        reach = 1.5 * float(rates.std(ddof=1)) / math.sqrt(len(rates))
        return FADES_SINCE_START if early > mean + reach else FADES

    def _steady(self, last: int) -> bool:
        end = self.raw[-last:]
        return bool(end.min() > 0 and end.max() <= STEADY * end.min())

    def _fading(self) -> float:
        """t of the slope of the rises' square roots: counts of events scatter alike as roots."""
        roots = np.sqrt(np.maximum(self.calm, 0.0))
        if float(np.ptp(roots)) <= 1e-9 * float(roots.max()):
            return 0.0
        return line(roots, np.arange(len(roots), dtype=np.float64), 0.0)[0]

    def late(self) -> float:
        """Growth per step of the last third alone."""
        third = max(1, len(self.calm) // 3)
        span = self.points.times[-1] - self.points.times[-1 - third]
        return float(self.calm[-third:].sum() / span)

    def wandering(self) -> bool:
        """Whether a random walk explains the rise: t of the rises, for their correlation.

        Of noise that forgets, neighbouring rises undo each other too, and the mean is surer.
        """
        spread = float(self.calm.std(ddof=1))
        off = self.calm - self.calm.mean()
        power = float(off @ off)
        lean = float(off[1:] @ off[:-1]) / power if power > 0 else 0.0
        least = 0.5 if self.points.forgets else 1.0
        reach = WALK * spread * math.sqrt(max(least, 1 + 2 * lean))
        return bool(self.calm.mean() * math.sqrt(len(self.calm)) < reach)

    def unsteady(self) -> bool:
        """Whether the rises are too uneven for a short run: one of many may be missing."""
        missing = len(self.up) - int(self.up.sum())
        half = len(self.calm) // 2
        first, last = float(self.calm[:half].sum()), float(self.calm[-half:].sum())
        return missing > len(self.up) // 16 or first > 1.5 * last


def _ordered(values: Floats, alpha: float) -> bool:
    critical = critical_score(len(values), alpha)
    return critical is not None and score(values) >= critical


def against_floors(rise: Rise, rule: LevelRule, limit: float, steps: int) -> str | None:
    """What speaks against growth of block floors; ``None`` when nothing does."""
    if not rise.ordered(ALPHA_GROWS):
        return f"rose in {rise.count()}: an order that chance gives too"
    if min(rise.bound(ALPHA_GROWS), rise.late()) <= limit:
        return "the lower bound of its growth is within the limit"
    share = rule.rising if rise.points.clean else rule.rising_noisy
    if rise.up.sum() < math.ceil(share * len(rise.up)):
        return f"rose only in {rise.count()}"
    if rise.stopped():
        return "the rise stopped before the end"
    if rise.slowing(rule.lasting):
        return "the rise is slowing down"
    if steps < SHORT and rise.unsteady():
        return "rose unsteadily, and the run is short"
    if not rise.points.clean and rise.wandering():
        return "a random walk would explain the rise"
    return None


@dataclass(frozen=True)
class Kept:
    """The rises of what is never given back: step by step, not by blocks.

    Args:
        at: the steps before which it rose, in order.
        sizes: by how much, shape as ``at``.
        steps: of the whole series.
    """

    at: NDArray[np.intp]
    sizes: Floats
    steps: int

    @property
    def pause(self) -> int:
        """Steps since the last rise."""
        return self.steps - 2 - int(self.at[-1]) if len(self.at) else self.steps - 1

    def stopped(self, least: int) -> bool:
        """Whether the last pause is beyond all that the earlier ones foretell."""
        if len(self.at) < 2:
            return False
        return self.pause >= max(least, PAUSE * int(np.diff(self.at).max()))

    def bursts(self, limit: float, least_rise: float) -> int:
        """How many came like clockwork to the end, each of about one size; else 0.

        Six equal ones at equal distances, the last no longer ago than the distance, are a leak
        even where they are too rare for blocks. What is far smaller than the largest is no burst.
        """
        large = self.sizes > SMALL * self.sizes.max(initial=0.0)
        at, sizes = self.at[large], self.sizes[large]
        if len(at) < FEWEST_BURSTS:
            return 0
        gaps = np.diff(at)
        even = gaps.max() <= gaps.min() + 1 and sizes.max() <= STEADY * sizes.min()
        lasts = self.steps - 2 - at[-1] <= gaps.max() and at[0] <= 2 * gaps.max()
        enough = sizes.min() / gaps.max() > limit and sizes.sum() > least_rise
        return len(at) if even and lasts and enough else 0


def kept(values: Floats, grain: float) -> Kept:
    """The rises of the lowest value from each step to the end."""
    floor = np.minimum.accumulate(values[::-1])[::-1]
    rises = np.diff(floor)
    at = np.flatnonzero(rises > grain)
    return Kept(at, rises[at], len(values))


def against_valleys(rise: Rise, limit: float) -> str | None:
    """What speaks against growth of a sawtooth's valleys; ``None`` when nothing does.

    Least squares with the noise that a valley has by construction as the least residual: four
    teeth are too few for ranks, and their scatter alone could be small by chance.
    """
    times, count = rise.points.times, len(rise.points)
    strength, slope, error = line(rise.path, times, rise.points.noise)
    if strength < (10.0 if count < 9 else 8.0):
        return "its valleys do not rise beyond their scatter"
    if slope - 4 * error <= limit:
        return "the lower bound of its growth is within the limit"
    half = (count + 1) // 2
    for part in (slice(None, half), slice(count - half, None)):
        if line(rise.path[part], times[part], rise.points.noise)[0] < 3.0:
            return "the rise is not in both halves of the run"
    return "the rise is slowing down" if rise.slowing(0.0) else None

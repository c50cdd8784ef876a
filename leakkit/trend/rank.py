"""Rank statistics of a handful of points: exact, no normal approximation, no scipy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Two-sided 95 % quantiles of Student's t by degrees of freedom (any statistics textbook's table).
_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)


def t95(df: int) -> float:
    """The 97.5 % quantile of Student's t; above 20 degrees of freedom within 0.5 % of it."""
    if df < 1:
        return float("inf")
    return _T95[df - 1] if df <= len(_T95) else 1.96 + 2.5 / df


@lru_cache(maxsize=64)
def _score_tail(points: int) -> Floats:
    """P(at most v of the pairs fall), v = 0, 1, …, for exchangeable values without ties.

    The number of inversions of a random permutation is a sum of independent uniforms on
    0..i-1 (Knuth, TAOCP 3, 5.1.1), so its distribution is a product of those polynomials.
    """
    law = np.ones(1)
    for size in range(2, points + 1):
        law = np.convolve(law, np.full(size, 1.0 / size))
    return np.cumsum(law)


@lru_cache(maxsize=256)
def critical_score(points: int, alpha: float) -> int | None:
    """Smallest Kendall score (rising minus falling pairs) with one-sided p <= ``alpha``.

    ``None`` where even a perfect order is likelier than ``alpha``.
    """
    tail = _score_tail(points)
    reachable = np.flatnonzero(tail <= alpha)
    if not len(reachable):
        return None
    return points * (points - 1) // 2 - 2 * int(reachable[-1])


def score(values: Floats) -> int:
    """Kendall's score of values in order: rising pairs minus falling pairs."""
    i, j = np.triu_indices(len(values), 1)
    return int(np.sign(values[j] - values[i]).sum())


def pair_slopes(values: Floats, times: Floats) -> Floats:
    """Sorted slopes between all pairs of points (Theil 1950, Sen 1968)."""
    i, j = np.triu_indices(len(values), 1)
    return np.sort((values[j] - values[i]) / (times[j] - times[i]))


def sen_bound(slopes: Floats, points: int, alpha: float, *, upper: bool = False) -> float:
    """One-sided confidence bound of the Theil-Sen slope by inverting Kendall's exact test."""
    critical = critical_score(points, alpha)
    if critical is None:
        return float("inf") if upper else float("-inf")
    rank = (len(slopes) - critical) // 2
    return float(slopes[len(slopes) - 1 - rank] if upper else slopes[rank])

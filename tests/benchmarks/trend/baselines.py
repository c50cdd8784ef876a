"""What others do with such a series: each rule takes values and says whether they grow.

They look at one window and have two outcomes; the p-values are one-sided 1e-3.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NORMAL = 3.090  # quantile of the normal distribution at 1 - 1e-3


def ols(values: Floats) -> bool:
    """Least squares: t of the slope."""
    count = len(values)
    time = np.arange(count) - (count - 1) / 2
    off = values - values.mean()
    slope = float(time @ off / (time @ time))
    rest = off - slope * time
    error = math.sqrt(float(rest @ rest) / (count - 2) / float(time @ time))
    return slope > NORMAL * error if error > 0 else slope > 0


def mann_kendall(values: Floats) -> bool:
    """Mann (1945), Kendall (1975): rising minus falling pairs, variance corrected for ties."""
    count = len(values)
    pairs = np.sign(values[None, :] - values[:, None])
    rising = float(np.triu(pairs, 1).sum())
    ties = np.unique(values, return_counts=True)[1].astype(float)
    variance = count * (count - 1) * (2 * count + 5) - float(
        (ties * (ties - 1) * (2 * ties + 5)).sum()
    )
    return variance > 0 and (rising - 1) / math.sqrt(variance / 18) > NORMAL


def psleak(values: Floats, runs: int = 5, warm: int = 10) -> bool:
    """psleak: ever longer runs, each of which must grow, and by more than the one before."""
    lengths = np.cumsum(np.concatenate([[0.0], 1 + 0.5 * np.arange(runs)]))
    ends = warm + (lengths * (len(values) - 1 - warm) / lengths[-1]).astype(int)
    growth = np.diff(values[ends])
    return bool((growth > 0).all() and (np.diff(growth) > 0).all())


def refleak(values: Floats, runs: int = 4, warm: float = 0.25) -> bool:
    """CPython's ``regrtest -R``: after a warm-up, every run must end higher."""
    ends = np.linspace(math.ceil(warm * len(values)), len(values) - 1, runs + 1).astype(int)
    return bool((np.diff(values[ends]) >= 1).all())


def thirds(values: Floats) -> bool:
    """The lowest value of each third is above that of the third before."""
    low = [float(part.min()) for part in np.array_split(values, 3)]
    return low[0] < low[1] < low[2]


RULES = {
    "OLS": ols,
    "Mann-Kendall": mann_kendall,
    "psleak": psleak,
    "refleak": refleak,
    "thirds": thirds,
}

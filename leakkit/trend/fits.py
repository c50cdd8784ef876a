"""Least squares: a straight line, and a single change of level."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def line(values: Floats, times: Floats, noise: float) -> tuple[float, float, float]:
    """Least-squares slope over its standard error, the slope, and that error."""
    time = times - times.mean()
    off = values - values.mean()
    spread = float(time @ time)
    slope = float(time @ off) / spread
    rest = off - slope * time
    residual = math.sqrt(float(rest @ rest) / max(1, len(values) - 2))
    error = max(residual, noise) / math.sqrt(spread)
    return (slope / error if error > 0 else math.copysign(math.inf, slope)), slope, error


def shares(points: Floats) -> tuple[float, float, int]:
    """What a line explains of the spread, what the best single change of level does, and where.

    Args:
        points: shape ``(points,)``, evenly spaced, at least two.

    Returns:
        The two shares, from 0 to 1, and the number of points before the change.
    """
    count = len(points)
    time = np.arange(count) - (count - 1) / 2
    off = points - points.mean()
    spread = float(off @ off)
    if spread == 0:
        return 0.0, 0.0, 1
    sums = np.cumsum(off)[:-1]
    left = np.arange(1, count)
    by_step = sums**2 / left + sums**2 / (count - left)
    by_line = float((time @ off) ** 2 / (time @ time))
    at = int(np.argmax(by_step))
    return by_line / spread, float(by_step[at]) / spread, at + 1

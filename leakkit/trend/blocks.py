"""A series reduced to a few points: what was read, floors of blocks, the period of a sawtooth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakkit.trend.rules import BLOCKS, SETTLE

Floats = NDArray[np.float64]


def readings(values: Floats) -> Floats:
    """The values up to the last finite one; holes repeat the reading before them."""
    values = np.asarray(values, dtype=np.float64).ravel()
    good = np.isfinite(values)
    if good.all():
        return values
    known = np.flatnonzero(good)
    if not len(known):
        return values[:0]
    latest = np.maximum.accumulate(np.where(good, np.arange(len(values)), known[0]))
    return values[latest[: known[-1] + 1]]


@dataclass(frozen=True)
class Floors:
    """The lowest value of each of the blocks that end at the last value.

    Args:
        values: shape ``(blocks,)``.
        width: steps a block.
        period: steps of the sawtooth that a block spans; 1 when there is none.
    """

    values: Floats
    width: int
    period: int = 1

    @property
    def times(self) -> Floats:
        """Step of each block, shape ``(blocks,)``."""
        return np.arange(len(self.values), dtype=np.float64) * self.width


def fold(values: Floats, width: int, most: int = BLOCKS) -> Floors:
    """Floors of the last ``most`` blocks of ``width`` steps."""
    count = min(most, len(values) // width)
    tail = values[len(values) - count * width :]
    return Floors(tail.reshape(count, width).min(axis=1), width)


def settled(values: Floats) -> Floats:
    """What is judged: the run without its first quarter."""
    return values[math.ceil(SETTLE * len(values)) :]


def period(values: Floats, least: float = 0.3) -> int:
    """Length in steps of the strongest repetition, 1 when there is none.

    The highest local peak of the autocorrelation, after the line is taken out and everything
    above the median is cut off: a floor does not mind spikes.
    """
    count = len(values)
    if count < 15:
        return 1
    time = np.arange(count) - (count - 1) / 2
    scale = float(np.abs(values).max())
    if scale == 0:
        return 1
    x = values / scale
    x = x - x.mean()
    x = x - time * (time @ x) / (time @ time)
    x = np.minimum(x, np.median(x))
    x = x - x.mean()
    power = float(x @ x)
    if power <= 1e-18 * count:
        return 1
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(x, size)
    lags = np.fft.irfft(spectrum * np.conj(spectrum), size)[: count // 3 + 2]
    lags = lags / power * (count / (count - np.arange(len(lags))))
    inner = lags[1:-1]
    peaks = np.flatnonzero((inner > lags[:-2]) & (inner >= lags[2:]) & (inner >= least)) + 1
    peaks = peaks[peaks >= 2]
    return int(peaks[np.argmax(lags[peaks])]) if len(peaks) else 1

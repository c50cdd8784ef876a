"""A series reduced to a few points: floors of blocks, or the valleys of a sawtooth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakkit.trend.rules import BLOCKS, FEWEST_TEETH, FINEST, ONE_OFF, SETTLE, TOOTH

Floats = NDArray[np.float64]


def readings(values: Floats) -> Floats:
    """The values up to the last finite one; a hole repeats the reading before it."""
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
class Points:
    """What a series is reduced to.

    Args:
        values: shape ``(points,)``, lowest value of each block or tooth.
        times: shape ``(points,)``, in steps.
        what: ``blocks of 30 steps`` or ``valleys``, for the reason.
        clean: the floors never fall, so that a rise needs no statistics to be one.
        noise: standard deviation that each value has at least; 0 when unknown.
        early: growth per step before the first point.
        forgets: the noise of a step says nothing about that of the next, so it cannot wander off.
    """

    values: Floats
    times: Floats
    what: str
    clean: bool = False
    noise: float = 0.0
    early: float = 0.0
    forgets: bool = False

    def __len__(self) -> int:
        return len(self.values)


def settled(values: Floats, share: float = SETTLE) -> Floats:
    """What is judged: the run without its beginning."""
    return values[math.ceil(share * len(values)) :]


def minima(values: Floats, width: int, most: int) -> Floats:
    """Lowest values of the last ``most`` blocks of ``width`` steps, the last block at the end."""
    count = min(most, len(values) // width)
    tail = values[len(values) - count * width :].reshape(count, width)
    return np.asarray(tail.min(axis=1), dtype=np.float64)


def floors(values: Floats, width: int, grain: float) -> Points:
    """The floors of about twelve blocks of the settled part.

    Clean when not even the floors of half the width fall.
    """
    judged = settled(values)
    low = minima(judged, width, 2 * BLOCKS - 1)
    half = minima(judged, max(1, width // 2), len(judged))
    clean = bool((np.diff(half) >= -grain).all())
    times = np.arange(len(low), dtype=np.float64) * width
    before = minima(values[: len(values) - len(judged)], width, 2 * BLOCKS)
    early = _early(np.concatenate([before, low[:1]]), width)
    what = f"blocks of {width} step{'s' * (width > 1)}"
    return Points(low, times, what, clean, 0.0, early, not clean and forgets(judged))


def forgets(values: Floats) -> bool:
    """Whether the moves of neighbouring steps undo each other, as those of white noise do.

    Their correlation is then -1/2; that of a random walk, or of a sawtooth, is 0 or more.
    """
    moves = np.diff(values)
    moves = moves - moves.mean() if len(moves) > 2 else np.zeros(3)
    power = float(moves @ moves)
    return power > 0 and float(moves[1:] @ moves[:-1]) < -0.25 * power


def _early(low: Floats, width: int) -> float:
    """Growth per step over the first floors, without the largest rise, which may be a one-off."""
    rises = np.sort(np.diff(low))[:-1]
    return float(rises.mean()) / width if len(rises) else 0.0


def valleys(values: Floats) -> Points | None:
    """The lowest value after each drop of a sawtooth; ``None`` when this is none.

    A sawtooth climbs in small steps and drops in large ones: nearly all falls are drops, and a
    drop undoes many steps. A single climb of many steps' size is a one-off, and counts as one
    step. What is left right after a drop is part of what one step makes, so a valley is uncertain
    by a uniform share of the usual climb: that is the least noise of each point.
    """
    moves = np.diff(values)
    climbs, falls = moves[moves > 0], np.flatnonzero(moves < 0)
    if not len(climbs) or len(falls) < FEWEST_TEETH:
        return None
    climb = float(np.median(climbs))
    drops = falls[moves[falls] < 0.5 * moves.min()]
    deep = float(np.median(moves[drops])) < -TOOTH * climb
    if not deep or len(drops) < max(FEWEST_TEETH, 0.8 * len(falls)):
        return None
    moves[moves > ONE_OFF * climb] = climb
    path = np.concatenate([[0.0], np.cumsum(moves)])
    low = np.minimum.reduceat(path, drops + 1)
    return Points(low, drops + 1.0, "valleys", False, climb / math.sqrt(12))


def period(values: Floats, least: float = 0.3) -> int:
    """Length in steps of the strongest repetition, 1 when there is none.

    The highest local peak of the autocorrelation, after the line is taken out and everything
    above the median is cut off: a floor does not mind spikes. Of a long series the floors of
    short blocks are enough, for what repeats faster than that never reaches the judged blocks.
    """
    width = math.ceil(len(values) / FINEST)
    lags = _autocorrelation(minima(values, width, FINEST) if width > 1 else values)
    if len(lags) < 5:
        return 1
    inner = lags[1:-1]
    peaks = np.flatnonzero((inner > lags[:-2]) & (inner >= lags[2:]) & (inner >= least)) + 1
    peaks = peaks[peaks >= 2]
    return int(peaks[np.argmax(lags[peaks])]) * width if len(peaks) else 1


def _autocorrelation(values: Floats) -> Floats:
    """Up to a third of the length; empty when the lower half of the values does not move."""
    count = len(values)
    if count < 15 or np.ptp(values) == 0:
        return np.empty(0)
    time = np.arange(count) - (count - 1) / 2
    x = values / np.ptp(values)
    x = x - x.mean()
    x = x - time * (time @ x) / (time @ time)
    x = np.minimum(x, np.median(x))
    x = x - x.mean()
    power = float(x @ x)
    if power <= 1e-18 * count:
        return np.empty(0)
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(x, size)
    lags = np.fft.irfft(spectrum * np.conj(spectrum), size)[: count // 3 + 2]
    return np.asarray(lags / power * (count / (count - np.arange(len(lags)))))

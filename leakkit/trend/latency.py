"""Step times: does the step slow down, and not the machine?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakkit.series import Series
from leakkit.trend import Trend, Verdict
from leakkit.trend.blocks import readings, settled
from leakkit.trend.rank import pair_slopes, sen_bound
from leakkit.trend.rules import ALPHA_FLAT, ALPHA_GROWS, BLOCKS, LATENCY

Floats = NDArray[np.float64]


def judge_latency(series: Series, *, limit: float | None, cadence: int, final: bool) -> Trend:
    """Judge step times against their control; see :func:`leakkit.trend.judge`."""
    accepted = LATENCY.limit if limit is None else limit / 100
    ratio, control = _logs(series)
    steps = len(ratio)
    judged = settled(ratio)
    width = len(judged) // BLOCKS
    if width < 2:
        inf = float("inf")
        return Trend(
            Verdict.UNDECIDED, 0.0, -inf, inf, 0.0, steps, "too few steps", 0 if final else 24
        )
    points = _medians(judged, width)
    times = np.arange(BLOCKS, dtype=np.float64) * width
    slopes = pair_slopes(points, times)
    span = float(times[-1])
    low = sen_bound(slopes, BLOCKS, ALPHA_GROWS)
    high = sen_bound(slopes, BLOCKS, ALPHA_FLAT, upper=True)
    drift = 0.0
    if control is not None:
        drift = abs(float(np.median(pair_slopes(_medians(settled(control), width), times))))
    need = max(accepted, (LATENCY.least_rise + LATENCY.drift_share * drift * span) / span)
    slope = float(np.median(slopes))
    leans = sen_bound(slopes, BLOCKS, 0.2) > 0
    grows = control is not None and low > need and _line_beats_step(points)
    total = float(points[-1] - points[0])
    numbers = (
        100 * slope,
        100 * sen_bound(slopes, BLOCKS, 0.025),
        100 * sen_bound(slopes, BLOCKS, 0.025, upper=True),
        float(np.exp(np.median(np.log(np.maximum(series.values[:steps], 1e-12))))) * total,
    )
    if final and grows:
        return Trend(Verdict.GROWS, *numbers, steps, "slows down against the control kernel")
    if high <= accepted or not leans:
        return Trend(Verdict.FLAT, *numbers, steps, "no slow-down against the control kernel")
    more = 0 if final else steps
    return Trend(Verdict.UNDECIDED, *numbers, steps, "leans to a slow-down", more)


def _logs(series: Series) -> tuple[Floats, Floats | None]:
    values = readings(series.values)
    values = np.log(np.maximum(values, 1e-12))
    if series.control is None:
        return values, None
    control = readings(series.control)[: len(values)]
    values = values[: len(control)]
    control = np.log(np.maximum(control, 1e-12))
    return values - control, control


def _medians(values: Floats, width: int) -> Floats:
    tail = values[len(values) - BLOCKS * width :]
    return np.asarray(np.median(tail.reshape(BLOCKS, width), axis=1), dtype=np.float64)


def _line_beats_step(points: Floats) -> bool:
    """Least squares: a straight line fits better than the best single change of level."""
    count = len(points)
    time = np.arange(count) - (count - 1) / 2
    x = points - points.mean()
    line = float(x @ x - (time @ x) ** 2 / (time @ time))
    sums = np.cumsum(x)[:-1]
    left = np.arange(1, count)
    step = float(x @ x - (sums**2 / left + sums**2 / (count - left)).max())
    return line < step

"""A series drawn in a few characters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

UNICODE = "▁▂▃▄▅▆▇█"
ASCII = "_.-:=+*#"


def sparkline(
    values: NDArray[np.float64], *, cells: int = 8, unicode: bool = True, floor: float = 0.0
) -> str:
    """The medians of ``cells`` equal stretches of ``values``, lowest to highest.

    Args:
        values: shape ``(steps,)``; NaN and infinities are left out.
        cells: characters drawn, or fewer where there are fewer values.
        unicode: block characters, else ASCII of the same eight heights.
        floor: a range of at most this much is drawn as a flat line.
    """
    ramp = UNICODE if unicode else ASCII
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return ""
    medians = np.array(
        [np.median(part) for part in np.array_split(finite, min(cells, len(finite)))]
    )
    low, span = medians.min(), np.ptp(medians)
    if span <= floor:
        return ramp[0] * len(medians)
    heights = np.rint((medians - low) / span * (len(ramp) - 1)).astype(int)
    return "".join(ramp[height] for height in heights)

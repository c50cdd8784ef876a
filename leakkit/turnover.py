"""A heap that only trades old blocks for new ones, which reads as growth in a trace.

A full ring drops a block a step that was made before the trace. Its size is unknown, so the bytes
of the trace rise by what is put in its place; the number of blocks does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leakkit.heap import FREED, NET
from leakkit.series import Series
from leakkit.trend import Verdict, default_limit, judge

_RARELY = 20  # a replaced block in so many steps at least
_HARDLY = 0.1  # of the replaced blocks may be left over
_STILL = 0.25  # of the usual rate at which old blocks are freed


def turns_over(heap: str, series: Mapping[str, Series]) -> bool:
    """Whether hardly more blocks are made than freed, and none bigger than the one before.

    Args:
        heap: name of the heap's series.
        series: those of the trace pass.
    """
    if not {heap, heap + NET, heap + FREED} <= series.keys():
        return False
    net, freed = (series[heap + suffix].values for suffix in (NET, FREED))
    half = len(net) // 2
    if half == 0:
        return False
    gone, left = freed[-1] - freed[half], net[-1] - net[half]
    hardly = bool(gone * _RARELY >= half and left <= _HARDLY * gone)
    return hardly and _goes_on(freed) and not _swells(series[heap])


def _goes_on(freed: NDArray[np.float64]) -> bool:
    """Whether old blocks are freed to the end; once there are none left, the bytes are exact."""
    half, end = len(freed) // 2, max(1, min(_RARELY, len(freed) // 6))
    late = (freed[-1] - freed[-1 - end]) / end
    return bool(late >= _STILL * (freed[-1] - freed[half]) / half)


def _swells(heap: Series) -> bool:
    """Whether what a step adds is more from step to step, as of a ring whose items grow."""
    added = replace(heap, values=np.diff(heap.values))
    least = default_limit(heap.quantity.kind) / max(1, len(added.values))  # a ring of as many
    return judge(added, limit=least, final=True).verdict is Verdict.GROWS

"""Which of TensorFlow's eager caches grows: emptied around some steps, by how much they refill."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from leakkit.frameworks import CacheAudit

_CONTEXT_MODULE = "tensorflow.python.eager.context"

_Emptier = Callable[[], None]


class TensorFlowCaches(CacheAudit):
    """The eager kernel cache and the eager scalar cache.

    Neither tells how many entries it has, so each is emptied and the bytes that come back are
    counted: after the first step of the audit (what every step refills, and one step's growth)
    and after the last (the same refill, and the growth of all steps between). The difference is
    growth alone.

    Args:
        emptiers: by series name, what empties each cache.
        heap: reads the native heap's bytes in use.
    """

    def __init__(self, emptiers: Mapping[str, _Emptier], heap: Callable[[], int]) -> None:
        self._emptiers = emptiers
        self._heap = heap
        self._steps = 0
        self._first: dict[str, int] = {}

    @classmethod
    def make(cls) -> TensorFlowCaches | None:
        """An audit of the caches that this TensorFlow has, or ``None``."""
        context = _context()
        emptiers = {}
        if hasattr(context, "clear_kernel_cache"):
            emptiers["tf_kernel_cache"] = context.clear_kernel_cache
        if hasattr(context, "_clear_caches"):
            emptiers["tf_scalar_cache"] = context._clear_caches
        heap = _heap_reader()
        return cls(emptiers, heap) if emptiers and heap is not None else None

    def begin(self) -> None:
        """Empty the caches."""
        self._steps = 0
        self._first = {}
        self._freed()

    def boundary(self) -> None:
        """Empty them after the first step, to learn what one step refills."""
        self._steps += 1
        if self._steps == 1:
            self._first = self._freed()

    def end(self) -> Mapping[str, float]:
        """Growth of each cache, bytes per step; empty with fewer than three steps."""
        if self._steps < 3:
            return {}
        last = self._freed()
        between = self._steps - 2  # both windows refill; the second is this many steps longer
        return {name: (last[name] - self._first[name]) / between for name in last}

    def _freed(self) -> dict[str, int]:
        freed = {}
        for name, empty in self._emptiers.items():
            before = self._heap()
            empty()
            freed[name] = before - self._heap()
        return freed


def _context() -> Any:
    context = getattr(sys.modules.get(_CONTEXT_MODULE), "context", None)
    return context() if context is not None else None


def _heap_reader() -> Callable[[], int] | None:
    import psutil

    if not hasattr(psutil, "heap_info"):
        return None
    return lambda: int(psutil.heap_info().heap_used)

"""Which of TensorFlow's eager caches grows: told by emptying them around some steps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from leakkit.frameworks import CacheAudit

_CONTEXT_MODULE = "tensorflow.python.eager.context"

_Emptier = Callable[[], None]


@dataclass(frozen=True)
class _Window:
    """Steps between two emptyings, and the bytes that the second gave back by cache."""

    steps: int
    freed: Mapping[str, int]


class TensorFlowCaches(CacheAudit):
    """The eager kernel cache and the eager scalar cache.

    Neither tells how many entries it has, so each is emptied and the bytes that come back are
    counted, over windows of 1, 2, 4, 8 … steps. A window's bytes are what the step refills and
    its growth times the window's length; between two windows the refill cancels out. What
    happens every few steps only (a validation, a checkpoint) refills in some windows and not in
    others, so growth counts only as far as the last windows agree on it.

    Args:
        emptiers: by series name, what empties each cache.
        heap: reads the native heap's bytes in use.
    """

    def __init__(self, emptiers: Mapping[str, _Emptier], heap: Callable[[], int]) -> None:
        self._emptiers = emptiers
        self._heap = heap
        self._steps = 0
        self._windows: list[_Window] = []

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
        self._windows = []
        self._freed()

    def boundary(self) -> None:
        """Empty them when a window is full."""
        self._steps += 1
        if self._steps == 2 ** len(self._windows):
            self._close_window()

    def end(self) -> Mapping[str, float]:
        """Growth of each cache, bytes per step; empty where no window reached four steps."""
        if self._windows and self._steps > 1.5 * self._windows[-1].steps:
            self._close_window()
        pairs = list(pairwise(self._windows))[-2:] if len(self._windows) > 2 else []
        return {name: min(_rate(a, b, name) for a, b in pairs) for name in self._emptiers if pairs}

    def _close_window(self) -> None:
        self._windows.append(_Window(self._steps, self._freed()))
        self._steps = 0

    def _freed(self) -> dict[str, int]:
        freed = {}
        for name, empty in self._emptiers.items():
            before = self._heap()
            empty()
            freed[name] = before - self._heap()
        return freed


def _rate(shorter: _Window, longer: _Window, name: str) -> float:
    return (longer.freed[name] - shorter.freed[name]) / (longer.steps - shorter.steps)


def _context() -> Any:
    context = getattr(sys.modules.get(_CONTEXT_MODULE), "context", None)
    return context() if context is not None else None


def _heap_reader() -> Callable[[], int] | None:
    import psutil

    if not hasattr(psutil, "heap_info"):
        return None
    return lambda: int(psutil.heap_info().heap_used)

"""Heap engines: who allocated what, step by step.

An engine is started after the watch pass, fenced at every boundary and stopped; from what it saw
come exact live bytes per step and per allocation site.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakkit.series import Series

# What follows a heap's name: blocks made less blocks freed, and blocks freed that were made
# before the trace, whose size nobody knows.
NET, FREED = "_blocks", "_freed"
HEAPS = ("python_heap", "native_heap")
COUNTS = frozenset(heap + suffix for heap in HEAPS for suffix in (NET, FREED))
# Blocks that a step made, whether or not they outlived it, and their bytes.
ALLOCATIONS, ALLOCATED = "allocations", "allocated"


class HeapError(RuntimeError):
    """The heap cannot be traced; the text says why and what to do."""


class Frame(NamedTuple):
    """One Python frame of an allocation's stack."""

    function: str
    file: str
    line: int


@dataclass(frozen=True)
class Site:
    """The blocks that one call stack allocated and that outlived a step.

    Args:
        stack: innermost frame first; empty for a thread without Python frames.
        allocator: ``python`` for Python's own allocators, ``native`` for malloc and mmap.
        live: shape ``(steps,)``: bytes alive at each boundary.
        blocks: shape ``(steps,)``: blocks alive at each boundary.
        native: native frames, innermost first, where they were asked for.
    """

    stack: tuple[Frame, ...]
    allocator: str
    live: NDArray[np.float64]
    blocks: NDArray[np.float64]
    native: tuple[str, ...] = ()


class Engine(ABC):
    """Traces allocations over one or more stretches of steps."""

    name: str

    @abstractmethod
    def start(self) -> None:
        """Begin a stretch; raises HeapError where another tracer is active."""

    @abstractmethod
    def fence(self) -> None:
        """Mark a boundary: once right after ``start``, then after every step."""

    @abstractmethod
    def stop(self) -> None:
        """End the stretch; harmless when none is active."""

    def reading_seconds(self) -> float:
        """About how long the analysis of the stretch so far will take."""
        return 0.0

    def close(self) -> None:
        """End the trace for good."""
        self.stop()

    @abstractmethod
    def series(self) -> Sequence[Series]:
        """Live bytes per step of all stretches so far: ``python_heap``, perhaps ``native_heap``.

        Where the engine knows, also the blocks of each, with NET and FREED after its name, and
        ALLOCATIONS and ALLOCATED.
        """

    @abstractmethod
    def sites(self) -> list[Site]:
        """Sites whose live bytes rose over the trace, the largest rise first."""


def engine(name: str, folder: Path, *, native: bool = False) -> Engine | None:
    """The engine called ``name``: ``auto``, ``memray``, ``tracemalloc`` or ``off``.

    Args:
        name: ``auto`` takes memray where it runs, else tracemalloc.
        folder: where an engine keeps its files.
        native: record native stacks too (slower; memray only).
    """
    if name == "off":
        return None
    if name in ("auto", "memray"):
        try:
            from leakkit.heap.memray import MemrayEngine

            return MemrayEngine(folder, native=native)
        except ImportError as error:
            if name == "memray":
                raise HeapError(
                    f"memray cannot be used here ({error}); choose --leakkit-heap=tracemalloc"
                ) from error
    from leakkit.heap.tracemalloc import TracemallocEngine

    return TracemallocEngine()

"""Bytes that the C library's allocator has in use: sees tensors on the CPU, misses pymalloc."""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from leakkit.probes import Kind, Probe, Quantity, Unavailable


class NativeHeap(Probe):
    """``native_heap``: malloc's bytes in use, small blocks and mapped ones together.

    Chunks in a thread's own cache count as in use, so the level creeps for a while: it is a
    noisy companion of the trace pass, which counts every block.
    """

    quantities = (Quantity("native_heap", "B", Kind.NOISY),)

    def __init__(self) -> None:
        if not hasattr(psutil, "heap_info"):
            raise Unavailable("this platform's C library does not tell what malloc has in use")

    def read(self) -> Sequence[float]:
        used = psutil.heap_info()
        return (used.heap_used + used.mmap_used,)

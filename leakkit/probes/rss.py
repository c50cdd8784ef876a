"""Resident memory of the process."""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from leakkit.probes import Kind, Probe, Quantity

GRAIN = 32_768  # bytes: eight pages, which come and go with any step


class Rss(Probe):
    """``rss``: resident set size.

    Advisory: it moves in pages, hides small leaks, and rises with mere fragmentation.
    """

    quantities = (Quantity("rss", "B", Kind.NOISY, advisory=True, grain=GRAIN),)

    def __init__(self) -> None:
        self._process = psutil.Process()

    def read(self) -> Sequence[float]:
        return (self._process.memory_info().rss,)

"""Threads of the process, native ones too."""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from leakkit.probes import Kind, Probe, Quantity


class Threads(Probe):
    """``threads``: how many threads the process has."""

    quantities = (Quantity("threads", "threads", Kind.COUNTER),)

    def __init__(self) -> None:
        self._process = psutil.Process()

    def read(self) -> Sequence[float]:
        return (self._process.num_threads(),)

"""Open file descriptors (handles on Windows)."""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from leakkit.probes import Kind, Probe, Quantity


class Fds(Probe):
    """``fds``: how many descriptors the process holds."""

    quantities = (Quantity("fds", "descriptors", Kind.COUNTER),)

    def __init__(self) -> None:
        process = psutil.Process()
        self._count = getattr(process, "num_fds", None) or process.num_handles

    def read(self) -> Sequence[float]:
        return (self._count(),)

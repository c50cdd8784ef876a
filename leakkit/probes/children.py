"""Child processes and their memory."""

from __future__ import annotations

import os
from collections.abc import Sequence

import psutil

from leakkit.probes import Kind, Probe, Quantity
from leakkit.probes.rss import GRAIN


class Children(Probe):
    """``children`` and ``children_memory``: descendants and the sum of their resident memory."""

    quantities = (
        Quantity("children", "processes", Kind.COUNTER),
        Quantity("children_memory", "B", Kind.NOISY, advisory=True, grain=GRAIN),
    )

    def __init__(self) -> None:
        self._process = psutil.Process()

    def read(self) -> Sequence[float]:
        if _childless():
            return (0, 0)
        children = self._process.children(recursive=True)
        alive = [memory for child in children if (memory := _memory(child)) is not None]
        return (len(alive), sum(alive))


def _childless() -> bool:
    """Whether the process has no child at all: a microsecond, where listing them takes 800."""
    if not hasattr(os, "waitid"):
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _memory(child: psutil.Process) -> int | None:
    """Resident bytes, or ``None`` of a child that has gone."""
    try:
        return int(child.memory_info().rss)
    except psutil.Error:
        return None

"""Memory blocks of Python's allocator."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from leakkit.probes import Kind, Probe, Quantity


class PythonBlocks(Probe):
    """``python_blocks``: blocks in use.

    Advisory: the interpreter's own type cache fills for a thousand steps of correct code.
    """

    quantities = (Quantity("python_blocks", "blocks", Kind.COUNTER, advisory=True),)

    def read(self) -> Sequence[float]:
        return (sys.getallocatedblocks(),)

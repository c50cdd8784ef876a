"""Objects in reference cycles that a step leaves for the collector."""

from __future__ import annotations

import gc

from leakkit.series import Kind, Quantity

QUANTITY = Quantity("garbage", "objects", Kind.COUNTER, advisory=True)


class Garbage:
    """Collects at each boundary and adds up what was found.

    The forced collection hides a loop whose garbage nobody collects, so the sum is a series of
    its own: a finding, and a leak only where the collector is switched off.
    """

    def __init__(self) -> None:
        self._total = 0

    def collect(self) -> float:
        """Collect now; all objects found in cycles since the first boundary."""
        self._total += gc.collect()
        return self._total

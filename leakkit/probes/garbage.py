"""Objects in reference cycles that a step leaves for the collector."""

from __future__ import annotations

import gc

from leakkit.series import Kind, Quantity

QUANTITY = Quantity("garbage", "objects", Kind.COUNTER, advisory=True)


class Garbage:
    """Collects at each boundary and adds up what was found.

    The forced collection hides a loop whose garbage nobody collects, so the sum is a series of
    its own: a finding, and a leak only where the collector is switched off and the step does not
    collect by itself.
    """

    def __init__(self) -> None:
        self.step_collects = False
        self.in_step = False
        self._total = 0
        gc.callbacks.append(self._began)

    def collect(self) -> float:
        """Collect now; all objects found in cycles since the first boundary."""
        self._total += gc.collect()
        return self._total

    def close(self) -> None:
        """Stop listening to the collector; safe to call twice."""
        if self._began in gc.callbacks:
            gc.callbacks.remove(self._began)

    def _began(self, phase: str, info: dict[str, int]) -> None:
        """A collection that nobody asked for may only happen where the collector is on."""
        if self.in_step and not gc.isenabled():
            self.step_collects = True

"""The control kernel: fixed work between the steps, so that a slow machine is not a slow step."""

from __future__ import annotations

import time

import numpy as np

from leakkit.series import Kind, Quantity

QUANTITY = Quantity("control", "s", Kind.LATENCY, advisory=True)
SHARE = 0.1  # of the step's own time
SHORTEST, LONGEST = 20e-6, 2e-3  # seconds: above the clock's noise, below what a person notices


class Control:
    """Adds two small vectors, in the processor's first cache, a fixed number of times.

    It allocates nothing. The number is chosen once, from the time of a step.
    """

    def __init__(self, step_seconds: float) -> None:
        self._a = np.ones(2048, np.float32)
        self._b = np.ones(2048, np.float32)
        self._repeats = 16
        aim = min(max(SHARE * step_seconds, SHORTEST), LONGEST)
        took = min(self._once() for _ in range(5))
        self._repeats = max(1, round(self._repeats * aim / took))

    def run(self, times: int = 1) -> float:
        """Do the work; seconds that it took, the median of ``times`` runs."""
        return sorted(self._once() for _ in range(times))[times // 2]

    def _once(self) -> float:
        add, a, b = np.add, self._a, self._b
        began = time.perf_counter()
        for _ in range(self._repeats):
            add(a, b, out=b)
        return time.perf_counter() - began

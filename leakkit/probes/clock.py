"""Wall and processor time of one step."""

from __future__ import annotations

import time

from leakkit.series import Kind, Quantity

QUANTITIES = (
    Quantity("latency", "s", Kind.LATENCY),
    Quantity("cpu_time", "s", Kind.LATENCY, advisory=True),
)


class Clock:
    """Times one stretch. Its calls stand as close to the step as they can."""

    __slots__ = ("cpu", "wall")

    def start(self) -> None:
        """The step begins: the wall clock is read last."""
        self.cpu = time.process_time()
        self.wall = time.perf_counter()

    def stop(self) -> tuple[float, float]:
        """The step ended: seconds of wall and of processor time, all threads."""
        wall = time.perf_counter() - self.wall
        return wall, time.process_time() - self.cpu

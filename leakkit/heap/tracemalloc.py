"""The tracemalloc engine: where memray does not run. Python's heap only, by line."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leakkit.heap import Engine, Frame, HeapError, Site
from leakkit.series import Kind, Quantity, Series

# A snapshot of a large process takes tens of milliseconds, so lines are sampled, bytes are not.
SNAPSHOT_EVERY = 20
STACK_DEPTH = 12

Stack = tuple[Frame, ...]
Held = dict[Stack, tuple[int, int]]  # bytes and blocks alive


class TracemallocEngine(Engine):
    """Exact bytes of Python's heap per step; growth per line from snapshots every few steps."""

    name = "tracemalloc"

    def __init__(self) -> None:
        self._levels = np.empty(1024)  # written in place: a list would grow inside the trace
        self._steps = 0
        self._base = 0.0
        self._snapshots: list[tuple[int, Held]] = []
        self._running = self._fresh = False

    def start(self) -> None:
        if not self._running:
            if tracemalloc.is_tracing():
                raise HeapError(
                    "tracemalloc is already tracing in this process: stop it first, or choose "
                    "--leakkit-heap=memray"
                )
            tracemalloc.start(STACK_DEPTH)
        self._running = self._fresh = True

    def fence(self) -> None:
        if self._fresh:  # the first fence of a stretch is its zero, not a step
            self._fresh = False
            self._base = (self._levels[self._steps - 1] if self._steps else 0.0) - _traced()
            return
        self._levels[self._steps] = _traced() + self._base
        self._steps += 1
        if self._steps == len(self._levels) or self._steps % SNAPSHOT_EVERY == 0:
            self._pause()

    def stop(self) -> None:
        """Goes on tracing: what is released in the next stretch must be known by then."""

    def close(self) -> None:
        if self._running:
            self._running = False
            tracemalloc.stop()

    def series(self) -> Sequence[Series]:
        levels = self._levels[: self._steps].copy()
        return [Series(Quantity("python_heap", "B", Kind.EXACT), levels)]

    def sites(self) -> list[Site]:
        if len(self._snapshots) < 2:
            return []
        first, last = self._snapshots[0][1], self._snapshots[-1][1]
        rise = {stack: held[0] - first.get(stack, (0, 0))[0] for stack, held in last.items()}
        rising = sorted((s for s in rise if rise[s] > 0), key=lambda s: -rise[s])
        return [Site(s, "python", self._over_steps(s, 0), self._over_steps(s, 1)) for s in rising]

    def _pause(self) -> None:
        """Do what allocates, and take its allocations out of the levels that follow."""
        before = _traced()
        if self._steps == len(self._levels):
            self._levels = np.concatenate([self._levels, np.empty(len(self._levels))])
        self._snapshots.append((self._steps - 1, _by_stack()))
        gc.collect()  # a snapshot leaves cycles, whose end would read as a fall
        self._base -= _traced() - before

    def _over_steps(self, stack: Stack, part: int) -> NDArray[np.float64]:
        """Shape ``(steps,)``: a line's level, straight between its snapshots."""
        at = [step for step, _ in self._snapshots]
        level = [held.get(stack, (0, 0))[part] for _, held in self._snapshots]
        return np.asarray(np.interp(np.arange(self._steps), at, level))


def _traced() -> int:
    return tracemalloc.get_traced_memory()[0]


def _by_stack() -> Held:
    """Bytes and blocks alive, by stack, innermost frame first; leakkit's own left out."""
    own = tracemalloc.Filter(False, __file__, all_frames=True)
    snapshot = tracemalloc.take_snapshot().filter_traces([own])
    held: Held = {}
    for statistic in snapshot.statistics("traceback"):
        stack = tuple(Frame("", f.filename, f.lineno) for f in reversed(list(statistic.traceback)))
        held[stack] = (statistic.size, statistic.count)
    return held

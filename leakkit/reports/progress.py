"""A progress line for long runs, drawn so that it does not show in what is measured.

A progress library keeps caches, objects and a thread of its own, and each of them is a series of
the run. This line is a few bytes written now and then between two steps.
"""

from __future__ import annotations

import os
import time

_CLEAR = "\r\x1b[K"


class Progress:
    """Draws ``watch pass  120/240 steps  3 s`` on a terminal; nothing in a run that is short.

    Args:
        descriptor: of the terminal; ``close`` does not close it.
        column: where another program's unfinished line ends, which the drawing then leaves alone
            by using the line below it; ``None`` to draw on the current line.
        wait: seconds before anything is drawn.
        every: seconds between two drawings.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        column: int | None = None,
        wait: float = 1.0,
        every: float = 0.25,
    ) -> None:
        self._descriptor = descriptor
        self._column = column
        self._every = every
        self._began = time.monotonic()
        self._next = self._began + wait
        self._drawn = False

    def __call__(self, name: str, done: int, planned: int) -> None:
        """Tell how far the pass ``name`` has come; called between two steps."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every
        if not self._drawn and self._column is not None:
            self._write("\n")
        self._drawn = True
        self._write(f"{_CLEAR}  {name} pass  {done}/{planned} steps  {now - self._began:.0f} s")

    def close(self) -> None:
        """Remove the line; also when nothing was drawn."""
        if not self._drawn:
            return
        self._drawn = False
        back = "" if self._column is None else f"\x1b[A\x1b[{self._column + 1}G"
        self._write(_CLEAR + back)

    def _write(self, text: str) -> None:
        try:
            os.write(self._descriptor, text.encode("ascii"))
        except OSError:  # the terminal is gone: no reason to end a measurement
            self._next = float("inf")

"""Listens to the compilers of the frameworks that are loaded, while the hunt lasts."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from leakkit.suspects.retraces import Trace
from leakkit.suspects.tracers import jax, tensorflow, torch

_MOST = 2000  # traces kept of one hunt
_LISTEN = {"tensorflow": tensorflow.listen, "jax": jax.listen, "torch": torch.listen}


class Tracers:
    """Collects traces between ``start`` and ``stop``; hooks nothing that is not imported."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.failed: list[str] = []
        self._undo: list[Callable[[], None]] = []
        self._collect: list[Callable[[], list[Trace]]] = []

    def start(self) -> None:
        """Hook every framework that is loaded; what fails is said in ``failed``."""
        for name, listen in _LISTEN.items():
            if name in sys.modules:
                try:
                    listen(self)
                except Exception as error:  # a private name moved: go without
                    self.failed.append(f"{name} does not say why it compiles ({error})")

    def add(self, trace: Trace) -> None:
        """Remember a trace."""
        if len(self.traces) < _MOST:
            self.traces.append(trace)

    def at_end(self, undo: Callable[[], None]) -> None:
        """Call this when the hunt is over."""
        self._undo.append(undo)

    def collect_at_end(self, collect: Callable[[], list[Trace]]) -> None:
        """Ask this for its traces when the hunt is over."""
        self._collect.append(collect)

    def stop(self) -> None:
        """Take every hook out again."""
        for collect in self._collect:
            with contextlib.suppress(Exception):
                self.traces.extend(collect())
        self._collect.clear()
        while self._undo:
            self._undo.pop()()

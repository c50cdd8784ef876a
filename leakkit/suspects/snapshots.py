"""What a framework's own allocator recorded during the hunt, saved beside the recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from leakkit.frameworks import Framework

T = TypeVar("T")


class Snapshots:
    """``begin()`` and ``end()``; then ``notes`` names the files, and what failed."""

    def __init__(self, frameworks: Sequence[Framework], folder: Path) -> None:
        self._frameworks, self._folder = frameworks, folder
        self.notes: list[str] = []

    def begin(self) -> None:
        """Let the frameworks record their allocations."""
        for framework in self._frameworks:
            self._try(framework, framework.record, None)

    def end(self) -> None:
        """Write what they recorded."""
        for framework in self._frameworks:
            nothing: list[Path] = []
            files = self._try(framework, partial(framework.snapshot, self._folder), nothing)
            self.notes += [
                f"{framework.name} recorded its allocations: {file}; {framework.viewer}"
                for file in files
            ]

    def _try(self, framework: Framework, ask: Callable[[], T], otherwise: T) -> T:
        """Private names move and disks are full: neither costs the report."""
        try:
            return ask()
        except Exception as error:
            self.notes.append(f"{framework.name} gave no snapshot of its allocations: {error}")
            return otherwise

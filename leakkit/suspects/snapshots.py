"""What a framework's own allocator recorded during the hunt, saved beside the recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakkit.frameworks import Framework


class Snapshots:
    """``begin()`` and ``end()``; then ``notes`` names the files, and what failed."""

    def __init__(self, frameworks: Sequence[Framework], folder: Path) -> None:
        self._frameworks, self._folder = frameworks, folder
        self._recording: list[Framework] = []
        self.notes: list[str] = []

    def begin(self) -> None:
        """Let the frameworks record their allocations."""
        for framework in self._frameworks:
            with self._noting(framework):
                framework.record()
                self._recording.append(framework)

    def end(self) -> None:
        """Write what they recorded."""
        for framework in self._recording:
            with self._noting(framework):
                self.notes += [
                    f"{framework.name} recorded its allocations: {file}; {framework.viewer}"
                    for file in framework.snapshot(self._folder)
                ]

    @contextmanager
    def _noting(self, framework: Framework) -> Iterator[None]:
        """Private names move and disks are full: neither costs the report."""
        try:
            yield
        except Exception as error:
            self.notes.append(f"{framework.name} gave no snapshot of its allocations: {error}")


def saved(folder: Path) -> list[Path]:
    """The snapshots in a recording's folder, or below it."""
    return sorted(folder.rglob("*-memory-snapshot.*"))

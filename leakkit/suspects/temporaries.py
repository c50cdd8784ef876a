"""The random parts of the names that ``tempfile`` gives."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from typing import Any

_MOST = 10_000  # names remembered
_LENGTH = 8
# One in 37 begins with "_" and is missed, for the sake of a "tmp_results" that is always the same.
_BY_DEFAULT = re.compile(rf"^tmp((?!_)[a-z0-9_]{{{_LENGTH}}})(?![a-z0-9_])")


class Temporaries:
    """Notes each random part that is drawn between ``start`` and ``stop``.

    A name alone does not tell ``run_12ab`` that a person chose from one that was drawn.
    """

    def __init__(self) -> None:
        self.drawn: set[str] = set()
        self._sequence: Any = None

    def start(self) -> None:
        """Begin to listen."""
        self.drawn = set()  # a new one, which the first census has not seen
        with contextlib.suppress(Exception):  # a private name moved: only "tmp…" is known
            sequence = type(tempfile._get_candidate_names())  # type: ignore[attr-defined]
            self._original = sequence.__next__
            sequence.__next__ = self._noting(self._original)
            self._sequence = sequence

    def stop(self) -> None:
        """Stop listening; what was drawn is still known."""
        if self._sequence is not None:
            self._sequence.__next__ = self._original
            self._sequence = None

    def _noting(self, original: Any) -> Any:
        def draw(names: Any) -> str:
            name: str = original(names)
            if len(self.drawn) < _MOST:
                self.drawn.add(name)
            return name

        return draw

    def random_part(self, name: str) -> str:
        """What ``tempfile`` drew of the name of a file or folder; empty where it drew nothing."""
        parts = (name[i : i + _LENGTH] for i in range(len(name) - _LENGTH + 1))
        default = _BY_DEFAULT.match(name)  # made by a child process, or before
        return next((part for part in parts if part in self.drawn), default[1] if default else "")

    def pattern_of(self, path: str) -> str:
        """A path with ``*`` for what ``tempfile`` drew and ``N`` for numbers."""
        return os.sep.join(map(self._pattern, path.split(os.sep)))

    def _pattern(self, name: str) -> str:
        drawn = self.random_part(name)
        return re.sub(r"\d+", "N", name.replace(drawn, "*", 1) if drawn else name)

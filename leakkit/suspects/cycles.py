"""What one step leaves in reference cycles, which only the collector can free."""

from __future__ import annotations

import gc
import sys
from collections import Counter

from leakkit.suspects import Suspect
from leakkit.suspects.places import is_user

_MOST = 3  # types that are named


class Cycles:
    """``collect()`` after one step; then ``suspects()``."""

    def __init__(self) -> None:
        self.found: Counter[type] = Counter()

    def collect(self) -> None:
        """Count the types of what a collection finds; the next one frees it."""
        debug, before = gc.get_debug(), len(gc.garbage)
        gc.set_debug(debug | gc.DEBUG_SAVEALL)
        try:
            gc.collect()
        finally:
            gc.set_debug(debug)
        self.found = Counter(map(type, gc.garbage[before:]))
        del gc.garbage[before:]

    def suspects(self) -> list[Suspect]:
        """One, where there was anything: the user's own types first."""
        if not self.found:
            return []
        ranked = sorted(self.found, key=lambda kind: (not _users(kind), -self.found[kind]))
        first, number = ranked[0], self.found.total()
        names = ", ".join(f"{self.found[kind]} {kind.__qualname__}" for kind in ranked[:_MOST])
        return [
            Suspect(
                "cycle",
                f"{first.__qualname__} objects (module {first.__module__})",
                f"+{number} objects a step that only the collector frees: {names}",
                float(number),
                "objects",
                ("garbage",),
                {"types": [kind.__qualname__ for kind in ranked], "count": number},
            )
        ]


def _users(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and is_user(file)

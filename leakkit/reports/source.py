"""The line of code that a suspect points at."""

from __future__ import annotations

import linecache

from leakkit.suspects import Suspect

_LONGEST = 60


def source_line(suspect: Suspect) -> str:
    """The source of an allocation site, shortened; empty where nobody has it."""
    facts = suspect.facts
    kept = facts.get("source")
    if kept is not None or suspect.kind != "site" or not facts.get("file"):
        return str(kept or "")
    code = linecache.getline(str(facts["file"]), int(facts.get("line") or 0)).strip()
    return code if len(code) <= _LONGEST else f"{code[: _LONGEST - 2]} …"

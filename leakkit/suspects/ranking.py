"""Which evidence a person should see first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from leakkit.suspects import Suspect
from leakkit.trend import Verdict

if TYPE_CHECKING:
    from leakkit.result import Finding

# The trace pass counts every byte of these exactly; the rest is seen in the watch pass alone.
_BYTES = ("python_heap", "native_heap")


def rank(found: Sequence[Suspect], findings: Mapping[str, Finding]) -> list[Suspect]:
    """Best evidence first: what explains a series that grows, by its share, then by its kind."""
    growing = growing_series(findings)
    total = total_bytes(findings)
    kept = [_relevant(s, growing) for s in found]
    return sorted((s for s in kept if s is not None), key=lambda s: _key(s, total, growing))


def growing_series(findings: Mapping[str, Finding]) -> set[str] | None:
    """Names of the series that grow; ``None`` where nothing was judged."""
    if not findings:
        return None
    return {name for name, f in findings.items() if f.trend.verdict is Verdict.GROWS}


def total_bytes(findings: Mapping[str, Finding]) -> float:
    """Bytes a step that the two heaps gain together; 0 where neither grows."""
    slopes = [findings[n].trend.slope for n in _BYTES if n in findings]
    return sum(max(0.0, slope) for slope in slopes)


def share(suspect: Suspect, total: float) -> float:
    """The part of the heap's growth that a suspect explains, 0 to 1."""
    found = float(suspect.facts.get("bytes_per_step", 0.0) or 0.0)
    return min(1.0, found / total) if total > 0 else 0.0


def _relevant(suspect: Suspect, growing: set[str] | None) -> Suspect | None:
    """With the series that it does explain; ``None`` where none of them grows."""
    if growing is None:
        return suspect
    if suspect.kind in ("retrace", "cache", "container", "object", "site"):
        return replace(suspect, explains=tuple(n for n in suspect.explains if n in growing))
    explains = tuple(n for n in suspect.explains if n in growing)
    return replace(suspect, explains=explains) if explains else None


def _key(suspect: Suspect, total: float, growing: set[str] | None) -> tuple[float, ...]:
    part = share(suspect, total)
    return (_tier(suspect, part, total, growing), -part, -suspect.slope)


def _tier(suspect: Suspect, part: float, total: float, growing: set[str] | None) -> int:
    """Rough order; within one, the share decides."""
    if suspect.kind == "retrace":
        return 0 if not suspect.facts.get("inside") else 2
    if suspect.kind in ("file", "child") or (suspect.kind in ("thread", "descriptor")):
        return 1 if total == 0 else 4
    if suspect.kind == "container":
        return 1 if part >= 0.1 or total == 0 else 4
    if suspect.kind == "cache":
        return 2 if part >= 0.05 or suspect.facts.get("registry") else 5
    if suspect.kind == "site":
        return 3 if part >= 0.02 else 6
    return 5

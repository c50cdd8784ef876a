"""Which evidence a person should see first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from leakkit.heap import HEAPS
from leakkit.suspects import Suspect
from leakkit.trend import Verdict

if TYPE_CHECKING:
    from leakkit.result import Finding

# Bytes by another count; some of them lie in the native heap, so they are never added to it.
_ELSEWHERE = ("device_memory", "live_tensor_bytes")


def rank(found: Sequence[Suspect], findings: Mapping[str, Finding]) -> list[Suspect]:
    """Best evidence first: what explains a series that grows, by its share, then by its kind."""
    growing = growing_series(findings)
    total = total_bytes(findings)
    kept = [_relevant(s, growing) for s in found]
    return sorted((s for s in kept if s is not None), key=lambda s: _key(s, total))


def growing_series(findings: Mapping[str, Finding]) -> set[str] | None:
    """Names of the series that grow; ``None`` where nothing was judged."""
    if not findings:
        return None
    return {name for name, f in findings.items() if f.trend.verdict is Verdict.GROWS}


def total_bytes(findings: Mapping[str, Finding]) -> float:
    """Bytes a step that the two heaps gain together, or else the devices; 0 where none grows."""
    grown = {
        name: finding.trend.slope
        for name, finding in findings.items()
        if finding.trend.verdict is Verdict.GROWS and finding.trend.slope > 0
    }
    heaps = sum(slope for name, slope in grown.items() if name in HEAPS)
    other = [slope for name, slope in grown.items() if family(name) in _ELSEWHERE]
    return heaps or max(other, default=0.0)


def family(name: str) -> str:
    """``device_memory`` for ``device_memory:GPU:0``."""
    return name.partition(":")[0]


def share(suspect: Suspect, total: float) -> float:
    """The part of the heap's growth that a suspect explains, 0 to 1."""
    found = float(suspect.facts.get("bytes_per_step", 0.0) or 0.0)
    return min(1.0, found / total) if total > 0 else 0.0


def _relevant(suspect: Suspect, growing: set[str] | None) -> Suspect | None:
    """With the series that it does explain; ``None`` where none of them grows."""
    if growing is None or not suspect.explains:  # what explains nothing is evidence all the same
        return suspect
    explains = tuple(
        n for n in sorted(growing) if n in suspect.explains or family(n) in suspect.explains
    )
    return replace(suspect, explains=explains) if explains else None


def _key(suspect: Suspect, total: float) -> tuple[float, ...]:
    part = share(suspect, total)
    return (_tier(suspect, part, total), -part, -suspect.slope)


def _tier(suspect: Suspect, part: float, total: float) -> float:
    """Rough order; within one, the share decides."""
    facts = suspect.facts
    if not suspect.explains:
        return 9
    if suspect.kind == "retrace":
        return 0 if not facts.get("inside") else 2
    if suspect.kind == "container":
        return 1 if total == 0 or part >= 0.02 or facts.get("opaque") else 5
    if suspect.kind == "cache":
        return 6 if facts.get("registry") in _SIDE_EFFECTS else _cache_tier(part, total)
    if suspect.kind == "site":
        return 3 if part >= 0.02 else 7
    return _OTHERS.get(suspect.kind, 8) if total > 0 else _OTHERS.get(suspect.kind, 8) - 4


def _cache_tier(part: float, total: float) -> float:
    return 2 if total == 0 or part >= 0.02 else 4


# They grow because something else does: a thread that is kept, a child that is not waited for.
_SIDE_EFFECTS = {"threads", "executor_threads", "children", "subprocesses", "weakref_finalize",
                 "tf_tracing_detector", "tf_function_table"}  # fmt: skip
_OTHERS: Mapping[str, float] = {"child": 0.5, "file": 5, "thread": 5.5, "descriptor": 5.8}

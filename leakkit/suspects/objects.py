"""Types whose live count grows, with a path to one of the new instances."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakkit.suspects import Suspect
from leakkit.suspects.census import Census, steady_rate
from leakkit.suspects.paths import Path
from leakkit.suspects.sizes import type_module, type_name

_MOST = 6
# Building blocks: their number grows with everything else and explains nothing.
_PLAIN = {"builtins", "types", "_weakref", "weakref", "functools"}
_TELLING = {"traceback", "frame", "generator", "coroutine", "module", "type"}


@dataclass
class Multiplying:
    """A type whose count rose in both halves of the hunt."""

    name: str
    rate: float
    count: int
    sample: Any = None
    path: Path | None = None


def multiplying(censuses: Sequence[Census], most: int = _MOST) -> list[Multiplying]:
    """The growing types, those that say something first, then the fastest."""
    steps = [census.step for census in censuses]
    found = []
    for name, count in censuses[-1].counts.items():
        rate = steady_rate([census.counts.get(name, 0) for census in censuses], steps)
        if rate >= _least(name, censuses):
            found.append(Multiplying(name, rate, count))
    return sorted(found, key=lambda m: (not telling(m.name), -m.rate))[:most]


def _least(name: str, censuses: Sequence[Census]) -> float:
    """Objects a step from which a type counts as growing.

    Each census leaves some lists and dicts of its own behind.
    """
    if name.startswith("leakkit.") and not name.startswith("leakkit.scenarios."):
        return float("inf")
    steps = max(1, censuses[-1].step - censuses[0].step)
    return 0.3 if telling(name) else max(0.3, 8 * len(censuses) / steps)


def telling(name: str) -> bool:
    """Whether a type's name alone says something about the cause."""
    module, _, short = name.rpartition(".")
    return short in _TELLING or module not in _PLAIN


def take_samples(found: Sequence[Multiplying], objects: Sequence[Any]) -> None:
    """Keep one new instance of each; the latest may still be in use, so not the last one."""
    wanted: dict[str, Multiplying] = {m.name: m for m in found}
    seen: collections.Counter[str] = collections.Counter()
    names: dict[type, str] = {}
    for value in reversed(objects):
        kind = type(value)
        name = names.get(kind)
        if name is None:
            name = names[kind] = f"{type_module(kind)}.{type_name(kind)}"
        if name in wanted and seen[name] < 3:
            seen[name] += 1
            wanted[name].sample = value


def suspect(found: Multiplying) -> Suspect:
    """The evidence; the path is shown as a short tree in ``facts["tree"]``."""
    short = found.name.rpartition(".")[2]
    where = f"{short} objects"
    if found.path is not None:
        where += f", one of them at {found.path.text()}"
    facts = {
        "type": short,
        "module": found.name.rpartition(".")[0],
        "count": found.count,
        "objects_per_step": found.rate,
        "path": found.path.name if found.path else "",
        "owner": found.path.owner if found.path else "",
        "path_types": sorted({*found.path.types, *found.path.bases}) if found.path else [],
        "native_held": found.sample is not None and found.path is None,
        "tree": tree(found.path) if found.path else "",
    }
    what = f"{found.rate:+,.3g} {short} a step, {found.count:,} alive"
    return Suspect(
        "object", where, what, found.rate, "objects", ("live_objects", "live_tensors"), facts
    )


def tree(path: Path) -> str:
    """A path as indented lines, root first."""
    lines = [path.root or path.kind]
    accessors = list(path.links)
    if len(accessors) < len(path.types):
        accessors.insert(0, "")
    for depth, (accessor, kind) in enumerate(zip(accessors, path.types, strict=False)):
        label = accessor or path.name.partition(".")[0].partition("[")[0]
        lines.append(f"{'   ' * depth}╰→ {label}: {kind.rpartition('.')[2]}")
    return "\n".join(lines)

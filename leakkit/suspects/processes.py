"""Threads, child processes and descriptors that pile up."""

from __future__ import annotations

import collections
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leakkit.suspects import Suspect
from leakkit.suspects.census import half_way
from leakkit.suspects.places import code_place

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Snapshot:
    """What the process has at one boundary, counted by a name that leaves numbers out."""

    step: int
    threads: Counts
    native_threads: Counts
    children: Counts
    descriptors: Counts


def snapshot(step: int) -> Snapshot:
    """Look once; costs a few milliseconds."""
    names = (_threads(), _native_threads(), _children(), _descriptors())
    # Plain dicts: a Counter is among what the hunt counts, and would multiply from look to look.
    return Snapshot(step, *(dict(collections.Counter(of_a_kind)) for of_a_kind in names))


def suspects(looks: Sequence[Snapshot]) -> list[Suspect]:
    """Every name of which there came more in both halves, however rarely one came."""
    if len(looks) < 3:
        return []
    middle = looks[half_way([look.step for look in looks])]
    steps = max(1, looks[-1].step - looks[0].step)
    found: list[Suspect] = []
    for kind, unit, series, read in _TABLES:
        first, half, last = read(looks[0]), read(middle), read(looks[-1])
        for name, gained in _gains(first, half, last):
            found.append(_suspect(kind, unit, series, name, gained / steps, last[name]))
    return _without_native_twins(found)


_TABLES: tuple[tuple[str, str, str, Callable[[Snapshot], Counts]], ...] = (
    ("thread", "threads", "threads", lambda s: s.threads),
    ("thread", "native threads", "threads", lambda s: s.native_threads),
    ("child", "processes", "children", lambda s: s.children),
    ("descriptor", "descriptors", "fds", lambda s: s.descriptors),
)


def _gains(first: Counts, half: Counts, last: Counts) -> list[tuple[str, int]]:
    """What rose in both halves, and by how many in all, most first."""
    counts = [(name, first.get(name, 0), half.get(name, 0), last[name]) for name in last]
    gains = [(name, end - start) for name, start, mid, end in counts if start < mid < end]
    return sorted(gains, key=lambda gain: -gain[1])


def _suspect(kind: str, unit: str, series: str, name: str, rate: float, now: int) -> Suspect:
    what = f"{rate:+,.3g} {unit} a step, {now:,} now"
    facts: dict[str, Any] = {"name": name, "count": now, "native": unit.startswith("native")}
    return Suspect(kind, _WORDS[kind].format(name), what, rate, unit, (series,), facts)


_WORDS = {
    "thread": "threads named {}",
    "child": "child processes {}",
    "descriptor": "open descriptors {}",
}


def _without_native_twins(found: list[Suspect]) -> list[Suspect]:
    """A Python thread is a native one too; it is said once."""
    python = any(s.kind == "thread" and not s.facts["native"] for s in found)
    return [s for s in found if not (python and s.kind == "thread" and s.facts["native"])]


def _without_numbers(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|\d+", "N", text)


def _threads() -> list[str]:
    return [f"{_without_numbers(t.name)}{_start(t)}" for t in threading.enumerate()]


def _start(thread: threading.Thread) -> str:
    target = getattr(thread, "_target", None)
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    return f", started at {code_place(code)}" if code is not None else ""


def _native_threads() -> list[str]:
    names = []
    for task in _listing("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm", encoding="utf-8", errors="replace") as file:
                names.append(_without_numbers(file.read().strip()))
        except OSError:
            continue
    return names


def _children() -> list[str]:
    import psutil

    names = []
    for child in psutil.Process().children(recursive=True):
        try:
            names.append(_without_numbers(" ".join(child.cmdline())[:120] or child.name()))
        except psutil.Error:
            continue
    return names


def _descriptors() -> list[str]:
    names = []
    for number in _listing("/proc/self/fd"):
        try:
            names.append(_without_numbers(os.readlink(f"/proc/self/fd/{number}")))
        except OSError:
            continue
    return names


def _listing(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []

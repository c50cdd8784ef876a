"""Files that pile up or grow in the folders that the step writes to."""

from __future__ import annotations

import collections
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leakkit.suspects import Suspect
from leakkit.suspects.census import half_way
from leakkit.suspects.temporaries import Temporaries

_MOST = 10_000  # entries read of one folder
Sizes = dict[str, int]
_last = os.path.basename


@dataclass
class Folders:
    """Sizes of the files in some folders at the boundaries where they were read.

    Args:
        steps: the boundaries.
        looks: the sizes in bytes by path, one for each of them.
        names: knows which of the names ``tempfile`` made.
    """

    steps: list[int] = field(default_factory=list)
    looks: list[Sizes] = field(default_factory=list)
    names: Temporaries = field(default_factory=Temporaries)

    def look(self, step: int, folders: Iterable[Path]) -> None:
        """Read the sizes now."""
        sizes: Sizes = {}
        for folder in folders:
            _read(os.fspath(folder), sizes)
        sizes.update(_open_files())
        self.steps.append(step)
        self.looks.append(sizes)


def _read(folder: str, sizes: Sizes) -> None:
    waiting, seen = [folder], 0
    while waiting and seen < _MOST:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        sizes[entry.path] = entry.stat().st_size
        except OSError:
            continue


def _open_files() -> Sizes:
    sizes: Sizes = {}
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return sizes
    for number in map(int, numbers):
        try:
            path, status = os.readlink(f"/proc/self/fd/{number}"), os.fstat(number)
        except OSError:
            continue
        if number > 2 and stat.S_ISREG(status.st_mode):
            # Files that were deleted may have had one path; the inode tells them apart.
            path = path.replace(" (deleted)", f" (deleted, inode {status.st_ino})")
            sizes[path] = status.st_size
    return sizes


@dataclass(frozen=True)
class Pile:
    """Files that one pattern names.

    Args:
        pattern: the path with ``N`` for its numbers and ``*`` for what ``tempfile`` drew.
        files: new files a step.
        bytes: added a step, by new files and by growing ones.
        total: files now.
        example: the newest.
        in_new: whether more of the bytes are in new files than in those that grew.
        temporary: whether ``tempfile`` named each new one, or a new folder that it lies in.
    """

    pattern: str
    files: float
    bytes: float
    total: int
    example: str
    in_new: bool
    temporary: bool = False

    @property
    def deleted(self) -> bool:
        """Whether they have no name any more, and only open handles keep them."""
        return self.pattern.endswith(" (deleted, inode N)")


def piles(first: Sizes, last: Sizes, steps: int, names: Temporaries) -> list[Pile]:
    """Patterns of which there are more files, or whose files are bigger."""
    known = set(map(os.path.dirname, first))
    before, after = _by_pattern(first, names), _by_pattern(last, names)
    temporary = {path for path in last if _temporary(path, known, names)}
    found = (_pile(name, before[name], after[name], temporary, steps) for name in list(after))
    return [pile for pile in found if pile.bytes > 0 or pile.files > 0]


def _by_pattern(sizes: Sizes, names: Temporaries) -> collections.defaultdict[str, Sizes]:
    found: collections.defaultdict[str, Sizes] = collections.defaultdict(dict)
    for path, size in sizes.items():
        found[names.pattern_of(path)][path] = size
    return found


def _temporary(path: str, known: set[str], names: Temporaries) -> bool:
    """Whether ``tempfile`` named it, or a new folder that it lies in."""
    folder, name = os.path.split(path)
    new_folder = "" if folder in known else _last(folder)
    return bool(names.random_part(name) or names.random_part(new_folder))


def _pile(pattern: str, before: Sizes, after: Sizes, temporary: set[str], steps: int) -> Pile:
    new = after.keys() - before.keys()
    files = len(after) - len(before)
    added = sum(after.values()) - sum(before.values())
    grown = sum(after[path] - before[path] for path in after.keys() & before.keys())
    return Pile(
        pattern,
        files / steps,
        added / steps,
        len(after),
        max(new, default=pattern),
        in_new=files > 0 and added >= 2 * grown,
        temporary=bool(new) and new <= temporary,
    )


def suspects(seen: Folders) -> list[Suspect]:
    """The piles that grew in both halves, most bytes first."""
    if len(seen.looks) < 3:
        return []
    middle = half_way(seen.steps)
    early, late = _between(seen, 0, middle), _between(seen, middle, -1)
    before: Mapping[str, Pile] = {pile.pattern: pile for pile in early}
    grown = [pile for pile in late if pile.pattern in before]
    return [_suspect(pile, grown) for pile in sorted(grown, key=lambda pile: -pile.bytes)][:8]


def _between(seen: Folders, start: int, end: int) -> list[Pile]:
    steps = max(1, seen.steps[end] - seen.steps[start])
    return piles(seen.looks[start], seen.looks[end], steps, seen.names)


def _suspect(pile: Pile, all_piles: Sequence[Pile]) -> Suspect:
    pattern = _last(pile.pattern)
    name = pattern if "*" in pattern else _last(pile.example)
    folder = _last(os.path.dirname(pile.pattern))
    if pile.in_new:
        what = f"{pile.files:+,.3g} files and {pile.bytes:+,.0f} B a step, {pile.total:,} now"
        where = f"files like {name} in {folder}/"
    else:
        what, where = f"{pile.bytes:+,.0f} B a step", f"file {name}"
    facts = {
        "pattern": pile.pattern,
        "name": pattern,
        "files_per_step": pile.files,
        "file_bytes_per_step": pile.bytes,
        "in_new_files": pile.in_new,
        "temporary": pile.temporary,
        "deleted": pile.deleted,
        "siblings": sorted({_last(p.pattern) for p in all_piles if not p.deleted}),
    }
    return Suspect("file", where, what, pile.bytes, "B", ("file_bytes", "files"), facts)

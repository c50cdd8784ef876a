"""Files that pile up or grow in the folders that the step writes to."""

from __future__ import annotations

import collections
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leakkit.suspects import Suspect

_MOST = 10_000  # entries read of one folder
Sizes = dict[str, int]


@dataclass
class Folders:
    """Sizes of the files in some folders at the boundaries where they were read."""

    steps: list[int] = field(default_factory=list)
    looks: list[Sizes] = field(default_factory=list)

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
    for number in numbers:
        try:
            path = os.readlink(f"/proc/self/fd/{number}")
            if path.startswith("/") and os.path.isfile(path) and int(number) > 2:
                sizes[path] = os.path.getsize(path)
        except OSError:
            continue
    return sizes


@dataclass(frozen=True)
class Pile:
    """Files that one pattern names.

    Args:
        pattern: the path with its numbers replaced by ``N``.
        files: new files a step.
        bytes: added a step, by new files and by growing ones.
        total: files now.
        example: the newest.
        in_new: whether more of the bytes are in new files than in those that grew.
        temporary: whether most of the new ones have a name, or a new folder, made by ``tempfile``.
    """

    pattern: str
    files: float
    bytes: float
    total: int
    example: str
    in_new: bool
    temporary: bool = False


def piles(first: Sizes, last: Sizes, steps: int) -> list[Pile]:
    """Patterns of which there are more files, or whose files are bigger."""
    known = set(map(os.path.dirname, first))
    before, after = _by_pattern(first), _by_pattern(last)
    found = (_pile(name, before[name], after[name], known, steps) for name in list(after))
    return [pile for pile in found if pile.bytes > 0 or pile.files > 0]


def _by_pattern(sizes: Sizes) -> collections.defaultdict[str, Sizes]:
    found: collections.defaultdict[str, Sizes] = collections.defaultdict(dict)
    for path, size in sizes.items():
        found[pattern_of(path)][path] = size
    return found


def _pile(pattern: str, before: Sizes, after: Sizes, known: set[str], steps: int) -> Pile:
    new = [path for path in after if path not in before]
    files = len(after) - len(before)
    added = sum(after.values()) - sum(before.values())
    grown = sum(after[path] - before[path] for path in after.keys() & before.keys())
    in_new = files > 0 and added >= 2 * grown
    example, temporary = max(new, default=pattern), _temporary(new, known)
    return Pile(pattern, files / steps, added / steps, len(after), example, in_new, temporary)


def _temporary(paths: Sequence[str], known: set[str]) -> bool:
    """Whether ``tempfile`` named each of them, or a new folder that it lies in."""
    return bool(paths) and all(_named_by_tempfile(path, known) for path in paths)


def _named_by_tempfile(path: str, known: set[str]) -> bool:
    folder, name = os.path.split(path)
    if _RANDOM.match(os.path.splitext(name)[0]):
        return True
    return folder not in known and bool(_RANDOM.match(os.path.basename(folder)))


_RANDOM = re.compile(r"^(tmp|.*[-_.])?(?=.*\d|.*_)[a-z0-9_]{8}$")


def pattern_of(path: str) -> str:
    """A path with numbers, and names that ``tempfile`` made, replaced."""
    folder, name = os.path.split(path)
    parts = [_part(part) for part in folder.split(os.sep)]
    return os.sep.join([*parts, re.sub(r"\d+", "N", name)])


def _part(part: str) -> str:
    return "*" if _RANDOM.match(part) else re.sub(r"\d+", "N", part)


def suspects(seen: Folders) -> list[Suspect]:
    """The piles that grew in both halves, most bytes first."""
    if len(seen.looks) < 3:
        return []
    middle = _middle(seen.steps)
    early = piles(seen.looks[0], seen.looks[middle], seen.steps[middle] - seen.steps[0])
    late = piles(seen.looks[middle], seen.looks[-1], seen.steps[-1] - seen.steps[middle])
    before: Mapping[str, Pile] = {pile.pattern: pile for pile in early}
    grown = [pile for pile in late if pile.pattern in before]
    return [_suspect(pile, grown) for pile in sorted(grown, key=lambda pile: -pile.bytes)][:8]


def _middle(steps: Sequence[int]) -> int:
    """The inner look nearest to half-way: what comes rarely needs halves of equal length."""
    half = (steps[0] + steps[-1]) / 2
    return min(range(1, len(steps) - 1), key=lambda i: abs(steps[i] - half))


def _suspect(pile: Pile, all_piles: Sequence[Pile]) -> Suspect:
    name = os.path.basename(pile.example)
    folder = os.path.dirname(pile.pattern)
    if pile.in_new:
        what = f"{pile.files:+,.3g} files and {pile.bytes:+,.0f} B a step, {pile.total:,} now"
        where = f"files like {name} in {os.path.basename(folder)}/"
    else:
        what, where = f"{pile.bytes:+,.0f} B a step", f"file {name}"
    facts = {
        "pattern": pile.pattern,
        "name": os.path.basename(pile.pattern),
        "files_per_step": pile.files,
        "file_bytes_per_step": pile.bytes,
        "in_new_files": pile.in_new,
        "temporary": pile.temporary,
        "siblings": sorted({os.path.basename(p.pattern) for p in all_piles}),
    }
    return Suspect("file", where, what, pile.bytes, "B", ("file_bytes", "files"), facts)

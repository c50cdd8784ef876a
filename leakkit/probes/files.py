"""Files that a step leaves behind: in watched folders, and open ones that grow."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakkit.probes import Kind, Probe, Quantity
from leakkit.probes.folders import FolderFinder

# A folder with more entries than this is somebody's data, and reading it would slow every step.
MOST_ENTRIES = 10_000
# An experiment's record, to which a correct training loop adds a line a step. A file more counts;
# a longer one does not.
RECORDS = "events.out.tfevents."

_Identity = tuple[int, int]  # device and inode: one file, whatever its names


class Files(Probe):
    """``files`` and ``file_bytes``.

    ``files`` counts the files in watched folders; ``file_bytes`` adds their sizes and those of
    the regular files that the process holds open elsewhere, standard streams left out, and
    TensorBoard's event files, which are made to grow.
    """

    quantities = (
        Quantity("files", "files", Kind.COUNTER),
        Quantity("file_bytes", "B", Kind.COUNTER),
    )

    def __init__(self, finder: FolderFinder, ignore: Iterable[Path] = ()) -> None:
        self._finder = finder
        self._ignored = set(_streams())
        for folder in ignore:
            self._ignored.update(_sizes_below(os.fspath(folder)))
        self._before = np.zeros(2, np.int64)  # what late folders held when they were found
        self._look_for_folders()

    def read(self) -> Sequence[float]:
        if self._finder.found > self._known:
            known = self._count()
            self._look_for_folders()
            more = self._count()
            self._before += more - known
        return tuple((self._count() - self._before).tolist())

    def _look_for_folders(self) -> None:
        self._known = self._finder.found
        self._folders = [os.fspath(folder) for folder in self._finder.folders()]

    def _count(self) -> NDArray[np.int64]:
        """Files in the folders, and their bytes with those of open files."""
        held: dict[_Identity, int] = {}
        for folder in self._folders:
            held.update(_sizes_below(folder))
        count = len(held)
        held.update(_open_sizes(self._ignored))
        return np.array([count, sum(held.values())])


def _sizes_below(folder: str) -> dict[_Identity, int]:
    """Size in bytes of every regular file below a folder."""
    sizes = {}
    for entry in _entries(folder):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # removed while we looked
            continue
        if stat.S_ISREG(status.st_mode):
            record = entry.name.startswith(RECORDS)
            sizes[status.st_dev, status.st_ino] = 0 if record else status.st_size
    return sizes


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Entries below a folder, at most MOST_ENTRIES."""
    seen = 0
    waiting = [folder]
    while waiting and seen < MOST_ENTRIES:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry
        except OSError:
            continue


def _streams() -> Iterator[_Identity]:
    """Where standard input, output and error go: printing a line a step is no leak."""
    for number in (0, 1, 2):
        try:
            status = os.fstat(number)
        except OSError:
            continue
        yield status.st_dev, status.st_ino


def _open_sizes(ignored: set[_Identity]) -> dict[_Identity, int]:
    """Size of every regular file that this process holds open."""
    sizes = {}
    for number in _descriptors():
        try:
            status = os.fstat(number)
        except OSError:
            continue
        identity = (status.st_dev, status.st_ino)
        if stat.S_ISREG(status.st_mode) and identity not in ignored:
            sizes[identity] = 0 if _is_record(number) else status.st_size
    return sizes


def _is_record(number: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/self/fd/{number}")).startswith(RECORDS)
    except OSError:
        return False


def _descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # no /proc: open files outside watched folders go unseen
        return []

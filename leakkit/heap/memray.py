"""The memray engine: every allocation, in order, without sampling."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import memray
import numpy as np
from numpy.typing import NDArray

from leakkit.heap import Engine, Frame, HeapError, Site
from leakkit.heap.ledger import EVENT, FOREVER, Ledger, blocks
from leakkit.series import Kind, Quantity, Series

# The size of a fence: an allocation that nothing else makes, freed at once and never touched.
FENCE_BYTES = 7_340_033

_RECORD = np.dtype([("address", "u8"), ("size", "i8"), ("allocator", "i4"), ("stack", "i8")])
_FIELDS = attrgetter("address", "size", "allocator", "stack_id")
# The numbers differ between versions of memray, the names do not.
_FREES = [a.value for a in memray.AllocatorType if a.name in ("FREE", "PYMALLOC_FREE", "MUNMAP")]
_RANGES = [a.value for a in memray.AllocatorType if a.name in ("MMAP", "MUNMAP")]
_PYTHON = [a.value for a in memray.AllocatorType if a.name.startswith("PYMALLOC")]


def _raw_allocator() -> tuple[Any, Any]:
    """PyMem_RawMalloc and PyMem_RawFree, which memray sees also when ctypes calls them."""
    allocate = ctypes.pythonapi.PyMem_RawMalloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    release = ctypes.pythonapi.PyMem_RawFree
    release.restype, release.argtypes = None, [ctypes.c_void_p]
    return allocate, release


def _started(tracker: Any) -> Any:
    """The tracker, entered in a thread of its own.

    memray hides from every later stack as many outer frames as the starting thread had when it
    started. The step is called at a shallower depth than this, and would lose its own frames.
    """
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            tracker.__enter__()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return tracker


class MemrayEngine(Engine):
    """Records every allocation with its stack; a fence marks each boundary in the stream."""

    name = "memray"

    def __init__(self, folder: Path, *, native: bool = False) -> None:
        self._folder = folder
        self._native = native
        self._tracker: Any = None
        self._trace = Trace()
        self._allocate, self._release = _raw_allocator()

    def start(self) -> None:
        path = self._folder / f"heap-{self._trace.stretches:02d}.bin"
        try:
            self._tracker = _started(
                memray.Tracker(path, trace_python_allocators=True, native_traces=self._native)
            )
        except RuntimeError as error:
            self._tracker = None
            raise HeapError(
                f"memray cannot start ({error}). Only one tracker can run in a process: leave out "
                "`pytest --memray`, or choose --leakkit-heap=tracemalloc"
            ) from error
        self._path = path

    def fence(self) -> None:
        self._release(self._allocate(FENCE_BYTES))

    def stop(self) -> None:
        if self._tracker is None:
            return
        tracker, self._tracker = self._tracker, None
        tracker.__exit__(None, None, None)
        self._trace.append(self._path)

    def series(self) -> Sequence[Series]:
        return self._trace.series()

    def sites(self) -> list[Site]:
        return self._trace.sites(native=self._native)


class Trace:
    """What memray's files of one run say together.

    Each stretch continues the last: blocks that were alive when a file ended are carried into
    the next, so that a release there finds its allocation.
    """

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._ledgers: list[Ledger] = []
        self._bases: list[tuple[int, Path]] = []  # first site number of each file
        self._python: list[NDArray[np.bool_]] = []  # per file: is the site Python's?
        self._first: list[NDArray[np.int64]] = []  # per file: a record's index, by site
        self._carried = np.empty(0, EVENT)
        for path in paths:
            self.append(path)

    @property
    def stretches(self) -> int:
        """How many files were read."""
        return len(self._bases)

    def append(self, path: Path) -> None:
        """Read one more file."""
        records = _records(path)
        base = self._sites_so_far()
        events, steps, first = _events(records, base)
        self._bases.append((base, path))
        self._first.append(first)
        self._python.append(np.isin(records["allocator"][first], _PYTHON))
        found = blocks(np.concatenate([self._carried, events]))
        found = found[found["born"] != found["died"]]
        self._carried = _alive(found)
        self._ledgers.append(Ledger.of(found, steps))

    def series(self) -> list[Series]:
        """``python_heap`` and ``native_heap``, exact, over all stretches."""
        python = self._is_python()
        totals = [
            (ledger.total(python[ledger.sites]), ledger.total(~python[ledger.sites]))
            for ledger in self._ledgers
        ]
        names = ("python_heap", "native_heap")
        return [
            Series(Quantity(name, "B", Kind.EXACT), np.concatenate([pair[i] for pair in totals]))
            for i, name in enumerate(names)
            if totals
        ]

    def sites(self, *, most: int = 200, native: bool = False) -> list[Site]:
        """The sites that rose most between the first and the last boundary."""
        numbers, levels, counts = self._joined()
        rise = levels[:, -1] - levels[:, 0] if levels.size else np.empty(0)
        chosen = [i for i in np.argsort(-rise, kind="stable")[:most] if rise[i] > 0]
        stacks = self._stacks([int(numbers[i]) for i in chosen], native=native)
        python = self._is_python()
        merged: dict[tuple[object, ...], Site] = {}  # a stack has one number in each file
        for i in chosen:
            number = int(numbers[i])
            stack, deep = stacks[number]
            allocator = "python" if python[number] else "native"
            site = Site(stack, allocator, levels[i], counts[i], deep)
            same = merged.get((stack, allocator, deep))
            merged[stack, allocator, deep] = _sum(same, site) if same else site
        return sorted(merged.values(), key=lambda site: site.live[0] - site.live[-1])

    def _sites_so_far(self) -> int:
        return sum(len(first) for first in self._first)

    def _is_python(self) -> NDArray[np.bool_]:
        return np.concatenate(self._python) if self._python else np.empty(0, bool)

    def _joined(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """All site numbers with their bytes and blocks over all stretches."""
        if not self._ledgers:
            return np.empty(0, np.int64), np.empty((0, 0)), np.empty((0, 0))
        numbers = np.unique(np.concatenate([ledger.sites for ledger in self._ledgers]))

        def join(part: str) -> NDArray[np.float64]:
            pieces = []
            for ledger in self._ledgers:
                piece = np.zeros((len(numbers), ledger.bytes.shape[1]))
                piece[np.searchsorted(numbers, ledger.sites)] = getattr(ledger, part)
                pieces.append(piece)
            return np.concatenate(pieces, axis=1)

        return numbers, join("bytes"), join("counts")

    def _stacks(
        self, numbers: Sequence[int], *, native: bool
    ) -> dict[int, tuple[tuple[Frame, ...], tuple[str, ...]]]:
        """Python (and native) frames of the given sites, read from the files' own records."""
        stacks = {}
        for (base, path), first in zip(self._bases, self._first, strict=True):
            own = {int(first[n - base]): n for n in numbers if base <= n < base + len(first)}
            for index, record in _pick(path, sorted(own)):
                frames = tuple(Frame(*frame) for frame in record.stack_trace())
                deep = _native_frames(record) if native else ()
                stacks[own[index]] = frames, deep
        return stacks


def _sum(one: Site, other: Site) -> Site:
    return replace(one, live=one.live + other.live, blocks=one.blocks + other.blocks)


def _records(path: Path) -> NDArray[np.void]:
    """Shape ``(n,)``: memray's records in order."""
    reader = memray.FileReader(path)
    return np.fromiter(map(_FIELDS, reader.get_allocation_records()), _RECORD)


def _events(
    records: NDArray[np.void], base: int
) -> tuple[NDArray[np.void], int, NDArray[np.int64]]:
    """The records between the first and the last fence, as events.

    Sites are numbered from ``base``, one for each stack and kind of allocator.

    Returns:
        The events, the number of steps, and for each site the index of one of its records.
    """
    python = np.isin(records["allocator"], _PYTHON)
    fence = python & (records["size"] == FENCE_BYTES)
    passed = np.cumsum(fence)
    free = np.isin(records["allocator"], _FREES)
    key = records["stack"] * 2 + python
    key[free] = -1  # a release belongs to the site that allocated
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    events = np.empty(len(records), EVENT)
    events["address"], events["size"] = records["address"], records["size"]
    events["site"] = number + base
    events["step"] = passed - 1
    events["free"] = free
    events["range"] = np.isin(records["allocator"], _RANGES)
    steps = max(int(passed[-1]) - 1, 0) if len(records) else 0
    inside = (passed > 0) & ~fence
    return events[inside], steps, first


def _alive(found: NDArray[np.void]) -> NDArray[np.void]:
    """The blocks still alive, as allocations that happened before the next stretch."""
    alive = found[found["died"] == FOREVER]
    events = np.zeros(len(alive), EVENT)
    for field in ("address", "size", "site"):
        events[field] = alive[field]
    events["step"] = -1
    return events


def _pick(path: Path, indices: Sequence[int]) -> Iterable[tuple[int, Any]]:
    """The file's records at the given ascending indices."""
    records = iter(memray.FileReader(path).get_allocation_records())
    position = 0
    for index in indices:
        yield index, next(islice(records, index - position, None))
        position = index + 1


def _native_frames(record: Any) -> tuple[str, ...]:
    """Function names of the native stack, innermost first."""
    return tuple(frame[0] for frame in record.native_stack_trace())

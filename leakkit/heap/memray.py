"""The memray engine: every allocation, in order, without sampling."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import memray
import numpy as np
from numpy.typing import NDArray

from leakkit.heap import ALLOCATED, ALLOCATIONS, FREED, NET, Engine, Frame, HeapError, Site
from leakkit.heap.ledger import BLOCK, FOREVER, Blocks, Events, Ledger, crossing
from leakkit.series import Kind, Quantity, Series

# The size of a fence: an allocation that nothing else makes, freed at once and never touched.
FENCE_BYTES = 7_340_033

_RECORD = np.dtype([("address", "i8"), ("size", "i8"), ("allocator", "i4"), ("stack", "i8")])
_BYTES_READ_A_SECOND = 4e6  # 4.3 bytes a record, 1.5 million records a second, some to spare
_PIECE = 1_000_000  # records read at once: some 50 MB
_LEAST_RISE = 0.005  # of the allocations of a step; the trend asks for eight times that
_OWN_START = 4096  # bytes that leakkit itself may keep in a stretch's first step; seen: 600
_STACKS = 2**28  # more than a file can have Python stacks, or native ones
_SITES_A_FILE = 2 * _STACKS**2  # site numbers of one file
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
        self._trace = Trace(native=native)
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

    def reading_seconds(self) -> float:
        return self._path.stat().st_size / _BYTES_READ_A_SECOND

    def stop(self) -> None:
        if self._tracker is None:
            return
        tracker, self._tracker = self._tracker, None
        tracker.__exit__(None, None, None)
        self._trace.append(self._path)

    def series(self) -> Sequence[Series]:
        return self._trace.series()

    def sites(self) -> list[Site]:
        return self._trace.sites()


class Trace:
    """What memray's files of one run say together.

    Each stretch continues the last: blocks that were alive when a file ended are carried into
    the next, so that a release there finds its allocation.

    Args:
        paths: files to begin with.
        native: tell sites apart by their native stacks too, which the files must have.
    """

    def __init__(self, paths: Iterable[Path] = (), *, native: bool = False) -> None:
        self._native = native
        self._paths: list[Path] = []
        self._ended: list[Blocks] = [np.empty(0, BLOCK)]  # blocks that died in some step
        self._alive = np.empty(0, BLOCK)
        # Releases of blocks from before the trace: their step, and whether they are Python's.
        self._gone: list[NDArray[np.int64]] = [np.empty((2, 0), np.int64)]
        # Allocations of each step and their bytes, the short-lived ones too.
        self._made = np.empty((2, 0))
        self._starts: list[int] = []  # first steps of the stretches
        self.steps = 0
        for path in paths:
            self.append(path)

    @property
    def stretches(self) -> int:
        """How many files were read."""
        return len(self._paths)

    def append(self, path: Path) -> None:
        """Read one more file, piece by piece: a stretch of retracing makes ten million records."""
        stretch, fences = len(self._paths), 0
        self._starts.append(self.steps)
        self._paths.append(path)
        for start, records in _pieces(path, native=self._native):
            events, fences = _events(records, fences, start, stretch, self.steps)
            self._made = _add(self._made, _work(events))
            found, gone = crossing(events, self._alive)
            self._gone.append(np.stack([gone.step, gone.site % 2]))
            dead = found["died"] != FOREVER
            self._ended.append(found[dead])
            self._alive = found[~dead]
        self.steps += max(fences - 1, 0)
        # What follows the last fence belongs to no step.
        self._made = _add(self._made[:, : self.steps], np.zeros((2, self.steps)))

    def series(self) -> list[Series]:
        """For each heap its live bytes, exact, its blocks, made and freed; and allocations."""
        ledger = self._ledger()
        gone = np.concatenate(self._gone, axis=1)
        found = [*_work_series(self._made)]
        for parity, heap in ((1, "python_heap"), (0, "native_heap")):
            own = ledger.sites % 2 == parity
            steps = gone[0, (gone[1] == parity) & (gone[0] < self.steps)]
            freed = np.cumsum(np.bincount(steps, minlength=self.steps)).astype(float)
            net = ledger.counts[own].sum(axis=0) - freed
            found += [
                Series(Quantity(heap, "B", Kind.EXACT), _joined(ledger.total(own), self._starts)),
                Series(Quantity(heap + NET, "blocks", Kind.COUNTER, advisory=True), net),
                Series(Quantity(heap + FREED, "blocks", Kind.COUNTER, advisory=True), freed),
            ]
        return found

    def sites(self, *, most: int = 200) -> list[Site]:
        """The sites that rose most between the first and the last boundary."""
        ledger = self._ledger()
        if not ledger.bytes.size:
            return []
        rise = ledger.bytes[:, -1] - ledger.bytes[:, 0]
        chosen = [i for i in np.argsort(-rise, kind="stable")[:most] if rise[i] > 0]
        stacks = self._stacks(ledger, chosen)
        merged: dict[tuple[object, ...], Site] = {}  # a stack has one number in each file
        for i in chosen:
            allocator = "python" if ledger.sites[i] % 2 else "native"
            key = (*stacks[i], allocator)
            site = Site(stacks[i][0], allocator, ledger.bytes[i], ledger.counts[i], stacks[i][1])
            merged[key] = _sum(merged[key], site) if key in merged else site
        return sorted(merged.values(), key=lambda site: site.live[0] - site.live[-1])

    def _ledger(self) -> Ledger:
        return Ledger.of(np.concatenate([*self._ended, self._alive]), self.steps)

    def _stacks(
        self, ledger: Ledger, chosen: Sequence[int]
    ) -> dict[int, tuple[tuple[Frame, ...], tuple[str, ...]]]:
        """Python (and native) frames of the given sites, read from the files' own records."""
        stacks = {}
        for stretch, path in enumerate(self._paths):
            own = [i for i in chosen if ledger.sites[i] // _SITES_A_FILE == stretch]
            wanted = {int(ledger.records[i]): i for i in own}
            for index, record in _pick(path, sorted(wanted)):
                frames = tuple(Frame(*frame) for frame in record.stack_trace())
                stacks[wanted[index]] = frames, _native_frames(record) if self._native else ()
        return stacks


def _work(events: Events) -> NDArray[np.float64]:
    """Shape ``(2, steps)``: blocks that each step made, and their bytes; a fence is not its own."""
    made = ~events.free & (events.size != FENCE_BYTES)
    step, size = events.step[made], events.size[made]
    return np.stack([np.bincount(step).astype(float), np.bincount(step, size)])


def _work_series(made: NDArray[np.float64]) -> Iterator[Series]:
    for name, unit, values in zip(
        (ALLOCATIONS, ALLOCATED), ("allocations", "B"), made, strict=True
    ):
        grain = _LEAST_RISE * float(np.median(values)) if len(values) else 0.0
        yield Series(Quantity(name, unit, Kind.COUNTER, advisory=True, grain=grain), values)


def _joined(levels: NDArray[np.float64], starts: Sequence[int]) -> NDArray[np.float64]:
    """Levels without what leakkit keeps in the first step of each later stretch.

    Its objects from between the stretches are replaced there by traced ones. That one step is
    taken to rise as those after it do.
    """
    joined = levels.copy()
    for start in starts[1:]:
        rises = np.diff(levels[start - 1 : start + 6])
        if len(rises) > 1:
            excess = rises[0] - np.median(rises[1:])
            joined[start:] -= excess if 0 < excess <= _OWN_START else 0.0
    return joined


def _add(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of two arrays, of which the shorter lacks zeros at its end."""
    total = np.zeros((2, max(one.shape[1], other.shape[1])))
    total[:, : one.shape[1]] += one
    total[:, : other.shape[1]] += other
    return total


def _sum(one: Site, other: Site) -> Site:
    return replace(one, live=one.live + other.live, blocks=one.blocks + other.blocks)


def _pieces(path: Path, *, native: bool) -> Iterator[tuple[int, NDArray[np.void]]]:
    """memray's records in order, with the number of the first of each piece."""
    fields = _native_fields if native else _FIELDS
    records = map(fields, memray.FileReader(path).get_allocation_records())
    start = 0
    while len(piece := np.fromiter(islice(records, _PIECE), _RECORD)):
        yield start, piece
        start += len(piece)


def _native_fields(record: Any) -> tuple[int, int, int, int]:
    """One number for the Python and the native stack together."""
    stack = record.native_stack_id * _STACKS + record.stack_id
    return record.address, record.size, record.allocator, stack


def _events(
    records: NDArray[np.void], fences: int, start: int, stretch: int, steps: int
) -> tuple[Events, int]:
    """The records between the first and the last fence, as events.

    Args:
        records: one piece of a file.
        fences: how many came before it.
        start: the number of its first record.
        stretch: the number of its file.
        steps: those of the files before.

    Returns:
        The events, and the fences so far.
    """
    python = np.isin(records["allocator"], _PYTHON)
    fence = python & (records["size"] == FENCE_BYTES)
    passed = fences + np.cumsum(fence)
    events = Events(
        address=records["address"],
        size=records["size"],
        # One site for each stack and kind of allocator: odd numbers are Python's.
        site=stretch * _SITES_A_FILE + records["stack"] * 2 + python,
        record=np.arange(start, start + len(records)),
        step=passed - 1 + steps,
        free=np.isin(records["allocator"], _FREES),
        ranged=np.isin(records["allocator"], _RANGES),
    )
    return events.where(passed > 0), int(passed[-1])


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

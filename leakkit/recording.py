"""The recording of one run: a folder that a crash at any instant leaves readable.

::

    meta.json      what ran, where and how; replaced whole, never edited
    watch.npy      one row a step of the watch pass, all columns preallocated
    trace.npy      the same for the trace pass
    heap-00.bin    memray's own files, one for each stretch of the trace pass
    watch.npz      series derived from the table of the same name
    trace.npz      the same, with live bytes per step and site as read from memray's files

Steps are written into memory-mapped arrays, so the kernel keeps every finished step even when
the process is killed, and no step pays for serialising.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from leakkit.heap import Frame, Site
from leakkit.series import Kind, Quantity, Series

SCHEMA = 1
_DONE = "done"  # written last: a row that has it is complete


class RecordingError(Exception):
    """A folder that cannot be written, or is no recording; the text says why."""


class Table:
    """Rows of one pass, written in place.

    Args:
        path: the ``.npy`` file to make.
        quantities: the columns.
        capacity: the most rows that it can take.
    """

    def __init__(self, path: Path, quantities: Sequence[Quantity], capacity: int) -> None:
        self.quantities = tuple(quantities)
        self._rows = _preallocate(path, [q.name for q in quantities] + [_DONE], capacity)
        self.filled = 0

    def append(self, values: Sequence[float]) -> None:
        """Write one finished step."""
        row = self._rows[self.filled]
        row[:-1] = values
        row[-1] = self.filled
        self.filled += 1

    def column(self, index: int) -> NDArray[np.float64]:
        """Shape ``(filled,)``: a copy of one column so far."""
        return np.array(self._rows[: self.filled, index])

    def series(self) -> dict[str, Series]:
        """All columns so far, by name."""
        return _named(self.quantities, [self.column(i) for i in range(len(self.quantities))])


def _preallocate(path: Path, names: Sequence[str], capacity: int) -> NDArray[np.float64]:
    """A memory-mapped array of NaN, shape ``(capacity, len(names))``, with its disk space taken.

    Without taking the space first, a full disk would kill the process at some later step.
    """
    dtype = np.dtype([(name, "<f8") for name in names])
    mapped = np.lib.format.open_memmap(path, "w+", dtype, (capacity,))
    if hasattr(os, "posix_fallocate"):
        with path.open("rb+") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    rows: NDArray[np.float64] = np.asarray(mapped).view("<f8").reshape(capacity, len(names))
    rows[:] = np.nan
    return rows


def _named(
    quantities: Sequence[Quantity], columns: Sequence[NDArray[np.float64]]
) -> dict[str, Series]:
    """Columns as series. The latency's control kernel is a column of its own, not a series."""
    values = {q.name: column for q, column in zip(quantities, columns, strict=True)}
    control = values.pop("control", None)
    named = {q.name: Series(q, values[q.name]) for q in quantities if q.name in values}
    if control is not None and "latency" in named and not np.isnan(control).all():
        named["latency"] = Series(named["latency"].quantity, values["latency"], _around(control))
    return named


def _around(control: NDArray[np.float64]) -> NDArray[np.float64]:
    """The control kernel runs after every step: the mean of the runs around each step."""
    before = np.append(control[:1], control[:-1])
    return np.asarray((before + control) / 2)


class Recording:
    """The series of one run, with its environment and settings.

    Attributes:
        path: the folder.
        meta: what ran, where and how.
        watch: series of the watch pass by name.
        trace: series of the trace pass by name; those of the heap among them.
        cut: whether the run ended before it was finished, or a file is incomplete.
    """

    def __init__(self, path: Path, meta: Mapping[str, Any]) -> None:
        self.path = path
        self.meta = dict(meta)
        self.watch: dict[str, Series] = {}
        self.trace: dict[str, Series] = {}
        self.cut = False
        self.temporary: object = None  # what removes the folder, where nobody asked to keep it
        self._sites: list[Site] = []

    @property
    def steps(self) -> int:
        """Measured steps of all passes."""
        return sum(_length(series) for series in (self.watch, self.trace))

    def sites(self) -> list[Site]:
        """Allocation sites of the trace pass that rose, the largest rise first."""
        return self._sites

    @classmethod
    def create(cls, path: Path, meta: Mapping[str, Any]) -> Recording:
        """A new recording in a new or empty folder."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            recording = cls(path, {"schema": SCHEMA, "finished": False, **meta})
            recording.save_meta()
        except OSError as error:
            raise RecordingError(f"cannot record in {path}: {error.strerror or error}") from error
        return recording

    def table(self, name: str, quantities: Sequence[Quantity], capacity: int) -> Table:
        """A table for the pass ``name``."""
        self._describe(f"{name}.npy", quantities)
        try:
            self.save_meta()
            return Table(self.path / f"{name}.npy", quantities, capacity)
        except OSError as error:
            raise RecordingError(
                f"cannot record in {self.path}: {error.strerror or error}"
            ) from error

    def save_meta(self) -> None:
        """Write ``meta.json``: whole or not at all."""
        new = self.path / "meta.json.new"
        new.write_text(json.dumps(self.meta, indent=1))
        os.replace(new, self.path / "meta.json")

    def keep(self, name: str, series: Sequence[Series], sites: Sequence[Site] = ()) -> None:
        """Add series that were derived from the pass ``name``, and the sites found in it."""
        getattr(self, name).update({s.name: s for s in series})
        self._sites = list(sites) or self._sites
        self._describe(f"{name}.npz", [s.quantity for s in series])
        self.save_meta()
        arrays: dict[str, NDArray[Any]] = {s.name: s.values for s in series}
        if sites:
            arrays["live"] = np.stack([site.live for site in sites])
            arrays["blocks"] = np.stack([site.blocks for site in sites])
        stacks = [{"allocator": s.allocator, "stack": s.stack, "native": s.native} for s in sites]
        arrays["stacks"] = np.array(json.dumps(stacks))
        np.savez(self.path / f"{name}.npz", allow_pickle=False, **arrays)

    def _describe(self, file: str, quantities: Sequence[Quantity]) -> None:
        """Note what the columns of a file are."""
        self.meta.setdefault("series", {})[file] = [
            {**asdict(q), "kind": q.kind.value} for q in quantities
        ]

    def _described(self, file: str) -> dict[str, Quantity]:
        items = self.meta.get("series", {}).get(file, ())
        return {i["name"]: Quantity(**{**i, "kind": Kind(i["kind"])}) for i in items}

    def finish(self) -> None:
        """Mark the recording as complete."""
        self.meta["finished"] = True
        self.save_meta()

    @classmethod
    def load(cls, path: str | Path) -> Recording:
        """Read a recording, also one whose run was killed or whose files were cut."""
        path = Path(path)
        recording = cls(path, _read_meta(path))
        recording.cut = not recording.meta.get("finished", False)
        for name in ("watch", "trace"):
            getattr(recording, name).update(recording._read_table(name))
            recording._read_kept(name)
        if not recording._kept_heap:
            recording._reread_heap()
        return recording

    _kept_heap = False  # whether what memray's files say was found beside them

    def _read_table(self, name: str) -> dict[str, Series]:
        path = self.path / f"{name}.npy"
        if not path.exists():
            return {}
        names, rows, whole = _read_rows(path)
        self.cut |= not whole
        known = self._described(path.name)
        # A cut meta.json no longer tells units: the numbers are still worth showing.
        quantities = [known.get(n) or Quantity(n, "?", Kind.NOISY, True) for n in names]
        return _named(quantities, [np.array(rows[:, i]) for i in range(len(names))])

    def _read_kept(self, name: str) -> None:
        path = self.path / f"{name}.npz"
        try:
            with np.load(path, allow_pickle=False) as arrays:
                stored = {key: arrays[key] for key in arrays.files}
        except FileNotFoundError:
            return
        except (OSError, ValueError, EOFError, BadZipFile, zlib.error):
            self.cut = True
            return
        kept = self._described(path.name)
        getattr(self, name).update({n: Series(kept[n], stored[n]) for n in kept})
        if name == "trace":
            self._kept_heap = True
            self._sites = list(_sites(stored))

    def _reread_heap(self) -> None:
        """A run that was killed left memray's files unread."""
        files = sorted(self.path.glob("heap-*.bin"))
        if not files:
            return
        from leakkit.heap.memray import Trace

        try:
            trace = Trace(files)
            self.trace.update({s.name: s for s in trace.series()})
            self._sites = trace.sites()
        except (OSError, ValueError, IndexError):  # cut before the first whole record
            self.cut = True


def _sites(stored: Mapping[str, NDArray[Any]]) -> Iterator[Site]:
    described = json.loads(str(stored["stacks"]))
    levels = stored.get("live", ()), stored.get("blocks", ())
    for item, live, blocks in zip(described, *levels, strict=True):
        stack = tuple(Frame(*frame) for frame in item["stack"])
        yield Site(stack, item["allocator"], live, blocks, tuple(item["native"]))


def _length(series: Mapping[str, Series]) -> int:
    return max((len(s) for s in series.values()), default=0)


def _read_meta(path: Path) -> dict[str, Any]:
    if not path.is_dir():
        raise RecordingError(f"{path} is no recording: there is no such folder")
    try:
        meta = json.loads((path / "meta.json").read_text())
    except FileNotFoundError:
        raise RecordingError(f"{path} is no recording: it has no meta.json") from None
    except ValueError:  # cut: the arrays still name their columns
        return {}
    if meta.get("schema") != SCHEMA:
        raise RecordingError(
            f"{path} was written with schema {meta.get('schema')}; this leakkit reads {SCHEMA}"
        )
    return dict(meta)


def _read_rows(path: Path) -> tuple[list[str], NDArray[np.float64], bool]:
    """Column names, the finished rows, and whether the file is whole."""
    with path.open("rb") as file:
        try:
            shape, dtype = _header(file)
        except ValueError:
            return [], np.empty((0, 0)), False
        raw = file.read()
    names = list(dtype.names or ())
    rows = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], "<f8")
    rows = rows.reshape(-1, len(names))
    finished = ~np.isnan(rows[:, -1])
    return names[:-1], rows[finished, :-1], len(rows) == shape[0]


def _header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read(file)
    return shape, dtype

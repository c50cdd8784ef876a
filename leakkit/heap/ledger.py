"""From a stream of allocations and frees, fenced by step, to live bytes per step and site.

Everything here is vectorised: a graph that is traced again makes 26,000 records a step. The
stream comes in pieces; what is alive at the end of one is carried into the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Blocks = NDArray[np.void]

FOREVER = np.iinfo(np.int64).max
# A stretch of memory from the step that allocated it to the one that released it; `died` is
# FOREVER while it lives. `site` numbers call stacks, `record` points at the allocation, `ranged`
# marks mapped pages, of which a part can be released.
BLOCK = np.dtype(
    [(name, "i8") for name in ("address", "size", "site", "record", "born", "died")]
    + [("ranged", "?")]
)


@dataclass(frozen=True)
class Events:
    """Records of the stream in order; one array a field, each of shape ``(n,)``.

    Args:
        address: of the block.
        size: in bytes; of a release only where it is ranged.
        site: number of the allocating call stack.
        record: the record's number in its file.
        step: fences that came before it, less one.
        free: whether it is a release.
        ranged: whether it maps or unmaps pages.
    """

    address: Ints
    size: Ints
    site: Ints
    record: Ints
    step: Ints
    free: NDArray[np.bool_]
    ranged: NDArray[np.bool_]

    def where(self, chosen: NDArray[np.bool_]) -> Events:
        """The chosen records."""
        return Events(*(getattr(self, field.name)[chosen] for field in fields(self)))


def crossing(events: Events, alive: Blocks) -> tuple[Blocks, Events]:
    """The blocks that outlive the step that made them, and releases of unknown memory.

    Args:
        events: one piece of the stream, in the order in which it happened.
        alive: shape ``(k,)`` of BLOCK: those that were alive before.

    Returns:
        Shape ``(m,)`` of BLOCK, those of ``alive`` among them; and the releases of memory that
        was allocated before the stream began, whose size it does not know. Ranges are never among
        those: a part of one may be released.
    """
    pages = alive["ranged"]
    if not pages.any() and not events.ranged.any():
        return _points(events, alive)
    points, unknown = _points(events.where(~events.ranged), alive[~pages])
    ranges = _ranges(events.where(events.ranged), alive[pages])
    return np.concatenate([points, ranges]), unknown


def _points(events: Events, alive: Blocks) -> tuple[Blocks, Events]:
    """Blocks of malloc and its kin: an address is released as a whole."""
    before = len(alive)
    address = np.concatenate([alive["address"], events.address])
    step = np.concatenate([alive["born"], events.step])
    free = np.concatenate([np.zeros(before, bool), events.free])
    order = np.argsort(address, kind="stable")
    freed = free[order]
    # The next record at the same address ends a block. When that is another allocation, the
    # release went unseen.
    same = np.diff(address[order]) == 0
    ends = np.append(same, False)
    starts = np.flatnonzero(~freed)
    block = order[starts]
    born = step[block]
    died = np.full(len(starts), FOREVER)
    ended = ends[starts]
    died[ended] = step[order[starts[ended] + 1]]
    outlives = born != died
    unknown = np.zeros(len(order), bool)
    unknown[order] = freed & ~np.insert(same & ~freed[:-1], 0, False)
    found = _gather(events, alive, block[outlives], died[outlives])
    return found, events.where(unknown[before:])


def _gather(events: Events, alive: Blocks, index: Ints, died: Ints) -> Blocks:
    """Blocks by their place in ``alive`` followed by ``events``."""
    found = np.zeros(len(index), BLOCK)
    old = index < len(alive)
    found[old] = alive[index[old]]
    new = index[~old] - len(alive)
    for name in ("address", "size", "site", "record"):
        found[name][~old] = getattr(events, name)[new]
    found["born"][~old] = events.step[new]
    found["died"] = died
    return found


def _ranges(events: Events, alive: Blocks) -> Blocks:
    """Blocks of mmap: any part of a mapping may be unmapped, or several at once."""
    held = alive.tolist()
    done = []
    columns = (getattr(events, field.name).tolist() for field in fields(events))
    for address, size, site, record, step, free, _ in zip(*columns, strict=True):
        pieces = [p for block in held for p in _cut(block, address, address + size, step)]
        done += [p for p in pieces if p[5] != FOREVER]
        held = [p for p in pieces if p[5] == FOREVER]
        if not free:
            held.append((address, size, site, record, step, FOREVER, True))
    found: Blocks = np.array(done + held, BLOCK)
    return np.compress(found["born"] != found["died"], found)


_Block = tuple[int, int, int, int, int, int, bool]


def _cut(block: _Block, start: int, end: int, step: int) -> Iterator[_Block]:
    """The pieces of a mapping that [start, end) leaves alive, and the one that it ends."""
    address, size, site, record, born, died, ranged = block
    high = address + size
    if end <= address or high <= start:
        yield block
        return

    def piece(low: int, top: int, until: int) -> _Block:
        return low, top - low, site, record, born, until, ranged

    if address < start:
        yield piece(address, start, died)
    yield piece(max(address, start), min(high, end), step)
    if end < high:
        yield piece(end, high, died)


@dataclass(frozen=True)
class Ledger:
    """Live memory per step, split by site.

    Args:
        sites: shape ``(k,)``: the site numbers that ever held a block across a boundary.
        bytes: shape ``(k, steps)``: bytes alive at the end of each step.
        counts: shape ``(k, steps)``: blocks alive at the end of each step.
        records: shape ``(k,)``: the record of one allocation of each site.
    """

    sites: Ints
    bytes: Floats
    counts: Floats
    records: Ints

    @classmethod
    def of(cls, found: Blocks, steps: int) -> Ledger:
        """The ledger of ``steps`` steps from their blocks; each block once."""
        inside = found[found["born"] < steps]
        sites, first, row = np.unique(inside["site"], return_index=True, return_inverse=True)
        shape = (len(sites), steps)
        return cls(
            sites,
            _levels(row, inside, inside["size"].astype(float), shape),
            _levels(row, inside, np.ones(len(inside)), shape),
            inside["record"][first],
        )

    def total(self, chosen: NDArray[np.bool_]) -> Floats:
        """Shape ``(steps,)``: bytes alive of the sites marked in ``chosen``."""
        return np.asarray(self.bytes[chosen].sum(axis=0))


def _levels(row: Ints, found: Blocks, weight: Floats, shape: tuple[int, int]) -> Floats:
    """Shape ``shape``: the sum of weights alive at each boundary, per row."""
    rows, steps = shape
    born = row * steps + np.maximum(found["born"], 0)
    change = np.bincount(born, weight, minlength=rows * steps)
    ended = found["died"] < steps
    died = row[ended] * steps + found["died"][ended]
    change -= np.bincount(died, weight[ended], minlength=rows * steps)
    return np.asarray(np.cumsum(change.reshape(shape), axis=1))

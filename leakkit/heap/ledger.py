"""From a stream of allocations and frees, fenced by step, to live bytes per step and site.

Everything here is vectorised: a graph that is traced again makes 26,000 records a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# One record of the stream, in order. `site` numbers call stacks, `step` counts fences before it.
EVENT = np.dtype(
    [
        ("address", "u8"),
        ("size", "i8"),
        ("site", "i8"),
        ("step", "i8"),
        ("free", "?"),
        ("range", "?"),
    ]
)
# A stretch of memory between its allocation and its release. `died` is FOREVER while it lives.
BLOCK = np.dtype(
    [("address", "u8"), ("size", "i8"), ("site", "i8"), ("born", "i8"), ("died", "i8")]
)
FOREVER = np.iinfo(np.int64).max


def blocks(events: NDArray[np.void]) -> NDArray[np.void]:
    """Pair every allocation with the release of its address.

    Args:
        events: shape ``(n,)`` of EVENT, in the order in which they happened.

    Returns:
        Shape ``(m,)`` of BLOCK. Releases of memory that was allocated before the stream began
        are dropped: the stream does not know their size.
    """
    ranged = events["range"]
    return np.concatenate([_points(events[~ranged]), _ranges(events[ranged])])


def _points(events: NDArray[np.void]) -> NDArray[np.void]:
    """Blocks of malloc and its kin: an address is released as a whole."""
    order = np.argsort(events["address"], kind="stable")
    ordered = events[order]
    starts = np.flatnonzero(~ordered["free"])
    found = np.empty(len(starts), BLOCK)
    for field in ("address", "size", "site"):
        found[field] = ordered[field][starts]
    found["born"] = ordered["step"][starts]
    # The next record at the same address ends the block; a second allocation there means that
    # the release went unseen, and ends it too.
    after = np.minimum(starts + 1, len(ordered) - 1)
    ends = (after != starts) & (ordered["address"][after] == ordered["address"][starts])
    found["died"] = np.where(ends, ordered["step"][after], FOREVER)
    return found


def _ranges(events: NDArray[np.void]) -> NDArray[np.void]:
    """Blocks of mmap: any part of a mapping may be unmapped, or several at once."""
    alive: list[tuple[int, int, int, int]] = []  # start, end, site, born
    done: list[tuple[int, int, int, int, int]] = []
    for address, size, site, step, free, _ in events.tolist():
        start, end = address, address + size
        kept = []
        for block in alive:
            for piece, died in _cut(block, start, end):
                if died:
                    done.append((piece[0], piece[1] - piece[0], piece[2], piece[3], step))
                else:
                    kept.append(piece)
        alive = kept
        if not free:
            alive.append((start, end, site, step))
    done += [(start, end - start, site, born, FOREVER) for start, end, site, born in alive]
    return np.array(done, BLOCK)


def _cut(
    block: tuple[int, int, int, int], start: int, end: int
) -> Iterator[tuple[tuple[int, int, int, int], bool]]:
    """The pieces of a mapping that [start, end) leaves alive (False) and ends (True)."""
    low, high, site, born = block
    if end <= low or high <= start:
        yield block, False
        return
    if low < start:
        yield (low, start, site, born), False
    yield (max(low, start), min(high, end), site, born), True
    if end < high:
        yield (end, high, site, born), False


@dataclass(frozen=True)
class Ledger:
    """Live memory per step, split by site.

    Args:
        sites: shape ``(k,)``: the site numbers that ever held a block across a boundary.
        bytes: shape ``(k, steps)``: bytes alive at the end of each step.
        counts: shape ``(k, steps)``: blocks alive at the end of each step.
    """

    sites: Ints
    bytes: Floats
    counts: Floats

    @classmethod
    def of(cls, found: NDArray[np.void], steps: int) -> Ledger:
        """The ledger of ``steps`` steps from their blocks."""
        # A block that dies in the step that made it never crosses a boundary.
        crossing = found[(found["born"] != found["died"]) & (found["born"] < steps)]
        sites, row = np.unique(crossing["site"], return_inverse=True)
        shape = (len(sites), steps)
        return cls(
            sites,
            _levels(row, crossing, crossing["size"].astype(float), shape),
            _levels(row, crossing, np.ones(len(crossing)), shape),
        )

    def total(self, chosen: NDArray[np.bool_]) -> Floats:
        """Shape ``(steps,)``: bytes alive of the sites marked in ``chosen``."""
        return np.asarray(self.bytes[chosen].sum(axis=0))


def _levels(row: Ints, found: NDArray[np.void], weight: Floats, shape: tuple[int, int]) -> Floats:
    """Shape ``shape``: the sum of weights alive at each boundary, per row."""
    rows, steps = shape
    change = np.bincount(row * steps + np.maximum(found["born"], 0), weight, minlength=rows * steps)
    ended = found["died"] < steps
    change -= np.bincount(
        row[ended] * steps + found["died"][ended], weight[ended], minlength=rows * steps
    )
    return np.asarray(np.cumsum(change.reshape(shape), axis=1))

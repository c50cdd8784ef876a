"""One quantity over the boundaries of a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray


class Kind(str, Enum):
    """How a quantity is measured, which decides how its trend is judged."""

    EXACT = "exact"  # bytes counted one by one: any rise is real
    NOISY = "noisy"  # bytes as an allocator or the kernel sees them: pages, caches, other threads
    COUNTER = "counter"  # whole things: threads, descriptors, graphs
    LATENCY = "latency"  # seconds a step


@dataclass(frozen=True)
class Quantity:
    """What a probe reads at a boundary.

    Args:
        name: the fixed series name, e.g. ``python_heap``.
        unit: ``B``, ``s``, or the plural of the thing counted, e.g. ``threads``.
        kind: how it is measured.
        advisory: shown and judged, but never the reason to fail unless a limit is set for it.
        part_of: name of the series that counts these bytes too; they are not the step's own, so
            that series is judged by what remains of it.
        grain: a rise by at most this is none, in ``unit``; e.g. some pages for resident memory.
    """

    name: str
    unit: str
    kind: Kind
    advisory: bool = False
    part_of: str = ""
    grain: float = 0.0


@dataclass(frozen=True)
class Series:
    """A quantity's values at the boundaries after the warm-up.

    Args:
        quantity: what was read.
        values: shape ``(steps,)``, in the quantity's unit; NaN where nothing was read.
        control: for latency only, shape ``(steps,)``: seconds of the control kernel that ran
            around each step, the mean of the runs before and after it; ``None`` without one.
    """

    quantity: Quantity
    values: NDArray[np.float64]
    control: NDArray[np.float64] | None = None

    @property
    def name(self) -> str:
        """The series name."""
        return self.quantity.name

    def first(self, steps: int) -> Series:
        """The same, of the first ``steps`` steps only."""
        control = None if self.control is None else self.control[:steps]
        return Series(self.quantity, self.values[:steps], control)

    def __len__(self) -> int:
        return len(self.values)

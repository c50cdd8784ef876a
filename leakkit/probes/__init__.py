"""Probes read quantities at the boundary between two steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from leakkit.series import Kind, Quantity

__all__ = ["Kind", "Probe", "Quantity", "Unavailable"]


class Unavailable(Exception):
    """Raised by a probe's constructor where the probe cannot work; the text says why."""


class Probe(ABC):
    """Reads one or more quantities at a boundary.

    A probe is made after the warm-up and must not grow: what ``read`` allocates and keeps would
    show in the very series that it measures.
    """

    quantities: Sequence[Quantity]
    traced: bool = False  # read in the trace pass too, where every allocation is slow

    @abstractmethod
    def read(self) -> Sequence[float]:
        """One value for each of ``quantities``, in their order and units."""

    def close(self) -> None:  # noqa: B027 - optional: most probes hold nothing
        """Undo what the constructor did; called once, also when the run raised."""

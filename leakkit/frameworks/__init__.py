"""Adapters to the frameworks that a step may use; none is imported unless the step did."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakkit.probes import Probe


@dataclass(frozen=True)
class Device:
    """A device that a framework sees.

    Args:
        name: ``CPU:0``, ``GPU:1``, ``TPU:0``.
        kind: ``cpu``, ``gpu`` or ``tpu``.
        total_bytes: its memory, or ``None`` where nobody tells.
        model: the vendor's name for it.
    """

    name: str
    kind: str
    total_bytes: int | None = None
    model: str = ""


class Framework(ABC):
    """What leakkit needs from a framework. Every method has a harmless default."""

    name: str
    module: str  # the import that shows that a step uses this framework

    def versions(self) -> dict[str, str]:
        """Package versions for the environment record."""
        return {}

    def devices(self) -> Sequence[Device]:
        """The devices that this framework sees."""
        return ()

    def synchronize(self, result: Any) -> None:
        """Wait until the device has done what the step started; ``result`` is what it returned."""

    def probes(self) -> Sequence[Probe]:
        """New probes: live tensors, traces, device memory, the framework's own registries."""
        return ()

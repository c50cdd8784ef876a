"""Adapters to the frameworks that a step may use; none is imported unless the step did."""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakkit.probes import Kind, Probe, Quantity, Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from leakkit.series import Series

#: Third parties add an adapter in this entry-point group: a name, and a ``Framework`` subclass.
GROUP = "leakkit.frameworks"

TRACES = Quantity("traces", "traces", Kind.COUNTER)
LIVE_TENSORS = Quantity("live_tensors", "tensors", Kind.COUNTER)
LIVE_TENSOR_BYTES = Quantity("live_tensor_bytes", "B", Kind.EXACT)


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


@dataclass(frozen=True)
class DeviceMemory:
    """What a framework's allocator says of one device, in bytes; ``None`` where it does not say.

    Args:
        allocated: handed out to tensors now; this is what a leak raises.
        peak: the most that was handed out since the last reset.
        reserved: taken from the driver, handed out or cached.
        rounding: the allocator hands out multiples of this.
    """

    allocated: int
    peak: int | None = None
    reserved: int | None = None
    rounding: int = 1


@dataclass(frozen=True)
class OwnGrowth:
    """Growth that is the framework's own: no change to the step would end it.

    Args:
        name: the series that counts it, and that a limit can be set for, e.g. ``tf_own_bytes``.
        explains: the series that these bytes are part of, e.g. ``native_heap``.
        values: shape ``(steps,)``, bytes kept up to each boundary; an upper bound.
        version: the framework and its version.
        sentence: for the report.
    """

    name: str
    explains: str
    values: NDArray[np.float64]
    version: str
    sentence: str

    @property
    def per_step(self) -> float:
        """Bytes a step, on average over the steps after the first."""
        return float(self.values[-1] - self.values[0]) / max(1, len(self.values) - 1)


class CacheAudit:
    """Measures which of a framework's caches grows, by emptying them around some steps.

    Driven once, after the measurement, and only when a run grows: ``begin()``, ``boundary()``
    after each step, then ``end()``. Emptying a cache changes how the next step runs (kernels are
    made again, stateful kernels start anew), so this never happens while anything is measured.
    """

    def begin(self) -> None:
        """Empty the caches."""

    def boundary(self) -> None:
        """A step has ended."""

    def end(self) -> Mapping[str, float]:
        """Growth of each cache in bytes per step; empty where too few steps were seen."""
        return {}


class Framework(ABC):
    """What leakkit needs from a framework. Every method has a harmless default."""

    name: str
    module: str  # the import that shows that a step uses this framework
    viewer = ""  # how to look at its snapshots

    def in_use(self) -> bool:
        """Whether the process works with this framework, rather than merely imported it.

        Keras imports JAX where it is installed; asking an idle JAX for its devices would make it
        take most of a GPU's memory.
        """
        return True

    def versions(self) -> dict[str, str]:
        """Package versions for the environment record."""
        return {}

    def devices(self) -> Sequence[Device]:
        """The devices that this framework sees; does not take their memory."""
        return ()

    def synchronize(self, result: Any) -> None:  # noqa: B027 - optional
        """Wait until the device has done what the step started; ``result`` is what it returned."""

    def probes(self) -> Sequence[Probe]:
        """New probes: live tensors, traces, device memory, the framework's own registries."""
        return ()

    def notes(self) -> list[str]:
        """What is not measured, and why: a reader of every report must know; one sentence each."""
        return []

    def remarks(self) -> list[str]:
        """What holds for every run on such devices, such as what stands in for a missing count.

        Verbose reports and ``leakkit doctor`` have it, and every report of a test that asks for a
        CPU.
        """
        return []

    def memory(self, device: Device) -> DeviceMemory | None:
        """What the framework's allocator says of ``device``; ``None`` where it has no count."""
        return None

    def reset_peak(self, device: Device) -> None:  # noqa: B027 - optional
        """Start the peak of ``memory(device)`` anew, where the framework can."""

    def on(self, device: Device) -> AbstractContextManager[Any]:
        """Place what is made inside the ``with`` block on ``device``."""
        return nullcontext()

    def allocate(self, device: Device, nbytes: int) -> Any:
        """An array of ``nbytes`` bytes on ``device``, ready; ``None`` where that is not possible.

        ``leakkit doctor`` plants its known leak with it.
        """
        return None

    def own_growth(self, series: Mapping[str, Series]) -> Sequence[OwnGrowth]:
        """Which growth is the framework's own, from the series of one pass."""
        return ()

    def audit(self) -> CacheAudit | None:
        """A new audit of the framework's caches, or ``None`` where it has none to empty."""
        return None

    def record(self) -> None:  # noqa: B027 - optional
        """Start recording allocations with their stacks: the memory of a device grows."""

    def snapshot(self, folder: Path) -> list[Path]:
        """Save what was recorded, and stop recording; returns the files written.

        Their names contain ``-memory-snapshot.``: a folder with one in it is kept.
        """
        return []


_BUILT_IN = {
    "tensorflow": ("leakkit.frameworks.tensorflow", "TensorFlow"),
    "jax": ("leakkit.frameworks.jax", "Jax"),
    "torch": ("leakkit.frameworks.torch", "Torch"),
}


def active() -> list[Framework]:
    """One new adapter for each framework that this process uses.

    Imports no framework. Ask after the warm-up: a step may import its framework, or first use it,
    when it first runs.
    """
    return [adapter for adapter in imported() if adapter.in_use()]


def imported() -> list[Framework]:
    """One new adapter for each framework that this process has imported, in use or not."""
    return [adapter() for adapter in _adapters() if adapter.module in sys.modules]


def _adapters() -> list[type[Framework]]:
    built_in: list[type[Framework]] = [
        getattr(import_module(path), name)
        for module, (path, name) in _BUILT_IN.items()
        if module in sys.modules
    ]
    return built_in + [_load(point) for point in _third_party()]


@cache
def _third_party() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _load(point: EntryPoint) -> type[Framework]:
    adapter = point.load()
    if not (isinstance(adapter, type) and issubclass(adapter, Framework)):
        raise TypeError(
            f"entry point {point.name!r} of group {GROUP!r} is no leakkit.frameworks.Framework: "
            f"{point.value}"
        )
    return adapter


def probes(frameworks: Sequence[Framework]) -> list[Probe]:
    """The probes of all frameworks, and the GPU driver's where one of them sees a GPU.

    Quantities that several frameworks count are summed.
    """
    from leakkit.frameworks.combined import combine

    found = combine([probe for framework in frameworks for probe in framework.probes()])
    return found + _driver_probes(frameworks)


def _driver_probes(frameworks: Sequence[Framework]) -> list[Probe]:
    if not any(device.kind == "gpu" for f in frameworks for device in f.devices()):
        return []
    from leakkit.probes.nvml import Nvml

    try:
        return [Nvml()]
    except Unavailable:  # `leakkit doctor` says what is missing and how to get it
        return []


from leakkit.frameworks.devices import (  # noqa: E402
    DeviceMissing,
    find_devices,
    on,
    placed,
    present,
)

__all__ = [
    "GROUP",
    "LIVE_TENSORS",
    "LIVE_TENSOR_BYTES",
    "TRACES",
    "CacheAudit",
    "Device",
    "DeviceMemory",
    "DeviceMissing",
    "Framework",
    "OwnGrowth",
    "active",
    "find_devices",
    "imported",
    "on",
    "placed",
    "present",
    "probes",
]

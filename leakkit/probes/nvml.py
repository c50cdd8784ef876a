"""What NVIDIA's driver says of this process and its GPUs (package ``nvidia-ml-py``).

The driver sees what no framework's allocator counts: contexts, library workspaces, NCCL's
buffers, and the memory of this process' other frameworks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from leakkit.probes import Kind, Probe, Quantity, Unavailable

if TYPE_CHECKING:
    from leakkit.series import Series

HOW_TO_GET = "install nvidia-ml-py, e.g. pip install 'leakkit[gpu]'"

#: Below this share of the time that a GPU works, something else holds the step up.
BUSY = 70.0
WAITING = 0.2  # share of the time; less is no reason for a GPU to idle
LEAST_SECONDS = 1.0  # the driver's figure is that of up to a second: of less it says nothing
UTILISATION = "gpu_utilisation:"


class Nvml(Probe):
    """This process' memory on each GPU and each GPU's utilisation, as the driver sees them.

    Series ``gpu_process_memory:GPU:0`` (B) and ``gpu_utilisation:GPU:0`` (%), both advisory: the
    driver counts in pages of 2 MiB and averages utilisation over up to a second, so neither can
    decide about one step. GPUs are numbered as CUDA numbers them, by ``CUDA_VISIBLE_DEVICES``.

    Args:
        nvml: the module ``pynvml``; by default it is imported.

    Raises:
        Unavailable: no package, no driver, or no GPU.
    """

    def __init__(self, nvml: ModuleType | Any = None) -> None:
        self._nvml = _import() if nvml is None else nvml
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError as error:
            raise Unavailable(f"NVIDIA's driver does not answer: {error}") from None
        self._pid = os.getpid()
        self._handles = _visible(self._nvml, os.environ)
        if not self._handles:
            self._nvml.nvmlShutdown()
            raise Unavailable("NVIDIA's driver sees no GPU that this process may use")
        names = [f"GPU:{index}" for index in range(len(self._handles))]
        self.quantities = tuple(
            quantity
            for name in names
            for quantity in (
                Quantity(f"gpu_process_memory:{name}", "B", Kind.NOISY, advisory=True),
                Quantity(f"{UTILISATION}{name}", "%", Kind.NOISY, advisory=True),
            )
        )

    def read(self) -> Sequence[float]:
        """Bytes and percent for each GPU; NaN where the driver does not say."""
        values: list[float] = []
        for handle in self._handles:
            values += (self._memory(handle), self._utilisation(handle))
        return values

    def close(self) -> None:
        """Let the driver go."""
        self._nvml.nvmlShutdown()

    def _memory(self, handle: Any) -> float:
        nvml = self._nvml
        try:
            processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except nvml.NVMLError:
            return float("nan")
        used = [p.usedGpuMemory for p in processes if p.pid == self._pid]
        # In a container the driver may list host pids: then this process is not among them.
        return float(sum(used)) if used and None not in used else float("nan")

    def _utilisation(self, handle: Any) -> float:
        try:
            return float(self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        except self._nvml.NVMLError:
            return float("nan")


@dataclass(frozen=True)
class Starved:
    """GPUs that idle while the loop waits for data.

    Args:
        busy: percent of the time that each of them works, by name.
        waiting: the share of the loop's time that goes into waiting for its next item.
    """

    busy: Mapping[str, float]
    waiting: float

    def __str__(self) -> str:
        works = " and ".join(f"{name} is busy {busy:.0f} %" for name, busy in self.busy.items())
        return (
            f"{works} of the time; {100 * self.waiting:.0f} % of each step's time is spent waiting "
            "for data: the input pipeline is the likely cause. Load in parallel, or prefetch."
        )


def starved(series: Mapping[str, Series], waiting: float) -> Starved | None:
    """The GPUs that idle where waiting for data is the likely cause; ``None`` where it is not.

    Args:
        series: those of the watch pass.
        waiting: seconds of that pass in which the loop waited for its next item.
    """
    total = waiting + float(series["latency"].values.sum())
    if total < LEAST_SECONDS or waiting < WAITING * total:
        return None
    busy = {name: value for name, value in _utilisation(series).items() if value < BUSY}
    return Starved(busy, waiting / total) if busy else None


def _utilisation(series: Mapping[str, Series]) -> dict[str, float]:
    """Percent that each GPU was busy, by its name, where the driver ever told."""
    told = {
        name.removeprefix(UTILISATION): s.values[np.isfinite(s.values)]
        for name, s in series.items()
        if name.startswith(UTILISATION)
    }
    return {name: float(values.mean()) for name, values in told.items() if len(values)}


def gpus() -> list[str]:
    """``GPU:0`` and so on: what this process may use, without asking any framework."""
    try:
        probe = Nvml()
    except Unavailable:
        return []
    probe.close()
    return [
        q.name.removeprefix(UTILISATION) for q in probe.quantities if q.name.startswith(UTILISATION)
    ]


def _import() -> ModuleType:
    try:
        import pynvml
    except ImportError:
        raise Unavailable(f"GPU memory as the driver sees it is not read: {HOW_TO_GET}") from None
    module: ModuleType = pynvml
    return module


def _visible(nvml: Any, environment: Mapping[str, str]) -> list[Any]:
    """Handles in CUDA's order: ``CUDA_VISIBLE_DEVICES`` selects and orders GPUs."""
    count = nvml.nvmlDeviceGetCount()
    wanted = environment.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    handles = []
    for item in (part.strip() for part in wanted.split(",")):
        if item.isdigit() and int(item) < count:
            handles.append(nvml.nvmlDeviceGetHandleByIndex(int(item)))
        elif item.startswith(("GPU-", "MIG-")):
            handles.append(nvml.nvmlDeviceGetHandleByUUID(item))
        else:
            break  # CUDA itself ignores everything from the first entry that is no device
    return handles

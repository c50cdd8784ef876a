"""What NVIDIA's driver says of this process and its GPUs (package ``nvidia-ml-py``).

The driver sees what no framework's allocator counts: contexts, library workspaces, NCCL's
buffers, and the memory of this process' other frameworks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from leakkit.probes import Kind, Probe, Quantity, Unavailable

if TYPE_CHECKING:
    from leakkit.series import Series

HOW_TO_GET = "install nvidia-ml-py, e.g. pip install 'leakkit[gpu]'"

#: Below this share of the time that a GPU works, something else holds the step up.
BUSY = 70.0
WAITING = 0.2  # share of the time; less is no reason for a GPU to idle
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


def starved(series: Mapping[str, Series], waiting: float) -> list[str]:
    """A sentence for each GPU that idles where waiting for data is the likely cause.

    Args:
        series: those of the watch pass.
        waiting: seconds that the loop took between its steps, leakkit's own time left out.
    """
    total = waiting + float(series["latency"].values.sum())
    if waiting < WAITING * total:
        return []
    return [
        f"{name.partition(':')[2]} was busy {s.values.mean():.0f} % of the time, and "
        f"{100 * waiting / total:.0f} % of the time went into waiting for the next item: the "
        "input pipeline holds the step up. Load in parallel, or prefetch."
        for name, s in series.items()
        if name.startswith(UTILISATION) and s.values.mean() < BUSY
    ]


def gpus() -> list[str]:
    """``GPU:0`` and so on: what this process may use, without asking any framework."""
    try:
        probe = Nvml()
    except Unavailable:
        return []
    probe.close()
    return [q.name.partition(":")[2] for q in probe.quantities if q.name.startswith(UTILISATION)]


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

"""PyTorch, and Keras on PyTorch."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from leakkit.frameworks import (
    LIVE_TENSOR_BYTES,
    LIVE_TENSORS,
    TRACES,
    Device,
    DeviceMemory,
    Framework,
)
from leakkit.frameworks.memory import DeviceMemoryProbe
from leakkit.probes import Kind, Probe, Quantity, Unavailable

GRAPHS_ALIVE = Quantity("torch_autograd_graphs", "tensors", Kind.COUNTER, advisory=True)

_SNAPSHOT_ENTRIES = 100_000


class Torch(Framework):
    """Adapter for PyTorch."""

    name = "PyTorch"
    module = "torch"
    viewer = "open it at https://pytorch.org/memory_viz"

    def __init__(self) -> None:
        self._missing: list[str] = []
        self._recording = False

    def versions(self) -> dict[str, str]:
        """PyTorch's version, and CUDA's where it was built with it."""
        torch = _torch()
        found = {"torch": str(torch.__version__)}
        if torch.version.cuda:
            found["cuda"] = torch.version.cuda
        return found

    def devices(self) -> Sequence[Device]:
        """The CPU, every CUDA (or ROCm) device, and Apple's GPU."""
        return [Device("CPU:0", "cpu"), *_cuda_devices(), *_mps_devices()]

    def synchronize(self, result: Any) -> None:
        """Wait for the GPU, where this process uses one."""
        if _cuda_used():
            for index in range(_torch().cuda.device_count()):
                _torch().cuda.synchronize(index)
        if _mps():
            _torch().mps.synchronize()

    def probes(self) -> Sequence[Probe]:
        """Live tensors, recompilations by ``torch.compile`` if it is used, and device memory."""
        self._missing = []
        made: list[Probe] = [LiveTensors()]
        if "torch._dynamo" in sys.modules:
            try:
                made.append(Recompilations())
            except Unavailable as error:
                self._missing.append(f"PyTorch {_torch().__version__}: {error}")
        return made + [
            DeviceMemoryProbe(self, device)
            for device in self.devices()
            if device.kind != "cpu" and self.memory(device) is not None
        ]

    def notes(self) -> list[str]:
        """What ``probes()`` found missing."""
        return list(self._missing)

    def remarks(self) -> list[str]:
        """What stands in for the counts that a CPU does not have."""
        if _cuda_used() or _mps():
            return []
        return [
            "PyTorch counts no allocations on a CPU: live_tensor_bytes counts tensors, and "
            "native_heap counts what malloc gives."
        ]

    def memory(self, device: Device) -> DeviceMemory | None:
        """The caching allocator's counts; the peak is that since the last reset."""
        torch = _torch()
        if device.kind == "gpu" and _mps():
            return DeviceMemory(
                torch.mps.current_allocated_memory(),
                reserved=torch.mps.driver_allocated_memory(),
                rounding=256,
            )
        if device.kind != "gpu" or not _cuda_used():
            return None
        index = _index(device)
        return DeviceMemory(
            torch.cuda.memory_allocated(index),
            peak=torch.cuda.max_memory_allocated(index),
            reserved=torch.cuda.memory_reserved(index),
            rounding=512,  # kMinBlockSize of the caching allocator
        )

    def reset_peak(self, device: Device) -> None:
        """Start the peak anew, so that it is the peak of one step."""
        if device.kind == "gpu" and _cuda_used():
            _torch().cuda.reset_peak_memory_stats(_index(device))

    def on(self, device: Device) -> AbstractContextManager[Any]:
        """``torch.device`` as a context, and the current CUDA device."""
        return _placed(device)

    def allocate(self, device: Device, nbytes: int) -> Any:
        """A tensor of bytes."""
        torch = _torch()
        made = torch.ones(nbytes, dtype=torch.uint8, device=_torch_name(device))
        self.synchronize(made)
        return made

    def record(self) -> None:
        """Start recording CUDA allocations with their Python stacks, for ``snapshot``.

        A recording that the user has started is left to the user.
        """
        if not _cuda_used() or _recorded_by_user():
            return
        # Only Python frames: C++ frames are looked up when the snapshot is written, one by one.
        _torch().cuda.memory._record_memory_history(stacks="python", max_entries=_SNAPSHOT_ENTRIES)
        self._recording = True

    def snapshot(self, folder: Path) -> list[Path]:
        """Write what ``record`` recorded for PyTorch's memory viewer, and stop recording."""
        if not self._recording:
            return []
        path = folder / "torch-memory-snapshot.pickle"
        memory = _torch().cuda.memory
        self._recording = False
        try:
            memory._dump_snapshot(str(path))
        finally:
            memory._record_memory_history(enabled=None)
        return [path]


class LiveTensors(Probe):
    """Tensors alive, their bytes, and how many of them keep an autograd graph alive.

    Only tensors made since ``gc.freeze()`` are seen. The bytes are those of the tensor's own
    elements: a view counts its own and not its base's, since asking a tensor for its storage
    makes a Python object that stays, which would be growth of the probe's own making.
    """

    quantities = (LIVE_TENSORS, LIVE_TENSOR_BYTES, GRAPHS_ALIVE)

    def __init__(self) -> None:
        self._tensor = _torch().Tensor

    def read(self) -> Sequence[float]:
        """Tensors, bytes, tensors that hold a graph."""
        objects = gc.get_objects()
        kinds = list(map(type, objects))
        base = self._tensor
        wanted = {kind for kind in set(kinds) if issubclass(kind, base)}
        count = total = graphs = 0
        for kind in wanted:
            at = -1
            for _ in range(kinds.count(kind)):
                at = kinds.index(kind, at + 1)
                found = objects[at]
                count += 1
                total += _nbytes(found)
                # grad_fn itself is not asked for: that makes an object which stays
                graphs += found.requires_grad and not found.is_leaf
        return count, total, graphs


class Recompilations(Probe):
    """Frames that ``torch.compile`` has compiled, first times and recompilations alike."""

    quantities = (TRACES,)

    def __init__(self) -> None:
        counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
        if counters is None:
            raise Unavailable("recompilations are not counted: torch._dynamo's counters moved")
        self._counters = counters

    def read(self) -> Sequence[float]:
        """Graphs captured so far."""
        return (self._counters.get("stats", {}).get("unique_graphs", 0),)


def _nbytes(tensor: Any) -> int:
    try:
        return int(tensor.nbytes)
    except (RuntimeError, NotImplementedError):  # sparse layouts and meta-like wrappers
        return 0


def _torch() -> Any:
    return sys.modules["torch"]


def _cuda_used() -> bool:
    """Whether this process has a CUDA context; asking for more would make one."""
    cuda = _torch().cuda
    return bool(cuda.is_available() and cuda.is_initialized())


def _recorded_by_user() -> bool:
    """Whether a history is recorded already; not, where a version does not tell."""
    tells = getattr(_torch()._C, "_cuda_isHistoryEnabled", None)
    return tells is not None and bool(tells())


def _mps() -> bool:
    backend = getattr(_torch().backends, "mps", None)
    return bool(backend is not None and backend.is_available())


def _cuda_devices() -> list[Device]:
    cuda = _torch().cuda
    if not cuda.is_available():
        return []
    found = []
    for index in range(cuda.device_count()):
        properties = cuda.get_device_properties(index)
        found.append(Device(f"GPU:{index}", "gpu", properties.total_memory, properties.name))
    return found


def _mps_devices() -> list[Device]:
    if not _mps():
        return []
    total = getattr(_torch().mps, "recommended_max_memory", lambda: None)()
    return [Device("GPU:0", "gpu", total, "Apple GPU (MPS)")]


def _index(device: Device) -> int:
    return int(device.name.split(":")[1])


def _torch_name(device: Device) -> str:
    if device.kind == "cpu":
        return "cpu"
    return "mps" if _mps() else f"cuda:{_index(device)}"


@contextmanager
def _placed(device: Device) -> Iterator[None]:
    torch = _torch()
    name = _torch_name(device)
    with torch.device(name):
        if name.startswith("cuda"):
            with torch.cuda.device(_index(device)):
                yield
        else:
            yield

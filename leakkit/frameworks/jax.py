"""JAX, and Keras on JAX."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
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

JIT_TRACES = Quantity("jax_traces", "traces", Kind.COUNTER, advisory=True)

_COMPILED = "/jax/core/compile/backend_compile_duration"
_TRACED = "/jax/core/compile/jaxpr_trace_duration"


class Jax(Framework):
    """Adapter for JAX."""

    name = "JAX"
    module = "jax"
    viewer = "open it with pprof"

    def __init__(self) -> None:
        self._missing: list[str] = []

    def in_use(self) -> bool:
        """Whether JAX has started a backend; assumed where a version no longer tells."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        started = getattr(bridge, "backends_are_initialized", None)
        return started is None or bool(started())

    def versions(self) -> dict[str, str]:
        """The versions of jax and jaxlib."""
        jaxlib = sys.modules.get("jaxlib")
        found = {"jax": _jax().__version__}
        if jaxlib is not None and hasattr(jaxlib, "__version__"):
            found["jaxlib"] = jaxlib.__version__
        return found

    def devices(self) -> Sequence[Device]:
        """Devices of every backend that JAX has; the numbers are JAX's own."""
        return [_describe(device) for device in _all_devices()]

    def synchronize(self, result: Any) -> None:
        """``block_until_ready`` on every array in what the step returned.

        JAX has no way to wait for work whose result nobody holds: a step that returns nothing
        is timed without it.
        """
        _jax().block_until_ready(result)

    def probes(self) -> Sequence[Probe]:
        """Compilations, live arrays, and device memory."""
        self._missing = []
        made: list[Probe] = [LiveArrays()]
        try:
            made.append(Compilations())
        except Unavailable as error:
            self._missing.append(f"JAX {_jax().__version__}: {error}")
        return made + [
            DeviceMemoryProbe(self, device)
            for device in self.devices()
            if self.memory(device) is not None
        ]

    def notes(self) -> list[str]:
        """What ``probes()`` found missing."""
        return list(self._missing)

    def remarks(self) -> list[str]:
        """What stands in for the counts that a CPU does not have."""
        if any(self.memory(device) is not None for device in self.devices()):
            return []
        return [
            "JAX has no memory statistics for a CPU: live_tensor_bytes counts arrays, and "
            "native_heap counts what malloc gives."
        ]

    def memory(self, device: Device) -> DeviceMemory | None:
        """``Device.memory_stats()``; the peak is that of the whole process, so it is left out."""
        found = _find(device)
        stats = found.memory_stats() if found is not None else None
        if not stats or "bytes_in_use" not in stats:
            return None
        return DeviceMemory(
            stats["bytes_in_use"],
            reserved=stats.get("pool_bytes") or stats.get("bytes_reserved"),
            rounding=256,  # XLA's BFC allocator hands out multiples of this
        )

    def on(self, device: Device) -> AbstractContextManager[Any]:
        """``jax.default_device``; an idle JAX gets the platform's name, which starts nothing."""
        where = _find(device) if self.in_use() else device.kind
        placed: AbstractContextManager[Any] = _jax().default_device(where)
        return placed

    def allocate(self, device: Device, nbytes: int) -> Any:
        """An array of bytes."""
        import numpy as np

        made = _jax().device_put(np.ones(nbytes, np.uint8), _find(device))
        return _jax().block_until_ready(made)

    def snapshot(self, folder: Path) -> list[Path]:
        """Write ``jax.profiler``'s device memory profile, which pprof reads."""
        path = folder / "jax-memory-snapshot.prof"
        _jax().profiler.save_device_memory_profile(str(path))
        return [path]


class LiveArrays(Probe):
    """Arrays alive on every backend, and their bytes (all shards together)."""

    quantities = (LIVE_TENSORS, LIVE_TENSOR_BYTES)

    def __init__(self) -> None:
        self._platforms = sorted({device.platform for device in _all_devices()})
        self._live = _jax().live_arrays

    def read(self) -> Sequence[float]:
        """Arrays, bytes. Deleted and donated arrays are not among them."""
        count = total = 0
        for platform in self._platforms:
            arrays = self._live(platform)
            count += len(arrays)
            for array in arrays:
                total += array.nbytes
        return count, total


class Compilations(Probe):
    """Programs compiled (``traces``) and functions traced by JAX since the probe was made.

    Every miss of a jit cache compiles one program: a new shape, dtype or static argument, or a
    function object that JAX has not seen. Eager operations compile one for each new shape.
    """

    quantities = (TRACES, JIT_TRACES)

    def __init__(self) -> None:
        monitoring = getattr(_jax(), "monitoring", None)
        listen = getattr(monitoring, "register_event_duration_secs_listener", None)
        if listen is None:
            raise Unavailable("compilations are not counted: jax.monitoring has moved")
        self._compiled = self._traced = 0
        self._on = True
        self._listener = self._heard  # one bound method: it is unregistered by identity
        listen(self._listener)

    def _heard(self, event: str, duration: float, **_: Any) -> None:
        if event == _COMPILED:
            self._compiled += self._on
        elif event == _TRACED:
            self._traced += self._on

    def read(self) -> Sequence[float]:
        """Programs compiled, functions traced; both so far."""
        return self._compiled, self._traced

    def close(self) -> None:
        """Count no more; older versions of JAX cannot unregister, so the listener goes quiet."""
        self._on = False
        forget: Callable[..., None] | None = getattr(
            _jax().monitoring, "unregister_event_duration_listener", None
        )
        if forget is not None:
            forget(self._listener)


def _jax() -> Any:
    return sys.modules["jax"]


def _all_devices() -> list[Any]:
    """Devices of the default backend, and the CPU, which is there beside any accelerator."""
    jax = _jax()
    devices = list(jax.local_devices())
    if all(device.platform != "cpu" for device in devices):
        with suppress(RuntimeError):  # JAX_PLATFORMS may leave the CPU out
            devices += jax.local_devices(backend="cpu")
    return devices


def _kind(device: Any) -> str:
    platform = str(device.platform)
    return "gpu" if platform in ("gpu", "cuda", "rocm") else platform


def _describe(device: Any) -> Device:
    stats = device.memory_stats() or {}
    kind = _kind(device)
    name = f"{kind.upper()}:{device.id}"
    return Device(name, kind, stats.get("bytes_limit"), str(device.device_kind))


def _find(device: Device) -> Any:
    for found in _all_devices():
        if f"{_kind(found).upper()}:{found.id}" == device.name:
            return found
    return None

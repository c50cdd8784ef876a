"""Device memory as a framework's allocator counts it."""

from __future__ import annotations

from collections.abc import Sequence

from leakkit.frameworks import Device, Framework
from leakkit.probes import Kind, Probe, Quantity, Unavailable


class DeviceMemoryProbe(Probe):
    """Allocated bytes of one device, with the step's peak and what is reserved.

    Allocated bytes decide: what an allocator caches (reserved) is no leak.

    Raises:
        Unavailable: the framework has no count for this device.
    """

    def __init__(self, framework: Framework, device: Device) -> None:
        first = framework.memory(device)
        if first is None:
            raise Unavailable(f"{framework.name} has no memory count for {device.name}")
        self._framework, self._device = framework, device
        self._peak, self._reserved = first.peak is not None, first.reserved is not None
        quantities = [Quantity(f"device_memory:{device.name}", "B", Kind.EXACT)]
        if self._peak:
            name = f"device_peak:{device.name}"
            quantities.append(Quantity(name, "B", Kind.NOISY, advisory=True))
        if self._reserved:
            name = f"device_reserved:{device.name}"
            quantities.append(Quantity(name, "B", Kind.NOISY, advisory=True))
        self.quantities = tuple(quantities)
        framework.reset_peak(device)

    def read(self) -> Sequence[float]:
        """Bytes allocated, then the step's peak and the bytes reserved where there are counts."""
        memory = self._framework.memory(self._device)
        if memory is None:
            return [float("nan")] * len(self.quantities)
        values: list[float] = [memory.allocated]
        if self._peak:
            values.append(float("nan") if memory.peak is None else memory.peak)
            self._framework.reset_peak(self._device)
        if self._reserved:
            values.append(float("nan") if memory.reserved is None else memory.reserved)
        return values

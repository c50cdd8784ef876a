"""Device memory as a framework's allocator counts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from leakkit.frameworks import Device, Framework
from leakkit.probes import Kind, Probe, Quantity, Unavailable
from leakkit.trend import Verdict

if TYPE_CHECKING:
    from leakkit.result import Finding

MEMORY, RESERVED = "device_memory:", "device_reserved:"


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
        quantities = [Quantity(f"{MEMORY}{device.name}", "B", Kind.EXACT)]
        if self._peak:
            name = f"device_peak:{device.name}"
            quantities.append(Quantity(name, "B", Kind.NOISY, advisory=True))
        if self._reserved:
            name = f"{RESERVED}{device.name}"
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


def of_a_device(names: Iterable[str]) -> bool:
    """Whether one of these series counts the memory of a device."""
    return any(name.startswith((MEMORY, RESERVED)) for name in names)


def fragmented(findings: Mapping[str, Finding]) -> list[str]:
    """A sentence for each device whose allocator takes more and more and hands out no more."""
    return [
        f"{name.removeprefix(RESERVED)} reserves {finding.trend.slope:+,.0f} B a step while what "
        "is allocated stays level: the allocator's memory is fragmented, as by blocks whose size "
        "changes. Pad to a few fixed shapes; in PyTorch, set "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
        for name, finding in findings.items()
        if name.startswith(RESERVED)
        and finding.trend.verdict is Verdict.GROWS
        and _is_flat(findings.get(MEMORY + name.removeprefix(RESERVED)))
    ]


def _is_flat(finding: Finding | None) -> bool:
    return finding is not None and finding.trend.verdict is Verdict.FLAT

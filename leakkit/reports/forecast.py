"""When growth will hurt, if it goes on at this rate."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from leakkit.reports.labels import label
from leakkit.result import Finding, Result
from leakkit.trend import Verdict
from leakkit.units import bytes_text, duration_text, large_count, plain

_HOST_MEMORY = ("python_heap", "native_heap", "live_tensor_bytes", "rss")


def forecasts(result: Result) -> list[str]:
    """Sentences such as ``24 GiB is full after 16.5 million steps (4.6 h at 1 ms a step)``."""
    step = step_seconds(result)
    return [
        f"{end} after {large_count(steps)} steps{_when(steps, step)}"
        for end, steps in _ends(result)
        if math.isfinite(steps)
    ]


def step_seconds(result: Result) -> float | None:
    """The median time of a step, or ``None`` where it was not measured."""
    finding = result.findings.get("latency")
    if finding is None:
        return None
    values = finding.series.values
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else None


def _ends(result: Result) -> Iterator[tuple[str, float]]:
    """What ends, and the steps until then."""
    growing = [f for f in result.findings.values() if f.trend.verdict is Verdict.GROWS]
    host = [f for f in growing if f.name in _HOST_MEMORY and f.decides]
    memory = result.recording.meta.get("environment", {}).get("memory_bytes")
    if host and memory:
        yield f"{bytes_text(memory)} is full", memory / _fastest(host)
    for finding in growing:
        yield from _ends_of(finding, result)


def _ends_of(finding: Finding, result: Result) -> Iterator[tuple[str, float]]:
    environment = result.recording.meta.get("environment", {})
    slope = finding.trend.slope
    if slope <= 0 or not finding.decides:
        return
    if finding.name.startswith("device_memory:"):
        total = _device_bytes(environment, finding.name.partition(":")[2])
        if total:
            yield f"the {bytes_text(total)} of {label(finding.name)} are full", total / slope
    elif finding.name == "fds" and environment.get("fd_limit"):
        limit = environment["fd_limit"]
        yield f"the {plain(limit)} descriptors of a process are used up", limit / slope
    elif finding.name == "latency":
        yield "a step takes twice as long", 100.0 / slope


def _device_bytes(environment: dict[str, object], name: str) -> float | None:
    devices = environment.get("devices")
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict) and device.get("name") == name:
            return device.get("total_bytes")
    return None


def _fastest(findings: list[Finding]) -> float:
    """Host memory series overlap, so the largest of them stands for all."""
    return max(finding.trend.slope for finding in findings) or math.nan


def _when(steps: float, step: float | None) -> str:
    return f" ({duration_text(steps * step)} at {duration_text(step)} a step)" if step else ""

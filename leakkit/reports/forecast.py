"""When growth will hurt, if it goes on at this rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from leakkit.reports.labels import label
from leakkit.result import Finding, Result
from leakkit.trend import Verdict
from leakkit.units import bytes_text, duration_text, large_count, plain

HOST_MEMORY = ("python_heap", "native_heap", "live_tensor_bytes", "rss")


def forecasts(result: Result) -> list[str]:
    """Sentences such as ``24 GiB is full after 16.5 million steps (4.6 h at 1 ms a step)``."""
    step = step_seconds(result)
    return [
        f"{end} after {large_count(steps)} steps{_when(steps, step)}"
        for end, steps in _ends(result)
        if math.isfinite(steps)
    ]


def host_growth(result: Result) -> float:
    """Bytes of host memory that a step adds; 0 when no deciding series of it grows.

    The trace pass tells Python's bytes from native ones, so there the two add up. All else
    overlaps, and the largest stands for the whole.
    """
    growing = {
        f.name: f.trend.slope
        for f in result.findings.values()
        if f.name in HOST_MEMORY and f.decides and f.trend.verdict is Verdict.GROWS
    }
    traced = [
        slope
        for name, slope in growing.items()
        if name.endswith("_heap") and result.findings[name].measured == "trace"
    ]
    return max([sum(traced), *growing.values()])


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
    host = host_growth(result)
    memory = result.recording.meta.get("environment", {}).get("memory_bytes")
    if host > 0 and memory:
        yield f"{bytes_text(memory)} is full", memory / host
    for finding in growing:
        yield from _ends_of(finding, result.recording.meta)


def _ends_of(finding: Finding, meta: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    slope = finding.trend.slope
    if slope <= 0 or not finding.decides:
        return
    if finding.name.startswith("device_memory:"):
        total = _device_bytes(meta, finding.name.partition(":")[2])
        if total:
            yield f"the {bytes_text(total)} of {label(finding.name)} are full", total / slope
    elif finding.name == "fds":
        limit = meta.get("environment", {}).get("descriptor_limit")
        if limit:
            yield f"the {plain(limit)} descriptors of a process are used up", limit / slope
    elif finding.name == "latency":
        yield "a step takes twice as long", 100.0 / slope


def _device_bytes(meta: Mapping[str, Any], name: str) -> float | None:
    for device in meta.get("frameworks", {}).get("devices", ()):
        if device.get("name") == name:
            return device.get("total_bytes")  # type: ignore[no-any-return]
    return None


def _when(steps: float, step: float | None) -> str:
    return f" ({duration_text(steps * step)} at {duration_text(step)} a step)" if step else ""

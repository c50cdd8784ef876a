"""Where a run took place: versions, machine, devices."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from leakkit.frameworks import Framework

PACKAGES = ("leakkit", "memray", "numpy", "psutil", "pytest")


def describe() -> dict[str, Any]:
    """The interpreter, the machine and the packages that every run uses."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "allocator": os.environ.get("PYTHONMALLOC", "pymalloc"),
        "os": platform.platform(),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "descriptor_limit": _descriptor_limit(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "command": sys.argv[:1],
    }


def describe_frameworks(frameworks: Iterable[Framework]) -> dict[str, Any]:
    """Versions and devices of the frameworks that the step uses."""
    found = list(frameworks)
    return {
        "frameworks": {f.name: f.versions() for f in found},
        "devices": [
            {"name": d.name, "kind": d.kind, "total_bytes": d.total_bytes, "model": d.model}
            for f in found
            for d in f.devices()
        ],
    }


def _descriptor_limit() -> int | None:
    """How many files this process may hold open; ``None`` where there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The processor's name as its vendor writes it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()

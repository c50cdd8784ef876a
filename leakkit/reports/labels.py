"""Series as a person calls them, and which come first in a report."""

from __future__ import annotations

_LABELS = {
    "latency": "latency",
    "cpu_time": "CPU time",
    "native_heap": "native heap",
    "python_heap": "python heap",
    "python_blocks": "python blocks",
    "rss": "resident memory",
    "threads": "threads",
    "fds": "descriptors",
    "garbage": "cyclic garbage",
    "live_objects": "objects alive",
    "traces": "traces",
    "allocations": "allocations in a step",
    "allocated": "allocated in a step",
    "live_tensors": "tensors alive",
    "live_tensor_bytes": "tensor bytes",
    "children": "child processes",
    "children_memory": "child memory",
    "files": "files",
    "file_bytes": "file bytes",
}
_FRAMEWORKS = {"tf": "TF", "keras": "Keras", "jax": "JAX", "torch": "PyTorch"}
_KEY = (
    "python_heap",
    "native_heap",
    "device_memory",
    "live_tensors",
    "traces",
    "threads",
    "fds",
    "latency",
)


def label(name: str) -> str:
    """``native heap`` for ``native_heap``, ``device memory GPU:0`` for ``device_memory:GPU:0``."""
    if name in _LABELS:
        return _LABELS[name]
    family, _, rest = name.partition(":")
    first, *words = family.split("_")
    return " ".join([_FRAMEWORKS.get(first, first), *words, rest]).rstrip()


def is_key(name: str) -> bool:
    """Whether a series is shown when nothing is remarkable about it."""
    return name.partition(":")[0] in _KEY


def rank(name: str) -> int:
    """Where a series stands among those of the same verdict."""
    family = name.partition(":")[0]
    return _KEY.index(family) if family in _KEY else len(_KEY)

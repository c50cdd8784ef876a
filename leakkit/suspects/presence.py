"""Objects that need not multiply to explain growth: an open tape, a cached dataset."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from leakkit.suspects import Suspect

_TF = "tensorflow.python"


def _open_tape(tape: Any) -> bool:
    return bool(tape._recording)


def _memory_cache(dataset: Any) -> bool:
    filename = dataset._filename
    return not filename.numpy() if hasattr(filename, "numpy") else not filename


def _private_pool(dataset: Any) -> bool:
    return bool(dataset.options().threading.private_threadpool_size)


def _always(value: Any) -> bool:
    return value is not None


# module, class, name, words, whether this instance is meant
_KNOWN: tuple[tuple[str, str, str, str, Callable[[Any], bool]], ...] = (
    (
        f"{_TF}.eager.backprop",
        "GradientTape",
        "open-tape",
        "a GradientTape that is recording between steps",
        _open_tape,
    ),
    (
        f"{_TF}.data.ops.cache_op",
        "CacheDataset",
        "memory-cache",
        "a dataset with cache() in memory",
        _memory_cache,
    ),
    (
        f"{_TF}.data.ops.dataset_ops",
        "_OptionsDataset",
        "private-pool",
        "a dataset with a thread pool of its own",
        _private_pool,
    ),
    (
        f"{_TF}.data.ops.shuffle_op",
        "_ShuffleDataset",
        "shuffle",
        "a dataset with shuffle()",
        _always,
    ),
)


def suspects(objects: Iterable[Any]) -> list[Suspect]:
    """What of the known kinds is alive, once each."""
    wanted = {}
    for module, name, label, words, test in _KNOWN:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type):
            wanted[kind] = (label, words, test)
    found: dict[str, str] = {}
    for value in objects if wanted else ():
        known = wanted.get(type(value))
        if known is not None and known[0] not in found and _is(known[2], value):
            found[known[0]] = known[1]
    return [_suspect(label, words) for label, words in found.items()]


def _is(test: Callable[[Any], bool], value: Any) -> bool:
    try:
        return test(value)
    except Exception:
        return False


def _suspect(label: str, words: str) -> Suspect:
    return Suspect("object", words, "alive at the end", 0.0, "objects", (), {"present": label})

"""What a container holds: looks at its newest items, never through their own methods."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Sequence
from typing import Any

from leakkit.suspects.accessors import dict_of
from leakkit.suspects.sizes import Weight, isinstance_exact, type_name

SAMPLE = 16  # items looked at of one container

Item = tuple[Any, ...]  # (value,), or (key, value) of a dict

_IDENTITIES = {"Reference", "KeyedRef", "ReferenceType", "_ObjectIdentityWrapper"}
_PLAIN = {
    "int", "float", "complex", "bool", "str", "bytes", "bytearray", "NoneType", "tuple", "list",
    "dict", "set", "frozenset", "ndarray", "EagerTensor", "Tensor", "ArrayImpl", "float32",
    "float64", "int64", "int32", "type", "datetime", "Decimal",
}  # fmt: skip


def newest(container: Any, fresh: set[int] | None = None) -> list[Item]:
    """Its latest items, newest first; of a set, those whose ids are in ``fresh`` first."""
    try:
        return _newest(container, fresh or set())
    except Exception:  # it changes meanwhile, or a subclass is half-built
        return []


def _newest(container: Any, fresh: set[int]) -> list[Item]:
    if isinstance_exact(container, (dict,)):
        return list(itertools.islice(reversed(list(dict.items(container))), SAMPLE))
    if isinstance_exact(container, (list,)):
        return [(item,) for item in reversed(list.__getitem__(container, slice(-SAMPLE, None)))]
    if isinstance_exact(container, (collections.deque,)):
        latest = collections.deque.__reversed__(container)
        return [(item,) for item in itertools.islice(latest, SAMPLE)]
    if isinstance_exact(container, (set,)):
        members = list(set.__iter__(container))
        return [(m,) for m in ([m for m in members if id(m) in fresh] or members)[:SAMPLE]]
    return []


def commonest_value(items: Sequence[Item]) -> str:
    """The commonest type of the items; of a dict, of its values."""
    return _commonest(item[-1] for item in items)


def commonest_key(items: Sequence[Item]) -> str:
    """The commonest type of a dict's keys; ``""`` for anything else."""
    return _commonest(item[0] for item in items if len(item) == 2)


def _commonest(values: Any) -> str:
    counts = collections.Counter(type_name(type(value)) for value in values)
    return counts.most_common(1)[0][0] if counts else ""


def heaviest(weight: Weight | None) -> str:
    """The type with the most bytes among what was reached."""
    return weight.types.most_common(1)[0][0] if weight and weight.types else ""


def opaque(weight: Weight) -> bool:
    """Whether it holds objects whose true size cannot be seen by walking references."""
    return not weight.counts or not set(weight.counts) <= _PLAIN


def keyed_by_identity(items: Sequence[Item]) -> bool:
    """Whether a dict's keys stand for one object each: ``id()``, a reference, a plain object."""
    keys = [item[0] for item in items if len(item) == 2]
    return bool(keys) and all(_is_identity(key) for key in keys)


def _is_identity(key: Any) -> bool:
    kind = type(key)
    if kind is int:
        return bool(key > 1 << 32)  # as big as an address: no counter gets there
    if kind is tuple:
        return any(_is_identity(part) for part in key)
    if isinstance_exact(key, (type,)):
        return False
    return type_name(kind) in _IDENTITIES or _hashed_by_address(kind)


def _hashed_by_address(kind: type) -> bool:
    hashing: Any = kind.__hash__
    plain: Any = object.__hash__
    return hashing is plain


def parts(items: Sequence[Item]) -> int:
    """Entries of the newest item, where that is a tuple, a list, a dict or a record."""
    item: Any = items[0][-1] if items else None
    if isinstance_exact(item, (tuple,)):
        return tuple.__len__(item)
    if isinstance_exact(item, (list,)):
        return list.__len__(item)
    return dict.__len__(item) if isinstance_exact(item, (dict,)) else len(dict_of(item))


def is_view(items: Sequence[Item]) -> bool:
    """Whether the newest item is a small array that keeps a much bigger one alive."""
    item: Any = items[0][-1] if items else None
    if type_name(type(item)) != "ndarray" or item.base is None:
        return False
    return bool(getattr(item.base, "nbytes", 0) > 2 * item.nbytes)


def waits(items: Sequence[Item]) -> bool:
    """Whether futures or tasks are kept that are not done: the oldest looked at had the time."""
    item: Any = items[-1][-1] if items else None
    if type_name(type(item)) not in ("Future", "Task"):
        return False
    return getattr(item, "_state", "") in ("PENDING", "RUNNING")


def has_graph(items: Sequence[Item]) -> bool:
    """Whether the newest item has a PyTorch tensor that keeps the graph which computed it."""
    values = _entries(items[0][-1]) if items else []
    return any(type_name(type(v)) == "Tensor" and _grad_fn(v) for v in values)


def _entries(item: Any) -> Sequence[Any]:
    """What a tuple, a list, a dict or a record consists of; anything else is one thing."""
    if isinstance_exact(item, (tuple, list)):
        return list(item)
    if isinstance_exact(item, (dict,)):
        return list(dict.values(item))
    return [item, *dict_of(item).values()]


def _grad_fn(tensor: Any) -> bool:
    try:
        return tensor.grad_fn is not None
    except Exception:
        return False

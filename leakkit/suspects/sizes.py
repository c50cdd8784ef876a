"""How big is a value: cheap looks at exact types, never at what a class claims about itself."""

from __future__ import annotations

import array
import collections
import gc
import io
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from leakkit.suspects.places import owner

USERS_FUNCTION = "user's function"  # counted apart: it says who filled a library's registry

Sizer = Callable[[Any], int]

# Reached from nearly everything and owned by nobody in particular.
_SHARED = (
    type, types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.GetSetDescriptorType,
)  # fmt: skip


def mro(kind: type) -> tuple[type, ...]:
    """The bases of a class, read past any metaclass that overrides ``__mro__``."""
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return bases


def type_name(kind: type) -> str:
    """``Trainer``: the short name of a class."""
    try:
        name = type.__dict__["__name__"].__get__(kind)
    except Exception:
        return "?"
    return str(name)


def type_module(kind: type) -> str:
    """The module that defines a class, ``""`` where it does not say."""
    for space in (type.__dict__["__dict__"].__get__(kind),):
        module = space.get("__module__")
        if type(module) is str:
            return module
    return "builtins" if not kind.__flags__ & (1 << 9) else ""


def _attribute(module: str, name: str) -> type | None:
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


def _eager_bytes(tensor: Any) -> int:
    return int(tensor.shape.num_elements() or 0) * int(tensor.dtype.size)


def _torch_bytes(tensor: Any) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _array_bytes(values: Any) -> int:
    return int(values.nbytes)


def tensor_sizers() -> dict[type, Sizer]:
    """Payload bytes by exact type, for the array libraries that are already imported."""
    table = (
        ("numpy", "ndarray", _array_bytes),
        ("tensorflow.python.framework.ops", "EagerTensor", _eager_bytes),
        ("torch", "Tensor", _torch_bytes),
        ("jax._src.array", "ArrayImpl", _array_bytes),
        ("jaxlib._jax", "ArrayImpl", _array_bytes),
        ("jaxlib.xla_extension", "ArrayImpl", _array_bytes),
    )
    found = ((_attribute(module, name), sizer) for module, name, sizer in table)
    return {kind: sizer for kind, sizer in found if kind is not None}


def _slots(values: Any) -> int:
    return len(values) * 8


def leaf_sizers() -> dict[type, Sizer]:
    """Bytes by exact type of values that grow by being replaced: arrays, text, buffers, copies."""
    sizers: dict[type, Sizer] = {
        str: len,
        bytes: len,
        bytearray: len,
        list: _slots,
        tuple: _slots,
        dict: _slots,
        array.array: lambda a: len(a) * a.itemsize,
        io.BytesIO: sys.getsizeof,
        io.StringIO: sys.getsizeof,
    }
    sizers.update(tensor_sizers())
    return sizers


def _counts() -> dict[type, Sizer]:
    counts: dict[type, Sizer] = {
        kind: kind.__len__ for kind in (list, dict, set, collections.deque, collections.OrderedDict)
    }
    counts[collections.OrderedDict] = dict.__len__
    return counts


class Lengths:
    """Lengths by exact type; a subclass is measured as the builtin it is, past its own methods."""

    def __init__(self) -> None:
        self._counts: dict[type, Sizer | None] = dict(_counts())

    def sizer(self, kind: type) -> Sizer | None:
        """The function that counts the items of such an object, or ``None`` for no container."""
        try:
            return self._counts[kind]
        except KeyError:
            found = next((self._counts[b] for b in mro(kind) if self._counts.get(b)), None)
            self._counts[kind] = found
            return found


@dataclass
class Weight:
    """What some items hold.

    Args:
        bytes: of everything reached.
        types: bytes by short type name.
        counts: objects by short type name.
        complete: false where the walk was cut.
    """

    bytes: int = 0
    types: collections.Counter[str] = field(default_factory=collections.Counter)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    complete: bool = True


def _own_bytes(value: Any, payload: dict[type, Sizer]) -> int:
    builtin = type_module(type(value)) == "builtins"
    size = sys.getsizeof(value) if builtin else object.__sizeof__(value)
    sizer = payload.get(type(value))
    size += sizer(value) if sizer else 0
    base = getattr(value, "base", None) if type_name(type(value)) == "ndarray" else None
    return size + int(getattr(base, "nbytes", 0))  # a view keeps all of its base alive


def weigh(items: Iterable[Any], fresh: set[int], limit: int = 2000) -> Weight:
    """Add up what ``items`` hold.

    Args:
        items: where to start.
        fresh: ids of the tracked objects made lately; the walk enters tracked objects only there,
            so that what is shared with the rest of the program is not counted.
        limit: objects to visit at most.
    """
    payload = tensor_sizers()
    weight, seen, queue = Weight(), set[int](), collections.deque(items)
    while queue:
        value = queue.popleft()
        if id(value) in seen or isinstance_exact(value, _SHARED):
            continue
        seen.add(id(value))
        if len(seen) > limit:
            weight.complete = False
            break
        _add(weight, value, payload)
        if type(value) not in payload:
            queue.extend(r for r in gc.get_referents(value) if _enter(r, fresh))
    return weight


def isinstance_exact(value: object, kinds: tuple[type, ...]) -> bool:
    """``isinstance`` by the real type: a proxy cannot answer for its target."""
    return any(base in kinds for base in mro(type(value)))


def _written_by_user(function: types.FunctionType) -> bool:
    """AutoGraph converts the user's functions only, so what it generates counts as theirs."""
    return owner(function.__code__.co_filename) in ("user", "generated")


def _enter(value: object, fresh: set[int]) -> bool:
    return id(value) in fresh or not gc.is_tracked(value)


def _add(weight: Weight, value: Any, payload: dict[type, Sizer]) -> None:
    try:
        size = _own_bytes(value, payload)
    except Exception:
        size = 16
    name = type_name(type(value))
    if type(value) is types.FunctionType and _written_by_user(value):
        weight.counts[USERS_FUNCTION] += 1
    weight.bytes += size
    weight.types[name] += size
    weight.counts[name] += 1

"""From a holder to what it holds, as a person writes it: ``.name``, ``["key"]``, ``[3]``."""

from __future__ import annotations

import collections
import types
from typing import Any

from leakkit.suspects.sizes import isinstance_exact, mro, type_name


def dict_of(instance: Any) -> dict[str, Any]:
    """An instance's attributes without asking its class; empty where there are none."""
    try:
        found = object.__getattribute__(instance, "__dict__")
    except Exception:
        return {}
    return found if type(found) is dict else {}


def accessor_of(holder: Any, child: Any) -> str:
    """How a person gets from ``holder`` to ``child``: ``.name``, ``["key"]``, ``[3]`` or ``""``."""
    if isinstance_exact(holder, (dict,)):
        return _in_dict(holder, child)
    if isinstance_exact(holder, (list, tuple, collections.deque)):
        return _in_sequence(holder, child)
    if isinstance_exact(holder, (types.CellType, types.FunctionType)):
        return ""
    if isinstance_exact(holder, (types.MethodType,)):
        return ".__self__" if holder.__self__ is child else ""
    if isinstance_exact(holder, (types.TracebackType,)):
        return ".tb_next" if holder.tb_next is child else ".tb_frame"
    if isinstance_exact(holder, (types.FrameType,)):
        return _in_frame(holder, child)
    return _in_instance(holder, child)


def _in_dict(holder: dict[Any, Any], child: Any) -> str:
    for key, value in list(dict.items(holder)):
        if value is child:
            return f'["{key}"]' if type(key) is str else f"[{_key_text(key)}]"
        if key is child:
            return "[key]"
    return "[?]"


def _key_text(key: Any) -> str:
    return (
        repr(key)
        if type(key) in (int, float, bool, tuple) and len(repr(key)) < 20
        else (f"<{type_name(type(key))}>")
    )


def _in_sequence(holder: Any, child: Any) -> str:
    plain: Any = next(b for b in mro(type(holder)) if b in (list, tuple, collections.deque))
    for index, value in enumerate(list(plain.__iter__(holder))):
        if value is child:
            return f"[{index}]"
    return "[?]"


def _in_frame(frame: types.FrameType, child: Any) -> str:
    name = next((k for k, v in list(frame.f_locals.items()) if v is child), "?")
    return f".{frame.f_code.co_name}.{name}"


def as_attribute(accessor: str) -> str:
    """The accessor of an instance's or a class's dict as an attribute."""
    inner = accessor.removeprefix('["').removesuffix('"]')
    return f".{inner}" if inner.isidentifier() else accessor


def _in_instance(holder: Any, child: Any) -> str:
    attributes = dict_of(holder)
    if attributes is child:
        return ""  # the dict's own accessor says it
    for key, value in list(attributes.items()):
        if value is child:
            return f".{key}"
    if isinstance_exact(holder, (BaseException,)):
        return _in_exception(holder, child)
    return _in_slots(holder, child)


def _in_exception(error: BaseException, child: Any) -> str:
    for name in ("__traceback__", "__context__", "__cause__", "args"):
        if getattr(error, name, None) is child:
            return f".{name}"
    return ".?"


def _in_slots(holder: Any, child: Any) -> str:
    for name, member in slot_members(type(holder)).items():
        if slot(member, holder) is child:
            return f".{name}"
    return f".<{type_name(type(child))}>"


def slot_members(kind: type) -> dict[str, types.MemberDescriptorType]:
    """The attributes of a class that lie in ``__slots__``, by name."""
    spaces = (type.__dict__["__dict__"].__get__(base) for base in reversed(mro(kind)))
    return {
        name: member
        for space in spaces
        for name, member in list(space.items())
        if type(member) is types.MemberDescriptorType
    }


def slot(member: types.MemberDescriptorType, holder: Any) -> Any:
    """What an object has in a slot; ``None`` where that was never set."""
    try:
        return member.__get__(holder)
    except Exception:
        return None

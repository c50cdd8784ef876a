"""Places with a name of their own, where the way from an object outwards may end."""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leakkit.suspects.accessors import as_attribute
from leakkit.suspects.places import is_user, module_owner, owner, place
from leakkit.suspects.sizes import isinstance_exact, type_module, type_name

LRU = functools._lru_cache_wrapper


@dataclass(frozen=True)
class Hop:
    """One object on the way: ``accessor`` leads from it to ``child``."""

    holder: Any
    accessor: str
    child: Hop | None


@dataclass(frozen=True)
class Root:
    """A place with a name of its own."""

    name: str
    words: str
    kind: str
    owner: str
    module: str
    lru_wraps: str = ""


def module_of(space: dict[str, Any]) -> str:
    """The module whose globals this dict is, or ``""``."""
    name = space.get("__name__")
    if type(name) is str and "__builtins__" in space:
        return name
    if type(name) is str and getattr(sys.modules.get(name), "__dict__", None) is space:
        return name
    return ""


def find_root(holder: Any, hop: Hop) -> Root | None:
    """The named place that ``holder`` is for what it refers to, or ``None`` to search on."""
    for kind, make in _ROOTS:
        if isinstance_exact(holder, (kind,)):
            return make(holder, hop)
    return None


def _module_root(holder: dict[str, Any], hop: Hop) -> Root | None:
    module = module_of(holder)
    if not module:
        return None
    name = next((str(k) for k, v in list(holder.items()) if v is hop.holder), "?")
    return Root(name, f"in module {module}", "module", namespace_owner(holder, module), module)


def namespace_owner(space: dict[str, Any], module: str) -> str:
    """Whose a module is: by its file, where it has one."""
    file = space.get("__file__")
    return owner(file) if type(file) is str else module_owner(module)


def _function_root(holder: types.FunctionType, hop: Hop) -> Root | None:
    module = str(holder.__module__)
    whose = owner(holder.__code__.co_filename)
    where = _outer_name(holder.__qualname__)
    child = hop.holder
    if child is holder.__closure__ and hop.child is not None:
        return Root(
            _free_name(holder, hop.child.holder),
            f"closure variable of {where}",
            "closure",
            whose,
            module,
        )
    if child is holder.__defaults__ or child is holder.__kwdefaults__:
        return Root(
            _default_name(holder, hop),
            f"default argument of {holder.__qualname__}",
            "default",
            whose,
            module,
        )
    if child is holder.__dict__:
        return Root(holder.__qualname__, f"in module {module}", "attribute", whose, module)
    return None


def _outer_name(qualname: str) -> str:
    """``make_step`` for ``make_step.<locals>.step``: the function whose variable it is."""
    outer, _, _ = qualname.rpartition(".<locals>")
    return outer.rpartition(".<locals>.")[2] or qualname


def _free_name(function: types.FunctionType, cell: Any) -> str:
    pairs = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return next((name for name, c in pairs if c is cell), "?")


def _default_name(function: types.FunctionType, hop: Hop) -> str:
    inner = hop.child.holder if hop.child is not None else None
    code, defaults = function.__code__, function.__defaults__ or ()
    named = code.co_varnames[: code.co_argcount][code.co_argcount - len(defaults) :]
    pairs = [*zip(named, defaults, strict=False), *(function.__kwdefaults__ or {}).items()]
    return next((name for name, value in pairs if value is inner), "?")


def _lru_root(holder: Any, hop: Hop) -> Root:
    wrapped = getattr(holder, "__wrapped__", None)
    name = str(getattr(wrapped, "__qualname__", "?"))
    module = str(getattr(wrapped, "__module__", ""))
    code = getattr(wrapped, "__code__", None)
    whose = owner(code.co_filename) if code is not None else module_owner(module)
    return Root(name, "(lru_cache)", "lru_cache", whose, module, name)


def _class_root(holder: type, hop: Hop) -> Root | None:
    space = type.__dict__["__dict__"].__get__(holder)
    for key, value in list(space.items()):
        if value is hop.holder:
            return _class_attribute(holder, f"{type_name(holder)}.{key}")
    inner = hop.child
    if inner is not None and type(hop.holder) is dict:
        return _class_attribute(holder, type_name(holder) + as_attribute(hop.accessor))
    return None


def _class_attribute(kind: type, name: str) -> Root:
    module = type_module(kind)
    return Root(name, f"(class attribute, module {module})", "class", module_owner(module), module)


def _generator_root(holder: Any, hop: Hop) -> Root | None:
    frame = getattr(holder, "gi_frame", None) or getattr(holder, "cr_frame", None)
    if frame is None or owner(frame.f_code.co_filename) == "leakkit":
        return None
    return _frame_local(frame, hop.holder, "suspended")


def _frame_root(holder: types.FrameType, hop: Hop) -> Root | None:
    return _frame_local(holder, hop.holder, "kept") if _is_running(holder) else None


def _is_running(frame: types.FrameType) -> bool:
    for current in sys._current_frames().values():
        walk: types.FrameType | None = current
        while walk is not None:
            if walk is frame:
                return True
            walk = walk.f_back
    return False


def _frame_local(frame: types.FrameType, value: Any, state: str) -> Root:
    code = frame.f_code
    name = next((k for k, v in list(frame.f_locals.items()) if v is value), "?")
    where = place(code.co_filename, frame.f_lineno, code.co_name)
    return Root(
        name,
        f"(local of {state} {where})",
        "local",
        owner(code.co_filename),
        str(frame.f_globals.get("__name__", "")),
    )


def running_locals() -> dict[int, Root]:
    """Locals of the running frames by id: since Python 3.11 no referrer leads to them."""
    found: dict[int, Root] = {}
    names = {t.ident: t.name for t in threading.enumerate()}
    for ident, current in sys._current_frames().items():
        walk: types.FrameType | None = current
        while walk is not None:
            if is_user(walk.f_code.co_filename) and walk.f_code.co_name != "<module>":
                _add_locals(found, walk, names.get(ident, ""))
            walk = walk.f_back
    return found


def _add_locals(found: dict[int, Root], frame: types.FrameType, thread: str) -> None:
    code = frame.f_code
    where = place(code.co_filename, frame.f_lineno, code.co_name)
    words = f"(local of running {where})"
    if thread and thread != "MainThread":
        words = f"(local of running {where}, thread {thread})"
    for name, value in list(frame.f_locals.items()):
        root = Root(name, words, "local", "user", str(frame.f_globals.get("__name__", "")))
        found.setdefault(id(value), root)


_ROOTS: tuple[tuple[type, Callable[[Any, Hop], Root | None]], ...] = (
    (dict, _module_root),
    (types.FunctionType, _function_root),
    (LRU, _lru_root),
    (type, _class_root),
    (types.GeneratorType, _generator_root),
    (types.CoroutineType, _generator_root),
    (types.FrameType, _frame_root),
)

"""From an object to the name that a person would write for it, through its referrers."""

from __future__ import annotations

import collections
import functools
import gc
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from leakkit.suspects.places import is_user, module_owner, owner, place
from leakkit.suspects.sizes import isinstance_exact, mro, type_module, type_name

_DEPTH = 12
_WIDTH = 10  # referrers followed from one object at each level
_CHUNK = 12  # gc.get_referrers compares every reference in the heap with each object given
_LRU = functools._lru_cache_wrapper
_LONG = 5  # links of a name that a person still reads
_NO_LINKS = (types.CodeType, types.BuiltinFunctionType)


@dataclass(frozen=True)
class Path:
    """How an object is reached.

    Args:
        name: ``trainer.history``.
        root: where that name lives: ``in module train``, ``closure variable of make_step`` …
        kind: ``module``, ``closure``, ``local``, ``class``, ``default``, ``lru_cache``,
            ``generator``, ``attribute`` or ``unknown``.
        owner: whose the root is: ``user``, ``library``, ``stdlib`` or ``leakkit``.
        module: the module of the root.
        links: the accessors from the root to the object, outermost first.
        types: ``module.name`` of every object passed on the way, outermost first.
        lru_wraps: for ``lru_cache``: the function that is cached.
        bases: ``module.name`` of every class, also inherited, of the objects passed.
    """

    name: str
    root: str
    kind: str
    owner: str = "user"
    module: str = ""
    links: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    lru_wraps: str = ""
    bases: frozenset[str] = frozenset()

    def text(self) -> str:
        """``history`` in module train; a long way is cut in the middle."""
        return f"`{_readable(self.name)}` {self.root}".strip()


# What only the interpreter sees: the dict of an object, the table of a thread's local values.
_HIDDEN = re.compile(r"\.<dict>(\[<ReferenceType>\])?")
_LINK = re.compile(r"\.[^.\[]+|\[[^\]]*\]")


def _readable(name: str) -> str:
    name = re.sub(r'\.?<dict>\["(\w+)"\]', r".\1", _HIDDEN.sub(".<dict>", name))
    name = name.replace(".<dict>", "").replace("..", ".")
    links = _LINK.findall(name)
    if len(links) <= _LONG:
        return name
    first = name[: name.index(links[0])]
    return "".join([first, *links[:2], "…", *links[-2:]])


@dataclass(frozen=True)
class _Step:
    """One object of a path being built: ``accessor`` leads from it to ``child``."""

    holder: Any
    accessor: str
    child: _Step | None


@dataclass(frozen=True)
class _Root:
    """A place with a name of its own."""

    name: str
    words: str
    kind: str
    owner: str
    module: str
    lru_wraps: str = ""


def dict_of(instance: Any) -> dict[str, Any]:
    """An instance's attributes without asking its class; empty where there are none."""
    try:
        found = object.__getattribute__(instance, "__dict__")
    except Exception:
        return {}
    return found if type(found) is dict else {}


def module_of(space: dict[str, Any]) -> str:
    """The module whose globals this dict is, or ``""``."""
    name = space.get("__name__")
    if type(name) is str and "__builtins__" in space:
        return name
    if type(name) is str and getattr(sys.modules.get(name), "__dict__", None) is space:
        return name
    return ""


class Namer:
    """Names objects, many at once, until its time is up.

    Args:
        deadline: a ``time.monotonic`` value.
        ignore: ids of objects that are leakkit's own.
    """

    def __init__(self, deadline: float, ignore: Iterable[int] = ()) -> None:
        self._deadline = deadline
        self._ignore = set(ignore)
        self._referrers: dict[int, list[Any]] = {}
        self._keep: list[Any] = []  # what is cached by id must not be freed meanwhile
        self._locals = _running_locals()
        self.skipped = 0

    def name(self, objects: Sequence[Any]) -> list[Path | None]:
        """One path an object, in order; ``None`` where nothing with a name leads to it."""
        searches = [_Search(target) for target in objects]
        for search in searches:
            _offer_globals(search)
        self._ignore.add(id(searches))
        for _ in range(_DEPTH):
            active = [s for s in searches if s.frontier and not s.done()]
            if not active or time.monotonic() > self._deadline:
                break
            self._fetch([step.holder for s in active for step in s.frontier])
            for search in active:
                self._advance(search)
        self.skipped += sum(1 for s in searches if s.best is None and s.frontier)
        return [s.path() for s in searches]

    def close(self) -> None:
        """Let go of every object looked at."""
        self._referrers.clear()
        self._keep.clear()
        self._locals.clear()

    def _fetch(self, objects: list[Any]) -> None:
        wanted = list({id(o): o for o in objects if id(o) not in self._referrers}.values())
        for start in range(0, len(wanted), _CHUNK):
            if time.monotonic() > self._deadline:
                return
            self._fetch_chunk(wanted[start : start + _CHUNK])

    def _fetch_chunk(self, chunk: list[Any]) -> None:
        ids = {id(o) for o in chunk}
        found: dict[int, list[Any]] = {key: [] for key in ids}
        for holder in gc.get_referrers(*chunk):
            if id(holder) in self._ignore or _is_own(holder):
                continue
            for child in {id(r) for r in gc.get_referents(holder)} & ids:
                found[child].append(holder)
        self._referrers.update(found)
        self._keep.extend(chunk)

    def _advance(self, search: _Search) -> None:
        frontier, search.frontier = search.frontier, []
        for step in frontier:
            local = self._locals.get(id(step.holder))
            if local is not None:
                search.offer(local, step)
            for holder in self._ranked(step, search):
                search.seen.add(id(holder))
                self._follow(search, step, holder)
        search.level += 1

    def _ranked(self, step: _Step, search: _Search) -> list[Any]:
        holders = [
            h
            for h in self._referrers.get(id(step.holder), [])
            if id(h) not in search.seen and not isinstance_exact(h, _NO_LINKS)
        ]
        return sorted(holders, key=_preference)[:_WIDTH]

    def _follow(self, search: _Search, step: _Step, holder: Any) -> None:
        root = _root(holder, step)
        if root is not None:
            search.offer(root, step)
            return
        search.frontier.append(_link(holder, step))
        search.remember_instance(search.frontier[-1])


def _link(holder: Any, step: _Step) -> _Step:
    """One step outwards; an instance takes the place of its attribute dict."""
    if type(step.holder) is dict and step.child is not None and dict_of(holder) is step.holder:
        return _Step(holder, _as_attribute(step.accessor), step.child)
    try:
        accessor = _accessor(holder, step.holder)
    except Exception:  # it changes meanwhile, or its class answers nobody
        accessor = ".?"
    return _Step(holder, accessor, step)


class _Search:
    """The search upwards from one object."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.first = _Step(target, "", None)
        self.frontier = [self.first]
        self.seen = {id(target)}
        self.level = 0
        self.best: tuple[tuple[int, int], _Root, _Step] | None = None
        self.found_at = 0
        self.instance: _Step | None = None

    def remember_instance(self, step: _Step) -> None:
        """The nearest object with a class of its own: a name where no root is found."""
        if self.instance is None and step.accessor.startswith("."):
            self.instance = step

    def offer(self, root: _Root, step: _Step) -> None:
        rank = (_OWNERS.get(root.owner, 0), self.level)
        if self.best is None or rank < self.best[0]:
            if self.best is None:
                self.found_at = self.level
            self.best = (rank, root, step)

    def done(self) -> bool:
        """A user's name ends the search; another owner's may be beaten by a near one."""
        if self.best is None:
            return False
        return self.best[0][0] == 0 or self.level > self.found_at + 2

    def path(self) -> Path | None:
        if self.best is not None:
            return _path(self.best[1], self.best[2])
        if self.instance is None:
            return None
        kind = type(self.instance.holder)
        module = type_module(kind)
        root = _Root("self", f"of {type_name(kind)}", "attribute", module_owner(module), module)
        return _path(root, self.instance)


def _offer_globals(search: _Search) -> None:
    """A module's own namespace needs no search."""
    target = search.target
    module = module_of(target) if type(target) is dict else ""
    if module:
        whose = _namespace_owner(target, module)
        root = _Root("globals()", f"of module {module}", "module", whose, module)
        search.offer(root, search.first)


_OWNERS = {"user": 0, "generated": 1, "library": 1, "stdlib": 2, "leakkit": 3}


def _path(root: _Root, first: _Step) -> Path:
    links, names, bases = [], [], set[str]()
    step = _past_cell(root, first)
    while step is not None:
        names.append(_qualified(type(step.holder)))
        bases.update(map(_qualified, mro(type(step.holder))))
        if step.child is not None:
            links.append(step.accessor)
        step = step.child
    name = root.name + "".join(links)
    return Path(
        name,
        root.words,
        root.kind,
        root.owner,
        root.module,
        tuple(links),
        tuple(names),
        root.lru_wraps,
        frozenset(bases - {"builtins.object"}),
    )


def _past_cell(root: _Root, step: _Step) -> _Step | None:
    """The step that the root's own name stands for: not the cell, nor the tuple around it."""
    if root.kind == "closure" and step.child is not None:
        return step.child.child or step.child
    if root.kind == "class" and type(step.holder) is dict and step.child is not None:
        return step.child if root.name.endswith(_as_attribute(step.accessor)) else step
    return step.child if root.kind == "default" else step


def _qualified(kind: type) -> str:
    return f"{type_module(kind)}.{type_name(kind)}"


def _preference(holder: Any) -> int:
    """Referrers that name things first, crowds last."""
    if isinstance_exact(holder, (types.FunctionType, types.CellType, _LRU, type)):
        return 0
    if type(holder) is dict:
        return 0 if module_of(holder) else 1
    if type(holder) is types.FrameType:
        return 3
    return 2


def _is_own(holder: Any) -> bool:
    if type(holder) is types.FrameType:
        return owner(holder.f_code.co_filename) == "leakkit"
    if type(holder) in (dict, list, tuple, types.CellType, types.FunctionType):
        return False
    return module_owner(type_module(type(holder))) == "leakkit"


# Roots -----------------------------------------------------------------------------------------


def _root(holder: Any, step: _Step) -> _Root | None:
    """The named place that ``holder`` is for what it refers to, or ``None`` to search on."""
    for kind, make in _ROOTS:
        if isinstance_exact(holder, (kind,)):
            return make(holder, step)
    return None


def _module_root(holder: dict[str, Any], step: _Step) -> _Root | None:
    module = module_of(holder)
    if not module:
        return None
    name = next((str(k) for k, v in list(holder.items()) if v is step.holder), "?")
    return _Root(name, f"in module {module}", "module", _namespace_owner(holder, module), module)


def _namespace_owner(space: dict[str, Any], module: str) -> str:
    file = space.get("__file__")
    return owner(file) if type(file) is str else module_owner(module)


def _function_root(holder: types.FunctionType, step: _Step) -> _Root | None:
    module = str(holder.__module__)
    whose = owner(holder.__code__.co_filename)
    where = _outer_name(holder.__qualname__)
    child = step.holder
    if child is holder.__closure__ and step.child is not None:
        return _Root(
            _free_name(holder, step.child.holder),
            f"closure variable of {where}",
            "closure",
            whose,
            module,
        )
    if child is holder.__defaults__ or child is holder.__kwdefaults__:
        return _Root(
            _default_name(holder, step),
            f"default argument of {holder.__qualname__}",
            "default",
            whose,
            module,
        )
    if child is holder.__dict__:
        return _Root(holder.__qualname__, f"in module {module}", "attribute", whose, module)
    return None


def _outer_name(qualname: str) -> str:
    """``make_step`` for ``make_step.<locals>.step``: the function whose variable it is."""
    outer, _, _ = qualname.rpartition(".<locals>")
    return outer.rpartition(".<locals>.")[2] or qualname


def _free_name(function: types.FunctionType, cell: Any) -> str:
    pairs = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return next((name for name, c in pairs if c is cell), "?")


def _default_name(function: types.FunctionType, step: _Step) -> str:
    inner = step.child.holder if step.child is not None else None
    code, defaults = function.__code__, function.__defaults__ or ()
    named = code.co_varnames[: code.co_argcount][code.co_argcount - len(defaults) :]
    pairs = [*zip(named, defaults, strict=False), *(function.__kwdefaults__ or {}).items()]
    return next((name for name, value in pairs if value is inner), "?")


def _lru_root(holder: Any, step: _Step) -> _Root:
    wrapped = getattr(holder, "__wrapped__", None)
    name = str(getattr(wrapped, "__qualname__", "?"))
    module = str(getattr(wrapped, "__module__", ""))
    code = getattr(wrapped, "__code__", None)
    whose = owner(code.co_filename) if code is not None else module_owner(module)
    return _Root(name, "(lru_cache)", "lru_cache", whose, module, name)


def _class_root(holder: type, step: _Step) -> _Root | None:
    space = type.__dict__["__dict__"].__get__(holder)
    for key, value in list(space.items()):
        if value is step.holder:
            return _class_attribute(holder, f"{type_name(holder)}.{key}")
    inner = step.child
    if inner is not None and type(step.holder) is dict:
        return _class_attribute(holder, type_name(holder) + _as_attribute(step.accessor))
    return None


def _class_attribute(kind: type, name: str) -> _Root:
    module = type_module(kind)
    return _Root(name, f"(class attribute, module {module})", "class", module_owner(module), module)


def _generator_root(holder: Any, step: _Step) -> _Root | None:
    frame = getattr(holder, "gi_frame", None) or getattr(holder, "cr_frame", None)
    if frame is None or owner(frame.f_code.co_filename) == "leakkit":
        return None
    return _frame_local(frame, step.holder, "suspended")


def _frame_root(holder: types.FrameType, step: _Step) -> _Root | None:
    return _frame_local(holder, step.holder, "kept") if _is_running(holder) else None


def _is_running(frame: types.FrameType) -> bool:
    for current in sys._current_frames().values():
        walk: types.FrameType | None = current
        while walk is not None:
            if walk is frame:
                return True
            walk = walk.f_back
    return False


def _frame_local(frame: types.FrameType, value: Any, state: str) -> _Root:
    code = frame.f_code
    name = next((k for k, v in list(frame.f_locals.items()) if v is value), "?")
    where = place(code.co_filename, frame.f_lineno, code.co_name)
    return _Root(
        name,
        f"(local of {state} {where})",
        "local",
        owner(code.co_filename),
        str(frame.f_globals.get("__name__", "")),
    )


def _running_locals() -> dict[int, _Root]:
    """Locals of the running frames by id: since Python 3.11 no referrer leads to them."""
    found: dict[int, _Root] = {}
    names = {t.ident: t.name for t in threading.enumerate()}
    for ident, current in sys._current_frames().items():
        walk: types.FrameType | None = current
        while walk is not None:
            if is_user(walk.f_code.co_filename) and walk.f_code.co_name != "<module>":
                _add_locals(found, walk, names.get(ident, ""))
            walk = walk.f_back
    return found


def _add_locals(found: dict[int, _Root], frame: types.FrameType, thread: str) -> None:
    code = frame.f_code
    where = place(code.co_filename, frame.f_lineno, code.co_name)
    words = f"(local of running {where})"
    if thread and thread != "MainThread":
        words = f"(local of running {where}, thread {thread})"
    for name, value in list(frame.f_locals.items()):
        root = _Root(name, words, "local", "user", str(frame.f_globals.get("__name__", "")))
        found.setdefault(id(value), root)


_ROOTS: tuple[tuple[type, Callable[[Any, _Step], _Root | None]], ...] = (
    (dict, _module_root),
    (types.FunctionType, _function_root),
    (_LRU, _lru_root),
    (type, _class_root),
    (types.GeneratorType, _generator_root),
    (types.CoroutineType, _generator_root),
    (types.FrameType, _frame_root),
)


# Accessors -------------------------------------------------------------------------------------


def _accessor(holder: Any, child: Any) -> str:
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


def _as_attribute(accessor: str) -> str:
    """The accessor of an instance's or a class's dict as an attribute."""
    inner = accessor.removeprefix('["').removesuffix('"]')
    return f".{inner}" if inner.isidentifier() else accessor


def _in_instance(holder: Any, child: Any) -> str:
    attributes = dict_of(holder)
    if attributes is child:
        return ""  # the dict's own accessor says it; see _tidy
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
    for base in mro(type(holder)):
        for name, member in list(type.__dict__["__dict__"].__get__(base).items()):
            if type(member) is types.MemberDescriptorType and _slot(member, holder) is child:
                return f".{name}"
    return f".<{type_name(type(child))}>"


def _slot(member: types.MemberDescriptorType, holder: Any) -> Any:
    try:
        return member.__get__(holder)
    except Exception:
        return None

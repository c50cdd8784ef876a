"""From an object to the name that a person would write for it, through its referrers."""

from __future__ import annotations

import gc
import re
import time
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from leakkit.suspects.accessors import accessor_of, as_attribute, dict_of
from leakkit.suspects.own import Held, is_ours
from leakkit.suspects.places import module_owner, owner
from leakkit.suspects.roots import (
    LRU,
    Hop,
    Root,
    find_root,
    module_of,
    namespace_owner,
    running_locals,
)
from leakkit.suspects.sizes import isinstance_exact, mro, type_module, type_name

_DEPTH = 12
_WIDTH = 10  # referrers followed from one object at each level
_CHUNK = 12  # gc.get_referrers compares every reference in the heap with each object given
_LONG = 5  # links of a name that a person still reads
_NO_LINKS = (types.CodeType, types.BuiltinFunctionType)


class Sought(NamedTuple):
    """What is to be named.

    Args:
        target: the object.
        holder: what is known to hold it: no referrer leads to a dict of plain values.
    """

    target: Any
    holder: Any = None


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
        self._keep = Held()  # what is cached by id must not be freed meanwhile
        self._locals = running_locals()
        self.skipped = 0

    def name(self, objects: Sequence[Sought]) -> list[Path | None]:
        """One path an object, in order; ``None`` where nothing with a name leads to it."""
        searches = [_Search(target) for target, _ in objects]
        for search, (_, holder) in zip(searches, objects, strict=True):
            _offer_globals(search)
            if holder is not None:
                self._follow(search, search.first, holder)
        self._ignore.add(id(searches))
        for _ in range(_DEPTH):
            active = [s for s in searches if s.frontier and not s.done()]
            if not active or time.monotonic() > self._deadline:
                break
            self._fetch(Held(hop.holder for s in active for hop in s.frontier))
            for search in active:
                self._advance(search)
        self.skipped += sum(1 for s in searches if s.best is None and s.frontier)
        return [s.path() for s in searches]

    def close(self) -> None:
        """Let go of every object looked at."""
        self._referrers.clear()
        self._keep.clear()
        self._locals.clear()

    def _fetch(self, objects: Held) -> None:
        wanted = Held({id(o): o for o in objects if id(o) not in self._referrers}.values())
        for start in range(0, len(wanted), _CHUNK):
            if time.monotonic() > self._deadline:
                return
            self._fetch_chunk(Held(wanted[start : start + _CHUNK]))

    def _fetch_chunk(self, chunk: Held) -> None:
        ids = {id(o) for o in chunk}
        found: dict[int, list[Any]] = {key: Held() for key in ids}
        for holder in gc.get_referrers(*chunk):
            if id(holder) in self._ignore or _is_own(holder):
                continue
            for child in {id(r) for r in gc.get_referents(holder)} & ids:
                found[child].append(holder)
        self._referrers.update(found)
        self._keep.extend(chunk)

    def _advance(self, search: _Search) -> None:
        frontier, search.frontier = search.frontier, []
        for hop in frontier:
            local = self._locals.get(id(hop.holder))
            if local is not None:
                search.offer(local, hop)
            for holder in self._ranked(hop, search):
                self._follow(search, hop, holder)
        search.level += 1

    def _ranked(self, hop: Hop, search: _Search) -> list[Any]:
        holders = [
            h
            for h in self._referrers.get(id(hop.holder), [])
            if id(h) not in search.seen and not isinstance_exact(h, _NO_LINKS)
        ]
        return sorted(holders, key=_preference)[:_WIDTH]

    def _follow(self, search: _Search, hop: Hop, holder: Any) -> None:
        search.seen.add(id(holder))
        root = find_root(holder, hop)
        if root is not None:
            search.offer(root, hop)
            return
        search.frontier.append(_link(holder, hop))
        search.remember_instance(search.frontier[-1])


def _link(holder: Any, hop: Hop) -> Hop:
    """One hop outwards; an instance takes the place of its attribute dict."""
    if type(hop.holder) is dict and hop.child is not None and dict_of(holder) is hop.holder:
        return Hop(holder, as_attribute(hop.accessor), hop.child)
    try:
        accessor = accessor_of(holder, hop.holder)
    except Exception:  # it changes meanwhile, or its class answers nobody
        accessor = ".?"
    return Hop(holder, accessor, hop)


class _Search:
    """The search upwards from one object."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.first = Hop(target, "", None)
        self.frontier = [self.first]
        self.seen = {id(target)}
        self.level = 0
        self.best: tuple[tuple[int, int], Root, Hop] | None = None
        self.found_at = 0
        self.instance: Hop | None = None

    def remember_instance(self, hop: Hop) -> None:
        """The nearest object with a class of its own: a name where no root is found."""
        if self.instance is None and hop.accessor.startswith("."):
            self.instance = hop

    def offer(self, root: Root, hop: Hop) -> None:
        rank = (_OWNERS.get(root.owner, 0), self.level)
        if self.best is None or rank < self.best[0]:
            if self.best is None:
                self.found_at = self.level
            self.best = (rank, root, hop)

    def done(self) -> bool:
        """A user's name ends the search; another owner's may be beaten by a near one."""
        if self.best is None:
            return False
        return self.best[0][0] == 0 or self.level > self.found_at + 2

    def path(self) -> Path | None:
        inner = self.instance and _self_root(type(self.instance.holder))
        if self.best is not None and not (inner and _hides(self.best[1], inner)):
            return _path(self.best[1], self.best[2])
        return _path(inner, self.instance) if inner and self.instance else None


def _self_root(kind: type) -> Root:
    module = type_module(kind)
    return Root("self", f"of {type_name(kind)}", "attribute", module_owner(module), module)


def _hides(outer: Root, inner: Root) -> bool:
    """Whether only leakkit leads to an object of the user's: the step that it was handed."""
    return outer.owner == "leakkit" and inner.owner == "user"


def _offer_globals(search: _Search) -> None:
    """A module's own namespace needs no search."""
    target = search.target
    module = module_of(target) if type(target) is dict else ""
    if module:
        whose = namespace_owner(target, module)
        root = Root("globals()", f"of module {module}", "module", whose, module)
        search.offer(root, search.first)


_OWNERS = {"user": 0, "generated": 1, "library": 1, "stdlib": 2, "leakkit": 3}


def _path(root: Root, first: Hop) -> Path:
    links, names, bases = [], [], set[str]()
    hop = _past_cell(root, first)
    while hop is not None:
        names.append(_qualified(type(hop.holder)))
        bases.update(map(_qualified, mro(type(hop.holder))))
        if hop.child is not None:
            links.append(hop.accessor)
        hop = hop.child
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


def _past_cell(root: Root, hop: Hop) -> Hop | None:
    """The hop that the root's own name stands for: not the cell, nor the tuple around it."""
    if root.kind == "closure" and hop.child is not None:
        return hop.child.child or hop.child
    if root.kind == "class" and type(hop.holder) is dict and hop.child is not None:
        return hop.child if root.name.endswith(as_attribute(hop.accessor)) else hop
    return hop.child if root.kind == "default" else hop


def _qualified(kind: type) -> str:
    return f"{type_module(kind)}.{type_name(kind)}"


def _preference(holder: Any) -> int:
    """Referrers that name things first, crowds last."""
    if isinstance_exact(holder, (types.FunctionType, types.CellType, LRU, type)):
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
    return is_ours(holder)

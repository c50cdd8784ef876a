"""Counting what is alive: container lengths, values that are replaced by bigger ones, and types."""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import types
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from leakkit.suspects.accessors import dict_of, slot, slot_members
from leakkit.suspects.places import module_owner
from leakkit.suspects.sizes import Lengths, Sizer, leaf_sizers, type_module, type_name

_SMALL_HOLDER = 64  # a bigger dict is a collection, not a set of named values
_BIG_VALUE = 512  # bytes: below this a value that is replaced cannot matter
_LRU = functools._lru_cache_wrapper
_CELL = types.CellType
_MOST_INSTANCES = 2000  # the user's objects whose attributes are followed
_HOLDERS = {dict, list, _CELL}


@dataclass
class Tracked:
    """Something whose size is read at every census.

    Args:
        holder: the container itself, or what holds the value that is replaced; for an
            ``lru_cache`` its table.
        key: for a replaced value: its dict key, ``None`` for a cell, its index in a list, the
            member of a class with ``__slots__``; for an ``lru_cache`` the cached function.
        kind: ``length``, ``lru`` or ``value``.
        sizes: one per census.
    """

    holder: Any
    kind: str
    key: Any = None
    sizes: list[int] = field(default_factory=list)


@dataclass
class Census:
    """What one walk over the heap found.

    Args:
        step: the steps of the hunt before it.
        counts: live objects by ``module.name`` of their type.
    """

    step: int
    counts: dict[str, int]


def count_types(objects: Iterable[Any]) -> dict[str, int]:
    """Live objects by type, named by text so that no class is kept alive."""
    named: dict[str, int] = collections.defaultdict(int)
    for kind, count in collections.Counter(map(type, objects)).items():
        named[f"{type_module(kind)}.{type_name(kind)}"] += count
    return dict(named)


class Censuses:
    """Follows the containers that exist at the first census through the later ones.

    The containers are held strongly, so that no address is read twice for two different objects.
    """

    def __init__(self) -> None:
        self._lengths = Lengths()
        self._leaves = leaf_sizers()
        self._containers: list[Any] = []
        self._columns: list[list[int]] = []
        self._lru: list[Any] = []
        self._lru_columns: list[list[int]] = []
        self._slots: list[tuple[Any, Any]] = []
        self._slot_columns: list[list[int]] = []
        self.taken: list[Census] = []

    def take(self, step: int) -> None:
        """Look at the whole heap once."""
        objects = gc.get_objects()
        if not self.taken:
            self._choose(objects)
        self.taken.append(Census(step, count_types(objects)))
        del objects
        self._columns.append(self._read_lengths())
        self._lru_columns.append([_currsize(wrapper) for wrapper in self._lru])
        self._slot_columns.append([self._value_size(h, k) for h, k in self._slots])

    def release(self) -> list[Tracked]:
        """Everything that is bigger now than at first; lets go of all the rest."""
        grown = _grown(self._containers, self._columns, "length")
        caches = [_by_table(t) for t in _grown(self._lru, self._lru_columns, "lru")]
        tables = {id(cache.holder) for cache in caches}  # which the collector may list as well
        grown = [t for t in grown if id(t.holder) not in tables] + caches
        first, last = self._slot_columns[0], self._slot_columns[-1]
        for number, (holder, key) in enumerate(self._slots):
            if last[number] > first[number]:
                sizes = [column[number] for column in self._slot_columns]
                grown.append(Tracked(holder, "value", key, sizes))
        self._containers, self._lru, self._slots = [], [], []
        return grown

    def _choose(self, objects: Sequence[Any]) -> None:
        sizer = self._lengths.sizer
        # By type first: there are some thousand types, and some hundred thousand objects.
        counted = {kind for kind in set(map(type, objects)) if sizer(kind) is not None}
        self._containers = [o for o in objects if type(o) in counted]
        self._lru = [o for o in objects if type(o) is _LRU]
        self._slots = [
            (o, key) for o in objects if type(o) in _HOLDERS for key in self._big_values(o)
        ]
        self._slots += self._attributes(objects)
        self._containers += self._untracked_dicts()

    def _untracked_dicts(self) -> list[Any]:
        """Dicts of plain values, which the collector does not list, by where they are held."""
        values = (slot_value(holder, key) for holder, key in self._slots)
        found = {id(v): v for v in values if type(v) is dict and not gc.is_tracked(v)}
        return list(found.values())

    def _attributes(self, objects: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Attributes of the user's own objects; from Python 3.11 on they lie in no dict."""
        kinds = {k for k in set(map(type, objects)) if module_owner(type_module(k)) == "user"}
        owners = [o for o in objects if type(o) in kinds]
        listed = set(map(id, objects))
        spaces = (space for space in map(dict_of, owners) if space and id(space) not in listed)
        return [
            (space, key)
            for space in itertools.islice(spaces, _MOST_INSTANCES)
            for key in self._big_values(space)
        ] + self._slotted(owners)

    def _slotted(self, owners: Sequence[Any]) -> list[tuple[Any, Any]]:
        # Those of an extension's types (``__vectorcalloffset__``) are no attributes.
        members = {
            kind: [member for name, member in slot_members(kind).items() if not _is_dunder(name)]
            for kind in set(map(type, owners))
        }
        slotted = (owner for owner in owners if members[type(owner)])
        return [
            (owner, member)
            for owner in itertools.islice(slotted, _MOST_INSTANCES)
            for member in members[type(owner)]
            if self._leaf(slot(member, owner))
        ]

    def _read_lengths(self) -> list[int]:
        sizer = self._lengths.sizer
        return [sizer(type(o))(o) for o in self._containers]  # type: ignore[misc]

    def _big_values(self, holder: Any) -> list[Any]:
        kind = type(holder)
        if kind is dict:
            if not 0 < len(holder) <= _SMALL_HOLDER:
                return []
            leaves = self._leaves
            return [k for k, v in holder.items() if type(v) in leaves and not _is_dunder(k)]
        if kind is _CELL:
            return [None] if self._leaf(_cell_value(holder)) else []
        if kind is list and 0 < len(holder) <= 4:
            return [i for i, v in enumerate(holder) if self._leaf(v)]
        return []

    def _leaf(self, value: Any) -> Sizer | None:
        return self._leaves.get(type(value))

    def _value_size(self, holder: Any, key: Any) -> int:
        value = slot_value(holder, key)
        sizer = self._leaf(value)
        if sizer is None:
            return 0
        try:
            size = sizer(value)
        except Exception:
            return 0
        return size if size >= _BIG_VALUE else 0


def _is_dunder(key: Any) -> bool:
    """``__doc__`` and the like never grow; a key of another type is an entry, not a name."""
    return type(key) is not str or key.startswith("__")


def _cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def slot_value(holder: Any, key: Any) -> Any:
    """What a followed place holds now; ``None`` where it is gone."""
    if type(holder) is _CELL:
        return _cell_value(holder)
    if type(key) is types.MemberDescriptorType:
        return slot(key, holder)
    try:
        return holder[key]
    except Exception:
        return None


def _currsize(wrapper: Any) -> int:
    return int(wrapper.cache_info().currsize)


def _grown(holders: Sequence[Any], columns: Sequence[Sequence[int]], kind: str) -> list[Tracked]:
    first, last = columns[0], columns[-1]
    return [
        Tracked(holders[n], kind, None, [column[n] for column in columns])
        for n in range(len(holders))
        if last[n] > first[n]
    ]


def half_way(steps: Sequence[int]) -> int:
    """The inner one of at least three looks, by number, that was nearest to half-way.

    What comes rarely needs halves of equal length.
    """
    return min(range(1, len(steps) - 1), key=lambda n: abs(2 * steps[n] - steps[0] - steps[-1]))


def _by_table(cache: Tracked) -> Tracked:
    """An ``lru_cache`` by the dict that it fills: what it holds can be looked at there."""
    wrapper, attributes = cache.holder, vars(cache.holder)
    inner = (o for o in gc.get_referents(wrapper) if type(o) is dict and o is not attributes)
    return Tracked(next(inner, wrapper), "lru", wrapper, cache.sizes)


def steady_rate(sizes: Sequence[int], steps: Sequence[int]) -> float:
    """Growth per step where a quantity rises in both halves at about one rate, else 0.

    Args:
        sizes: one value a census.
        steps: the step of each census; the same length.
    """
    if len(steps) < 3:
        return 0.0
    middle = half_way(steps)
    early = (sizes[middle] - sizes[0]) / (steps[middle] - steps[0])
    late = (sizes[-1] - sizes[middle]) / (steps[-1] - steps[middle])
    if early <= 0 or late <= 0 or not 1 / 3 <= early / late <= 3:
        return 0.0
    return (sizes[-1] - sizes[0]) / (steps[-1] - steps[0])

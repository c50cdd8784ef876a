"""What leakkit itself holds, which no search for the user's containers may end at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leakkit.suspects.accessors import dict_of
from leakkit.suspects.places import module_owner
from leakkit.suspects.sizes import isinstance_exact, type_module


class Held(list[Any]):
    """A list of objects that are looked at; its class tells a search to pass it by."""


def is_ours(value: Any) -> bool:
    """Whether it is an object of leakkit's own classes."""
    return module_owner(type_module(type(value))) == "leakkit"


def holdings(first: Any) -> set[int]:
    """Ids of what an object of leakkit's has as attributes, and those of leakkit's it leads to."""
    found: set[int] = set()
    todo = [first]
    while todo:
        space = dict_of(todo.pop())
        if id(space) not in found:
            found |= {id(space), *map(id, space.values())}
            todo += [part for value in space.values() for part in _parts(value) if is_ours(part)]
    return found


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if isinstance_exact(value, (dict,)):
        yield from list(dict.values(value))
    elif isinstance_exact(value, (list, tuple)):
        yield from list(value)

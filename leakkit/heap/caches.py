"""Caches that are only caches: kept from growing between the boundaries.

What the interpreter and the standard library remember to save time fills for hundreds of steps
and reads as growth. CPython's own ``-R`` test runs empty the same ones. A user's caches, and a
framework's, are never touched.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

_Cache = tuple[Callable[[], int], Callable[[], Any]]  # its size, and what empties it


class StandardCaches:
    """The standard library's caches, as large as they were when this was made.

    Make it before ``gc.freeze()``, which hides ``lru_cache`` functions from the collector.
    """

    def __init__(self) -> None:
        self._caches = [(size, size(), clear) for size, clear in _found()]
        newer = getattr(sys, "_clear_internal_caches", None)  # 3.13 and later
        self._clear_types: Callable[[], Any] = newer or sys._clear_type_cache

    def trim(self) -> None:
        """Empty those that have grown. One that a step only reads stays as it is, and fast."""
        for size, before, clear in self._caches:
            if size() > before:
                clear()

    def clear_types(self) -> None:
        """Empty the interpreter's type attribute cache.

        It keeps the names by which native code looks attributes up. The next step is slower for
        it, so this is for steps that nobody times.
        """
        self._clear_types()


def _found() -> Iterator[_Cache]:
    modules = sys.modules
    if "re" in modules:
        yield _pattern_cache(modules["re"])
    if "linecache" in modules:
        yield functools.partial(len, modules["linecache"].cache), modules["linecache"].clearcache
    for function in gc.get_objects():
        if type(function) is functools._lru_cache_wrapper and _is_standard(function):
            yield functools.partial(_size, function), function.cache_clear


def _pattern_cache(re: Any) -> _Cache:
    kept = [getattr(re, name, {}) for name in ("_cache", "_cache2")]
    return lambda: sum(map(len, kept)), re.purge


def _is_standard(function: Any) -> bool:
    module = str(getattr(function, "__module__", ""))
    return module.partition(".")[0] in sys.stdlib_module_names


def _size(function: Any) -> int:
    return int(function.cache_info().currsize)

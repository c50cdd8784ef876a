"""Caches that are only caches: kept from growing between the boundaries.

What the interpreter and the standard library remember to save time fills for hundreds of steps
and reads as growth. CPython's own ``-R`` test runs empty the same ones. A user's caches, and a
framework's, are never touched.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable
from typing import Any


class _Cache:
    """One cache, and the size up to which it is left alone.

    A full one is emptied at once: it would trade old entries, made before anybody counted, for
    new ones, and seem to grow with its size at rest.
    """

    def __init__(self, size: Callable[[], int], clear: Callable[[], Any], bound: int | None):
        self._size, self._clear, self._bound = size, clear, bound
        self._accepted: int | None = None

    def accept(self) -> None:
        """Leave it as large as it is now."""
        self._accepted = self._size()
        if self._bound is not None and self._accepted >= self._bound:
            self._empty()

    def trim(self) -> None:
        """Empty the cache if it has grown.

        Once emptied, what the next step puts back is what it is accepted to hold. The size that
        it had at first would let it grow for as many steps again.
        """
        size = self._size()
        if self._accepted is None:
            self._accepted = size
        elif size > self._accepted:
            self._empty()

    def _empty(self) -> None:
        self._clear()
        self._accepted = None


class StandardCaches:
    """The standard library's caches, as large as they were when last looked for."""

    def __init__(self) -> None:
        self._caches: dict[object, _Cache] = {}
        self.find()
        newer = getattr(sys, "_clear_internal_caches", None)  # 3.13 and later
        self._clear_types: Callable[[], Any] = newer or sys._clear_type_cache

    def find(self) -> None:
        """Add those that came since; all may be as large as they are now.

        To be called before each ``gc.freeze()``, which hides ``lru_cache`` functions.
        """
        self._caches |= _found()
        for cache in self._caches.values():
            cache.accept()

    def trim(self) -> None:
        """Empty those that have grown. One that a step only reads stays as it is, and fast."""
        for cache in self._caches.values():
            cache.trim()

    def clear_types(self) -> None:
        """Empty the interpreter's type attribute cache.

        It keeps the names by which native code looks attributes up. The next step is slower for
        it, so this is for steps that nobody times.
        """
        self._clear_types()


def _found() -> dict[object, _Cache]:
    found: dict[object, _Cache] = {}
    if re := sys.modules.get("re"):
        found["re"] = _pattern_cache(re)
    if linecache := sys.modules.get("linecache"):
        found["linecache"] = _line_cache(linecache.cache)
    for function in gc.get_objects():
        if type(function) is functools._lru_cache_wrapper and _is_standard(function):
            bound = function.cache_info().maxsize
            found[function] = _Cache(
                functools.partial(_size, function), function.cache_clear, bound
            )
    return found


def _line_cache(cache: dict[str, Any]) -> _Cache:
    """Lines of files, which can be read again; those of generated code are its only copy.

    An entry is ``(size, mtime, lines, name)``, without a time where there is no file.
    """

    def of_files() -> list[str]:
        return [name for name, entry in cache.items() if len(entry) > 1 and entry[1] is not None]

    def forget() -> None:
        for name in of_files():
            del cache[name]

    return _Cache(lambda: len(of_files()), forget, None)


def _pattern_cache(re: Any) -> _Cache:
    kept = [getattr(re, name, {}) for name in ("_cache", "_cache2")]
    bound = getattr(re, "_MAXCACHE", None)
    return _Cache(lambda: sum(map(len, kept)), re.purge, bound)


def _is_standard(function: Any) -> bool:
    module = str(getattr(function, "__module__", ""))
    return module.partition(".")[0] in sys.stdlib_module_names


def _size(function: Any) -> int:
    return int(function.cache_info().currsize)

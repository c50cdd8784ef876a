"""Caches that are only caches: emptied at each boundary of the trace pass.

What the interpreter and the standard library remember to save time fills for hundreds of steps
and reads as growth. CPython's own ``-R`` test runs empty the same ones. A user's caches, and a
framework's, are never touched.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any

_CLEARERS = {
    "linecache": "clearcache",
    "re": "purge",
    "struct": "_clearcache",
    "urllib.parse": "clear_cache",
}


def find_clearers() -> list[Callable[[], Any]]:
    """Functions that empty the caches of the interpreter and of the modules loaded by now.

    Call it before ``gc.freeze()``, which hides the standard library's ``lru_cache`` functions.
    """
    found: list[Callable[[], Any]] = [_interpreter_caches()]
    for module, function in _CLEARERS.items():
        clear = getattr(sys.modules.get(module), function, None)
        if clear is not None:
            found.append(clear)
    return found + _standard_lru_caches()


def clear(clearers: Sequence[Callable[[], Any]]) -> None:
    """Empty them all."""
    for function in clearers:
        function()


def _interpreter_caches() -> Callable[[], Any]:
    """The type attribute cache: it keeps the names that native code looks attributes up by."""
    newer = getattr(sys, "_clear_internal_caches", None)  # 3.13 and later
    return newer if newer is not None else sys._clear_type_cache


def _standard_lru_caches() -> list[Callable[[], Any]]:
    standard = sys.stdlib_module_names
    return [
        function.cache_clear
        for function in gc.get_objects()
        if type(function) is functools._lru_cache_wrapper
        and str(getattr(function, "__module__", "")).partition(".")[0] in standard
    ]

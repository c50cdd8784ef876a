"""Whose code is it: the user's, a library's, the interpreter's or leakkit's own."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import CodeType, FrameType

_INSTALLED = ("site-packages", "dist-packages")
_GENERATED = "__autograph_generated_file"
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SCENARIOS = os.path.join(_OWN, "scenarios")
_PARTS = {
    "keras": "/keras/",
    "data": "/tensorflow/python/data/",
    "custom_gradient": "/ops/custom_gradient.py",
    "distribute": "/tensorflow/python/distribute/",
    "saved_model": "/tensorflow/python/saved_model/",
    "nested": "/polymorphic_function/atomic_function.py",
}


def _stdlib() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({os.path.realpath(paths[key]) + os.sep for key in ("stdlib", "platstdlib")})


_STDLIB = _stdlib()


@functools.lru_cache(maxsize=4096)
def owner(file: str) -> str:
    """``user``, ``library``, ``stdlib``, ``leakkit`` or ``generated`` for a source file's name.

    leakkit's own scenarios count as the user's: there the leak is the scenario's step.
    """
    if file.startswith("<frozen") or not file:
        return "stdlib"
    if _GENERATED in file:
        return "generated"
    if file.startswith("<"):
        return "user"
    if any(f"{os.sep}{part}{os.sep}" in file for part in _INSTALLED):
        own = f"{os.sep}leakkit{os.sep}"
        if own in file:
            return "user" if f"{own}scenarios{os.sep}" in file else "leakkit"
        return "library"
    path = os.path.realpath(file)
    if path.startswith(_OWN + os.sep):
        return "user" if path.startswith(_SCENARIOS + os.sep) else "leakkit"
    return "stdlib" if path.startswith(_STDLIB) else "user"


def is_user(file: str) -> bool:
    """Whether a person using leakkit wrote this file."""
    return owner(file) == "user"


def module_owner(name: str) -> str:
    """The same for a module by name; one that nobody can find is the user's (a script, a cell)."""
    if name in sys.builtin_module_names or name in ("", "builtins"):
        return "stdlib"
    if name.partition(".")[0] == "leakkit":
        return "user" if name.startswith("leakkit.scenarios") else "leakkit"
    if name.partition(".")[0] in sys.stdlib_module_names and name != "__main__":
        return "stdlib"
    module = sys.modules.get(name) or sys.modules.get(name.partition(".")[0])
    file = getattr(module, "__file__", None)
    return owner(file) if isinstance(file, str) else "user"


def short(file: str) -> str:
    """The file as a person names it: relative to the working folder where it lies inside."""
    if file.startswith("<"):
        return file
    inside = os.path.relpath(file) if os.path.isabs(file) else file
    return os.path.basename(file) if inside.startswith(os.pardir) else inside


def place(file: str, line: int, function: str) -> str:
    """``train.py:41 in train_step``."""
    return f"{short(file)}:{line} in {function}" if function else f"{short(file)}:{line}"


def code_place(code: CodeType) -> str:
    """Where a function is written."""
    return place(code.co_filename, code.co_firstlineno, code.co_name)


def frame_place(frame: FrameType | None) -> str:
    """Where a frame stands; empty for none."""
    if frame is None:
        return ""
    return place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's from ``frame`` outwards."""
    while frame is not None and not is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def library_parts(frame: FrameType | None, caller: FrameType | None) -> tuple[str, ...]:
    """Parts of libraries between a frame and the user's line."""
    found: dict[str, None] = {}
    while frame is not None and frame is not caller:
        file = frame.f_code.co_filename.replace("\\", "/")
        for name, part in _PARTS.items():
            if part in file:
                found[name] = None
        frame = frame.f_back
    return tuple(found)

"""The step that a command line names: ``FILE.py:NAME`` or ``package.module:NAME``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


class TargetError(Exception):
    """A target that names no step; the text is one line."""


def load_step(target: str, *, factory: bool = False) -> Callable[..., Any]:
    """The callable that ``target`` names, or with ``factory`` the one that it returns.

    Raises:
        TargetError: there is no such file, module or callable.
        Exception: whatever the module or the factory raises, unchanged.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise TargetError(f"{target!r} names no step: write FILE.py:NAME or package.module:NAME")
    found = _attribute(_module(place), name, place)
    if not callable(found):
        raise TargetError(f"{name} in {place} is {_a(found)}, which cannot be called")
    step: Callable[..., Any] = found
    if not factory:
        return step
    step = step()
    if not callable(step):
        raise TargetError(f"--factory: {name}() returned {_a(step)}, which cannot be called")
    return step


def _module(place: str) -> ModuleType:
    if place.endswith(".py"):
        return _from_file(Path(place))
    # As `python -m` does: what lies in the current folder can be imported.
    sys.path.insert(0, "")
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if place != missing and not place.startswith(f"{missing}."):
            raise  # the module was found; something that it needs was not
        hint = "; for a file write its name with .py" if Path(f"{place}.py").exists() else ""
        raise TargetError(f"there is no module {place!r}{hint}") from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise TargetError(f"there is no file {path}")
    path = path.resolve()
    # As when the file is run: its neighbours can be imported.
    sys.path.insert(0, str(path.parent))
    name = path.stem
    loaded = sys.modules.get(name)
    if loaded is not None:
        if getattr(loaded, "__file__", None) == str(path):
            return loaded
        name = f"{name} ({path})"  # a file called like a module must not take its place
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _attribute(module: ModuleType, name: str, place: str) -> Any:
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise TargetError(f"there is no {name!r} in {place}{_near(module, name)}") from None
    return found


def _near(module: ModuleType, name: str) -> str:
    from difflib import get_close_matches

    public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
    near = get_close_matches(name, public, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _a(thing: object) -> str:
    kind = type(thing).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"

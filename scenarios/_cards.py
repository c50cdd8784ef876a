"""Finds the scenario files and reads what they say about themselves, without running them."""

from __future__ import annotations

import ast
import difflib
from functools import cache
from pathlib import Path
from typing import Any

from leakkit.scenarios._scenario import Scenario

FOLDER = Path(__file__).parent


class CardError(ValueError):
    """A file isn't a scenario; the text names the file, the line and what is wrong."""


def names() -> list[str]:
    """Every scenario's name, sorted."""
    return sorted(_sources())


def families() -> dict[str, list[Scenario]]:
    """The scenarios by family, both in alphabetical order."""
    shelves: dict[str, list[Scenario]] = {}
    for scenario in sorted(scenarios(), key=lambda one: (one.family, one.name)):
        shelves.setdefault(scenario.family, []).append(scenario)
    return shelves


def scenarios() -> list[Scenario]:
    """Every scenario, sorted by name."""
    return [get(name) for name in names()]


def get(name: str) -> Scenario:
    """The scenario of this name.

    Raises:
        LookupError: there is none; the text has the nearest names.
    """
    source = _sources().get(name)
    if source is None:
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.4)
        hint = f"; nearest: {', '.join(near)}" if near else ""
        raise LookupError(f"no scenario {name!r}{hint}")
    return load(source)


@cache
def load(path: Path) -> Scenario:
    """Read a scenario file's ``SCENARIO``. The file isn't run, so no framework is imported.

    Raises:
        CardError: the file has no ``SCENARIO = Scenario(...)`` at its top level, or one that is
            made of more than literals.
        OSError: the file can't be read.
    """
    tree = _parsed(path)
    call = _card(tree, path)
    values = {word.arg: _literal(word.value, path) for word in call.keywords if word.arg}
    summary = (ast.get_docstring(tree) or "").partition("\n")[0]
    try:
        return Scenario(**values, source=path.resolve(), summary=summary)
    except TypeError as error:
        text = str(error).replace("Scenario.__init__()", "SCENARIO")
        raise CardError(f"{path}:{call.lineno}: {text}") from None


@cache
def _sources() -> dict[str, Path]:
    files = (path for path in FOLDER.glob("*.py") if not path.stem.startswith(("_", "conftest")))
    return {path.stem.replace("_", "-"): path for path in files}


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    except SyntaxError as error:
        raise CardError(f"{path}:{error.lineno}: {error.msg}") from None


def _card(tree: ast.Module, path: Path) -> ast.Call:
    for node in tree.body:
        if isinstance(node, ast.Assign) and _is_name(node.targets[0], "SCENARIO"):
            if isinstance(node.value, ast.Call) and _is_name(node.value.func, "Scenario"):
                return node.value
            raise CardError(f"{path}:{node.lineno}: SCENARIO must be a call of Scenario(...)")
    raise CardError(f"{path}: no SCENARIO = Scenario(...) at the top level")


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _literal(node: ast.expr, path: Path) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise CardError(
            f"{path}:{node.lineno}: SCENARIO is read without running the file: "
            "write literals only (strings, tuples, dicts)"
        ) from None

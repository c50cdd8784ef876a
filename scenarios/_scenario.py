"""What is known about one leak, apart from the code that shows it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from types import ModuleType

from packaging.specifiers import SpecifierSet

Step = Callable[[int], float]
"""One repetition: takes the step index, returns a number that both forms must agree on."""

FORMS = ("leaky", "corrected")


@dataclass(frozen=True)
class Scenario:
    """A known leak and its corrected counterpart.

    Args:
        name: kebab-case and stable; the file is named after it, with underscores.
        family: the shelf that it stands on, e.g. ``tracing``.
        needs: packages that the file imports, e.g. ``("tensorflow",)``.
        grows: the series on which the leaky form must be caught; empty for a form that is slow
            from the first step on but doesn't grow.
        rate: how fast, in words.
        diagnosis: the name that the kit must give it; empty where nothing grows.
        symptom: how it shows in the wild.
        cause: why it happens.
        remedy: what to write instead.
        reports: public reports that it stands for, as ``owner/repository#number``.
        seen_on: the versions on which somebody saw it, in words.
        leaks_on: version range by package in which the leaky form leaks, as in
            ``{"keras": "<3"}``; outside it the leaky form must be flat, and so guards the
            framework against a relapse.
        accepts: growth that a flat form may keep, by series, as ``--limit`` takes it; the cause
            says why.
        source: the file; set by the registry.
        summary: the first line of the file's docstring; set by the registry.
    """

    name: str
    family: str
    grows: tuple[str, ...]
    rate: str
    symptom: str
    cause: str
    remedy: str
    diagnosis: str = ""
    needs: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    seen_on: str = ""
    leaks_on: Mapping[str, str] = field(default_factory=dict)
    accepts: Mapping[str, str] = field(default_factory=dict)
    source: Path | None = field(default=None, compare=False, repr=False)
    summary: str = field(default="", compare=False, repr=False)

    def leaky(self) -> Step:
        """The step that grows. Imports the file, builds what it needs and returns ``step(i)``."""
        return self.form("leaky")

    def corrected(self) -> Step:
        """The step that does the same work and stays flat."""
        return self.form("corrected")

    def form(self, name: str) -> Step:
        """One of the two forms, by name.

        Raises:
            ValueError: there is no form of this name.
            ModuleNotFoundError: a package that the file needs is missing.
        """
        if name not in FORMS:
            raise ValueError(f"no form {name!r}; a scenario has {' and '.join(FORMS)}")
        step: Step = getattr(self._module(), name)()
        return step

    def missing(self) -> tuple[str, ...]:
        """The packages that this scenario needs and that are not installed."""
        return tuple(package for package in self.needs if not _installed(package))

    def leaks_here(self) -> bool:
        """Whether the installed versions are in the range in which the leaky form leaks.

        A package without a known version counts as inside the range.
        """
        return all(_within(package, span) for package, span in self.leaks_on.items())

    def expected(self, form: str) -> str:
        """The verdict that the kit must give here: ``grows`` or ``flat``."""
        return "grows" if form == "leaky" and self.grows and self.leaks_here() else "flat"

    def _module(self) -> ModuleType:
        if self.source is None:
            raise ValueError(f"scenario {self.name!r} was made by hand and has no file")
        package = Path(__file__).parent
        if self.source.parent == package:
            return importlib.import_module(f"leakkit.scenarios.{self.source.stem}")
        return _module_from(self.source)


def _module_from(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _within(package: str, span: str) -> bool:
    try:
        return SpecifierSet(span).contains(metadata.version(package), prereleases=True)
    except metadata.PackageNotFoundError:
        return True

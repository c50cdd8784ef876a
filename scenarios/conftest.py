"""``pytest scenarios/`` and ``pytest scenarios/NAME.py``: three items for each scenario file.

``leaky`` must be caught on the expected series, ``corrected`` must be flat, and both must do the
same work. Each runs in a fresh process.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from leakkit.scenarios import Scenario, load
from leakkit.scenarios._fresh import run, same_work


def _is_scenario(path: Path) -> bool:
    own = path.parent == Path(__file__).parent and path.suffix == ".py"
    return own and not path.stem.startswith(("_", "conftest"))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect scenario files when their folder is given."""
    if not _is_scenario(file_path) or parent.session.isinitpath(file_path):
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Collect a scenario file that is named itself: not as a module, whose import is dear."""
    if not _is_scenario(module_path):
        return None
    return ScenarioFile.from_parent(parent, path=module_path)


class ScenarioFile(pytest.File):
    """One scenario."""

    def collect(self) -> Iterable[pytest.Item]:
        """The items: both forms, and that they do the same work."""
        scenario = load(self.path)
        yield FormItem.from_parent(self, name="leaky", scenario=scenario)
        yield FormItem.from_parent(self, name="corrected", scenario=scenario)
        yield SameWorkItem.from_parent(self, name="same-work", scenario=scenario)


class ScenarioItem(pytest.Item):
    """Something that must hold for a scenario; skipped where its framework is missing."""

    def __init__(self, *, scenario: Scenario, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario

    def setup(self) -> None:
        """Skip where a package is missing."""
        missing = self.scenario.missing()
        if missing:
            pytest.skip(f"{', '.join(missing)} isn't installed")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
        """The complaints and the report, without a traceback through this file."""
        if isinstance(excinfo.value, AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Shown as the scenario's name and what must hold."""
        return self.path, 0, f"{self.scenario.name}: {self.name}"


class FormItem(ScenarioItem):
    """A form gets the verdict, series and diagnosis that the scenario says."""

    def runtest(self) -> None:
        """Run it in a fresh process."""
        outcome = run(self.scenario, self.name)
        complaints = outcome.complaints()
        if complaints:
            raise AssertionError("\n".join([*complaints, "", outcome.report]))


class SameWorkItem(ScenarioItem):
    """Both forms return the same results."""

    def runtest(self) -> None:
        """Compare the first steps of both in a fresh process."""
        differences = same_work(self.scenario)
        if differences:
            raise AssertionError("\n".join(differences))

"""Runs the forms in fresh processes, because a leak outlives the step that made it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakkit.scenarios._scenario import FORMS, Scenario
from leakkit.scenarios._scratch import VARIABLE

PATIENCE = 300.0  # seconds after which a form is given up
SAME_WORK_STEPS = 10
SAME_WORK_TOLERANCE = 1e-4  # relative: the forms may add up in a different order


@dataclass(frozen=True)
class Outcome:
    """What the kit said about one form.

    Args:
        scenario: which scenario.
        form: ``leaky`` or ``corrected``.
        result: the JSON that ``leakkit run`` wrote; empty when it wrote none.
        report: what it printed; for a form that broke, its errors too.
        seconds: wall time of the whole process.
        status: its exit status.
    """

    scenario: Scenario
    form: str
    result: Mapping[str, Any] = field(default_factory=dict)
    report: str = ""
    seconds: float = 0.0
    status: int = 0

    @property
    def verdict(self) -> str:
        """``flat``, ``grows``, ``undecided``, or ``broke`` when there is no result."""
        return str(self.result.get("verdict", "broke"))

    @property
    def grew(self) -> tuple[str, ...]:
        """The series that grew."""
        series = self.result.get("series", {})
        return tuple(name for name, found in series.items() if found["verdict"] == "grows")

    @property
    def diagnoses(self) -> tuple[str, ...]:
        """The names of the diagnoses, best first."""
        return tuple(found["name"] for found in self.result.get("diagnosis", ()))

    def slope(self, series: str) -> float | None:
        """Growth per step of a series, or ``None`` where it was not measured."""
        found = self.result.get("series", {}).get(series, {})
        return found.get("slope")

    def complaints(self) -> list[str]:
        """How this differs from what the scenario says; empty when it does not."""
        expected = self.scenario.expected(self.form)
        if self.verdict != expected:
            return [f"expected {expected}, got {self.verdict}"]
        if expected == "flat":
            return []
        unseen = [name for name in self.scenario.grows if name not in self.grew]
        found = [f"{', '.join(unseen)} should have grown"] if unseen else []
        if self.scenario.diagnosis not in self.diagnoses:
            named = ", ".join(self.diagnoses) or "nothing"
            found.append(f"expected diagnosis {self.scenario.diagnosis}, got {named}")
        return found


def run(scenario: Scenario, form: str, options: Sequence[str] = ()) -> Outcome:
    """Measure one form with ``leakkit run`` in a fresh process; never raises for a leak.

    Args:
        scenario: which scenario.
        form: ``leaky`` or ``corrected``.
        options: further options for ``leakkit run``.
    """
    with tempfile.TemporaryDirectory(prefix="leakkit-scenario-") as folder:
        written = Path(folder, "result.json")
        watched = Path(folder, "files")
        watched.mkdir()
        command = [*_command(scenario, form, written, watched), *options]
        start = time.monotonic()
        done = _python(command, {VARIABLE: str(watched)})
        seconds = time.monotonic() - start
        result = json.loads(written.read_text("utf-8")) if written.exists() else {}
    report = done.stdout if result else done.stdout + done.stderr
    return Outcome(scenario, form, result, report, seconds, done.returncode)


def same_work(scenario: Scenario) -> list[str]:
    """Compare what the first steps of both forms return, in a fresh process.

    Returns:
        What differs; empty when both forms do the same work.
    """
    done = _python([__name__, str(scenario.source)], {})
    if done.returncode:
        return [f"a form broke:\n{done.stdout}{done.stderr}"]
    values = json.loads(done.stdout.splitlines()[-1])
    pairs = zip(values["leaky"], values["corrected"], strict=True)
    return [
        f"step {i}: leaky returns {leaky!r}, corrected {corrected!r}"
        for i, (leaky, corrected) in enumerate(pairs)
        if not _close(leaky, corrected)
    ]


def show(scenario: Scenario, forms: Sequence[str] = FORMS, options: Sequence[str] = ()) -> int:
    """Measure forms, print their reports and whether they are as expected.

    Args:
        scenario: which scenario.
        forms: which of its forms.
        options: further options for ``leakkit run``.

    Returns:
        0 when all are, 1 when one is not, 2 when one broke.
    """
    worst = 0
    for form in forms:
        outcome = run(scenario, form, options)
        complaints = outcome.complaints()
        print(outcome.report, end="" if outcome.report.endswith("\n") else "\n")
        print(f"{scenario.name}, {form}: {'; '.join(complaints) or 'as expected'}\n", flush=True)
        worst = max(worst, 2 if not outcome.result else 1 if complaints else 0)
    return worst


def _command(scenario: Scenario, form: str, written: Path, watched: Path) -> list[str]:
    limits = [f"--limit={name}={value}" for name, value in scenario.accepts.items()]
    target = f"{scenario.source}:{form}"
    where = [f"--json={written}", f"--folder={watched}"]
    return [
        "leakkit",
        "run",
        target,
        "--factory",
        *where,
        *(limits if scenario.expected(form) == "flat" else []),
    ]


def _python(
    module: Sequence[str], variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ}
    command = [sys.executable, "-m", *module]
    try:
        return subprocess.run(
            command,
            env={**quiet, **variables},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 2, "", f"given up after {PATIENCE:.0f} s\n")


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= SAME_WORK_TOLERANCE * max(abs(one), abs(other), 1e-3)


def _print_values(file: str) -> None:
    from leakkit.scenarios._cards import load

    scenario = load(Path(file))
    values = {}
    for form in FORMS:
        step = scenario.form(form)
        values[form] = [float(step(i)) for i in range(SAME_WORK_STEPS)]
    print(json.dumps(values), flush=True)
    os._exit(0)  # threads and children that a leaky form left behind must not hold up the exit


if __name__ == "__main__":
    _print_values(sys.argv[1])

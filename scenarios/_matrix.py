"""Measures many scenarios, each form in a fresh process, and makes one table of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from leakkit.scenarios._fresh import Outcome, run
from leakkit.scenarios._scenario import FORMS, Scenario
from leakkit.settings import series_unit
from leakkit.units import growth_text

_BETWEEN = re.compile(r"(<!-- matrix -->\n).*?(<!-- /matrix -->)", re.DOTALL)


@dataclass(frozen=True)
class Row:
    """What was measured of one scenario; no outcomes where a package is missing."""

    scenario: Scenario
    outcomes: Sequence[Outcome]

    @property
    def complaints(self) -> list[str]:
        """How this differs from what the scenario says."""
        return [
            f"{outcome.form}: {text}" for outcome in self.outcomes for text in outcome.complaints()
        ]

    @property
    def state(self) -> str:
        """``as expected``, ``different`` or ``skipped``."""
        if not self.outcomes:
            return "skipped"
        return "different" if self.complaints else "as expected"

    @property
    def seconds(self) -> float:
        """Wall time of all processes."""
        return sum(outcome.seconds for outcome in self.outcomes)

    @property
    def rates(self) -> list[str]:
        """Growth per step of the series that the leaky form should show."""
        leaky = self._of("leaky")
        return [_rate(leaky, series) for series in self.scenario.grows] or ["nothing"]

    @property
    def diagnosis(self) -> str:
        """The first diagnosis of the leaky form."""
        leaky = self._of("leaky")
        return leaky.diagnoses[0] if leaky and leaky.diagnoses else ""

    def verdict(self, form: str) -> str:
        """The verdict of a form, and how many times, where it was measured more than once."""
        verdicts = [outcome.verdict for outcome in self.outcomes if outcome.form == form]
        if len(set(verdicts)) <= 1:
            return "".join(verdicts[:1])
        return ", ".join(f"{verdicts.count(one)} × {one}" for one in sorted(set(verdicts)))

    def _of(self, form: str) -> Outcome | None:
        return next((one for one in self.outcomes if one.form == form), None)


def measure(
    scenarios: Sequence[Scenario], jobs: int = 1, repeat: int = 1, reports: Path | None = None
) -> list[Row]:
    """Measure scenarios, ``jobs`` processes at a time, and print a line for each that is done.

    Args:
        scenarios: which ones; those whose packages are missing become rows without outcomes.
        jobs: how many at a time. More than there are idle cores disturbs latencies.
        repeat: how many times each form.
        reports: a folder for the reports of the single runs.
    """
    if reports is not None:
        reports.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(_measurer(repeat, reports), scenarios))


def markdown(rows: Sequence[Row]) -> str:
    """The table as Markdown."""
    lines = [
        "| scenario | grows, per step | leaky | corrected | diagnosis | seconds |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.scenario.name} | {'<br>'.join(row.rates)} | {row.verdict('leaky')} | "
        f"{row.verdict('corrected')} | {row.diagnosis} | {row.seconds:.0f} |"
        for row in rows
        if row.outcomes
    ]
    skipped = [row.scenario for row in rows if not row.outcomes]
    if skipped:
        names = ", ".join(f"{one.name} ({', '.join(one.missing())})" for one in skipped)
        lines += ["", f"Not measured here, for want of a package: {names}."]
    return "\n".join(lines) + "\n"


def write_between_marks(path: Path, text: str) -> None:
    """Write a table into a page, between its ``<!-- matrix -->`` marks, or as a page of its own."""
    page = path.read_text("utf-8") if path.exists() else ""
    if _BETWEEN.search(page):
        text = _BETWEEN.sub(lambda marks: marks[1] + text + marks[2], page)
    path.write_text(text, "utf-8")


def _measurer(repeat: int, reports: Path | None) -> Callable[[Scenario], Row]:
    def measured(scenario: Scenario) -> Row:
        if scenario.missing():
            return Row(scenario, ())
        row = Row(scenario, [run(scenario, form) for _ in range(repeat) for form in FORMS])
        if reports is not None:
            for number, outcome in enumerate(row.outcomes):
                path = reports / f"{scenario.name}-{outcome.form}-{number // len(FORMS)}.txt"
                path.write_text(outcome.report, "utf-8")
        print(f"{scenario.name:34} {row.state} ({row.seconds:.0f} s)", flush=True)
        return row

    return measured


def _rate(leaky: Outcome | None, series: str) -> str:
    slope = leaky.slope(series) if leaky else None
    if slope is None:
        return series
    return f"{series} {growth_text(slope, series_unit(series) or '')}"

"""What pytest shows of a leak test: its report instead of a stack, and a line in the summary."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from leakkit.result import Result


def show_report(
    report: pytest.TestReport, info: pytest.ExceptionInfo[BaseException] | None
) -> None:
    """A leak's failure is its report, without the stack that led to it."""
    loaded = sys.modules.get("leakkit.result")
    if info is None or loaded is None or not isinstance(info.value, loaded.LeakError):
        return
    shown: Any = info.getrepr(style="value")
    if getattr(shown, "reprcrash", None) is not None:
        shown.reprcrash.message = str(info.value).partition("\n")[0]
    if report.failed:
        report.longrepr = shown


def keep_report(result: Result) -> None:
    """Beside the recording; not worth failing for, for it is shown all the same."""
    from leakkit.replay import keep

    with suppress(OSError):
        keep(result)


def summary_of(result: Result) -> dict[str, Any]:
    """Builtins only: anything else on a report ends a session under xdist."""
    from leakkit.reports.terminal import headline, summary

    return {
        "verdict": result.verdict.value,
        "headline": headline(result),
        "text": summary(result),
        "steps": int(result.steps),
        "seconds": float(result.seconds),
        "recording": str(result.recording.path),
    }


def write_line(terminal: Any, nodeid: str, data: Mapping[str, Any]) -> None:
    """One leak test: its verdict in colour, its name, what was found."""
    color = {"grows": "red", "undecided": "yellow", "flat": "green"}[data["verdict"]]
    terminal.write(f"{data['verdict']:<9}", **{color: True})
    terminal.line(f"  {nodeid}  {data['text']}")

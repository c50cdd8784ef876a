"""The report as Markdown, to paste into an issue."""

from __future__ import annotations

from collections.abc import Mapping

from leakkit.reports.series_table import series_table
from leakkit.reports.terminal import headline, render
from leakkit.result import Result


def to_markdown(result: Result) -> str:
    """A heading, the table of series, and the whole report with its environment folded away."""
    return "\n\n".join(
        [f"### {headline(result)}", _table(result), _folded(result), _environment(result)]
    )


def _table(result: Result) -> str:
    table = series_table(result, verbose=True)
    lines = [_line(table.titles), _line(["---"] * len(table.titles))]
    return "\n".join(lines + [_line(row.cells) for row in table.rows])


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _folded(result: Result) -> str:
    report = render(result, verbose=True)
    return f"<details><summary>Full report</summary>\n\n```text\n{report}\n```\n\n</details>"


def _environment(result: Result) -> str:
    meta = result.recording.meta
    known = {
        **meta.get("environment", {}),
        **meta.get("frameworks", {}).get("frameworks", {}),
    }
    lines = [f"- {name}: {_in_words(value)}" for name, value in known.items() if value]
    return "Environment:\n\n" + ("\n".join(lines) or "- not recorded")


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_in_words(item)}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return " ".join(_in_words(item) for item in value)
    return str(value)

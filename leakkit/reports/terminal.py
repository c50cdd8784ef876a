"""The report that a person reads in a terminal.

It answers in the order in which a person asks: what grows, how fast, where, why, what to do,
and when it will hurt.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from leakkit.diagnosis import Diagnosis
from leakkit.reports.forecast import HOST_MEMORY, forecasts, host_growth
from leakkit.reports.labels import label, rank
from leakkit.reports.series_table import (
    Row,
    Table,
    bound,
    column_widths,
    growth_unit,
    series_table,
    shown,
)
from leakkit.reports.source import source_line
from leakkit.reports.stacks import native_stack, python_stack
from leakkit.result import Finding, Result
from leakkit.suspects import Suspect
from leakkit.trend import Verdict, default_limit
from leakkit.units import byte_unit, bytes_text, counted, duration_text, growth_text, plain

_COLORS = {Verdict.GROWS: "31", Verdict.FLAT: "32", Verdict.UNDECIDED: "33"}
_BOLD, _DIM = "1", "2"
_LABELS = {
    "container": "Held by",
    "object": "Held by",
    "cache": "Held by",
    "site": "Made at",
    "retrace": "Retraced",
    "file": "File",
    "descriptor": "Descriptor",
    "thread": "Thread",
    "child": "Child",
    "cycle": "In cycles",
    "time": "Slower",
}
_LABEL_WIDTH = 12
_PER_LABEL = 2  # suspects of one label shown unless everything is asked for
_ASCII = str.maketrans(
    {"–": "-", "—": "-", "…": "...", "µ": "u", "×": "x", "→": "->", "←": "<-", "∞": "inf",
     "≤": "<=", "≥": ">=", "≈": "~", "’": "'", "“": '"', "”": '"'}
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How a report is drawn."""

    color: bool = False
    unicode: bool = True
    width: int = 80
    verbose: bool = False

    def paint(self, text: str, code: str) -> str:
        """``text`` in an ANSI colour, if this style has any."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text.strip() else text

    def plain(self, text: str) -> str:
        """``text`` in ASCII, if this style has nothing else."""
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def render(
    result: Result,
    *,
    color: bool = False,
    unicode: bool = True,
    width: int = 80,
    verbose: bool = False,
) -> str:
    """The report as text, without a line end.

    Args:
        result: what a run found.
        color: ANSI colours.
        unicode: block characters and typographic signs, else ASCII only.
        width: columns to fill; texts wrap there, paths and the table never break.
        verbose: all series with the reason of each verdict, all suspects and all remarks.
    """
    style = Style(color, unicode, width, verbose)
    blocks = (
        _headline_lines(result, style),
        _table_lines(result, style),
        _evidence_lines(result, style),
        _note_lines(result, style),
    )
    return style.plain("\n\n".join("\n".join(lines) for lines in blocks if lines))


def headline(result: Result) -> str:
    """The report in one line: ``LEAK  train_step grows by 1.52 KiB a step``."""
    if result.verdict is Verdict.FLAT:
        return f"FLAT  {result.name} does not grow: {_effort(result)}"
    if result.verdict is Verdict.UNDECIDED:
        return f"UNDECIDED  {result.name}: {_effort(result)} do not tell whether it grows"
    finding = principal(result)
    if finding is None:
        return f"LEAK  {result.name} grows"
    if growth_unit(finding) == "%":
        return f"SLOWER  {result.name} takes {plain(finding.trend.slope, 2)} % longer each step"
    if finding.name in HOST_MEMORY:
        return f"LEAK  {result.name} grows by {_bytes_pace(host_growth(result))}"
    return f"LEAK  {result.name} grows by {_pace(finding)}"


def summary(result: Result) -> str:
    """One line for a list of tests: the fastest growth, the open question or the proved bound."""
    findings = shown(result.findings.values(), verbose=False)
    decisive = [f for f in findings if f.trend.verdict is result.verdict and f.decides]
    if result.verdict is Verdict.GROWS:
        return ", ".join(f"{label(f.name)} {_signed_pace(f)}" for f in decisive[:3])
    if result.verdict is Verdict.UNDECIDED:
        return "; ".join(f"{label(f.name)}: {f.trend.reason}" for f in decisive[:2])
    bounds = [f"{label(f.name)} at most {proved(f)}" for f in decisive[:2]]
    return "; ".join([_effort(result), *bounds])


def proved(finding: Finding) -> str:
    """The growth that a flat series was proved not to exceed, with its unit."""
    return bound(finding.trend, growth_unit(finding))


def _signed_pace(finding: Finding) -> str:
    return f"+{_pace(finding)}"


def principal(result: Result) -> Finding | None:
    """The growing series that the headline is about: memory before things before time."""
    growing = [f for f in result.findings.values() if f.trend.verdict is Verdict.GROWS]
    growing = [f for f in growing if f.decides] or growing
    return min(growing, key=_importance, default=None)


def _importance(finding: Finding) -> tuple[int, float]:
    unit = growth_unit(finding)
    if unit == "B" and finding.name != "file_bytes":
        return 0, -finding.trend.slope
    return (3 if unit == "%" else 1 if unit != "B" else 2), rank(finding.name)


def _pace(finding: Finding) -> str:
    slope, unit = finding.trend.slope, growth_unit(finding)
    where = {"file_bytes": " on disk", "children_memory": " in child processes"}
    if unit == "B":
        return _bytes_pace(slope, where.get(finding.name, ""))
    if unit == "%":
        return f"{plain(slope, 2)} % a step"
    if 0 < slope < 0.5:
        return f"{counted(1, unit)} every {plain(1 / slope, 2)} steps"
    return f"{counted(float(plain(slope).replace(',', '')), unit)} a step"


def _bytes_pace(slope: float, where: str = "") -> str:
    return f"{bytes_text(slope, byte_unit(slope * 10))}{where} a step"


def _effort(result: Result) -> str:
    took = f" in {duration_text(result.seconds)}" if result.seconds else ""
    return f"{counted(result.steps, 'steps')}{took}"


def _headline_lines(result: Result, style: Style) -> list[str]:
    text = headline(result)
    word, _, rest = text.partition("  ")
    lines = textwrap.wrap(
        rest, style.width - len(word) - 2, break_long_words=False, break_on_hyphens=False
    ) or [""]
    first = f"{style.paint(word, _BOLD + ';' + _COLORS[result.verdict])}  "
    indent = " " * (len(word) + 2)
    return [
        (first if i == 0 else indent) + style.paint(line, _BOLD) for i, line in enumerate(lines)
    ]


def _table_lines(result: Result, style: Style) -> list[str]:
    table = series_table(result, unicode=style.unicode, verbose=style.verbose)
    if not table.rows:
        return []
    # The signs are put in ASCII before the columns are set, since "∞" becomes longer.
    texts = [tuple(style.plain(cell) for cell in row.cells) for row in table.rows]
    widths = column_widths(table.titles, texts)
    lines = [style.paint(_line(table.titles, widths), _DIM)]
    for row, cells in zip(table.rows, texts, strict=True):
        lines.append(_row_line(row, cells, widths, style))
        if style.verbose:
            lines.append(style.paint(f"    {row.finding.measured} pass: {_reason(row)}", _DIM))
    return lines + _footnotes(table, style)


def _reason(row: Row) -> str:
    finding = row.finding
    limit = growth_text(finding.limit, growth_unit(finding)).lstrip("+")
    return f"{finding.trend.reason or 'no reason given'} (limit {limit} a step)"


def _row_line(row: Row, cells: Sequence[str], widths: Sequence[int], style: Style) -> str:
    line = _line(cells, widths)
    if not style.color:
        return line
    # Only the verdict and the drawing are coloured; both stand at the end of the line.
    tail = len(line) - len(_line(cells[:-2], widths[:-2])) - 2
    return line[: len(line) - tail] + style.paint(line[len(line) - tail :], _COLORS[row.verdict])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    left = (0, 4, 5)
    texts = (
        cell.ljust(width) if column in left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return f"  {'  '.join(texts)}".rstrip()


def _footnotes(table: Table, style: Style) -> list[str]:
    starred = [row for row in table.rows if row.cells[-2].endswith("*")]
    text = "  * shown, but not a reason to fail unless a limit is set for it"
    return [style.paint(text, _DIM)] if starred else []


def _evidence_lines(result: Result, style: Style) -> list[str]:
    lines: list[str] = []
    for title, text in _evidence(result, style):
        lines += _labelled(title, text, style)
    return lines


def _evidence(result: Result, style: Style) -> Iterator[tuple[str, str]]:
    if result.verdict is not Verdict.GROWS:
        yield from _open_questions(result)
    yield from _limits_broken(result)
    yield from _suspect_texts(result.suspects, style)
    for diagnosis in result.diagnoses if style.verbose else result.diagnoses[:_PER_LABEL]:
        yield "Looks like", _diagnosis_text(diagnosis)
    for sentence in forecasts(result):
        yield "At this rate", sentence


def _open_questions(result: Result) -> Iterator[tuple[str, str]]:
    for finding in shown(result.findings.values(), verbose=False):
        if finding.trend.verdict is Verdict.UNDECIDED and finding.decides:
            more = finding.trend.more_steps
            hint = f"; about {counted(more, 'more steps')} would tell" if more else ""
            yield "Undecided", f"{label(finding.name)}: {finding.trend.reason}{hint}"


def _limits_broken(result: Result) -> Iterator[tuple[str, str]]:
    for finding in result.findings.values():
        asked = finding.limit != default_limit(finding.series.quantity.kind)
        if finding.trend.verdict is Verdict.GROWS and finding.decides and asked:
            limit = growth_text(finding.limit, growth_unit(finding)).lstrip("+")
            yield "Limit", f"{label(finding.name)} may grow by at most {limit} a step"


def _suspect_texts(suspects: Sequence[Suspect], style: Style) -> Iterator[tuple[str, str]]:
    for title in dict.fromkeys(_LABELS.values()):
        alike = [s for s in suspects if _LABELS.get(s.kind, "Evidence") == title]
        for suspect in alike if style.verbose else alike[:_PER_LABEL]:
            yield title, _suspect_text(suspect)
            yield from _stacks(suspect, style)
    for suspect in suspects:
        if suspect.kind not in _LABELS:
            yield "Evidence", _suspect_text(suspect)


def _stacks(suspect: Suspect, style: Style) -> Iterator[tuple[str, str]]:
    """Native frames where they were asked for; the whole Python stack in a verbose report."""
    if suspect.kind != "site":
        return
    if text := native_stack(suspect):
        yield "  natively", text
    if style.verbose and (text := python_stack(suspect)):
        yield "  called by", text


def _suspect_text(suspect: Suspect) -> str:
    code = source_line(suspect)
    what = f"({suspect.what})" if suspect.what else ""
    return "  ".join(part for part in (suspect.where, code, what) if part)


def _diagnosis_text(diagnosis: Diagnosis) -> str:
    more = f"  More: leakkit scenarios show {diagnosis.scenario}" if diagnosis.scenario else ""
    doubt = "" if diagnosis.confidence == "high" else f" ({diagnosis.confidence} confidence)"
    return f"{diagnosis.name}{doubt}: {diagnosis.remedy}{more}"


def _note_lines(result: Result, style: Style) -> list[str]:
    lines: list[str] = []
    remarks = result.remarks if style.verbose or _asked_for_a_cpu(result) else ()
    for note in [*result.notes, *remarks]:
        lines += _labelled("Note", note, style)
    if style.verbose:
        lines += _labelled("Recorded in", str(result.recording.path), style)
    return lines


def _asked_for_a_cpu(result: Result) -> bool:
    """Whether a CPU was asked for by name: then what its counts are belongs to the answer."""
    device = result.recording.meta.get("settings", {}).get("device")
    return str(device).lower().startswith("cpu")


def _labelled(title: str, text: str, style: Style) -> list[str]:
    indent = " " * (2 + _LABEL_WIDTH + 2)
    room = max(20, style.width - len(indent))
    wrapped = list(_wrapped(style.plain(text), room)) or [""]
    first = f"  {style.paint(title.ljust(_LABEL_WIDTH), _BOLD)}  {wrapped[0]}"
    return [first, *(indent + line for line in wrapped[1:])]


def _wrapped(text: str, room: int) -> Iterable[str]:
    for paragraph in text.splitlines():
        # Two spaces set parts apart; they are kept, and break first.
        yield from textwrap.wrap(
            paragraph, room, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
        )

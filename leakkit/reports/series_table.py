"""The table of series: what each did, how fast, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leakkit.heap import COUNTS
from leakkit.reports.labels import is_key, label, rank
from leakkit.reports.sparkline import sparkline
from leakkit.result import Finding, Result
from leakkit.series import Kind
from leakkit.trend import Trend, Verdict
from leakkit.units import BYTES, SECONDS, byte_unit, bytes_text, plain

_ORDER = {Verdict.GROWS: 0, Verdict.UNDECIDED: 1, Verdict.FLAT: 2}


@dataclass(frozen=True)
class Row:
    """One series as shown; ``cells`` has one text a column."""

    finding: Finding
    cells: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """What the series was found to do."""
        return self.finding.trend.verdict


@dataclass(frozen=True)
class Table:
    """Column titles and rows; the first and the last two columns are set to the left."""

    titles: tuple[str, ...]
    rows: tuple[Row, ...]


def series_table(result: Result, *, unicode: bool = True, verbose: bool = False) -> Table:
    """The rows that matter: growing and undecided ones, then the key flat ones."""
    proved = result.verdict is Verdict.FLAT
    titles = ("series", "per step", *_middle_titles(proved), "total", "verdict", "")
    rows = [
        Row(finding, _cells(finding, proved=proved, unicode=unicode))
        for finding in shown(result.findings.values(), verbose=verbose)
    ]
    return Table(titles, tuple(rows))


def shown(findings: Iterable[Finding], *, verbose: bool) -> list[Finding]:
    """The findings worth a row, in report order."""
    chosen = [f for f in findings if verbose or _matters(f)]
    return sorted(chosen, key=lambda f: (_ORDER[f.trend.verdict], not f.decides, rank(f.name)))


def _matters(finding: Finding) -> bool:
    if finding.name in COUNTS:  # what the judgement of the heap rests on
        return False
    if finding.trend.verdict is Verdict.GROWS:
        return True
    return is_key(finding.name) or (finding.trend.verdict is Verdict.UNDECIDED and finding.decides)


def _middle_titles(proved: bool) -> tuple[str, ...]:
    return ("proved at most",) if proved else ("95 % interval",)


def _cells(finding: Finding, *, proved: bool, unicode: bool) -> tuple[str, ...]:
    trend = finding.trend
    unit = growth_unit(finding)
    middle = bound(trend, unit) if proved else interval(trend, unit)
    return (
        label(finding.name),
        rate(trend.slope, trend, unit),
        middle,
        total(trend, finding),
        verdict_text(finding),
        spark(finding, unicode=unicode),
    )


def growth_unit(finding: Finding) -> str:
    """The unit of a finding's slope: latencies grow in percent of the step time."""
    return "%" if finding.series.quantity.kind is Kind.LATENCY else finding.series.quantity.unit


def rate(number: float, trend: Trend, unit: str) -> str:
    """A signed growth per step in the unit that its interval is printed in: ``+1560 B``."""
    scale, name = _scale(trend, unit)
    sign = "+" if number > 0 else ""
    return f"{sign}{plain(number / scale)} {name}".rstrip()


def interval(trend: Trend, unit: str) -> str:
    """``[1790, 1826]``, in the unit of the slope beside it."""
    scale, _ = _scale(trend, unit)
    return f"[{_end(trend.low / scale)}, {_end(trend.high / scale)}]"


def bound(trend: Trend, unit: str) -> str:
    """The growth that a flat series was proved not to exceed."""
    if trend.verdict is not Verdict.FLAT or not math.isfinite(trend.high):
        return "not proved"
    return rate(max(0.0, trend.high), trend, unit).lstrip("+") + " a step"


def total(trend: Trend, finding: Finding) -> str:
    """Growth over the whole series, which for a latency says nothing."""
    if finding.series.quantity.kind is Kind.LATENCY or not math.isfinite(trend.total):
        return "–"
    sign = "+" if trend.total > 0 else ""
    if finding.series.quantity.unit == "B":
        return f"{sign}{bytes_text(trend.total)}"
    return f"{sign}{plain(trend.total)}"


def verdict_text(finding: Finding) -> str:
    """The verdict; a star says that this series alone never fails a run."""
    star = " *" if finding.trend.verdict is Verdict.GROWS and not finding.decides else ""
    return f"{finding.trend.verdict.value}{star}"


def spark(finding: Finding, *, unicode: bool) -> str:
    """The series drawn; jitter of a latency below a tenth of it is drawn flat."""
    values = finding.series.values
    finite = values[values == values]
    quiet = finding.series.quantity.kind is Kind.LATENCY and len(finite) > 0
    floor = 0.1 * float(abs(finite).mean()) if quiet else 0.0
    return sparkline(values, unicode=unicode, floor=floor)


def _scale(trend: Trend, unit: str) -> tuple[float, str]:
    """What to divide by, and the name of the unit, for a slope and its interval."""
    ends = [abs(x) for x in (trend.slope, trend.low, trend.high) if math.isfinite(x)]
    largest = max(ends, default=0.0)
    if unit == "B":
        # Between the two, so that neither a wide interval nor the slope in it is hard to read.
        name = byte_unit(math.sqrt(largest * (abs(trend.slope) or largest)))
        return BYTES[name], name
    if unit == "s":
        name = next((u for u in ("s", "ms", "µs") if largest >= SECONDS[u]), "µs")
        return SECONDS[name], name
    return 1.0, "%" if unit == "%" else ""


def _end(number: float) -> str:
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return plain(number)


def column_widths(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column, by its longest text."""
    return [max(len(text) for text in column) for column in zip(titles, *rows, strict=True)]

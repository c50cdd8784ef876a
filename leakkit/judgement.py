"""From the passes' series to one finding a series, and one verdict for the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from leakkit.heap import ALLOCATED, ALLOCATIONS, HEAPS, NET
from leakkit.result import Finding
from leakkit.series import Kind, Series
from leakkit.settings import Settings
from leakkit.suspects import Suspect
from leakkit.trend import Trend, Verdict, default_limit, judge
from leakkit.turnover import turns_over

# The order in which a person asks: what is held, what holds it, what was left lying, how slow.
ORDER = (
    "python_heap", "native_heap", "device_memory", "live_tensors", "live_tensor_bytes",
    "live_objects", "traces", "threads", "fds", "children", "files", "file_bytes", "latency",
)  # fmt: skip
_LAST = (
    "allocations", "allocated", "garbage", "python_blocks", "rss", "children_memory", "cpu_time",
)  # fmt: skip
# Best evidence first: where one series was measured in both passes, growth found in the trace
# pass is exact; growth found only in the watch pass is of a kind that the engine cannot see.
_BEST = (
    (Verdict.GROWS, "trace"),
    (Verdict.GROWS, "watch"),
    (Verdict.FLAT, "trace"),
    (Verdict.UNDECIDED, "trace"),
    (Verdict.FLAT, "watch"),
    (Verdict.UNDECIDED, "watch"),
)


REPLACED = "old blocks are replaced by new ones"
BLOCKS = "python_blocks"
_SEEN_BY_WATCH = (BLOCKS, "native_heap")  # every leaked block shows in one of these


class Judgement:
    """Looks at passes as they grow, and keeps the last look of each."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._passes: dict[str, dict[str, tuple[Series, Trend]]] = {}
        self._more_deciding: set[str] = set()

    def look(self, name: str, series: Mapping[str, Series], *, last: bool) -> int:
        """Judge a pass so far; the further steps that it needs."""
        last = last or self._decided  # what remains is to say by how much
        steps_own = _without_parts(series)
        looked = {key: (s, self._judge(s, final=last)) for key, s in steps_own.items()}
        self._passes[name] = looked
        for heap in HEAPS:
            if self._replaced(heap, series):
                found, trend = looked[heap]
                flat = replace(trend, verdict=Verdict.FLAT, reason=REPLACED, more_steps=0)
                looked[heap] = found, flat
        if last and self._counted:
            self.must_decide(BLOCKS)
        return max((t.more_steps for s, t in looked.values() if self._waits_for(s)), default=0)

    def _waits_for(self, series: Series) -> bool:
        """Whether a pass goes on for the sake of this series."""
        return self.decides(series) or (series.name == HEAPS[0] + NET and self._counted)

    def _replaced(self, heap: str, series: Mapping[str, Series]) -> bool:
        """Whether a heap in the trace pass gets new blocks only for old ones.

        What the watch pass saw must not grow either, except where the counts decide: then they
        say how fast, for the bytes that are traded hide it.
        """
        if not turns_over(heap, series):
            return False
        if self._counted and heap == HEAPS[0]:
            return True
        return not (self._rose("trace", heap + NET) or self._rose("watch", *_SEEN_BY_WATCH))

    @property
    def _counted(self) -> bool:
        """Whether the number of Python's blocks rose in both passes.

        Beside a cache of items of all sizes a small leak is lost in the bytes. Either count alone
        rises in correct code too, of which only one pass sees the cause. Who allows the heap some
        bytes a step allows the blocks that they lie in.
        """
        if self._settings.limits.get(HEAPS[0], 0.0) > 0.0:
            return False
        return self._rose("trace", HEAPS[0] + NET) and self._rose("watch", BLOCKS)

    def _rose(self, name: str, *names: str) -> bool:
        """Whether one of these series of a pass grows, were this its last look."""
        looked = self._passes.get(name, {})
        found = [looked[n][0] for n in names if n in looked]
        return any(self._judge(s, final=True).verdict is Verdict.GROWS for s in found)

    def must_decide(self, name: str) -> None:
        """Let a series decide the run that otherwise only advises, and judge it for good."""
        self._more_deciding.add(name)
        for looked in self._passes.values():
            if name in looked:
                series = looked[name][0]
                looked[name] = series, self._judge(series, final=True)

    def decides(self, series: Series) -> bool:
        """Whether the run fails when this series grows."""
        name = series.name
        asked = name in self._settings.limits or name in self._more_deciding
        return asked or not series.quantity.advisory

    @property
    def grows(self) -> bool:
        """Whether the run grows, by all that the passes saw together."""
        return verdict(self.findings()) is Verdict.GROWS

    @property
    def _decided(self) -> bool:
        """Whether a deciding series of any pass grows: then nothing can undo it."""
        return any(
            trend.verdict is Verdict.GROWS and self.decides(series)
            for looked in self._passes.values()
            for series, trend in looked.values()
        )

    @property
    def growing(self) -> set[str]:
        """Names of the series that grow in any pass, those that only advise among them."""
        return {
            name
            for looked in self._passes.values()
            for name, (_, trend) in looked.items()
            if trend.verdict is Verdict.GROWS
        }

    def findings(self) -> dict[str, Finding]:
        """One finding a series, in report order."""
        rank = {key: position for position, key in enumerate(_BEST)}
        best: dict[str, Finding] = {}
        for measured, looked in self._passes.items():
            for name, (series, trend) in looked.items():
                if trend.more_steps:  # nobody waits for an advisory series
                    trend = self._judge(series, final=True)
                found = Finding(series, trend, self._limit(series), measured, self.decides(series))
                seen = best.get(name)
                if seen is None or _key(found, rank) < _key(seen, rank):
                    best[name] = found
        best = _more_work(best)
        return {name: best[name] for name in sorted(best, key=_position)}

    def _limit(self, series: Series) -> float:
        return self._settings.limits.get(series.name, default_limit(series.quantity.kind))

    def _judge(self, series: Series, *, final: bool) -> Trend:
        limit = self._settings.limits.get(series.name)
        return judge(series, limit=limit, cadence=self._settings.cadence, final=final)


MORE_WORK = "may be slowing down, and a step allocates more each time"


def _more_work(findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """A latency that the clock cannot decide is decided by what the step allocates.

    A step that does more each time allocates more each time, and that count knows no noise.
    """
    latency = findings.get("latency")
    work = [findings[name].trend for name in (ALLOCATIONS, ALLOCATED) if name in findings]
    more = any(trend.verdict is Verdict.GROWS for trend in work)
    if latency is None or not more or not _leans(latency.trend):
        return dict(findings)
    trend = replace(latency.trend, verdict=Verdict.GROWS, reason=MORE_WORK, more_steps=0)
    return {**findings, "latency": replace(latency, trend=trend)}


def _leans(trend: Trend) -> bool:
    """Whether an undecided trend is more likely to rise than by chance alone."""
    return trend.verdict is Verdict.UNDECIDED and trend.low > 0


def verdict(findings: Mapping[str, Finding]) -> Verdict:
    """Of the run as a whole.

    A latency that cannot be decided leaves the run's verdict to the rest: a noisy machine is
    no reason to doubt what was counted exactly.
    """
    decided = [f for f in findings.values() if f.decides]
    if any(f.trend.verdict is Verdict.GROWS for f in decided):
        return Verdict.GROWS
    counted = [f for f in decided if f.series.quantity.kind is not Kind.LATENCY]
    if not counted or any(f.trend.verdict is Verdict.UNDECIDED for f in counted):
        return Verdict.UNDECIDED
    return Verdict.FLAT


# What a container that still fills adds to.
_FILLED = ("python_heap", "native_heap", "live_objects", "live_tensors", "live_tensor_bytes")
_MOSTLY = 0.8  # of the bytes that grow; the rest is what the container's items drag along


def settle_bounded(
    findings: Mapping[str, Finding], suspects: Sequence[Suspect]
) -> tuple[dict[str, Finding], list[str]]:
    """Growth that will end by itself is no leak: a container with a visible bound still fills.

    Returns:
        The findings, those that such containers explain judged flat; and a note for each.
    """
    filling = [s for s in suspects if (s.facts.get("bound") or 0) > s.facts.get("length", 0)]
    heaps = [findings[n].trend for n in _FILLED[:2] if n in findings]
    growth = sum(max(t.slope, 0.0) for t in heaps if t.verdict is Verdict.GROWS)
    explained = sum(float(s.facts.get("bytes_per_step") or 0.0) for s in filling)
    if not filling or explained < _MOSTLY * growth:
        return dict(findings), []
    sentences = [
        f"{s.where} fills to {s.facts['bound']:,}, now {s.facts['length']:,}" for s in filling
    ]
    return {n: _filling(f, sentences[0]) for n, f in findings.items()}, sentences


def _filling(finding: Finding, reason: str) -> Finding:
    if finding.name not in _FILLED or finding.trend.verdict is not Verdict.GROWS:
        return finding
    return replace(finding, trend=replace(finding.trend, verdict=Verdict.FLAT, reason=reason))


def _without_parts(series: Mapping[str, Series]) -> dict[str, Series]:
    """The series, with what is not the step's own taken out of those that count it too."""
    remaining = dict(series)
    for part in series.values():
        whole = remaining.get(part.quantity.part_of)
        if whole is not None:
            remaining[whole.name] = replace(whole, values=whole.values - part.values)
    return remaining


def _key(finding: Finding, rank: Mapping[tuple[Verdict, str], int]) -> int:
    return rank[finding.trend.verdict, finding.measured]


def _position(name: str) -> tuple[int, str]:
    family = name.partition(":")[0]
    if family in ORDER:
        return ORDER.index(family), name
    if family in _LAST:
        return 2 * len(ORDER) + _LAST.index(family), name
    return len(ORDER), name

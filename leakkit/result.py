"""What a run found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leakkit.series import Series
from leakkit.trend import Trend, Verdict

if TYPE_CHECKING:
    from leakkit.diagnosis import Diagnosis
    from leakkit.recording import Recording
    from leakkit.suspects import Suspect


@dataclass(frozen=True)
class Finding:
    """One series with its trend and the limit it was judged by."""

    series: Series
    trend: Trend
    limit: float
    measured: str  # "watch" or "trace": the pass that the trend was fitted to
    decides: bool  # whether this series can fail the run

    @property
    def name(self) -> str:
        """The series name."""
        return self.series.name


@dataclass(frozen=True)
class Result:
    """The outcome of one run.

    Args:
        name: what was run, e.g. ``train_step`` or a test's node id.
        verdict: of the run as a whole.
        findings: every series judged, by name, in report order.
        notes: sentences that a reader must know: what was short, missing or skipped.
        remarks: sentences that hold for every run on such devices.
        suspects: evidence, best first; empty unless the run grows.
        diagnoses: the named patterns, best first.
        recording: where the series are kept.
        seconds: what the whole measurement took.
    """

    name: str
    verdict: Verdict
    findings: Mapping[str, Finding]
    recording: Recording
    notes: Sequence[str] = ()
    remarks: Sequence[str] = ()
    suspects: Sequence[Suspect] = ()
    diagnoses: Sequence[Diagnosis] = field(default=())
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        """Steps that were measured, over all passes."""
        return self.recording.steps


class LeakError(AssertionError):
    """A step grows. ``str()`` is the report; ``result`` has the data."""

    def __init__(self, report: str, result: Result) -> None:
        super().__init__(report)
        self.result = result

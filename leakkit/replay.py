"""A recording judged again, with the suspects that its run found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leakkit.diagnosis import Diagnosis
from leakkit.judgement import Judgement, verdict
from leakkit.recording import Recording
from leakkit.reports.json import render
from leakkit.result import Result
from leakkit.settings import Settings, SettingsError, make_settings
from leakkit.suspects import Suspect

FILE = "result.json"


def keep(result: Result) -> None:
    """Write the result beside its series: suspects cannot be found again once the run is over.

    Raises:
        OSError: the folder cannot be written.
    """
    (result.recording.path / FILE).write_text(render(result), encoding="utf-8")


def judge_recording(recording: Recording) -> Result:
    """Judge the series of a recording by the settings of its run.

    What the run had no time to find out stays unknown: a recording that was cut has no suspects.
    """
    judgement = Judgement(_settings(recording))
    for name in ("watch", "trace"):
        series = getattr(recording, name)
        if series:
            judgement.look(name, series, last=True)
    kept = _kept(recording)
    findings = judgement.findings()
    return Result(
        name=str(recording.meta.get("name") or recording.path.name),
        verdict=verdict(findings),
        findings=findings,
        recording=recording,
        notes=(*kept.get("notes", ()), *_cut_note(recording)),
        remarks=tuple(kept.get("remarks", ())),
        suspects=tuple(_suspect(item) for item in kept.get("suspects", ())),
        diagnoses=tuple(Diagnosis(**item) for item in kept.get("diagnosis", ())),
        seconds=float(kept.get("seconds") or 0.0),
    )


def _settings(recording: Recording) -> Settings:
    try:
        return make_settings(recording.meta.get("settings", {}))
    except SettingsError:  # a limit of a probe that is not installed here
        return Settings()


def _cut_note(recording: Recording) -> list[str]:
    if not recording.cut:
        return []
    return [f"the run was cut short: this is what its {recording.steps} finished steps show"]


def _kept(recording: Recording) -> Mapping[str, Any]:
    try:
        kept = json.loads((recording.path / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _suspect(item: Mapping[str, Any]) -> Suspect:
    source = {"source": item["source"]} if item.get("source") else {}
    return Suspect(
        kind=item["kind"],
        where=item["where"],
        what=item["what"],
        slope=float(item["slope"] or 0.0),
        unit=item["unit"],
        explains=tuple(item.get("explains", ())),
        facts=source,
    )

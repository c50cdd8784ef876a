"""The result for a program: one JSON object."""

from __future__ import annotations

import json
import math
from typing import Any

from leakkit.reports.series_table import growth_unit
from leakkit.reports.source import source_line
from leakkit.result import Finding, Result


def to_dict(result: Result) -> dict[str, Any]:
    """The result as plain builtins; a number that is not finite is ``None``."""
    return {
        "name": result.name,
        "verdict": result.verdict.value,
        "steps": int(result.steps),
        "seconds": number(result.seconds),
        "series": {name: _series(finding) for name, finding in result.findings.items()},
        "suspects": [
            {
                "kind": suspect.kind,
                "where": suspect.where,
                "what": suspect.what,
                "slope": number(suspect.slope),
                "unit": suspect.unit,
                "explains": list(suspect.explains),
                "source": source_line(suspect) or None,
            }
            for suspect in result.suspects
        ],
        "diagnosis": [
            {
                "name": diagnosis.name,
                "confidence": diagnosis.confidence,
                "because": diagnosis.because,
                "remedy": diagnosis.remedy,
                "explains": number(diagnosis.explains),
                "scenario": diagnosis.scenario,
            }
            for diagnosis in result.diagnoses
        ],
        "notes": [str(note) for note in result.notes],
        "remarks": [str(remark) for remark in result.remarks],
        "recording": str(result.recording.path),
    }


def render(result: Result) -> str:
    """The result as JSON text with a line end."""
    return json.dumps(to_dict(result), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def number(value: float) -> float | None:
    """A float that JSON has, or ``None``: JSON knows neither NaN nor infinity."""
    value = float(value)
    return value if math.isfinite(value) else None


def _series(finding: Finding) -> dict[str, Any]:
    trend = finding.trend
    return {
        "verdict": trend.verdict.value,
        "slope": number(trend.slope),
        "low": number(trend.low),
        "high": number(trend.high),
        "total": number(trend.total),
        "unit": growth_unit(finding),
        "limit": number(finding.limit),
        "reason": trend.reason,
        "steps": int(trend.steps),
        "pass": finding.measured,
        "decides": bool(finding.decides),
    }

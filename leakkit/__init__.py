"""A test kit that proves a training step does not grow, and names what does.

The public names are loaded on first use: importing ``leakkit`` imports nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakkit.check import Check as Check
    from leakkit.check import watch as watch
    from leakkit.diagnosis import Diagnosis as Diagnosis
    from leakkit.probes import Probe as Probe
    from leakkit.probes import Unavailable as Unavailable
    from leakkit.recording import Recording as Recording
    from leakkit.result import Finding as Finding
    from leakkit.result import LeakError as LeakError
    from leakkit.result import Result as Result
    from leakkit.series import Kind as Kind
    from leakkit.series import Quantity as Quantity
    from leakkit.series import Series as Series
    from leakkit.settings import Settings as Settings
    from leakkit.settings import SettingsError as SettingsError
    from leakkit.suspects import Suspect as Suspect
    from leakkit.trend import Trend as Trend
    from leakkit.trend import Verdict as Verdict

__version__ = "0.1.0"

_HOMES = {
    "Check": "check",
    "Diagnosis": "diagnosis",
    "Finding": "result",
    "Kind": "series",
    "LeakError": "result",
    "Probe": "probes",
    "Quantity": "series",
    "Recording": "recording",
    "Result": "result",
    "Series": "series",
    "Settings": "settings",
    "SettingsError": "settings",
    "Suspect": "suspects",
    "Trend": "trend",
    "Unavailable": "probes",
    "Verdict": "trend",
    "watch": "check",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'leakkit' has no attribute {name!r}")
    value = getattr(import_module(f"leakkit.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])

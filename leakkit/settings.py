"""What a person can set about a run, and what is wrong with it in one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from leakkit.units import ANY, UnitError, parse_duration, parse_growth

_DEVICE = re.compile(r"(cpu|gpu|tpu)(?::(\d+))?|all")
HEAPS = ("auto", "memray", "tracemalloc", "off")

# The unit of Trend.slope by series name. Latency grows in percent of the step time.
SERIES_UNITS: Mapping[str, str] = {
    "latency": "%",
    "cpu_time": "%",
    "native_heap": "B",
    "python_heap": "B",
    "python_blocks": "blocks",
    "rss": "B",
    "threads": "threads",
    "fds": "descriptors",
    "garbage": "objects",
    "live_objects": "objects",
    "traces": "traces",
    "allocations": "allocations",
    "allocated": "B",
    "live_tensors": "tensors",
    "live_tensor_bytes": "B",
    "children": "processes",
    "children_memory": "B",
    "files": "files",
    "file_bytes": "B",
}
# Whole families of series whose names are known only when the run has found them.
FAMILY_UNITS: Mapping[str, str] = {
    "device_memory:": "B",
    "device_peak:": "B",
    "device_reserved:": "B",
    "tf_": ANY,
    "keras_": ANY,
    "jax_": ANY,
    "torch_": ANY,
}


class SettingsError(ValueError):
    """A setting that cannot be; the text is one line that names the valid values."""


@dataclass(frozen=True)
class Settings:
    """How a step is repeated, measured and judged.

    Args:
        steps: steps of the first look, per pass.
        max_steps: the most steps that one pass is extended to.
        warmup: steps before the first sample.
        max_seconds: time for the whole measurement, in seconds; a text such as ``"2 min"`` is
            accepted.
        limits: accepted growth per step by series name, in the unit of ``Trend.slope``; texts
            such as ``"64 B"`` or ``"1 %/100 steps"`` are accepted and read.
        probes: names of the probes to use; ``None`` for the default ones.
        device: the device that the step must run on, e.g. ``gpu`` or ``GPU:0``, kept in small
            letters; ``all`` for each in turn, ``None`` for any.
        cadence: what happens every ``cadence`` steps is not growth within one such period.
        heap: the engine of the trace pass: ``auto``, ``memray``, ``tracemalloc`` or ``off``.
        native: keep native frames of allocations.
        directory: where recordings go; ``None`` for a temporary folder.
        folders: watched for files that the step leaves behind.

    Raises:
        SettingsError: a value cannot be.
    """

    steps: int = 120
    max_steps: int = 480
    warmup: int = 20
    max_seconds: float = 30.0
    limits: Mapping[str, float] = field(default_factory=dict)
    probes: tuple[str, ...] | None = None
    device: str | None = None
    cadence: int = 1
    heap: str = "auto"
    native: bool = False
    directory: Path | None = None
    folders: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        for name, clean in _CLEAN.items():
            object.__setattr__(self, name, clean(name, getattr(self, name)))
        if self.steps > self.max_steps:
            raise SettingsError(
                f"max_steps is {self.max_steps}, fewer than steps, which is {self.steps}: "
                "a pass cannot end before its first look"
            )


def make_settings(options: Mapping[str, Any]) -> Settings:
    """Settings from loosely typed options; what is ``None`` keeps its default.

    Raises:
        SettingsError: an option is unknown or its value cannot be.
    """
    unknown = [name for name in options if name not in setting_names()]
    if unknown:
        raise SettingsError(
            f"unknown setting {unknown[0]!r}; the settings are {', '.join(setting_names())}"
        )
    settings = {name: value for name, value in options.items() if value is not None}
    if "steps" in settings and "max_steps" not in settings:
        # A longer first look alone must not be an error: the pass is then at least that long.
        steps = _positive("steps", settings["steps"])
        settings["max_steps"] = max(steps, Settings.max_steps)
    if "max_steps" in settings and "steps" not in settings:
        most = _positive("max_steps", settings["max_steps"])
        settings["steps"] = min(most, Settings.steps)
    return Settings(**settings)


def setting_names() -> tuple[str, ...]:
    """The names of all settings."""
    return tuple(f.name for f in fields(Settings))


def split_limits(texts: Iterable[str]) -> dict[str, str]:
    """``["fds=0", "latency=1 %/100 steps"]`` as a mapping; each item may hold several lines.

    Raises:
        SettingsError: an item has no ``=``.
    """
    limits = {}
    for text in (line.strip() for item in texts for line in item.splitlines()):
        name, equals, value = text.partition("=")
        if text and not equals:
            raise SettingsError(f"limit {text!r}: write SERIES=VALUE, e.g. 'python_heap=0 B'")
        if text:
            limits[name.strip()] = value.strip()
    return limits


def series_unit(name: str) -> str | None:
    """The unit that a series grows in, or ``None`` for an unknown series."""
    if name in SERIES_UNITS:
        return SERIES_UNITS[name]
    for prefix, unit in FAMILY_UNITS.items():
        if name.startswith(prefix):
            return "B" if name.endswith("_bytes") else unit
    return _contributed_units().get(name)


def _contributed_units() -> dict[str, str]:
    """Units of the series of installed third-party probes; loads them, so asked last."""
    units = {}
    for entry in entry_points(group="leakkit.probes"):
        for quantity in getattr(entry.load(), "quantities", ()):
            units[quantity.name] = "%" if quantity.kind == "latency" else quantity.unit
    return units


def _number(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool) or float(value) != int(float(value)):
            raise ValueError
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        raise SettingsError(f"{name} must be a whole number, not {value!r}") from None


def _positive(name: str, value: Any) -> int:
    number = _number(name, value)
    if number < 1:
        raise SettingsError(f"{name} must be 1 or more, not {value!r}")
    return number


def _natural(name: str, value: Any) -> int:
    number = _number(name, value)
    if number < 0:
        raise SettingsError(f"{name} must be 0 or more, not {value!r}")
    return number


def _seconds(name: str, value: Any) -> float:
    try:
        seconds = parse_duration(value)
    except UnitError as error:
        raise SettingsError(f"{name}: {error}") from None
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"{name} must be more than 0 seconds, not {value!r}")
    return seconds


def _limits(name: str, value: Any) -> dict[str, float]:
    if not isinstance(value, Mapping):
        raise SettingsError(
            f"{name} must be a mapping of series to growth, e.g. {{'python_heap': '0 B'}}, "
            f"not {value!r}"
        )
    return {series: _limit(series, growth) for series, growth in value.items()}


def _limit(series: Any, growth: Any) -> float:
    unit = series_unit(series) if isinstance(series, str) else None
    if unit is None:
        raise SettingsError(
            f"limit for unknown series {series!r}; the series are {', '.join(SERIES_UNITS)}, "
            "device_memory:GPU:0 (and so on) and those of installed probes"
        )
    try:
        return parse_growth(growth, unit)
    except UnitError as error:
        raise SettingsError(f"limit for {series}: {error}") from None


def _names(name: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = [part.strip() for part in value.replace("\n", ",").split(",") if part.strip()]
    names = tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else ()
    if not names or not all(isinstance(item, str) for item in names):
        raise SettingsError(f"{name} must be names of probes, e.g. ('threads', 'fds')")
    return names


def _device(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise SettingsError(f"{name} must be a name such as 'cpu', 'gpu' or 'GPU:0', not {value!r}")
    return match_device(value)[0]


def match_device(spec: str) -> re.Match[str]:
    """``spec`` in small letters; its groups are the kind and the number, both empty for ``all``.

    Raises:
        SettingsError: it is none that can be.
    """
    match = _DEVICE.fullmatch(spec.strip().lower())
    if match is None:
        raise SettingsError(f"device {spec!r} is none of cpu, gpu, gpu:1, tpu, all")
    return match


def _heap(name: str, value: Any) -> str:
    if value not in HEAPS:
        raise SettingsError(f"{name} must be one of {', '.join(HEAPS)}, not {value!r}")
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{name} must be True or False, not {value!r}")
    return value


def _path(name: str, value: Any) -> Path | None:
    if value is None:
        return None
    try:
        return Path(value)
    except TypeError:
        raise SettingsError(f"{name} must be a path, not {value!r}") from None


def _paths(name: str, value: Any) -> tuple[Path, ...]:
    if isinstance(value, (str, Path)):
        value = (value,)
    try:
        return tuple(Path(item) for item in value)
    except TypeError:
        raise SettingsError(f"{name} must be paths, not {value!r}") from None


_CLEAN: Mapping[str, Callable[[str, Any], Any]] = {
    "steps": _positive,
    "max_steps": _positive,
    "warmup": _natural,
    "max_seconds": _seconds,
    "limits": _limits,
    "probes": _names,
    "device": _device,
    "cadence": _positive,
    "heap": _heap,
    "native": _flag,
    "directory": _path,
    "folders": _paths,
}

"""The options of a session: each a command-line flag and an ini key for one setting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from leakkit.settings import SettingsError, make_settings, split_limits

MODES = ("on", "off")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True)
class Option:
    """One setting as a command-line option ``--leakkit-NAME`` and an ini key ``leakkit_NAME``.

    Args:
        name: of the setting.
        help: for ``pytest --help``.
        metavar: for the same; ``None`` for a flag.
        many: the option may be given several times, the ini key has one value a line.
    """

    name: str
    help: str
    metavar: str | None = None
    many: bool = False

    @property
    def flag(self) -> str:
        """The command-line spelling."""
        return f"--leakkit-{self.name.replace('_', '-')}"

    @property
    def key(self) -> str:
        """The ini spelling, which is also the name under which argparse keeps the value."""
        return f"leakkit_{self.name}"


OPTIONS = (
    Option("steps", "steps of the first look, per pass (default 120)", "N"),
    Option("max_steps", "the most steps a pass is extended to (default 480)", "N"),
    Option("warmup", "steps before the first sample (default 20)", "N"),
    Option("max_seconds", "time for one measurement, e.g. 30 or '2 min' (default 30)", "TIME"),
    Option("limit", "accepted growth, e.g. 'python_heap=64 B/step'", "SERIES=VALUE", many=True),
    Option("probes", "names of the probes to use, separated by commas", "NAMES"),
    Option("device", "where tests must run: cpu, gpu, gpu:1, tpu, or all: once on each", "NAME"),
    Option("cadence", "what happens every N steps is not growth within them", "N"),
    Option("heap", "heap engine: auto, memray, tracemalloc or off", "ENGINE"),
    Option("native", "name the native functions that allocate, too (slower)"),
    Option("folder", "a folder to watch for files left behind", "PATH", many=True),
    Option("dir", "where recordings go; a folder for each test", "DIR"),
    Option("strict", "an undecided run fails instead of warning"),
    Option("require_device", "a missing device fails instead of skipping"),
    Option("verbose", "reports show all series, suspects and reasons"),
)

# Options that are called otherwise than the setting they give.
_SETTING_OF = {"limit": "limits", "folder": "folders", "dir": "directory"}

_NO_SETTING = ("strict", "require_device", "verbose")


@dataclass(frozen=True)
class Config:
    """What the options of this session say."""

    off: bool
    settings: Mapping[str, Any]
    strict: bool
    require_device: bool
    verbose: bool


def add_options(parser: pytest.Parser) -> None:
    """Add the options; each defaults to ``None``, so that the ini file can have a say."""
    group = parser.getgroup("leakkit", "memory leaks and slowdowns of training steps")
    mode = f"{' or '.join(MODES)}: off runs each step once and judges nothing"
    group.addoption("--leakkit", dest="leakkit", metavar="MODE", default=None, help=mode)
    parser.addini("leakkit", mode, default=None)
    for option in OPTIONS:
        _add(group, parser, option)


def _add(group: Any, parser: pytest.Parser, option: Option) -> None:
    how: dict[str, Any] = {"dest": option.key, "default": None, "help": option.help}
    if option.metavar is None:
        how |= {"action": "store_true"}
    else:
        how |= {"metavar": option.metavar, "action": "append" if option.many else "store"}
    group.addoption(option.flag, **how)
    kind: Any = "linelist" if option.many else None
    parser.addini(option.key, option.help, type=kind, default=None)


def read_options(config: pytest.Config) -> Config:
    """What the command line and the ini file say.

    Raises:
        SettingsError: a value is wrong.
    """
    values = {o.name: _value(config, o) for o in OPTIONS}
    settings = {
        _SETTING_OF.get(name, name): value
        for name, value in values.items()
        if value is not None and name not in _NO_SETTING
    }
    if "limits" in settings:
        settings["limits"] = split_limits(settings["limits"])
    if "directory" in settings:
        settings["directory"] = config.invocation_params.dir / settings["directory"]
    make_settings(settings)  # what is wrong is said now, not by the first test
    return Config(
        off=_mode(config) == "off",
        settings=settings,
        **{name: bool(values[name]) for name in _NO_SETTING},
    )


def _value(config: pytest.Config, option: Option) -> Any:
    """From the command line, else the ini file, else ``None``."""
    value = config.getoption(option.key)
    if value is None:
        value = config.getini(option.key) or None
    if value is not None and option.metavar is None:
        return _truth(option, value)
    return value


def _truth(option: Option, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in _TRUE + _FALSE:
        return str(value).lower() in _TRUE
    raise SettingsError(f"{option.key} must be true or false, not {value!r}")


def _mode(config: pytest.Config) -> str:
    mode = config.getoption("leakkit")
    if mode is None:
        mode = config.getini("leakkit") or MODES[0]
    if mode not in MODES:
        raise SettingsError(f"--leakkit must be {' or '.join(MODES)}, not {mode!r}")
    return str(mode)

"""The terminal in which pytest runs: whether it shows Unicode, and a progress line on it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from leakkit.reports.progress import Progress


_TERMINAL: pytest.StashKey[int | None] = pytest.StashKey()


def shows_unicode(item: pytest.Item) -> bool:
    """Whether the terminal that will show the report can print block characters."""
    reporter = item.config.pluginmanager.get_plugin("terminalreporter")
    file = getattr(getattr(reporter, "_tw", None), "_file", sys.stdout)
    return "utf" in (getattr(file, "encoding", None) or "utf-8").lower()


def progress(config: pytest.Config) -> Progress | None:
    """A progress line for long runs, where standard output is a terminal."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not getattr(reporter, "isatty", False):
        return None
    from leakkit.reports.progress import Progress

    if _TERMINAL not in config.stash:
        config.stash[_TERMINAL] = _open_terminal(config)
    terminal = config.stash[_TERMINAL]
    if terminal is None:
        return None
    return Progress(terminal, column=reporter._tw.width_of_current_line)


def _open_terminal(config: pytest.Config) -> int | None:
    """pytest captures standard output while a test runs; the terminal itself stays reachable."""
    try:
        terminal = os.open("/dev/tty", os.O_WRONLY)
    except OSError:
        return None
    config.add_cleanup(lambda: os.close(terminal))
    return terminal

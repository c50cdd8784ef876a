"""A folder for the scenarios that write files."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

VARIABLE = "LEAKKIT_SCENARIO_FOLDER"


def scratch() -> Path:
    """A new empty folder, removed when the process ends.

    Whoever measures a form and wants its files watched names a folder beforehand in the
    environment variable ``LEAKKIT_SCENARIO_FOLDER``; the new one is made in there, and is left
    for them to remove.
    """
    return Path(tempfile.mkdtemp(dir=_root()))


@cache
def _root() -> Path:
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    folder = Path(tempfile.mkdtemp(prefix="leakkit-scenario-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder

"""``python scenarios/NAME.py``: run both forms and show the reports."""

from __future__ import annotations

from pathlib import Path


def main(file: str) -> int:
    """Measure both forms of the scenario in ``file``, each in a fresh process, and print.

    Returns:
        0 when both did what the scenario says, 1 when one did not, 2 when one broke.
    """
    from leakkit.scenarios._cards import load
    from leakkit.scenarios._fresh import show

    return show(load(Path(file).resolve()))

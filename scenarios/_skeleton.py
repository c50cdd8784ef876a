"""``leakkit scenarios new NAME``: a scenario to fill in, which runs as it is."""

from __future__ import annotations

import re
from pathlib import Path

from leakkit.scenarios._cards import names

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_TEXT = '''"""One sentence: what is done wrong, and what that makes grow.

A few more, for somebody who has never seen it: why the memory stays, or the time goes.
"""

import numpy as np

from leakkit.scenarios import Scenario, Step, main

# Literals only: this is read without running the file.
SCENARIO = Scenario(
    name="{name}",
    family="my family",
    needs=(),  # packages that this file imports, e.g. ("tensorflow",)
    grows=("native_heap",),  # the series on which the leaky form must be caught
    rate="8 KB native a step",
    diagnosis="growing-list-of-tensors",
    symptom="How it shows in the wild.",
    cause="Why it happens.",
    remedy="What to write instead.",
    reports=(),  # public reports, as owner/repository#number
    seen_on="the versions on which it was seen",
    leaks_on={{}},  # e.g. {{"tensorflow": ">=2.0"}}; outside the range it must be flat
)


def leaky() -> Step:
    """What people write."""
    batch_of = _data()
    history = []

    def step(i: int) -> float:
        history.append(batch_of())
        return float(history[-1].sum())

    return step


def corrected() -> Step:
    """What they should write. It must return the same numbers."""
    batch_of = _data()

    def step(i: int) -> float:
        return float(batch_of().sum())

    return step


def _data():
    world = np.random.default_rng(0)
    return lambda: world.standard_normal(1024)


if __name__ == "__main__":
    raise SystemExit(main(__file__))
'''


class NameTaken(Exception):
    """There is a scenario, or a file, of this name."""


def write(name: str, folder: Path) -> Path:
    """Write the skeleton of a scenario into a folder and return its path.

    Raises:
        ValueError: the name isn't kebab-case.
        NameTaken: there is such a scenario or such a file.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r}: a name is kebab-case and has a hyphen, e.g. my-cache-leaks")
    path = folder / f"{name.replace('-', '_')}.py"
    if name in names() or path.exists():
        raise NameTaken(f"{name!r} is taken")
    path.write_text(_TEXT.format(name=name), "utf-8")
    return path

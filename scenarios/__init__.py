"""The scenario library: leaks that people really have, each with its corrected counterpart.

    >>> import leakkit.scenarios
    >>> scenario = leakkit.scenarios.get("graph-retracing")
    >>> step = scenario.leaky()  # imports the framework, builds a tiny model
    >>> step(0)

One file is one scenario. Nothing here imports a framework until a form is asked for.
"""

from __future__ import annotations

from leakkit.scenarios._cards import CardError, families, get, load, names, scenarios
from leakkit.scenarios._main import main
from leakkit.scenarios._scenario import Scenario, Step
from leakkit.scenarios._scratch import scratch

__all__ = [
    "CardError",
    "Scenario",
    "Step",
    "families",
    "get",
    "load",
    "main",
    "names",
    "scenarios",
    "scratch",
]

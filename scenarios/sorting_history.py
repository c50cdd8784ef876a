"""The median of all losses so far is shown after each step, by sorting all of them."""

import bisect

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="sorting-history",
    family="slowdowns",
    grows=("latency",),
    rate="200 losses a step to sort, on top of all before",
    diagnosis="sorting-history",
    symptom="The progress bar costs more than the training; slower until restarted.",
    cause="A statistic of everything is computed from scratch on each step.",
    remedy="A running statistic: a histogram with fixed bins, a window of the last losses, an "
    "exponential mean.",
    reports=("tensorflow/tensorflow#40042", "huggingface/transformers#9746"),
    seen_on="every Python",
)

LEVELS = 64  # losses are shown to one part in this


def leaky() -> Step:
    """Sort everything."""
    losses_of = _training()
    history: list[int] = []

    def step(i: int) -> float:
        history.extend(losses_of())
        return sorted(history)[len(history) // 2] / LEVELS

    return step


def corrected() -> Step:
    """Count how often each level came."""
    losses_of = _training()
    counts = np.zeros(LEVELS, np.int64)

    def step(i: int) -> float:
        np.add.at(counts, losses_of(), 1)
        return bisect.bisect_right(counts.cumsum(), counts.sum() // 2) / LEVELS

    return step


def _training():
    world = np.random.default_rng(0)
    return lambda: world.integers(LEVELS, size=200)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

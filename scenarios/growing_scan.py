"""Each trial looks through all earlier trials for the best one, and copies them first."""

import copy

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="growing-scan",
    family="slowdowns",
    grows=("latency",),
    rate="each trial takes as long as the first for each one before it",
    diagnosis="growing-scan",
    symptom="70 trials a second at the start, 8 after an hour; slower until restarted.",
    cause="The best of all is found by a scan of the whole history, on every step.",
    remedy="Remember the best so far; keep what must be searched in an index or a heap.",
    reports=("optuna/optuna#2172", "ageron/handson-ml#203"),
    seen_on="every Python",
)


def leaky() -> Step:
    """Scan the history."""
    trial = _search()
    history: list[dict[str, float]] = []

    def step(i: int) -> float:
        history.append(trial())
        return min(copy.deepcopy(history), key=lambda one: one["loss"])["loss"]

    return step


def corrected() -> Step:
    """Remember the best."""
    trial = _search()
    best = {"loss": np.inf}

    def step(i: int) -> float:
        latest = trial()
        if latest["loss"] < best["loss"]:
            best.update(latest)
        return best["loss"]

    return step


def _search():
    world = np.random.default_rng(0)

    def trial() -> dict[str, float]:
        rate = world.uniform(0.0, 1.0)
        return {"rate": rate, "loss": (rate - 0.3) ** 2}

    return trial


if __name__ == "__main__":
    raise SystemExit(main(__file__))

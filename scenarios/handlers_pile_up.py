"""Each epoch sets up logging again, and each set-up adds one more handler to the same logger.

Loggers are global: getLogger("training") is the same object in every epoch. Every line is
written once for each handler, so the log grows, and so does the time that a line takes.
"""

import logging
import os

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="handlers-pile-up",
    family="logs and disk",
    grows=("python_heap", "live_objects", "latency"),
    rate="one handler a step: some 1.5 KB, and one more copy of every line",
    diagnosis="handlers-pile-up",
    symptom="Every line appears twice, then three times; epochs get slower; with file handlers: "
    "too many open files.",
    cause="setup_logger() calls addHandler() on a logger that already has the handler.",
    remedy="Set logging up once, or only 'if not logger.handlers'; remove and close a handler "
    "when its epoch ends.",
    reports=("automl/NASLib#31", "malariagen/malariagen-data-python#949"),
    seen_on="every Python",
)


def leaky() -> Step:
    """Set up on every step."""
    train = _training()

    def step(i: int) -> float:
        return train(_set_up("leakkit.handlers.leaky"))

    return step


def corrected() -> Step:
    """Set up once."""
    train = _training()
    log = _set_up("leakkit.handlers.corrected")

    def step(i: int) -> float:
        return train(log)

    return step


def _set_up(name: str) -> logging.Logger:
    log = logging.getLogger(name)
    log.setLevel(logging.INFO)
    log.propagate = False
    handler = logging.StreamHandler(_nowhere)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    log.addHandler(handler)
    return log


def _training():
    features = np.random.default_rng(0).standard_normal((32, 4))
    target = features.sum(axis=1)
    weights = np.zeros(4)

    def train(log: logging.Logger) -> float:
        error = features @ weights - target
        weights[:] -= 0.05 * features.T @ error / len(target)
        loss = float(np.mean(error**2))
        log.info("loss %.3e", loss)
        return loss

    return train


_nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - lives as long as the logger


if __name__ == "__main__":
    raise SystemExit(main(__file__))

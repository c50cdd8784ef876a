"""The training log goes to one file that nothing ever rotates or shortens.

A line a step is small. A line a step for a month, on the disk that the checkpoints also need,
stops the run with 'No space left on device'.
"""

import logging
import logging.handlers

import numpy as np

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="log-file-unrotated",
    family="logs and disk",
    grows=("file_bytes",),
    rate="some 50 bytes of disk a step",
    diagnosis="log-file-unrotated",
    symptom="Memory is flat, the disk fills; the run dies in the middle of a checkpoint.",
    cause="logging.FileHandler appends for ever.",
    remedy="logging.handlers.RotatingFileHandler(maxBytes=..., backupCount=...), or the "
    "system's log rotation.",
    reports=("automl/NASLib#31", "malariagen/malariagen-data-python#949"),
    seen_on="every Python",
)


def leaky() -> Step:
    """Append to one file."""
    return _training(logging.FileHandler(scratch() / "training.log"))


def corrected() -> Step:
    """Start a new file every few lines and keep one old one."""
    path = scratch() / "training.log"
    return _training(logging.handlers.RotatingFileHandler(path, maxBytes=512, backupCount=1))


def _training(handler: logging.FileHandler) -> Step:
    log = logging.Logger("training", logging.INFO)
    log.addHandler(handler)
    features = np.random.default_rng(0).standard_normal((32, 4))
    target = features.sum(axis=1)
    weights = np.zeros(4)

    def step(i: int) -> float:
        error = features @ weights - target
        weights[:] -= 0.05 * features.T @ error / len(target)
        loss = float(np.mean(error**2))
        log.info("step %6d: loss %.3e, norm %.3e", i, loss, np.linalg.norm(weights))
        return loss

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

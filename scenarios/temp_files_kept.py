"""Each round works in a temporary folder of its own that nobody removes."""

import tempfile
from pathlib import Path

import numpy as np

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="temp-files-kept",
    family="logs and disk",
    grows=("files", "file_bytes"),
    rate="one folder with one file of 2 KB a step",
    diagnosis="temp-files-kept",
    symptom="/tmp fills up; after a restart of the machine everything is fine again.",
    cause="tempfile.mkdtemp() makes a folder and leaves removing it to the caller.",
    remedy="with tempfile.TemporaryDirectory() as folder: it is removed at the end of the block, "
    "also after an exception.",
    reports=("ray-project/ray#41033", "tensorflow/decision-forests#41"),
    seen_on="every Python",
)


def leaky() -> Step:
    """Make a folder and forget it."""
    root = scratch()
    weights = np.ones(512, np.float32)

    def step(i: int) -> float:
        return _round_trip(weights, tempfile.mkdtemp(dir=root))

    return step


def corrected() -> Step:
    """Make a folder for the length of a block."""
    root = scratch()
    weights = np.ones(512, np.float32)

    def step(i: int) -> float:
        with tempfile.TemporaryDirectory(dir=root) as folder:
            return _round_trip(weights, folder)

    return step


def _round_trip(weights: np.ndarray, folder: str) -> float:
    path = Path(folder, "weights.npy")
    np.save(path, weights)
    return float(np.load(path).sum())


if __name__ == "__main__":
    raise SystemExit(main(__file__))

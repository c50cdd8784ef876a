"""The newest checkpoint is found by listing a folder that gets one more file on every step."""

from pathlib import Path

import numpy as np

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="file-per-step-listing",
    family="slowdowns",
    grows=("files", "latency"),
    rate="one file a step, and one more entry to read on every later step",
    diagnosis="file-per-step-listing",
    symptom="Steps get slower, and a restart doesn't help: the folder is still full.",
    cause="Listing a folder takes time for each file in it, and each step adds one and lists.",
    remedy="Keep the few newest and remember their names; write an index file for a restart.",
    reports=("tensorflow/tensorflow#25678", "ray-project/ray#41033"),
    seen_on="every Python",
)


def leaky() -> Step:
    """One file more, and look for the newest."""
    folder, weights = scratch(), np.zeros(4)

    def step(i: int) -> float:
        weights[:] += 1.0
        np.save(folder / f"step-{i:06d}.npy", weights)
        newest = max(folder.iterdir(), key=_age)
        return float(np.load(newest).sum())

    return step


def corrected() -> Step:
    """Remember the newest, and delete the one before."""
    folder, weights = scratch(), np.zeros(4)
    newest = [folder / "step-none.npy"]

    def step(i: int) -> float:
        weights[:] += 1.0
        old, newest[0] = newest[0], folder / f"step-{i:06d}.npy"
        np.save(newest[0], weights)
        old.unlink(missing_ok=True)
        return float(np.load(newest[0]).sum())

    return step


def _age(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name  # the name decides where the clock is too coarse


if __name__ == "__main__":
    raise SystemExit(main(__file__))

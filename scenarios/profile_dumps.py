"""A profile is taken of every step, and every one is written to a file of its own."""

import cProfile

import numpy as np

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="profile-dumps",
    family="logs and disk",
    grows=("files", "file_bytes"),
    rate="one file of some 500 bytes a step; with a framework's profiler megabytes",
    diagnosis="profile-dumps",
    symptom="Somebody left profiling on: the run is slow and its folder fills with profiles.",
    cause="Each profile goes to a new file, named after the step, and nothing deletes them.",
    remedy="Profile a few steps (e.g. 100 to 105), or write over one file; keep the slowest.",
    reports=("openxla/xprof#289",),
    seen_on="every Python",
)


def leaky() -> Step:
    """A file for each step."""
    folder = scratch()
    train = _training()

    def step(i: int) -> float:
        return train(str(folder / f"step-{i:06d}.prof"))

    return step


def corrected() -> Step:
    """One file, for the last step."""
    path = str(scratch() / "last.prof")
    train = _training()

    def step(i: int) -> float:
        return train(path)

    return step


def _training():
    features = np.random.default_rng(0).standard_normal((32, 4))
    target = features.sum(axis=1)
    weights = np.zeros(4)

    def update() -> float:
        error = features @ weights - target
        weights[:] -= 0.05 * features.T @ error / len(target)
        return float(np.mean(error**2))

    def train(path: str) -> float:
        profile = cProfile.Profile()
        loss = profile.runcall(update)
        profile.dump_stats(path)
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

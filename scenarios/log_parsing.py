"""The stopping rule reads the whole training log again on every step."""

import json

import numpy as np

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="log-parsing",
    family="slowdowns",
    grows=("file_bytes", "latency"),
    rate="one line a step, and one more to parse on every later step",
    diagnosis="log-parsing",
    symptom="A run that resumes from a long log is slow from its first step on.",
    cause="The log is the only place where the losses are, so every step parses all of it.",
    remedy="Keep the number that the rule needs in memory and in the checkpoint; the log is for "
    "people. Rotate it.",
    reports=("tensorflow/tensorboard#766", "tensorflow/tensorflow#198"),
    seen_on="every Python",
)


def leaky() -> Step:
    """Write a line, read them all."""
    train = _training()
    log = scratch() / "training.log"

    def step(i: int) -> float:
        with log.open("a", encoding="utf-8") as lines:
            lines.write(_line(i, train()))
        with log.open(encoding="utf-8") as lines:
            return min(json.loads(line)["loss"] for line in lines)

    return step


def corrected() -> Step:
    """Keep the best loss, and write over the last line."""
    train = _training()
    status = (scratch() / "status.txt").open("w", encoding="utf-8")
    best = [np.inf]

    def step(i: int) -> float:
        line = _line(i, train())
        status.seek(0)
        status.write(line)
        status.flush()
        best[0] = min(best[0], json.loads(line)["loss"])
        return best[0]

    return step


def _line(step: int, loss: float) -> str:
    return json.dumps({"step": f"{step:06d}", "loss": float(f"{loss:.6e}")}).ljust(79) + "\n"


def _training():
    features = np.random.default_rng(0).standard_normal((32, 4))
    target = features.sum(axis=1)
    weights = np.zeros(4)

    def train() -> float:
        error = features @ weights - target
        weights[:] -= 0.001 * features.T @ error / len(target)
        return float(np.mean(error**2))

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

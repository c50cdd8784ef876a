"""Failed batches are collected as exceptions; each holds its frames and their large locals."""

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="exception-keeps-frames",
    family="tensors",
    grows=("python_heap", "native_heap", "live_objects"),
    rate="the failed batch and its frame: 4 KB and some objects a step",
    diagnosis="exception-keeps-frames",
    symptom="A run with some bad input fills memory; a clean run is flat. On a GPU, memory isn't "
    "given back after an out-of-memory error that was caught.",
    cause="An exception has a traceback, a traceback has frames, and a frame has all its local "
    "variables: batches, activations, gradients.",
    remedy="Keep the text, str(error), or a count by type; or error.with_traceback(None).",
    reports=("pytorch/pytorch#27600", "vllm-project/vllm-omni#6385"),
    seen_on="every Python",
)


class BadBatch(ValueError):
    """A batch that can't be learned from."""


def leaky() -> Step:
    """Collect the exceptions."""
    forward = _model()
    errors: list[BadBatch] = []

    def step(i: int) -> float:
        try:
            return forward(i)
        except BadBatch as error:
            errors.append(error)
            return float(len(errors))

    return step


def corrected() -> Step:
    """Count them, and keep the last one's text."""
    forward = _model()
    count = [0]
    last = [""]

    def step(i: int) -> float:
        try:
            return forward(i)
        except BadBatch as error:
            count[0] += 1
            last[0] = str(error)
            return float(count[0])

    return step


def _model() -> Step:
    weights = np.ones((4, 1024), np.float32)

    def forward(i: int) -> float:
        batch = np.full((1, 4), np.nan, np.float32)
        activations = np.tanh(batch @ weights)
        if not np.isfinite(activations).all():
            raise BadBatch(f"batch {i:6d} has no finite activation")
        return float(activations.mean())

    return forward


if __name__ == "__main__":
    raise SystemExit(main(__file__))

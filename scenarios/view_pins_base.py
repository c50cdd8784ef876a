"""One number of each batch is kept, as a view, and a view keeps the whole array alive."""

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="view-pins-base",
    family="tensors",
    grows=("native_heap",),
    rate="one batch a step: 16 KB here",
    diagnosis="view-pins-base",
    symptom="A list of 'small' samples is far heavier than the sum of their nbytes.",
    cause="Slicing makes a view; a view has a base, and the base is the whole batch.",
    remedy="Copy what is kept, sample.copy(), or write it into a preallocated array; "
    "array.base shows what a view holds.",
    reports=("tensorflow/tensorflow#2942",),
    seen_on="every NumPy; the same with memoryview, torch slices and pandas",
)

KEPT = 4096  # samples for the histogram at the end


def leaky() -> Step:
    """Keep the first sample of each batch as a view."""
    batch_of = _stream()
    firsts: list[np.ndarray] = []

    def step(i: int) -> float:
        batch = batch_of()
        firsts.append(batch[:1])
        return float(batch.mean() + firsts[-1][0])

    return step


def corrected() -> Step:
    """Copy the sample into an array made beforehand."""
    batch_of = _stream()
    firsts = np.zeros(KEPT)

    def step(i: int) -> float:
        batch = batch_of()
        firsts[i % KEPT] = batch[0]
        return float(batch.mean() + firsts[i % KEPT])

    return step


def _stream():
    world = np.random.default_rng(0)
    return lambda: world.standard_normal(2048)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

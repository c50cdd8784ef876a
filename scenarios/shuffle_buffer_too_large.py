"""A shuffle buffer for a million samples fills by one a step and looks like a leak for hours.

Streaming loaders give out samples while their buffer is still filling. A buffer larger than
what the run reads, or than the memory, is never seen full.
"""

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="shuffle-buffer-too-large",
    family="input",
    grows=("native_heap",),
    rate="one sample a step, up to the size of the buffer: 4 KB here",
    diagnosis="growing-list-of-tensors",
    symptom="Memory climbs through the first epoch and falls back at its end, or the machine is "
    "full before that.",
    cause="The buffer takes two samples and gives one until it holds a million.",
    remedy="Size the buffer by bytes; some thousand samples mix well when the shards are "
    "shuffled too.",
    reports=("tensorflow/tensorflow#54299", "tensorflow/tensorflow#32376"),
    seen_on="every framework; tf.data fills its buffer before the first sample instead",
)


def leaky() -> Step:
    """Shuffle a million samples."""
    return _training(_shuffled(capacity=1_000_000))


def corrected() -> Step:
    """Shuffle sixteen."""
    return _training(_shuffled(capacity=16))


def _shuffled(capacity: int):
    world = np.random.default_rng(0)
    buffer = [_sample(world)]
    while True:
        buffer.append(_sample(world))
        if len(buffer) < capacity:
            buffer.append(_sample(world))
        chosen = int(world.integers(len(buffer)))
        buffer[chosen], buffer[-1] = buffer[-1], buffer[chosen]
        yield buffer.pop()


def _sample(world: np.random.Generator) -> np.ndarray:
    # A pattern or its mirror image: the model below learns the same from both, so that its
    # loss doesn't depend on the order.
    return np.full(1024, world.choice((-1.0, 1.0)), np.float32)


def _training(samples) -> Step:
    weights = np.zeros(1024, np.float32)

    def step(i: int) -> float:
        sample = next(samples)
        error = sample @ weights - sample[0]
        weights[:] -= 0.0001 * error * sample
        return float(error * error)

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

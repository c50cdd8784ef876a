"""Losses are collected as tensors, so the list keeps a tensor and its buffer for every step.

A loss of four bytes costs over a kilobyte when it is kept as a tensor: a Python object, a
handle, a buffer with its alignment, and on a GPU a piece of device memory each.
"""

import collections

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="growing-list-of-tensors",
    family="tensors",
    needs=("tensorflow",),
    grows=("live_tensors", "native_heap"),
    rate="one tensor a step: some 0.6 KB native",
    diagnosis="growing-list-of-tensors",
    symptom="Memory (on a GPU: device memory) climbs by a little on every step and is given "
    "back at the end of the epoch, or never.",
    cause="history.append(loss) keeps the tensor; what is wanted is its number.",
    remedy="Keep the number, not the tensor, and no more of them than are read: "
    "recent.append(float(loss)) with recent = deque(maxlen=...).",
    reports=("tensorflow/tensorflow#34876", "BatsResearch/labelmodels#4"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)

WINDOW = 8  # the progress line shows the mean of the last losses


def leaky() -> Step:
    """Keep every loss, as a tensor."""
    train = _training()
    history: list[tf.Tensor] = []

    def step(i: int) -> float:
        history.append(train())
        recent = history[-WINDOW:]
        return sum(float(loss) for loss in recent) / len(recent)

    return step


def corrected() -> Step:
    """Keep the last few losses, as numbers."""
    train = _training()
    recent: collections.deque[float] = collections.deque(maxlen=WINDOW)

    def step(i: int) -> float:
        recent.append(float(train()))
        return sum(recent) / len(recent)

    return step


def _training() -> tf.types.experimental.PolymorphicFunction:
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - target))
        weights.assign_sub(0.05 * tape.gradient(loss, weights))
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

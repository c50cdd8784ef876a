"""A Python number given to a compiled step traces one more graph for every new value.

A tf.function treats Python numbers as part of its signature, not as data: each value that it
has not seen is a new function, traced anew and kept for as long as the tf.function lives.
"""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="graph-retracing",
    family="tracing",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph a step: some 250 KB and 250 objects",
    diagnosis="graph-retracing",
    symptom="Steps take 20 ms instead of 1 ms; 'triggered tf.function retracing' is logged; "
    "memory climbs with every change of the learning rate.",
    cause="A Python number is part of a tf.function's signature, so each new value is traced "
    "into a graph of its own, and the function keeps all of them.",
    remedy="Pass data as tensors or NumPy scalars, np.float32(rate), or keep it in a "
    "tf.Variable. Python numbers are for what seldom changes.",
    reports=("tensorflow/addons#807", "tensorflow/tensorflow#38002"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """The decaying learning rate is a Python float."""
    train = _training()

    def step(i: int) -> float:
        return float(train(0.1 / (1 + i)))

    return step


def corrected() -> Step:
    """The same rate as a NumPy scalar, which enters the graph as a tensor."""
    train = _training()

    def step(i: int) -> float:
        return float(train(np.float32(0.1 / (1 + i))))

    return step


def _training() -> tf.types.experimental.PolymorphicFunction:
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(rate: float) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - target))
        weights.assign_sub(rate * tape.gradient(loss, weights))
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""A factory compiles one step per hyper-parameter, and a table keeps them all.

The value is closed over instead of passed, which is right as long as it never changes. With a
schedule it changes on every step, and the table of compiled steps grows by one each time.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="retrace-closure",
    family="tracing",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one compiled function a step: some 250 KB and 350 objects",
    diagnosis="retrace-closure",
    symptom="Memory climbs as soon as the schedule starts; with a constant rate it is flat.",
    cause="Each value of the closed-over number makes a new tf.function, and the table that was "
    "meant to avoid compiling twice keeps every one.",
    remedy="Make the value an argument (a NumPy scalar or a tensor) or a tf.Variable that the "
    "one compiled step reads.",
    reports=("tensorflow/tensorflow#50379", "tensorflow/tensorflow#62788"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """One compiled step for each rate."""
    train = _training()
    compiled: dict[float, Callable[[], tf.Tensor]] = {}

    def step(i: int) -> float:
        rate = 0.1 / (1 + i)
        if rate not in compiled:
            compiled[rate] = tf.function(lambda: train(rate))
        return float(compiled[rate]())

    return step


def corrected() -> Step:
    """One compiled step, which reads the rate from a variable."""
    train = _training()
    rate = tf.Variable(np.float32(0.1))
    compiled = tf.function(lambda: train(rate))

    def step(i: int) -> float:
        rate.assign(np.float32(0.1 / (1 + i)))
        return float(compiled())

    return step


def _training() -> Callable[[float], tf.Tensor]:
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.Variable(tf.zeros([4, 1]))

    def train(rate: float) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - target))
        weights.assign_sub(rate * tape.gradient(loss, weights))
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

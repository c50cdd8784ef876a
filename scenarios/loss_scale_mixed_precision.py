"""Mixed precision by hand: the loss scale is a Python number, and it changes all the time."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="loss-scale-mixed-precision",
    family="distribution",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph a step, as long as the scale is new: some 390 KB and 360 objects",
    diagnosis="graph-retracing",
    symptom="Training in float16 is slower than in float32, and it leaks.",
    cause="A dynamic loss scale rises on good steps and falls on overflow. Passed as a Python "
    "number, each value is a signature of its own.",
    remedy="keras.optimizers.LossScaleOptimizer, made once, which keeps the scale in a variable; "
    "or np.float32(scale).",
    reports=("tensorflow/addons#807", "tensorflow/tensorflow#38002"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """The scale as it is."""
    return _scaled(float)


def corrected() -> Step:
    """The scale as a NumPy scalar, which becomes a tensor."""
    return _scaled(np.float32)


def _scaled(as_argument: type) -> Step:
    train = _training()
    scale = [1024.0]

    def step(i: int) -> float:
        loss, finite = train(as_argument(scale[0]))
        scale[0] *= 1.001 if finite else 0.5
        return float(loss)

    return step


def _training() -> tf.types.experimental.PolymorphicFunction:
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(scale: float) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            half = tf.cast(features, tf.float16) @ tf.cast(weights, tf.float16)
            loss = tf.reduce_mean(tf.square(tf.cast(half, tf.float32) - target))
            scaled = scale * loss
        gradient = tape.gradient(scaled, weights) / scale
        finite = tf.reduce_all(tf.math.is_finite(gradient))
        weights.assign_sub(0.05 * tf.where(finite, gradient, tf.zeros_like(gradient)))
        return loss, finite

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

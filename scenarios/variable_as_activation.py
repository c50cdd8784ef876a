"""Activations are put into variables so that they can be changed in place, one for every step.

Tensors can't be assigned to, so a masked activation is written into a keras.Variable, which is
dropped after the step. The variable is freed; its kernel, under a name used once, is not.
"""

import keras
import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="variable-as-activation",
    family="variables",
    needs=("tensorflow", "keras"),
    grows=("native_heap",),
    rate="some 36 KB native a step, no Python object",
    diagnosis="variable-in-loop",
    symptom="Inference leaks: resident memory climbs with the number of batches.",
    cause="Keras numbers its variables, so each one has a new name, and the eager kernel cache "
    "keeps a kernel for each name.",
    remedy="Change tensors with tf.tensor_scatter_nd_update, tf.where or a mask; keep variables "
    "for what lives longer than a step.",
    reports=("tensorflow/tensorflow#27288", "q-optimize/c3#38"),
    seen_on="Keras 3 on TensorFlow 2.16 to 2.21",
    leaks_on={"keras": ">=3", "tensorflow": ">=2.16"},
)


def leaky() -> Step:
    """Write the activations into a variable to zero one row of it."""
    features, weights = _layer()

    def step(i: int) -> float:
        hidden = keras.Variable(tf.nn.relu(features @ weights), trainable=False)
        hidden.value[i % 8].assign(tf.zeros([16]))
        return float(tf.reduce_mean(hidden.value))

    return step


def corrected() -> Step:
    """Update the tensor."""
    features, weights = _layer()
    rows = [np.array([[row]], np.int32) for row in range(8)]

    def step(i: int) -> float:
        hidden = tf.nn.relu(features @ weights)
        hidden = tf.tensor_scatter_nd_update(hidden, rows[i % 8], tf.zeros([1, 16]))
        return float(tf.reduce_mean(hidden))

    return step


def _layer() -> tuple[tf.Tensor, tf.Tensor]:
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])
    return features, tf.random.stateless_normal([4, 16], seed=[0, 2])


if __name__ == "__main__":
    raise SystemExit(main(__file__))

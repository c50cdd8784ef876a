"""An annealed slope is an attribute of the operation, and each value leaves a kernel behind.

Most arguments of TensorFlow operations are tensors. A few are attributes, fixed when the kernel
is made: here the slope of leaky_relu. The eager runtime caches a kernel for each combination.
"""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="eager-kernel-cache",
    family="registries",
    needs=("tensorflow",),
    grows=("native_heap",),
    rate="some 36 KB native a step, no Python object",
    diagnosis="eager-kernel-cache",
    symptom="Resident memory climbs in eager code though every Python counter is flat.",
    cause="Each new set of attributes (a slope, a seed, a unique name) is a new kernel, and the "
    "kernel cache has no limit.",
    remedy="Keep attributes constant; write what changes with tensors: tf.where(x > 0, x, slope "
    "* x). For random numbers use tf.random.Generator or stateless operations, not seeds.",
    reports=(
        "tensorflow/tensorflow#37252",
        "tensorflow/tensorflow#36164",
        "tensorflow/tensorflow#36034",
        "tensorflow/tensorflow#42377",
    ),
    seen_on="TensorFlow 1.x eager to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """The slope as an attribute."""
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        return float(tf.reduce_sum(tf.nn.leaky_relu(features, alpha=0.3 / (1 + i))))

    return step


def corrected() -> Step:
    """The slope as a tensor."""
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        slope = np.float32(0.3 / (1 + i))
        return float(tf.reduce_sum(tf.where(features > 0, features, slope * features)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""A new optimizer is made for every phase to start again with fresh momentum.

An Adam optimizer has two slots for each weight and a few numbers of its own. Each is a variable
under a new name, and each name leaves a kernel behind.
"""

import keras
import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="optimizer-rebuilt",
    family="variables",
    needs=("tensorflow", "keras"),
    grows=("native_heap",),
    rate="some 36 KB native for each variable of the optimizer: 145 KB a step here",
    diagnosis="optimizer-rebuilt",
    symptom="Memory rises in a stair, one step for each phase, fold or learning-rate change.",
    cause="Optimizer variables are auto-numbered; every new name is a kernel that the eager "
    "runtime never drops. compile() in the loop does the same and retraces as well.",
    remedy="Keep the optimizer: assign its learning_rate, and reset its slots with "
    "variable.assign(zeros).",
    reports=("tensorflow/tensorflow#34316", "tensorflow/tensorflow#46012"),
    seen_on="Keras 3 on TensorFlow 2.16 to 2.21",
    leaks_on={"keras": ">=3", "tensorflow": ">=2.16"},
)


def leaky() -> Step:
    """A new optimizer for each phase."""
    weights, gradient = _weights()

    def step(i: int) -> float:
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.apply([gradient], [weights])
        return float(tf.reduce_sum(weights))

    return step


def corrected() -> Step:
    """One optimizer, whose variables are set back."""
    weights, gradient = _weights()
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build([weights])
    start = [(variable, np.array(variable)) for variable in optimizer.variables]

    def step(i: int) -> float:
        for variable, value in start:
            variable.assign(value)
        optimizer.apply([gradient], [weights])
        return float(tf.reduce_sum(weights))

    return step


def _weights() -> tuple[keras.Variable, tf.Tensor]:
    weights = keras.Variable(np.ones((4, 1), np.float32), name="weights")
    return weights, tf.random.stateless_normal([4, 1], seed=[0, 1])


if __name__ == "__main__":
    raise SystemExit(main(__file__))

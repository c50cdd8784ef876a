"""A named tf.Variable made inside the training loop leaves a kernel behind on every step.

The variable itself is freed. But the eager runtime caches one kernel for each distinct set of
an operation's attributes, a variable's name is such an attribute, and nothing empties the cache.
"""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="variable-in-loop",
    family="variables",
    needs=("tensorflow",),
    grows=("native_heap",),
    rate="some 36 KB native a step, no Python object",
    diagnosis="variable-in-loop",
    symptom="Resident memory climbs though every Python counter is flat: nothing in "
    "gc.get_objects(), nothing in tracemalloc.",
    cause="Each new variable name makes a new VarHandleOp kernel, and the eager kernel cache "
    "keeps it for the life of the process. Variables with equal names are flat since 2.4.",
    remedy="Make variables once, outside the loop, and assign() to them. Where one must be made "
    "in the loop, give it a fixed name.",
    reports=(
        "q-optimize/c3#38",
        "tensorflow/tensorflow#19671",
        "tensorflow/tensorflow#42377",
        "tensorflow/tensorflow#27288",
    ),
    seen_on="TensorFlow 1.x eager to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """A new variable for the annealed temperature, on every step."""
    logits = tf.random.stateless_normal([8, 10], seed=[0, 1])

    def step(i: int) -> float:
        temperature = tf.Variable(np.float32(1.0 + 1.0 / (1 + i)), name=f"temperature_{i}")
        return float(_sharpness(logits, temperature))

    return step


def corrected() -> Step:
    """One variable, assigned on every step."""
    logits = tf.random.stateless_normal([8, 10], seed=[0, 1])
    temperature = tf.Variable(np.float32(2.0), name="temperature")

    def step(i: int) -> float:
        temperature.assign(np.float32(1.0 + 1.0 / (1 + i)))
        return float(_sharpness(logits, temperature))

    return step


def _sharpness(logits: tf.Tensor, temperature: tf.Variable) -> tf.Tensor:
    return tf.reduce_mean(tf.reduce_max(tf.nn.softmax(logits / temperature), axis=1))


if __name__ == "__main__":
    raise SystemExit(main(__file__))

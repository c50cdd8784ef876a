"""An eager ``tf.py_function`` gets a new lambda on every call, and TensorFlow keeps each one."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="py-function-per-step",
    family="input",
    needs=("tensorflow",),
    grows=("native_heap", "live_objects", "python_heap"),
    rate="one kernel and one registered function a step: some 38 KB, 9 objects",
    diagnosis="py-function-per-step",
    symptom="Preprocessing or a loss with py_function leaks with the number of calls.",
    cause="Each new Python function gets a token, and the token is an attribute of the "
    "operation: a kernel in the eager cache and an entry in the registry of functions.",
    remedy="Define the function once, outside the loop; better, use TensorFlow operations.",
    reports=(
        "tensorflow/tensorflow#35010",
        "tensorflow/tensorflow#51839",
        "tensorflow/tensorflow#61344",
        "tensorflow/tensorflow#35822",
    ),
    seen_on="TensorFlow 1.4 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """A new lambda for each call."""
    samples = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        shifted = tf.py_function(lambda batch: tf.nn.relu(batch), [samples], tf.float32)
        return float(tf.reduce_sum(shifted))

    return step


def corrected() -> Step:
    """No py_function: TensorFlow has the operation."""
    samples = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        return float(tf.reduce_sum(tf.nn.relu(samples)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

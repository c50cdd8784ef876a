"""The tf.data pipeline is built anew on every step. Slow, but flat in today's TensorFlow.

Not every slow run leaks. This one must pass: the graphs of a dropped pipeline are freed, and the
few hundred bytes that TensorFlow itself keeps for an iterator aren't the step's doing.
"""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="dataset-rebuilt-each-step",
    family="input",
    needs=("tensorflow",),
    grows=(),
    rate="nothing grows: each step traces and optimises a pipeline; TensorFlow keeps some 0.3 KB",
    symptom="Steps take 20 ms where the model needs 1; memory saws between collections.",
    cause="Building a pipeline traces its functions, and every iterator starts anew. fit(), "
    "evaluate() and predict() on arrays build one for each call.",
    remedy="Build the pipeline once, with repeat(), and take next() of one iterator.",
    reports=(
        "tensorflow/tensorflow#43969",
        "tensorflow/tensorflow#44711",
        "keras-team/keras#13118",
    ),
    seen_on="TensorFlow 2.0 to 2.21; up to 2.3 the old graphs leaked too",
)


def leaky() -> Step:
    """Build a pipeline for the step's batch."""
    samples = tf.random.stateless_normal([32, 4], seed=[0, 1])

    def step(i: int) -> float:
        return float(tf.reduce_sum(next(iter(_pipeline(samples)))))

    return step


def corrected() -> Step:
    """Build it once."""
    batches = iter(_pipeline(tf.random.stateless_normal([32, 4], seed=[0, 1])))

    def step(i: int) -> float:
        return float(tf.reduce_sum(next(batches)))

    return step


def _pipeline(samples: tf.Tensor) -> tf.data.Dataset:
    dataset = tf.data.Dataset.from_tensor_slices(samples)
    return dataset.map(lambda sample: tf.nn.relu(sample)).batch(32).repeat()


if __name__ == "__main__":
    raise SystemExit(main(__file__))

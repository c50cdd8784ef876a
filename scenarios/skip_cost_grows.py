"""Each step finds its batch with ``skip(i)``, which reads everything before it once more."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="skip-cost-grows",
    family="input",
    needs=("tensorflow",),
    grows=("latency",),
    rate="as many samples more to read as the batch has: some 0.4 % of the first step's time",
    diagnosis="skip-cost-grows",
    symptom="An epoch starts fast and gets slower and slower; memory is flat. A restart from a "
    "checkpoint starts slow.",
    cause="skip(n) has no index to jump to: it runs the pipeline n times and throws the results "
    "away.",
    remedy="Keep one iterator and save it in the checkpoint; or shard the files and open the "
    "right one.",
    reports=("tensorflow/tensorflow#44008",),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)

BATCH = 16


def leaky() -> Step:
    """Skip to the batch from the start of the data."""
    dataset = _dataset()

    def step(i: int) -> float:
        rest = dataset.skip(np.int64(i * BATCH)).batch(BATCH)
        return float(tf.reduce_sum(next(iter(rest))))

    return step


def corrected() -> Step:
    """Go on where the last step stopped."""
    batches = iter(_dataset().batch(BATCH))

    def step(i: int) -> float:
        return float(tf.reduce_sum(next(batches)))

    return step


def _dataset() -> tf.data.Dataset:
    numbers = tf.data.Dataset.range(1_000_000)
    sines = numbers.map(lambda number: tf.math.sin(tf.cast(number, tf.float32)))
    options = tf.data.Options()  # optimising the pipeline takes longer here than running it
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return sines.with_options(options)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""The pipeline prepares a batch only when the step asks for it. Slow from the start, but flat.

Not every slow run leaks. This one must pass: its steps take longer than they need to, each as
long as the last.
"""

import time

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="missing-prefetch",
    family="input",
    needs=("tensorflow",),
    grows=(),
    rate="nothing grows: each step is slower by the time of one batch",
    symptom="The accelerator idles between steps; a profile shows the input as the bottleneck.",
    cause="Without prefetch() the pipeline runs inside next(), one after the other with the step.",
    remedy="dataset.prefetch(tf.data.AUTOTUNE) as the last stage.",
    reports=("tensorflow/tensorflow#40042",),
    seen_on="TensorFlow 2.0 to 2.21",
)


def leaky() -> Step:
    """Prepare a batch when it is asked for."""
    return _training(_batches())


def corrected() -> Step:
    """Prepare the next batches during the step."""
    return _training(_batches().prefetch(2))


def _batches() -> tf.data.Dataset:
    image = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)

    def read():
        while True:
            time.sleep(0.002)  # the storage answers
            yield image

    return tf.data.Dataset.from_generator(read, output_signature=tf.TensorSpec([64, 64]))


def _training(dataset: tf.data.Dataset) -> Step:
    batches = iter(dataset)

    @tf.function
    def train(image: tf.Tensor) -> tf.Tensor:
        for _ in range(32):
            image = tf.linalg.l2_normalize(image @ image)
        return tf.reduce_mean(tf.square(image))

    def step(i: int) -> float:
        return float(train(next(batches)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

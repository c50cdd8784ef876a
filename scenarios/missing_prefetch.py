"""The pipeline reads an image only when the step asks for it. Slow from the start, but flat.

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
    rate="nothing grows: each step is slower by the time of one image",
    symptom="The accelerator idles between steps; a profile shows the input as the bottleneck.",
    cause="Without prefetch() the pipeline runs inside next(), one after the other with the step. "
    "Since 2.10 autotuning adds a prefetch() where it may.",
    remedy="dataset.prefetch(tf.data.AUTOTUNE) as the last stage.",
    reports=("tensorflow/tensorflow#40042",),
    seen_on="TensorFlow 2.0 to 2.21",
)


def leaky() -> Step:
    """Autotuning is off, to save memory, and with it the prefetch() that it would have added."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return _training(_images().with_options(options))


def corrected() -> Step:
    """Prepare the next images during the step."""
    return _training(_images().prefetch(2))


def _images() -> tf.data.Dataset:
    image = np.random.default_rng(0).standard_normal((128, 128)).astype(np.float32)

    def read():
        while True:
            time.sleep(0.002)  # the storage answers
            yield image

    return tf.data.Dataset.from_generator(read, output_signature=tf.TensorSpec([128, 128]))


def _training(dataset: tf.data.Dataset) -> Step:
    images = iter(dataset)

    @tf.function
    def train(image: tf.Tensor) -> tf.Tensor:
        for _ in range(32):
            image = tf.linalg.l2_normalize(image @ image)
        return tf.reduce_mean(tf.square(image))

    def step(i: int) -> float:
        return float(train(next(images)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

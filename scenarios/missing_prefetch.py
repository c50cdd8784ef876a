"""The pipeline prepares a batch only when the step asks for it. Slow from the start, but flat.

Not every slow run leaks. This one must pass: its steps take longer than they need to, each as
long as the last.
"""

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
    images = tf.random.stateless_normal([4, 64, 64], seed=[0, 1])
    return tf.data.Dataset.from_tensor_slices(images).repeat().map(_augment).batch(4)


def _augment(image: tf.Tensor) -> tf.Tensor:
    return tf.linalg.matmul(image, image, transpose_b=True) / 64


def _training(dataset: tf.data.Dataset) -> Step:
    batches = iter(dataset)

    @tf.function
    def train(images: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.square(images @ images))

    def step(i: int) -> float:
        return float(train(next(batches)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

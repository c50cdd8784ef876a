"""``cache()`` stands behind an endless stream, and remembers every element of it."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="cache-of-endless-stream",
    family="input",
    needs=("tensorflow",),
    grows=("native_heap",),
    rate="one element a step: 4 KB here, no Python object",
    diagnosis="cache-of-endless-stream",
    symptom="The input pipeline eats the machine's memory over hours; the model is not to blame.",
    cause="Dataset.cache() without a file keeps elements in memory until the end of the data; a "
    "stream, or a repeat() before the cache, has no end.",
    remedy="Put cache() before repeat() and before random augmentation, on data that fit; leave "
    "it out of streams.",
    reports=("tensorflow/tensorflow#50579", "tensorflow/tensorflow#44688"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """Repeat, augment, then cache."""
    return _training(_samples().cache().repeat().map(_shift).cache())


def corrected() -> Step:
    """Cache the samples, then repeat and augment."""
    return _training(_samples().cache().repeat().map(_shift))


def _samples() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(tf.random.stateless_normal([4, 1024], seed=[0, 1]))


def _shift(sample: tf.Tensor) -> tf.Tensor:
    return tf.roll(sample, 1, axis=0)


def _training(stream: tf.data.Dataset) -> Step:
    batches = iter(stream)

    def step(i: int) -> float:
        return float(tf.reduce_mean(next(batches)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

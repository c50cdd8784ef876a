"""``Dataset.from_generator`` is called on every step, and each call registers a generator."""

import itertools
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="from-generator-rebuilt",
    family="input",
    needs=("tensorflow",),
    grows=("live_objects", "python_heap"),
    rate="three registered functions and some 35 objects a step: 4 KB",
    diagnosis="from-generator-rebuilt",
    symptom="Objects and latency climb with the number of epochs, each with its own generator.",
    cause="from_generator() traces three functions around a Python callback; what is registered "
    "for the callback stays.",
    remedy="Make the dataset once, over a generator that goes on for ever; or feed NumPy arrays "
    "directly.",
    reports=(
        "tensorflow/tensorflow#37653",
        "tensorflow/tensorflow#16163",
        "tensorflow/tensorflow#65675",
    ),
    seen_on="TensorFlow 1.5 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """A dataset for each epoch of one batch."""
    samples = _samples()

    def step(i: int) -> float:
        return sum(float(tf.reduce_sum(batch)) for batch in _dataset([samples]))

    return step


def corrected() -> Step:
    """One dataset, whose generator goes on."""
    batches = iter(_dataset(itertools.repeat(_samples())))

    def step(i: int) -> float:
        return float(tf.reduce_sum(next(batches)))

    return step


def _samples() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)


def _dataset(batches: Iterable[np.ndarray]) -> tf.data.Dataset:
    signature = tf.TensorSpec([8, 4], tf.float32)
    return tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=signature)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""A vocabulary table is built on every step, under a name that the runtime never forgets."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="lookup-table-per-step",
    family="registries",
    needs=("tensorflow",),
    grows=("native_heap",),
    rate="some 37 KB native a step for the kernel, and the table",
    diagnosis="lookup-table-per-step",
    symptom="Preprocessing that loads its vocabulary per request grows; Hashing instead of "
    "StringLookup doesn't.",
    cause="A table has a unique shared name, so each one is a new kernel in the eager cache, and "
    "the kernel holds its table.",
    remedy="Build the table once and pass it around.",
    reports=(
        "tensorflow/tensorflow#61866",
        "keras-team/keras#18386",
        "tensorflow/hub#472",
    ),
    seen_on="TensorFlow 2.5 to 2.21",
    leaks_on={"tensorflow": ">=2.5"},
)


def leaky() -> Step:
    """Build the table for each batch."""
    words = tf.constant(["loss", "leak", "gain"])

    def step(i: int) -> float:
        return float(tf.reduce_sum(_table().lookup(words)))

    return step


def corrected() -> Step:
    """Build it once."""
    words = tf.constant(["loss", "leak", "gain"])
    table = _table()

    def step(i: int) -> float:
        return float(tf.reduce_sum(table.lookup(words)))

    return step


def _table() -> tf.lookup.StaticHashTable:
    vocabulary = tf.lookup.KeyValueTensorInitializer(["leak", "loss"], tf.range(2))
    return tf.lookup.StaticHashTable(vocabulary, default_value=-1)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

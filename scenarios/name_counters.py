"""Every trial gets layers of its own class, and Keras counts names for each class, for ever."""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="name-counters",
    family="registries",
    needs=("tensorflow", "keras"),
    grows=("python_heap",),
    rate="one name and its counter a step: some 150 bytes",
    diagnosis="name-counters",
    symptom="Long searches with generated names or classes lose a little on each trial, too "
    "little to be seen in resident memory.",
    cause="Automatic names come from a global table with a counter for each prefix; a new prefix "
    "is a new entry. keras.backend.clear_session() empties it.",
    remedy="Use a fixed set of prefixes; give unique names yourself, which aren't counted.",
    reports=("keras-team/keras#9345", "keras-team/keras#6037"),
    seen_on="Keras 1 to 3.15",
    leaks_on={"keras": ">=3"},
)


def leaky() -> Step:
    """A prefix for each trial."""
    features = tf.ones([4])

    def step(i: int) -> float:
        name = keras.backend.get_uid(f"trial_{i}")
        return float(tf.reduce_sum(features)) + name

    return step


def corrected() -> Step:
    """One prefix, and the trial as the number."""
    features = tf.ones([4])

    def step(i: int) -> float:
        keras.backend.get_uid("trial")
        return float(tf.reduce_sum(features)) + 1

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

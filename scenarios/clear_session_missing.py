"""Trials that must build their own model never call clear_session(), so names never come again.

Where each trial really is another model, the names can at least be used again: clear_session()
sets the counters back and empties the cache of kernels.
"""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="clear-session-missing",
    family="variables",
    needs=("tensorflow", "keras"),
    grows=("native_heap",),
    rate="some 36 KB native for each variable of the model: 145 KB a step here",
    diagnosis="model-rebuilt",
    symptom="An architecture search leaks with the number of trials, each with its own model.",
    cause="Keras numbers layers and variables through the whole process; each new name is a "
    "kernel that the eager runtime never drops. clear_session() sets the counters back and "
    "empties the kernel cache; TensorFlow itself keeps some 0.9 KB for kernels made again.",
    remedy="keras.backend.clear_session() before each model. It frees no graph that fit() has "
    "registered: with training in the trial, use a process for each.",
    reports=(
        "keras-team/keras#2102",
        "keras-team/keras-tuner#873",
        "tensorflow/tensorflow#28844",
    ),
    seen_on="Keras 1 to 3.15",
    leaks_on={"keras": ">=3", "tensorflow": ">=2.16"},
    accepts={"native_heap": "2 KiB"},
)


def leaky() -> Step:
    """One model after the other."""
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        return _score(_model(width=4 + i % 4), features)

    return step


def corrected() -> Step:
    """Set the name counters back before each model."""
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        keras.backend.clear_session()
        return _score(_model(width=4 + i % 4), features)

    return step


def _model(width: int) -> keras.Model:
    hidden = keras.layers.Dense(width, "relu", kernel_initializer="ones")
    return keras.Sequential(
        [keras.Input((4,)), hidden, keras.layers.Dense(1, kernel_initializer="ones")]
    )


def _score(model: keras.Model, features: tf.Tensor) -> float:
    return float(tf.reduce_mean(model(features)))


if __name__ == "__main__":
    raise SystemExit(main(__file__))

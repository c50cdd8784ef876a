"""A Keras model is built anew for every trial and dropped again.

Nothing in Python holds the old models. What stays is native: each of their variables had a new
auto-numbered name, and the eager kernel cache keeps one kernel for each name.
"""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="model-rebuilt",
    family="variables",
    needs=("tensorflow", "keras"),
    grows=("native_heap",),
    rate="some 36 KB native for each variable of the model: 145 KB a step here",
    diagnosis="model-rebuilt",
    symptom="A hyper-parameter search or a k-fold loop dies after some hundred trials, though "
    "every model is deleted. With fit() in the loop it is megabytes a trial.",
    cause="Models are made of auto-numbered variables; each new name is a kernel that the eager "
    "runtime never drops. fit() adds a gradient function to a global registry.",
    remedy="Build once and reset the weights (set_weights) for each trial; where the shape of "
    "the model changes, give each trial a process of its own.",
    reports=(
        "tensorflow/tensorflow#30324",
        "keras-team/keras#20552",
        "tensorflow/tensorflow#61791",
        "keras-team/keras#9345",
    ),
    seen_on="TensorFlow 1.15 to 2.21, Keras 3.0 to 3.15",
    leaks_on={"keras": ">=3", "tensorflow": ">=2.16"},
)


def leaky() -> Step:
    """A new model for each trial."""
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        return float(tf.reduce_mean(_model()(features)))

    return step


def corrected() -> Step:
    """One model, set back to its first weights for each trial."""
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])
    model = _model()
    start = model.get_weights()

    def step(i: int) -> float:
        model.set_weights(start)
        return float(tf.reduce_mean(model(features)))

    return step


def _model() -> keras.Model:
    weights = keras.initializers.GlorotUniform(seed=0)
    hidden = keras.layers.Dense(8, "relu", kernel_initializer=weights)
    return keras.Sequential(
        [keras.Input((4,)), hidden, keras.layers.Dense(1, kernel_initializer=weights)]
    )


if __name__ == "__main__":
    raise SystemExit(main(__file__))

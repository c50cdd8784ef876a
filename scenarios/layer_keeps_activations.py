"""A layer stores its activations on itself for a plot, and goes on doing so through training."""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="layer-keeps-activations",
    family="variables",
    needs=("tensorflow", "keras"),
    grows=("live_tensors", "native_heap"),
    rate="one activation tensor a step: 2.6 KB here, often megabytes",
    diagnosis="layer-keeps-activations",
    symptom="A model with a debugging layer runs out of memory; without the layer it is flat.",
    cause="self.seen is an attribute of a layer that lives as long as the model, and every call "
    "appends to it.",
    remedy="Overwrite one attribute (self.last = outputs), or keep summary numbers; build a "
    "second model with the layer's output for the plot.",
    reports=(
        "tensorflow/tensorflow#33441",
        "tensorflow/tensorflow#34827",
        "keras-team/keras#19058",
    ),
    seen_on="Keras 2 and 3",
    leaks_on={"keras": ">=3"},
)


class KeepsAll(keras.layers.Dense):
    """Remembers every output."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.seen = []

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Dense, with a memory."""
        self.seen.append(super().call(inputs))
        return self.seen[-1]


class KeepsLast(keras.layers.Dense):
    """Remembers the last output."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Dense, with a short memory."""
        self.last = super().call(inputs)
        return self.last


def leaky() -> Step:
    """Keep every activation."""
    return _inference(KeepsAll(64, kernel_initializer="ones"))


def corrected() -> Step:
    """Keep the last activation."""
    return _inference(KeepsLast(64, kernel_initializer="ones"))


def _inference(layer: keras.layers.Layer) -> Step:
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def step(i: int) -> float:
        return float(tf.reduce_mean(layer(features)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

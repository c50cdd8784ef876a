"""A layer that adds a loss in call() is used in a hand-written loop that never clears the losses.

Keras 2 collected one tensor for each call in ``layer.losses``. Keras 3 clears them when a layer
is called from outside, so this one is flat there, and watches that it stays so.
"""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="add-loss",
    family="variables",
    needs=("tensorflow", "keras"),
    grows=("live_tensors", "native_heap"),
    rate="one tensor a step, and each step adds up one more",
    diagnosis="add-loss",
    symptom="A custom loop over a regularised layer slows down and fills memory; fit() doesn't.",
    cause="add_loss() appends to a list on the layer; in old versions only fit() emptied it.",
    remedy="Upgrade to Keras 3, or return the loss from call() and add it up in the step.",
    reports=("tensorflow/tensorflow#20062", "tensorflow/probability#127"),
    seen_on="TensorFlow 1.9 and 1.10 eager",
    leaks_on={"keras": "<3"},
)


class AddsLoss(keras.layers.Layer):
    """Punishes large activations through the layer's list of losses."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Pass the input on."""
        self.add_loss(tf.reduce_mean(tf.square(inputs)))
        return inputs


def leaky() -> Step:
    """Leave the loss on the layer."""
    layer = AddsLoss()
    features = tf.random.stateless_normal([8, 16], seed=[0, 1])

    def step(i: int) -> float:
        layer(features)
        return float(layer.losses[-1])

    return step


def corrected() -> Step:
    """Compute the loss in the step."""
    features = tf.random.stateless_normal([8, 16], seed=[0, 1])

    def step(i: int) -> float:
        return float(tf.reduce_mean(tf.square(features)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

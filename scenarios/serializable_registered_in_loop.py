"""A layer class is defined and registered inside the function that builds the model."""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="serializable-registered-in-loop",
    family="registries",
    needs=("tensorflow", "keras"),
    grows=("live_objects", "python_heap"),
    rate="one class a step: some 4 KB and 7 objects",
    diagnosis="serializable-registered-in-loop",
    symptom="Each trial of a search leaves a class behind; gc.get_objects() is full of types of "
    "one name.",
    cause="register_keras_serializable() notes the class in a global table keyed by the class, "
    "and a class made in a function is a new one each time.",
    remedy="Define and register layers at the top of a module.",
    reports=("keras-team/keras#19058", "keras-team/keras#6037"),
    seen_on="Keras 3.15",
    leaks_on={"keras": ">=3"},
)


@keras.saving.register_keras_serializable("leakkit")
class Halve(keras.layers.Layer):
    """Halves its input."""

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Half of the input."""
        return inputs / 2


def leaky() -> Step:
    """Define the layer where it is used."""
    features = tf.ones([4])

    def step(i: int) -> float:
        @keras.saving.register_keras_serializable("leakkit")
        class Halve(keras.layers.Layer):
            def call(self, inputs: tf.Tensor) -> tf.Tensor:
                return inputs / 2

        return float(tf.reduce_sum(Halve(name="halve").call(features)))

    return step


def corrected() -> Step:
    """Use the one of the module."""
    features = tf.ones([4])

    def step(i: int) -> float:
        return float(tf.reduce_sum(Halve(name="halve").call(features)))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

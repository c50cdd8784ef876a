"""A bound method passed to a compiled step is a new object on every access, and retraces.

``model.loss is model.loss`` is False: Python makes a new bound method each time it is looked up.
A tf.function that takes it as an argument sees a new object, and traces again.
"""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="retrace-bound-method",
    family="tracing",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph a step: some 250 KB and 250 objects",
    diagnosis="retrace-bound-method",
    symptom="A generic train(loss_function, batch) retraces on every call; the same call with a "
    "plain function does not.",
    cause="Each look-up of an object's method makes a new bound method, and a tf.function tells "
    "objects apart by identity.",
    remedy="Look the method up once, loss = model.loss, and pass that one; or close over it.",
    reports=("tensorflow/tensorflow#31175",),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


class Regression(tf.Module):
    """A linear model with its loss as a method."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable(tf.zeros([4, 1]))

    def loss(self, features: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Mean squared error."""
        return tf.reduce_mean(tf.square(features @ self.weights - target))


def leaky() -> Step:
    """Look the method up on every step."""
    model = Regression()
    train = _training(model.weights)

    def step(i: int) -> float:
        return float(train(model.loss))

    return step


def corrected() -> Step:
    """Look the method up once."""
    model = Regression()
    train = _training(model.weights)
    loss = model.loss

    def step(i: int) -> float:
        return float(train(loss))

    return step


def _training(weights: tf.Variable) -> tf.types.experimental.PolymorphicFunction:
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)

    @tf.function
    def train(loss_function) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = loss_function(features, target)
        weights.assign_sub(0.05 * tape.gradient(loss, weights))
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""``@tf.function`` stands inside the training step, so every step makes and traces a new one.

A plain function made this way is at least freed again. One that applies a Keras optimizer is
not: its trace registers a gradient in a global registry, which holds the graph for ever.
"""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="function-in-step",
    family="tracing",
    needs=("tensorflow", "keras"),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph a step: some 125 KB and 310 objects",
    diagnosis="function-in-step",
    symptom="Decorating the step with @tf.function made it slower, and now it leaks too.",
    cause="A tf.function caches graphs, but this cache is thrown away on every step; what its "
    "trace registered globally (custom gradients) stays and keeps the graph alive.",
    remedy="Decorate outside the loop: make the compiled function once and call it.",
    reports=(
        "tensorflow/tensorflow#62854",
        "tensorflow/tensorflow#50379",
        "tensorflow/tensorflow#80895",
    ),
    seen_on="TensorFlow 2.1 to 2.21; without an optimizer in it, the memory is freed in 2.21 "
    "and only the time is lost",
    leaks_on={"tensorflow": ">=2.1", "keras": ">=3"},
)


def leaky() -> Step:
    """Compile in the loop."""
    train = _training()

    def step(i: int) -> float:
        return float(tf.function(lambda: train())())

    return step


def corrected() -> Step:
    """Compile once."""
    train = tf.function(_training())

    def step(i: int) -> float:
        return float(train())

    return step


def _training():
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.Variable(tf.zeros([4, 1]))
    optimizer = keras.optimizers.SGD(0.05)
    optimizer.build([weights])

    def train() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - target))
        optimizer.apply([tape.gradient(loss, weights)], [weights])
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

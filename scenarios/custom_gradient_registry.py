"""Each trace of a ``tf.custom_gradient`` registers its gradient under a new name, for ever."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="custom-gradient-registry",
    family="registries",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap", "live_objects"),
    rate="one registered gradient and the graph that it holds a step: some 68 KB, 180 objects",
    diagnosis="custom-gradient-registry",
    symptom="Recompiled functions are deleted, collected, and memory climbs all the same.",
    cause="In a graph, a custom gradient is stored in a global registry without removal, as a "
    "closure over the forward pass's tensors, which hold their graph.",
    remedy="Trace such functions once. Where they must be built anew, use a process for each.",
    reports=(
        "tensorflow/tensorflow#97697",
        "tensorflow/tensorflow#80895",
        "tensorflow/tensorflow#27492",
    ),
    seen_on="TensorFlow 1.13 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """Compile anew, e.g. for each fold."""
    features = tf.random.stateless_normal([8], seed=[0, 1])

    def step(i: int) -> float:
        return float(tf.reduce_sum(_compiled()(features)))

    return step


def corrected() -> Step:
    """Compile once."""
    features = tf.random.stateless_normal([8], seed=[0, 1])
    gradient = _compiled()

    def step(i: int) -> float:
        return float(tf.reduce_sum(gradient(features)))

    return step


@tf.custom_gradient
def _reversed_gradient(inputs: tf.Tensor):
    return tf.identity(inputs), lambda upstream: -upstream


def _compiled() -> tf.types.experimental.PolymorphicFunction:
    @tf.function
    def gradient(features: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(features)
            loss = tf.reduce_sum(tf.square(_reversed_gradient(features)))
        return tape.gradient(loss, features)

    return gradient


if __name__ == "__main__":
    raise SystemExit(main(__file__))

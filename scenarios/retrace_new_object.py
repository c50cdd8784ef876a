"""A fresh settings object passed to a compiled step traces a graph for each object.

A tf.function knows Python objects by identity. An equal object made anew is another object, so
it is another signature, another trace, another graph that is kept.
"""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="retrace-new-object",
    family="tracing",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph a step: some 400 KB and 370 objects",
    diagnosis="retrace-new-object",
    symptom="Every step is as slow as the first, though shapes and dtypes never change.",
    cause="A tf.function tells objects apart by identity: a new object is a new signature.",
    remedy="Make the object once and keep its changing parts in tf.Variables, or pass its "
    "tensors instead of the object.",
    reports=("instadeepai/Mava#346",),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


class Clip:
    """How strongly gradients are clipped."""

    def __init__(self, norm: float) -> None:
        self.norm = tf.Variable(np.float32(norm), name="norm")


def leaky() -> Step:
    """Make the clipping rule anew for each step."""
    train = _training()
    rules: list[Clip] = [Clip(1.0)]

    def step(i: int) -> float:
        rules[0] = Clip(1.0 / (1 + i))
        return float(train(rules[0]))

    return step


def corrected() -> Step:
    """Keep one rule and change its number."""
    train = _training()
    rule = Clip(1.0)

    def step(i: int) -> float:
        rule.norm.assign(np.float32(1.0 / (1 + i)))
        return float(train(rule))

    return step


def _training() -> tf.types.experimental.PolymorphicFunction:
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.Variable(tf.zeros([4, 1]))

    @tf.function
    def train(rule: Clip) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - target))
        weights.assign_sub(tf.clip_by_norm(tape.gradient(loss, weights), rule.norm))
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

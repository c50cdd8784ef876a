"""Gradients are accumulated over micro-batches, and the list is never emptied after the update."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="gradient-accumulation-never-reset",
    family="tensors",
    needs=("tensorflow",),
    grows=("live_tensors", "native_heap"),
    rate="one gradient a step: some 5 KB here, a copy of the model in real life",
    diagnosis="growing-list-of-tensors",
    symptom="Memory climbs since gradient accumulation was turned on; results are right.",
    cause="The update uses the last few gradients of a list to which every micro-batch appends.",
    remedy="Clear the list after the update, or add into one tf.Variable and set it to zero.",
    reports=("Lightning-AI/torchmetrics#1949",),
    seen_on="every framework",
    leaks_on={"tensorflow": ">=2.0"},
)

MICRO_BATCHES = 4


def leaky() -> Step:
    """Take the last gradients of an ever longer list."""
    gradient_of, weights = _model()
    gradients: list[tf.Tensor] = []

    def step(i: int) -> float:
        gradients.append(gradient_of(i % MICRO_BATCHES))
        if len(gradients) % MICRO_BATCHES == 0:
            weights.assign_sub(tf.add_n(gradients[-MICRO_BATCHES:]))
        return float(tf.reduce_sum(weights))

    return step


def corrected() -> Step:
    """Empty the list after each update."""
    gradient_of, weights = _model()
    gradients: list[tf.Tensor] = []

    def step(i: int) -> float:
        gradients.append(gradient_of(i % MICRO_BATCHES))
        if len(gradients) == MICRO_BATCHES:
            weights.assign_sub(tf.add_n(gradients))
            gradients.clear()
        return float(tf.reduce_sum(weights))

    return step


def _model():
    batches = tf.unstack(tf.random.stateless_normal([MICRO_BATCHES, 4, 1024], seed=[0, 1]))
    weights = tf.Variable(tf.ones([1024, 1]))
    rate = tf.constant(0.0005)

    def gradient_of(batch: int) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(batches[batch] @ weights))
        return rate * tape.gradient(loss, weights)

    return gradient_of, weights


if __name__ == "__main__":
    raise SystemExit(main(__file__))

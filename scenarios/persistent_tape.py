"""One persistent GradientTape stays open through the training and records every step.

A tape holds what it would need to differentiate: inputs and outputs of every operation since it
was opened. A persistent one lets go of nothing.
"""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="persistent-tape",
    family="tensors",
    needs=("tensorflow",),
    grows=("live_objects", "native_heap", "python_heap"),
    rate="every intermediate tensor of a step: some 11 KB",
    diagnosis="persistent-tape",
    symptom="Memory climbs by the activations of a step on each step, in eager code with a "
    "running total of the loss.",
    cause="The tape was opened once, outside the loop, so the total's whole history is recorded.",
    remedy="Open a tape for each step and let it close: with tf.GradientTape() as tape, inside "
    "the loop. Add up numbers, not recorded tensors.",
    reports=("google/brax#152", "tensorflow/tensorflow#32276", "tensorflow/tensorflow#45016"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """One tape for the whole training."""
    loss_of, weights = _model()
    tape = tf.GradientTape(persistent=True)
    tape.__enter__()
    total = [tf.zeros([])]

    def step(i: int) -> float:
        total[0] += loss_of(weights)
        with tape.stop_recording():
            return float(total[0])

    return step


def corrected() -> Step:
    """A tape for each step, a number for the total."""
    loss_of, weights = _model()
    total = [0.0]

    def step(i: int) -> float:
        with tf.GradientTape():
            loss = loss_of(weights)
        total[0] += float(loss)
        return total[0]

    return step


def _model():
    features = tf.random.stateless_normal([32, 64], seed=[0, 1])
    weights = tf.Variable(tf.ones([64, 16]) / 64)

    def loss_of(weights: tf.Variable) -> tf.Tensor:
        return tf.reduce_mean(tf.square(tf.tanh(features @ weights)))

    return loss_of, weights


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""A history keeps the tape of every step, so that gradients can be looked at later.

A tape holds all that it needs to differentiate: the activations of its step. Kept by the
hundred, tapes are the memory of a training that never lets go of a batch.
"""

import collections

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="history-with-gradients",
    family="tensors",
    needs=("tensorflow",),
    grows=("live_objects", "native_heap", "python_heap"),
    rate="one tape and the activations of a step: some 9 KB here, megabytes in real life",
    diagnosis="history-with-gradients",
    symptom="Memory climbs by the activations of a step on every step, in a policy-gradient or a "
    "debugging loop that differentiates at the end of the episode.",
    cause="history.append((loss, tape)): a tape holds every tensor of its step, and the history "
    "outlives the episode.",
    remedy="Differentiate at once and keep numbers: float(tf.norm(gradient)), in a bounded window.",
    reports=("google/brax#152", "tensorflow/tensorflow#32276"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)

WINDOW = 4


def leaky() -> Step:
    """Keep loss and tape of every step, and differentiate the last few when asked."""
    record, weights = _model()
    history: list[tuple[tf.Tensor, tf.GradientTape]] = []

    def step(i: int) -> float:
        history.append(record())
        recent = history[-WINDOW:]
        return sum(float(tf.norm(tape.gradient(loss, weights))) for loss, tape in recent)

    return step


def corrected() -> Step:
    """Keep the norms of the last few gradients."""
    record, weights = _model()
    norms: collections.deque[float] = collections.deque(maxlen=WINDOW)

    def step(i: int) -> float:
        loss, tape = record()
        norms.append(float(tf.norm(tape.gradient(loss, weights))))
        return sum(norms)

    return step


def _model():
    features = tf.random.stateless_normal([16, 32], seed=[0, 1])
    weights = tf.Variable(tf.ones([32, 16]) / 32)

    def record() -> tuple[tf.Tensor, tf.GradientTape]:
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_mean(tf.square(tf.tanh(features @ weights)))
        return loss, tape

    return record, weights


if __name__ == "__main__":
    raise SystemExit(main(__file__))

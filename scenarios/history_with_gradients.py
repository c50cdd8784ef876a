"""A history for the plots keeps the gradients themselves, for every step."""

import collections

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="history-with-gradients",
    family="tensors",
    needs=("tensorflow",),
    grows=("live_tensors", "native_heap", "python_heap"),
    rate="two tensors and a dict a step: some 6 KB here, a copy of the model in real life",
    diagnosis="history-with-gradients",
    symptom="Memory climbs by the size of the model on every step; out of memory within minutes.",
    cause="history.append({'loss': ..., 'gradient': ...}) keeps the tensors where their norms "
    "were wanted.",
    remedy="Keep numbers: float(loss), float(tf.norm(gradient)), and a bounded window of them.",
    reports=("tensorflow/tensorflow#34876", "google/brax#152"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)

WINDOW = 8


def leaky() -> Step:
    """Keep loss and gradient of every step."""
    train = _training()
    history: list[dict[str, tf.Tensor]] = []

    def step(i: int) -> float:
        loss, gradient = train()
        history.append({"loss": loss, "gradient": gradient})
        return sum(float(tf.norm(kept["gradient"])) for kept in history[-WINDOW:])

    return step


def corrected() -> Step:
    """Keep the norms of the last few."""
    train = _training()
    norms: collections.deque[float] = collections.deque(maxlen=WINDOW)

    def step(i: int) -> float:
        _, gradient = train()
        norms.append(float(tf.norm(gradient)))
        return sum(norms)

    return step


def _training() -> tf.types.experimental.PolymorphicFunction:
    features = tf.random.stateless_normal([16, 1024], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.Variable(tf.zeros([1024, 1]))

    @tf.function
    def train() -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - target))
        gradient = tape.gradient(loss, weights)
        weights.assign_sub(0.001 * gradient)
        return loss, gradient

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

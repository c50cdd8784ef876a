"""All predictions so far are concatenated on every step to compute a running mean.

Memory grows with the number of steps, and so does the time of each: copying the history makes
the whole run quadratic.
"""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="concatenated-history",
    family="tensors",
    needs=("tensorflow",),
    grows=("live_tensor_bytes", "latency"),
    rate="128 KB a step, and each step copies all of it once more",
    diagnosis="concatenated-history",
    symptom="Evaluation gets slower and slower and then runs out of memory near its end.",
    cause="history = tf.concat([history, batch], 0) copies everything on every step.",
    remedy="Keep a running sum and count. Where all values are needed, collect in a list and "
    "concatenate once.",
    reports=("huggingface/transformers#9746",),
    seen_on="every framework",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """Concatenate, and take the mean of everything."""
    predict = _model()
    history = [tf.zeros([0, 512])]

    def step(i: int) -> float:
        history[0] = tf.concat([history[0], predict()], axis=0)
        return float(tf.reduce_mean(history[0]))

    return step


def corrected() -> Step:
    """A running sum and a count."""
    predict = _model()
    total, count = [0.0], [0]

    def step(i: int) -> float:
        predictions = predict()
        total[0] += float(tf.reduce_sum(predictions))
        count[0] += predictions.shape.num_elements()
        return total[0] / count[0]

    return step


def _model() -> tf.types.experimental.PolymorphicFunction:
    features = tf.random.stateless_normal([64, 4], seed=[0, 1])
    weights = tf.random.stateless_uniform([4, 512], seed=[0, 2])
    return tf.function(lambda: tf.sigmoid(features @ weights))


if __name__ == "__main__":
    raise SystemExit(main(__file__))

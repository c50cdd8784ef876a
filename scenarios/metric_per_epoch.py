"""A new metric object is made for every epoch, and each leaves the kernels of its variables."""

import keras
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="metric-per-epoch",
    family="variables",
    needs=("tensorflow", "keras"),
    grows=("native_heap",),
    rate="some 36 KB native for each variable of the metric: 145 KB a step here",
    diagnosis="metric-per-epoch",
    symptom="Evaluation leaks: memory climbs with the number of epochs, not with their length.",
    cause="A metric keeps its state in auto-numbered variables; each new name is a kernel that "
    "the eager runtime never drops.",
    remedy="Make the metric once and call reset_state() at the start of each epoch.",
    reports=(
        "tensorflow/tensorflow#44756",
        "tensorflow/tensorflow#35044",
        "Lightning-AI/torchmetrics#1949",
    ),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"keras": ">=3", "tensorflow": ">=2.16"},
)


def leaky() -> Step:
    """A new metric for each epoch."""
    labels, scores = _predictions()

    def step(i: int) -> float:
        auc = keras.metrics.AUC(num_thresholds=20)
        auc.update_state(labels, scores)
        return float(auc.result())

    return step


def corrected() -> Step:
    """One metric, reset for each epoch."""
    labels, scores = _predictions()
    auc = keras.metrics.AUC(num_thresholds=20)

    def step(i: int) -> float:
        auc.reset_state()
        auc.update_state(labels, scores)
        return float(auc.result())

    return step


def _predictions() -> tuple[tf.Tensor, tf.Tensor]:
    logits = tf.random.stateless_normal([32], seed=[0, 1])
    return tf.cast(logits > 0.3, tf.float32), tf.sigmoid(logits)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

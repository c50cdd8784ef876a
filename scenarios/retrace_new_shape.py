"""Sequences of ever-new lengths trace one graph for each length.

Without a signature, a tf.function takes the exact shape of its tensors as part of what it is
compiled for. Text, audio and last batches come in many lengths, and each gets its own graph.
"""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="retrace-new-shape",
    family="tracing",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph a step for as long as lengths are new: some 120 KB and 140 objects",
    diagnosis="retrace-new-shape",
    symptom="The first epochs are slow and memory climbs; it eases when every length has been "
    "seen, which for long documents is never.",
    cause="Each new input shape is traced into a graph of its own; the graphs are kept.",
    remedy="Give the open dimension as None in input_signature (or reduce_retracing=True), or "
    "pad to a few fixed lengths.",
    reports=(
        "tensorflow/tensorflow#124972",
        "tensorflow/tensorflow#38561",
        "see--/natural-question-answering#7",
    ),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """Compile for whatever comes."""
    return _scoring(tf.function(_score))


def corrected() -> Step:
    """Compile once, for any length."""
    signature = [tf.TensorSpec([None, 4], tf.float32), tf.TensorSpec([4, 1], tf.float32)]
    return _scoring(tf.function(_score, input_signature=signature))


def _score(tokens: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    return tf.reduce_max(tf.nn.tanh(tokens @ weights))


def _scoring(score: tf.types.experimental.PolymorphicFunction) -> Step:
    corpus = np.random.default_rng(0).standard_normal((2560, 4)).astype(np.float32)
    weights = tf.ones([4, 1]) / np.float32(8)

    def step(i: int) -> float:
        length = 512 + i * 37 % 2039  # 2039 is prime: no length comes twice
        return float(score(corpus[:length], weights))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

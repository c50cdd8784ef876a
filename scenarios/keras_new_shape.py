"""A Keras model with jit_compile compiles every new sequence length anew.

Keras shares one graph among the lengths, but compiles it with XLA, and XLA makes one executable
for each length.
"""

import keras
import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="keras-new-shape",
    family="tracing",
    needs=("tensorflow", "keras"),
    grows=("native_heap",),
    rate="one executable a step: some 270 KB native",
    diagnosis="keras-new-shape",
    symptom="The first epoch of fit() crawls and memory climbs with each new length.",
    cause="Keras 3 traces open dimensions once, but XLA compiles the graph for each shape and "
    "keeps each executable. Without jit_compile only some 12 small objects a shape remain, in "
    "a table of at most 1,024.",
    remedy="Pad batches to a few fixed lengths, or compile(jit_compile=False).",
    reports=("tensorflow/tensorflow#38561", "tensorflow/tensorflow#81896"),
    seen_on="Keras 3.15 on TensorFlow 2.21; TensorFlow 2.1 and 2.2 retraced instead",
    leaks_on={"keras": ">=3", "tensorflow": ">=2.16"},
)


def leaky() -> Step:
    """Predict each sentence at its own length."""
    model, corpus = _model()

    def step(i: int) -> float:
        length = _length(i)
        return float(model.predict_on_batch(corpus[:, :length])[0, 0])

    return step


def corrected() -> Step:
    """Pad."""
    model, corpus = _model()
    padded = np.zeros_like(corpus)

    def step(i: int) -> float:
        length = _length(i)
        padded[:, :length] = corpus[:, :length]
        padded[:, length:] = 0
        return float(model.predict_on_batch(padded)[0, 0])

    return step


def _length(i: int) -> int:
    return 8 + i * 37 % 2039  # 2039 is prime: no length comes twice


def _model():
    keras.utils.set_random_seed(0)
    words = keras.Input((None, 4))
    scores = keras.layers.Dense(1, activation="tanh", use_bias=False)(words)
    model = keras.Model(words, keras.ops.max(scores, axis=1))
    model.compile("sgd", "mse", jit_compile=True)
    return model, np.random.default_rng(0).standard_normal((1, 2048, 4)).astype(np.float32)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

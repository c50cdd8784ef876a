"""A jit-compiled function is compiled anew for every shape, also where the graph is shared.

XLA knows no open dimensions. An input_signature with None saves the trace but not the
compilation: each length gets an executable of its own, and the cache has no limit.
"""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="xla-recompile",
    family="tracing",
    needs=("tensorflow",),
    grows=("native_heap",),
    rate="one executable a step: some 250 KB native, no Python object",
    diagnosis="xla-recompile",
    symptom="Steps of 40 ms and more whenever a new length comes; memory climbs though neither "
    "graphs nor Python objects do.",
    cause="The XLA executable cache keeps one executable per shape and never lets go of one.",
    remedy="Pad to a few fixed lengths (buckets) and mask the padding.",
    reports=(
        "tensorflow/tensorflow#64170",
        "tensorflow/tensorflow#81896",
        "tensorflow/tensorflow#52645",
    ),
    seen_on="TensorFlow 2.7 to 2.21",
    leaks_on={"tensorflow": ">=2.7"},
)

BUCKET = 2048


def leaky() -> Step:
    """Compile for each length."""
    energy, signal = _model()

    def step(i: int) -> float:
        return float(energy(signal[: _length(i)]))

    return step


def corrected() -> Step:
    """Pad with zeros, which add nothing to the energy, and compile once."""
    energy, signal = _model()
    padded = np.zeros(BUCKET, np.float32)

    def step(i: int) -> float:
        length = _length(i)
        padded[:length] = signal[:length]
        padded[length:] = 0
        return float(energy(padded))

    return step


def _length(i: int) -> int:
    return 8 + i * 37 % 2039  # 2039 is prime: no length comes twice


def _model() -> tuple[tf.types.experimental.PolymorphicFunction, np.ndarray]:
    signature = [tf.TensorSpec([None], tf.float32)]

    @tf.function(jit_compile=True, input_signature=signature)
    def energy(signal: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(tf.tanh(signal) * signal)

    return energy, np.random.default_rng(0).standard_normal(BUCKET).astype(np.float32)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

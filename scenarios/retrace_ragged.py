"""Ragged batches carry their number of rows in the type, so each new batch size is a new graph."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="retrace-ragged",
    family="tracing",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one large graph a step: some 1.4 MB and 1,050 objects",
    diagnosis="retrace-ragged",
    symptom="Steps on ragged input stay at 100 ms and memory climbs by a megabyte each.",
    cause="The type of a RaggedTensor has a static number of rows; each number is traced anew, "
    "and ragged operations make large graphs.",
    remedy="Declare the input as tf.RaggedTensorSpec([None, None]), or make batches of one size "
    "(drop_remainder=True).",
    reports=("tensorflow/tensorflow#38561",),
    seen_on="TensorFlow 2.1 to 2.21",
    leaks_on={"tensorflow": ">=2.1"},
)


def leaky() -> Step:
    """Compile for whatever comes."""
    return _pooling(tf.function(_pool))


def corrected() -> Step:
    """Compile once, for any number of rows."""
    any_rows = tf.RaggedTensorSpec([None, None], tf.float32, row_splits_dtype=tf.int64)
    return _pooling(tf.function(_pool, input_signature=[any_rows]))


def _pool(sentences: tf.RaggedTensor) -> tf.Tensor:
    return tf.reduce_sum(tf.reduce_mean(sentences, axis=1))


def _pooling(pool: tf.types.experimental.PolymorphicFunction) -> Step:
    words = np.random.default_rng(0).standard_normal(4096).astype(np.float32)

    def step(i: int) -> float:
        rows = 512 + i * 37 % 1021  # 1021 is prime: no batch size comes twice
        ends = np.arange(rows + 1, dtype=np.int64) * 2
        batch = tf.RaggedTensor.from_row_splits(words[: 2 * rows], ends, validate=False)
        return float(pool(batch))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

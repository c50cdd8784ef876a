"""A summary writer is opened for every evaluation and never closed."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="summary-writer-not-closed",
    family="logs and disk",
    needs=("tensorflow",),
    grows=("fds", "native_heap", "files"),
    rate="one open file a step, with its buffers: some 6 KB native",
    diagnosis="summary-writer-not-closed",
    symptom="'Too many open files' after some hundred evaluations; TensorBoard lists as many runs.",
    cause="create_file_writer() opens an event file; it is closed by close(), not by forgetting "
    "about it while a list or a trainer still holds it.",
    remedy="One writer for the run; or close it: with contextlib.closing(writer), "
    "writer.close() at the end of the evaluation.",
    reports=(
        "keras-team/keras#4533",
        "keras-team/keras#6774",
        "tensorflow/tensorflow#20606",
        "tensorflow/tensorflow#26684",
    ),
    seen_on="TensorFlow 0.11 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
    accepts={"file_bytes": "256 B"},  # the log itself: one line for each evaluation
)


def leaky() -> Step:
    """A writer for each evaluation."""
    evaluate = _evaluation()
    folder = scratch()
    writers = []

    def step(i: int) -> float:
        writers.append(tf.summary.create_file_writer(str(folder / f"evaluation-{i}")))
        return evaluate(writers[-1], i)

    return step


def corrected() -> Step:
    """One writer for the run."""
    evaluate = _evaluation()
    writer = tf.summary.create_file_writer(str(scratch()))

    def step(i: int) -> float:
        return evaluate(writer, i)

    return step


def _evaluation():
    features = tf.random.stateless_normal([16, 4], seed=[0, 1])
    weights = tf.ones([4, 1])

    def evaluate(writer: tf.summary.SummaryWriter, i: int) -> float:
        loss = tf.reduce_mean(tf.square(features @ weights))
        with writer.as_default():
            tf.summary.write("loss", loss, step=tf.constant(np.int64(i)))
        writer.flush()
        return float(loss)

    return evaluate


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""TF1 style: each evaluation opens a session, and a list keeps them all open."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="tf1-session-not-closed",
    family="tf1",
    needs=("tensorflow",),
    grows=("native_heap", "live_objects"),
    rate="one session a step, with its copy of the graph: some 120 KB native here",
    diagnosis="tf1-session-not-closed",
    symptom="A service that evaluates now and then grows by megabytes each time, on a GPU by "
    "what the session's variables hold.",
    cause="A session owns an executor, a copy of the graph and its variables until close() is "
    "called or the object is collected; a predictor that is kept keeps it.",
    remedy="with tf.compat.v1.Session() as session: around the evaluation, or one session for "
    "the process.",
    reports=(
        "tensorflow/tensorflow#13821",
        "tensorflow/tensorflow#54086",
        "tensorflow/tensorflow#57601",
    ),
    seen_on="TensorFlow 1.4 to 2.21 (tf.compat.v1)",
    leaks_on={"tensorflow": ">=1"},
)

v1 = tf.compat.v1


def leaky() -> Step:
    """A session for each evaluation."""
    graph, score = _graph()
    sessions = []

    def step(i: int) -> float:
        sessions.append(v1.Session(graph=graph))
        return float(sessions[-1].run(score))

    return step


def corrected() -> Step:
    """One session."""
    graph, score = _graph()
    session = v1.Session(graph=graph)

    def step(i: int) -> float:
        return float(session.run(score))

    return step


def _graph() -> tuple[tf.Graph, tf.Tensor]:
    features = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    graph = v1.Graph()
    with graph.as_default():
        score = tf.reduce_mean(tf.square(tf.constant(features) @ tf.constant(features)))
    return graph, score


if __name__ == "__main__":
    raise SystemExit(main(__file__))

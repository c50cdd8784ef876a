"""TF1 style: the loop makes an operation for each new learning rate, in a graph that only grows."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="tf1-ops-in-loop",
    family="tf1",
    needs=("tensorflow",),
    grows=("native_heap", "live_objects", "python_heap"),
    rate="two operations a step, and a session that takes the larger graph: some 46 KB",
    diagnosis="tf1-ops-in-loop",
    symptom="session.run() gets slower and slower; the graph in TensorBoard is a long thread.",
    cause="tf.assign(...), tensor[i], tensor * 2 in the loop each add operations to the default "
    "graph, which never lets go of one; after each change the session extends its copy.",
    remedy="Build the graph once, feed values through placeholders, and call graph.finalize() "
    "before the loop: it turns this leak into an error.",
    reports=(
        "smallcorgi/Faster-RCNN_TF#16",
        "tensorflow/tensorflow#1439",
        "tensorflow/tensorflow#7127",
        "lorserker/ben#15",
    ),
    seen_on="TensorFlow 0.5 to 2.21 (tf.compat.v1)",
    leaks_on={"tensorflow": ">=1"},
)

v1 = tf.compat.v1


def leaky() -> Step:
    """Make an operation that assigns the new rate."""
    graph, rate, session = _graph()

    def step(i: int) -> float:
        with graph.as_default():
            return float(session.run(v1.assign(rate, 1.0 / (1 + i))))

    return step


def corrected() -> Step:
    """Feed the new rate to one operation."""
    graph, rate, session = _graph()
    with graph.as_default():
        value = v1.placeholder(tf.float32, [])
        assign = v1.assign(rate, value)
    graph.finalize()

    def step(i: int) -> float:
        return float(session.run(assign, {value: np.float32(1.0 / (1 + i))}))

    return step


def _graph() -> tuple[tf.Graph, tf.Variable, v1.Session]:
    graph = v1.Graph()
    with graph.as_default():
        rate = v1.get_variable("rate", [], use_resource=True)
        start = v1.global_variables_initializer()
        session = v1.Session(graph=graph)
    session.run(start)
    return graph, rate, session


if __name__ == "__main__":
    raise SystemExit(main(__file__))

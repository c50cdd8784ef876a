"""More inter-op threads than the machine has cores. Slow from the start, but flat.

Not every slow run leaks. This one must pass: threads get in each other's way, on every step to
the same degree.
"""

import contextlib

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="interop-oversubscription",
    family="threads and processes",
    needs=("tensorflow",),
    grows=(),
    rate="nothing grows: the threads are there from the first step on",
    symptom="CPU use is high, half of it in the kernel, and steps take longer than on a laptop.",
    cause="TF_NUM_INTEROP_THREADS (or a container that sees all of the host's cores) starts far "
    "more threads than may run.",
    remedy="Set inter- and intra-op threads to the cores that the process may use, e.g. "
    "len(os.sched_getaffinity(0)).",
    reports=("tensorflow/tensorflow#40042",),
    seen_on="TensorFlow 1 to 2.21",
)


def leaky() -> Step:
    """64 threads for the graph's branches."""
    return _training(threads=64)


def corrected() -> Step:
    """Two threads."""
    return _training(threads=2)


def _training(threads: int) -> Step:
    with contextlib.suppress(RuntimeError):  # once TensorFlow runs, its pool stays as it is
        tf.config.threading.set_inter_op_parallelism_threads(threads)
    branches = [tf.random.stateless_normal([16, 16], seed=[0, k]) for k in range(64)]

    @tf.function
    def train() -> tf.Tensor:
        return tf.add_n([tf.reduce_mean(tf.square(branch @ branch)) for branch in branches])

    def step(i: int) -> float:
        return float(train())

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

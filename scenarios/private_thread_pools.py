"""Each epoch opens a dataset with a thread pool of its own, and the iterator is kept."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="private-thread-pools",
    family="threads and processes",
    needs=("tensorflow",),
    grows=("threads", "native_heap"),
    rate="two threads and the pipeline's buffers a step",
    diagnosis="private-thread-pools",
    symptom="'Thread constructor failed: Resource temporarily unavailable' near 4,000 threads or "
    "the container's limit.",
    cause="private_threadpool_size gives each iterator its own pool; half-read iterators that "
    "something still holds keep their threads.",
    remedy="Let go of an iterator when the epoch ends, or keep one; leave the private pool out, "
    "so that iterators share the runtime's.",
    reports=(
        "tensorflow/tensorflow#37160",
        "tensorflow/tensorflow#15162",
        "tensorflow/tensorflow#76157",
    ),
    seen_on="TensorFlow 1.4 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """A new iterator for each epoch, and a list of them for the state of the input."""
    dataset = _dataset()
    kept = []

    def step(i: int) -> float:
        kept.append(iter(dataset))
        return float(tf.reduce_sum(next(kept[-1])))

    return step


def corrected() -> Step:
    """One iterator."""
    batches = iter(_dataset())

    def step(i: int) -> float:
        return float(tf.reduce_sum(next(batches)))

    return step


def _dataset() -> tf.data.Dataset:
    samples = tf.random.stateless_normal([8, 4], seed=[0, 1])
    dataset = tf.data.Dataset.from_tensors(samples).repeat()
    options = tf.data.Options()
    options.autotune.enabled = False  # its threads are never joined: the process would not end
    options.threading.private_threadpool_size = 2
    return dataset.with_options(options)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

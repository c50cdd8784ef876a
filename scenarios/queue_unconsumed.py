"""The step puts its metrics into a queue, and the thread that should read it has died."""

import queue
import threading

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="queue-unconsumed",
    family="threads and processes",
    grows=("python_heap", "native_heap"),
    rate="one item a step: 2 KB here",
    diagnosis="queue-unconsumed",
    symptom="Memory climbs after the first network error of the metrics server; nobody saw the "
    "traceback of a background thread.",
    cause="queue.Queue() has no bound, and a thread that raised takes nothing out any more.",
    remedy="A bounded queue, Queue(maxsize=...), with put_nowait() that drops and counts; a "
    "consumer that survives errors.",
    reports=("Lightning-AI/torchmetrics#1949", "tensorflow/tensorflow#35044"),
    seen_on="every Python",
)


def leaky() -> Step:
    """The consumer dies of its first error."""
    return _training(_upload_once)


def corrected() -> Step:
    """The consumer survives errors."""
    return _training(_upload_for_ever)


def _upload_once(metrics: queue.Queue) -> None:
    metrics.get()
    metrics.task_done()  # and then the server is gone, and so is this thread


def _upload_for_ever(metrics: queue.Queue) -> None:
    while True:
        metrics.get()
        metrics.task_done()


def _training(upload) -> Step:
    metrics: queue.Queue[np.ndarray] = queue.Queue()
    consumer = threading.Thread(target=upload, args=[metrics], daemon=True)
    consumer.start()
    features = np.random.default_rng(0).standard_normal((256, 4))
    weights = np.ones(4)

    def step(i: int) -> float:
        losses = (features @ weights) ** 2
        metrics.put(losses)
        if consumer.is_alive():
            metrics.join()  # so that each step ends with nothing under way
        return float(losses.mean())

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""Each phase adds a listener thread, and all listeners must take the same lock on every step."""

import threading

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="lock-contention-grows",
    family="threads and processes",
    grows=("threads", "latency"),
    rate="one thread a step, and one more hand-over of the lock in every later step",
    diagnosis="lock-contention-grows",
    symptom="Slower until restarted: step time climbs with the number of phases, CPU use too.",
    cause="Listeners of earlier phases are never removed; on each step all of them wake, queue "
    "for the lock and go back to sleep.",
    remedy="Stop a listener when its phase ends; one thread that serves all phases needs no lock.",
    reports=("tensorflow/tensorflow#37160", "tensorflow/tensorflow#35044"),
    seen_on="every Python",
)


class Listeners:
    """Threads that each note every loss under one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.done = threading.Semaphore(0)
        self.wake: list[threading.Semaphore] = []
        self.loss = 0.0
        self.seen = 0.0

    def add(self) -> None:
        """Start one more listener."""
        semaphore = threading.Semaphore(0)
        self.wake.append(semaphore)
        threading.Thread(target=self._listen, args=[semaphore], daemon=True).start()

    def publish(self, loss: float) -> float:
        """Wake all listeners and wait until the last has noted the loss."""
        self.loss = loss
        for semaphore in self.wake:
            semaphore.release()
        for _ in self.wake:
            self.done.acquire()
        return self.seen

    def _listen(self, wake: threading.Semaphore) -> None:
        while True:
            wake.acquire()
            with self.lock:
                self.seen = self.loss
            self.done.release()


def leaky() -> Step:
    """A listener for each phase."""
    train, listeners = _training(), Listeners()

    def step(i: int) -> float:
        listeners.add()
        return listeners.publish(train())

    return step


def corrected() -> Step:
    """One listener for all phases."""
    train, listeners = _training(), Listeners()
    listeners.add()

    def step(i: int) -> float:
        return listeners.publish(train())

    return step


def _training():
    features = np.random.default_rng(0).standard_normal((32, 4))
    weights = np.ones(4)

    def train() -> float:
        weights[:] *= 0.999
        return float(np.mean((features @ weights) ** 2))

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

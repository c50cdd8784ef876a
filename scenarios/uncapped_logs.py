"""A log handler keeps every record in memory for a report that only shows the last few.

A logging record is a heavy thing: two dozen attributes, the message, its arguments. A handler
that collects records for the end of the run keeps all of them.
"""

import collections
import logging
from collections.abc import MutableSequence

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="uncapped-logs",
    family="logs and disk",
    grows=("python_heap", "live_objects"),
    rate="one record a step: some 1 KB Python",
    diagnosis="uncapped-logs",
    symptom="A long run slowly fills memory; a heap dump is full of LogRecord objects.",
    cause="The handler's list has no bound. MemoryHandler without a target, pytest's caplog and "
    "home-made 'collect for the summary' handlers do the same.",
    remedy="Bound what is kept: collections.deque(maxlen=...) in the handler, or write the "
    "records to a rotated file.",
    reports=("PrimeIntellect-ai/prime-rl#1936", "tensorflow/tensorflow#80753"),
    seen_on="every Python",
)

SHOWN = 8


class Collector(logging.Handler):
    """Keeps records for the summary."""

    def __init__(self, records: MutableSequence[logging.LogRecord]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the record."""
        self.records.append(record)


def leaky() -> Step:
    """Collect into a list."""
    return _training(Collector([]))


def corrected() -> Step:
    """Collect into a ring of the few records that are shown."""
    return _training(Collector(collections.deque(maxlen=SHOWN)))


def _training(collector: Collector) -> Step:
    log = logging.Logger("training", logging.INFO)
    log.addHandler(collector)
    features = np.random.default_rng(0).standard_normal((32, 4))
    target = features.sum(axis=1)
    weights = np.zeros(4)

    def step(i: int) -> float:
        error = features @ weights - target
        weights[:] -= 0.05 * features.T @ error / len(target)
        log.info("step %6d: loss %.3e", i, np.mean(error**2))
        return float(collector.records[-1].args[1])

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

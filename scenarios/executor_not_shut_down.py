"""A thread pool is made for every evaluation and kept without being shut down."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="executor-not-shut-down",
    family="threads and processes",
    grows=("threads", "live_objects", "python_heap"),
    rate="one idle thread a step, and its pool: some 30 objects",
    diagnosis="executor-not-shut-down",
    symptom="The number of threads climbs with the epochs, until no more can be started.",
    cause="A ThreadPoolExecutor's workers wait for more work until shutdown(), or until the pool "
    "is collected, which a reference prevents.",
    remedy="with ThreadPoolExecutor() as pool: around the evaluation, or one pool for the run.",
    reports=("tensorflow/tensorflow#37160", "tensorflow/tensorflow#35044"),
    seen_on="every Python",
)


def leaky() -> Step:
    """A pool for each evaluation."""
    evaluate = _evaluation()
    pools = []

    def step(i: int) -> float:
        pools.append(ThreadPoolExecutor(max_workers=1))
        return evaluate(pools[-1])

    return step


def corrected() -> Step:
    """A pool for the run."""
    evaluate = _evaluation()
    pool = ThreadPoolExecutor(max_workers=1)

    def step(i: int) -> float:
        return evaluate(pool)

    return step


def _evaluation():
    features = np.random.default_rng(0).standard_normal((32, 4))
    weights = np.ones(4)

    def evaluate(pool: ThreadPoolExecutor) -> float:
        return float(sum(pool.map(np.sum, [features @ weights, weights])))

    return evaluate


if __name__ == "__main__":
    raise SystemExit(main(__file__))

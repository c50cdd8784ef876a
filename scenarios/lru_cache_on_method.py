"""``functools.cache`` on a method: the cache belongs to the class and keeps every instance."""

import functools

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="lru-cache-on-method",
    family="tensors",
    grows=("native_heap", "live_objects"),
    rate="one batch object and its array a step: some 4.5 KB",
    diagnosis="lru-cache-on-method",
    symptom="Batches, episodes or models stay alive for no visible reason; their only referrer is "
    "a functools wrapper.",
    cause="The cache's key contains self, so it holds each instance on which the method was "
    "called, for as long as the class lives. With lru_cache(maxsize=128) it stops at 128.",
    remedy="functools.cached_property, which keeps the value on the instance, or a cache keyed "
    "by what the result depends on.",
    reports=("getsentry/seer#2512", "pytest-dev/pytest#9148"),
    seen_on="every Python",
)


class Batch:
    """Samples, with statistics cached by the class."""

    def __init__(self, samples: np.ndarray) -> None:
        self.samples = samples

    @functools.cache  # noqa: B019 - this is the leak
    def mean(self) -> float:
        """The mean of the samples."""
        return float(self.samples.mean())


class Batch2:
    """Samples, with statistics cached by the instance."""

    def __init__(self, samples: np.ndarray) -> None:
        self.samples = samples

    @functools.cached_property
    def _mean(self) -> float:
        return float(self.samples.mean())

    def mean(self) -> float:
        """The mean of the samples."""
        return self._mean


def leaky() -> Step:
    """Cache on the class."""
    return _training(Batch)


def corrected() -> Step:
    """Cache on the instance."""
    return _training(Batch2)


def _training(batch_type: type[Batch] | type[Batch2]) -> Step:
    world = np.random.default_rng(0)

    def step(i: int) -> float:
        batch = batch_type(world.standard_normal(1024, np.float32))
        return batch.mean() + float(np.std(batch.samples - batch.mean()))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

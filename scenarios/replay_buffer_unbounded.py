"""An agent's replay buffer is a deque without a bound: it remembers every transition."""

import collections

import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="replay-buffer-unbounded",
    family="tensors",
    grows=("native_heap",),
    rate="one transition a step: 4.3 KB here",
    diagnosis="replay-buffer-unbounded",
    symptom="Memory climbs linearly with the number of environment steps, and checkpoints that "
    "include the buffer get larger and slower.",
    cause="Learning samples from the newest transitions, but nothing drops the old ones.",
    remedy="collections.deque(maxlen=capacity), or a preallocated ring of arrays.",
    reports=("golsun/deep-RL-trading#1", "PrimeIntellect-ai/prime-rl#1936"),
    seen_on="every framework",
)

CAPACITY = 16  # learning never looks further back


def leaky() -> Step:
    """Remember everything."""
    return _learning(collections.deque())


def corrected() -> Step:
    """Remember the newest transitions."""
    return _learning(collections.deque(maxlen=CAPACITY))


def _learning(replay: collections.deque) -> Step:
    world = np.random.default_rng(0)
    weights = np.zeros((4, 1024), np.float32)

    def step(i: int) -> float:
        observation = world.standard_normal(1024, np.float32)
        replay.append((observation, i % 4, 1.0))
        newest = min(len(replay), CAPACITY)
        observation, action, reward = replay[-1 - i * 7 % newest]
        weights[action] += 0.0005 * observation * (reward - observation @ weights[action])
        return float(weights.sum())

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""The constants of the judgement, one frozen table a kind, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

SETTLE = 0.25  # share of the run at its start that is not judged: warm-up ends there or never
BLOCKS = 12  # floors that a run is reduced to: enough for p = 2.5e-4, few enough to be long
FEWEST = 8  # values; below this nothing is said
ALPHA_GROWS = 2.5e-4  # one-sided, a series: four noisy series a run stay below 1 in 1,000
ALPHA_FLAT = 0.01  # one-sided, of the bound that "flat" states
LOOK_BACK = 80  # steps in which a series must not have risen to be called flat


@dataclass(frozen=True)
class LevelRule:
    """How a level (bytes held, things alive) is judged.

    Args:
        limit: default accepted growth, units per step.
        flat_below: a noisy level is flat when its upper bound is at most this, units per step.
        grain: a rise of a floor by at most this is none, units.
        least_rise: growth must add up to more than this, units.
        rising: share of the floors that must rise when floors never fall.
        rising_noisy: the same when they do.
    """

    limit: float
    flat_below: float
    grain: float
    least_rise: float
    rising: float
    rising_noisy: float


EXACT = LevelRule(
    limit=1.0,  # 1 MB in a million steps harms nobody; the smallest leak worth a name is 64 B in 25
    flat_below=16.0,  # one CPython allocation unit a step
    grain=0.0,  # every byte is counted
    least_rise=0.0,
    rising=0.6,  # a leak in every other block is one
    rising_noisy=0.8,  # floors that fall need more evidence
)
COUNTER = LevelRule(
    limit=0.005,  # one thing in 200 steps: rarer cannot be told from a late one-off in 480
    flat_below=0.02,
    grain=0.0,
    least_rise=0.0,
    rising=0.6,
    rising_noisy=0.8,
)
NOISY = LevelRule(
    limit=64.0,  # allocator bookkeeping creeps by a few tens of bytes a step for hundreds of steps
    flat_below=128.0,
    grain=0.0,
    least_rise=4096.0,  # one page
    rising=0.8,
    rising_noisy=0.8,
)


@dataclass(frozen=True)
class LatencyRule:
    """How a step time is judged, in log units (0.01 is 1 %)."""

    limit: float = 2e-4  # per step: 10 % in 500 steps
    least_rise: float = 0.03  # over the judged part: below this machines differ from themselves
    drift_share: float = 0.7  # of the control's own drift, for a step up to 1.7 times as sensitive


LATENCY = LatencyRule()

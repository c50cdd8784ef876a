"""The constants of the judgement, one frozen table a kind, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

SETTLE = 0.25  # share of the run at its start that is not judged: a warm-up ends there or never
BLOCKS = 12  # floors that a run is reduced to: enough for p = 2.5e-4, few enough to be long
FEWEST = 8  # values; below this nothing is said
FINEST = 4096  # values that a repetition is looked for in
FIRST_LOOK = 120  # steps; what clean code pays
SHORT = FIRST_LOOK  # values; below this growth must be steadier, for less of a fill can be seen
SHORT_RISE = 10  # times the least rise that a short run must show: its allocator is still filling
ALPHA_GROWS = 2.5e-4  # one-sided, a series: four noisy series a run stay below 1 in 1,000
ALPHA_FLAT = 0.01  # one-sided, of the bound that "flat" states
ALPHA_LEANS = 0.01  # one-sided; a last look whose order chance gives this often is not a trend
ALPHA_SIDE = 0.1  # one-sided; before or after a change of level so weak an order is a trend yet
CLEARLY = 0.5  # of a line's squared residuals: below it one change of level explains the points
LEAST_SIDE = 3  # points on each side of a change of level
LOOK_BACK = 80  # steps in which a series must not have risen to be called flat
ONE_OFF = 3.0  # times the median rise: what a single rise counts for at most
FADES = -2.5  # t of the rises below which they fade
FADES_SINCE_START = -1.0  # the same when the beginning grew faster than the judged part
OUTGREW = 3.0  # times the judged rate: a beginning that made more than all the rest
STEADY = 1.25  # largest over smallest rise of an end that is steady
WALK = 6.0  # t of the rises below which a random walk explains them; p = 7e-5 when independent
TOOTH = 5.0  # climbs that a drop undoes at least, to be the drop of a sawtooth
PAUSE = 4  # times the longest earlier pause: after that a rise has stopped (e^-4 for random ones)
FEWEST_BURSTS = 6  # evenly spaced ones; fewer are a few one-offs in a row
SMALL = 0.1  # of the largest rise: what is below it lies between the bursts and is none
FEWEST_TEETH = 4  # valleys; fewer have no scatter to speak of


@dataclass(frozen=True)
class LevelRule:
    """How a level (bytes held, things alive) is judged.

    Args:
        limit: default accepted growth, units per step.
        flat_below: a noisy level is flat when its upper bound is at most this, units per step.
        least_rise: growth must add up to more than this, units.
        rising: share of the floors that must rise when floors never fall.
        rising_noisy: the same when they do.
        lasting: share of the first third's growth at which the last third still lasts.
    """

    limit: float
    flat_below: float
    least_rise: float
    rising: float
    rising_noisy: float
    lasting: float


EXACT = LevelRule(
    limit=1.0,  # 1 MB in a million steps harms nobody; 64 B in 25 steps is above it
    flat_below=16.0,  # one allocation unit of CPython a step
    least_rise=0.0,  # every byte is counted
    rising=0.6,  # a leak in most blocks; every 37th step reaches 10 of 11 blocks at the cap
    rising_noisy=0.8,  # floors that fall need more evidence
    lasting=0.8,  # below it the rises are asked whether they fade
)
COUNTER = LevelRule(
    limit=0.005,  # one thing in 200 steps: rarer cannot be told from a one-off in 480
    flat_below=0.02,
    least_rise=0.0,
    rising=0.6,
    rising_noisy=0.8,
    lasting=0.8,
)
NOISY = LevelRule(
    limit=128.0,  # per-thread caches of malloc creep by tens of bytes a step for hundreds of steps
    flat_below=256.0,  # so that what lies between is "undecided", as it is
    least_rise=24576.0,  # what malloc keeps for its threads comes to tens of KiB before it is full
    rising=0.8,
    rising_noisy=0.8,
    lasting=0.4,  # a creep that fades beside a leak is no reason to miss the leak
)


@dataclass(frozen=True)
class LatencyRule:
    """How a step time is judged; in log units, of which 0.01 is 1 %.

    Args:
        limit: default accepted growth per step.
        least_rise: growth must add up to more than this over the judged part.
        drift_share: of the control's own drift that growth must exceed on top.
        settle: share of the run at its start that is not judged.
        blocks: medians that the run is reduced to, at most, to call it growing.
        points: the same, to ask for more steps: finer, for a lean needs no proof against noise
            that lasts from step to step.
        fewest_blocks: the same, at least.
        leans: chance of a false lean at which the first look asks for more steps.
        coarse: upper bound per step above which a series is too noisy, or short, to be flat.
        half: least share of the slope that each half of the run must show.
    """

    limit: float = 1e-4  # 10 % in 1,000 steps
    least_rise: float = 0.03  # below this a machine differs from itself
    drift_share: float = 0.7  # a step may be 1.7 times as sensitive to the machine as the control
    settle: float = 0.125  # less than for levels: every step carries information here
    blocks: int = 24  # exact rank bounds are cheap up to here
    points: int = 128  # all pairs of them are 8,128 slopes
    fewest_blocks: int = 8  # of fewer no order is beyond chance
    leans: float = 0.2  # lets 0.1 %/step under 10 % noise through to the next look 19 times in 20
    coarse: float = 0.01  # a short run that cannot exclude this has said nothing
    half: float = 0.25  # a single change of level shows in one half only


LATENCY = LatencyRule()

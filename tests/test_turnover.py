"""A heap that trades old blocks for new ones, and a leak beside it."""

import numpy as np
import pytest

from leakkit.judgement import Judgement, verdict
from leakkit.series import Kind, Quantity, Series
from leakkit.settings import Settings
from leakkit.trend import Verdict
from leakkit.turnover import turns_over

STEPS = 480


def one(name, values, kind, unit):
    return Series(Quantity(name, unit, kind, advisory=unit == "blocks"), np.cumsum(values))


def trace(added_bytes, made, old_freed):
    """What a trace tells of a heap, from arrays of shape ``(STEPS,)`` of what each step did."""
    return {
        "python_heap": one("python_heap", added_bytes, Kind.EXACT, "B"),
        "python_heap_blocks": one("python_heap_blocks", made - old_freed, Kind.COUNTER, "blocks"),
        "python_heap_freed": one("python_heap_freed", old_freed, Kind.COUNTER, "blocks"),
    }


def ring(items, sizes, steps=STEPS):
    """A full ring: each step puts an item in and drops one, which is old in the first turn."""
    sizes = np.broadcast_to(np.asarray(sizes, float), (steps,))
    dropped = np.concatenate([np.zeros(items), sizes])[:steps]
    old = (np.arange(steps) < items).astype(float)
    made = np.where(old, 1.0, 0.0)  # afterwards each new one takes the place of a known one
    return trace(sizes - dropped, made, old)


GROWING = 100.0 + 2 * np.arange(STEPS)
RANDOM = np.random.default_rng(4).integers(50, 900, STEPS).astype(float)


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (ring(3000, 96), True),
        (ring(3000, RANDOM), True),
        (ring(3000, GROWING), False),  # no more items, but each is bigger than the last
        (ring(100, GROWING[:120], 120), False),  # its bytes are exact from now on
        (ring(10, 96), False),  # turned many times: its bytes are known
    ],
)
def test_a_full_ring_turns_over_unless_its_items_grow(series, expected):
    assert turns_over("python_heap", series) is expected


def test_a_series_without_counts_is_not_judged_by_them():
    assert not turns_over("python_heap", {"python_heap": ring(3000, 96)["python_heap"]})


def judged(traced, watched_blocks):
    judgement = Judgement(Settings())
    blocks = {"python_blocks": one("python_blocks", watched_blocks, Kind.COUNTER, "blocks")}
    threads = {"threads": one("threads", np.zeros(STEPS), Kind.COUNTER, "threads")}
    judgement.look("watch", {**blocks, **threads}, last=True)
    judgement.look("trace", traced, last=True)
    return judgement.findings()


LEAK = (np.arange(STEPS) % 10 == 0).astype(float)
NOISE = np.random.default_rng(5).normal(0, 2e5, STEPS)
NOISY = np.diff(NOISE, prepend=0)  # a cache of items of all sizes


def beside(one_trace, leak):
    """The same with blocks of 64 bytes kept."""
    more = trace(64 * leak, leak, np.zeros(STEPS))
    return {n: Series(s.quantity, s.values + more[n].values) for n, s in one_trace.items()}


@pytest.mark.parametrize("traced", [ring(3000, 96), trace(NOISY, np.zeros(STEPS), np.zeros(STEPS))])
def test_a_leak_that_the_bytes_hide_is_decided_by_the_count_of_both_passes(traced):
    findings = judged(beside(traced, LEAK), LEAK)
    assert verdict(findings) is Verdict.GROWS
    assert findings["python_blocks"].decides
    assert findings["python_blocks"].trend.slope == pytest.approx(0.1)
    assert findings["python_heap"].trend.verdict is not Verdict.GROWS


@pytest.mark.parametrize(("in_trace", "in_watch"), [(0, 1), (1, 0), (0, 0)])
def test_the_count_of_one_pass_alone_decides_nothing(in_trace, in_watch):
    traced = trace(NOISY, in_trace * LEAK, np.zeros(STEPS))
    findings = judged(traced, in_watch * LEAK)
    assert verdict(findings) is not Verdict.GROWS
    assert not findings["python_blocks"].decides


def test_a_count_that_rises_asks_for_more_steps_before_it_decides():
    """What fills for two hundred steps and stops must be given the time to stop."""
    judgement = Judgement(Settings())
    short = slice(0, 120)
    rising = one("python_blocks", np.ones(120), Kind.COUNTER, "blocks")
    judgement.look("watch", {"python_blocks": rising}, last=False)
    full = beside(ring(3000, 96), LEAK)
    first = {n: Series(s.quantity, s.values[short]) for n, s in full.items()}
    assert judgement.look("trace", first, last=False) > 0
    assert not judgement.grows

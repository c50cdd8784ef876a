"""Properties of judge() over all series, not over those that somebody thought of."""

from __future__ import annotations

import math
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from leakkit.series import Kind, Quantity, Series
from leakkit.trend import Verdict, judge

KINDS = st.sampled_from(list(Kind))
LEVELS = st.sampled_from([Kind.EXACT, Kind.COUNTER, Kind.NOISY])
LENGTHS = st.integers(0, 300)
WHOLE = hnp.arrays(np.int64, LENGTHS, elements=st.integers(0, 1 << 30)).map(
    lambda a: a.astype(float)
)
STEPS = hnp.arrays(np.int64, LENGTHS, elements=st.integers(0, 4)).map(lambda a: 64.0 * np.cumsum(a))
LOOKS = st.booleans()


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        yield


def series(values, kind=Kind.EXACT, control=None):
    return Series(Quantity("x", "B", kind), np.asarray(values, dtype=float), control)


ANY = hnp.arrays(
    np.float64, LENGTHS, elements=st.floats(allow_nan=True, allow_infinity=True, width=64)
)


@given(ANY, KINDS, LOOKS, st.integers(1, 60), st.none() | st.floats(0, 1e6))
@settings(max_examples=400, deadline=None)
def test_any_floats_give_a_trend(values, kind, final, cadence, limit):
    control = values[::-1] if kind is Kind.LATENCY and len(values) % 2 else None
    trend = judge(series(values, kind, control), limit=limit, cadence=cadence, final=final)
    assert math.isfinite(trend.slope)
    assert trend.low <= trend.slope <= trend.high
    assert trend.steps <= len(values)
    assert trend.reason
    if final:
        assert trend.more_steps == 0
    else:
        assert trend.verdict is not Verdict.GROWS
        assert (trend.more_steps > 0) == (trend.verdict is Verdict.UNDECIDED)


@given(WHOLE | STEPS, LEVELS, LOOKS, st.integers(-(1 << 40), 1 << 40))
@settings(max_examples=300, deadline=None)
def test_a_constant_changes_nothing(values, kind, final, constant):
    before = judge(series(values, kind), final=final)
    assert judge(series(values + constant, kind), final=final) == before


@given(WHOLE | STEPS, st.sampled_from([Kind.EXACT, Kind.COUNTER]), LOOKS, st.integers(-20, 20))
@settings(max_examples=300, deadline=None)
def test_a_scale_scales_the_trend_when_the_limit_scales_too(values, kind, final, power):
    scale = 2.0**power
    before = judge(series(values, kind), limit=3.0, final=final)
    after = judge(series(scale * values, kind), limit=3.0 * scale, final=final)
    scaled = {k: scale * getattr(before, k) for k in ("slope", "low", "high", "total")}
    assert after == replace(before, **scaled)


@given(WHOLE | STEPS, KINDS, LOOKS, st.integers(0, 50))
@settings(max_examples=200, deadline=None)
def test_a_tail_that_was_never_written_is_ignored(values, kind, final, missing):
    tail = np.concatenate([values, np.full(missing, np.nan)])
    assert judge(series(tail, kind), final=final) == judge(series(values, kind), final=final)


@given(WHOLE | STEPS, LEVELS, st.floats(1, 1e7))
@settings(max_examples=400, deadline=None)
def test_a_leak_on_top_never_turns_growth_into_flat(values, kind, size):
    assume(judge(series(values, kind), final=True).verdict is Verdict.GROWS)
    leaking = values + round(size) * np.arange(len(values))
    assert judge(series(leaking, kind), final=True).verdict is not Verdict.FLAT


@given(st.integers(64, 4096), st.integers(15, 60), st.integers(0, 59), st.integers(64, 10**6))
@settings(max_examples=200, deadline=None)
def test_the_same_under_a_sawtooth(size, length, phase, more):
    at = np.arange(480.0)
    teeth = 64_000.0 * np.floor(1000 * ((at + phase) % length) / length) / 1000
    assert judge(series(teeth + size * at), final=True).verdict is Verdict.GROWS
    assert judge(series(teeth + (size + more) * at), final=True).verdict is not Verdict.FLAT


@given(st.integers(8, 500), LEVELS, LOOKS, st.floats(-1e300, 1e300))
@settings(max_examples=200, deadline=None)
def test_a_constant_series_is_flat(count, kind, final, level):
    trend = judge(series(np.full(count, level), kind), final=final)
    assert (trend.verdict, trend.slope, trend.total) == (Verdict.FLAT, 0.0, 0.0)


@given(hnp.arrays(np.bool_, LENGTHS), LEVELS, st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
@settings(max_examples=400, deadline=None)
def test_a_series_of_two_values_never_grows(pick, kind, one, other):
    trend = judge(series(np.where(pick, one, other), kind), final=True)
    assert trend.verdict is not Verdict.GROWS


@given(STEPS, LEVELS, LOOKS)
@settings(max_examples=200, deadline=None)
def test_what_falls_never_grows(values, kind, final):
    assert judge(series(-values, kind), final=final).verdict is not Verdict.GROWS


@pytest.mark.parametrize("kind", [Kind.EXACT, Kind.COUNTER, Kind.NOISY])
@pytest.mark.parametrize("shape", ["normal", "exponential", "whole", "heavy"])
def test_permuted_noise_does_not_grow(kind, shape):
    rng = np.random.default_rng(17)
    noise = {
        "normal": rng.normal(0, 5e4, 480),
        "exponential": rng.exponential(2e4, 480),
        "whole": rng.integers(0, 4, 480).astype(float),
        "heavy": rng.standard_t(1.5, 480) * 1e4,
    }[shape]
    grows = 0
    for _ in range(1000):
        rng.shuffle(noise)
        grows += judge(series(noise, kind), final=True).verdict is Verdict.GROWS
    assert grows == 0


def test_permuted_step_times_do_not_slow_down():
    rng = np.random.default_rng(19)
    step, control = np.exp(rng.normal(-4, 0.1, 480)), np.exp(rng.normal(-7, 0.1, 480))
    grows = 0
    for _ in range(1000):
        rng.shuffle(step)
        trend = judge(series(step, Kind.LATENCY, control), final=True)
        grows += trend.verdict is Verdict.GROWS
    assert grows == 0


@pytest.mark.parametrize("kind", list(Kind))
def test_a_million_values_take_less_than_200_megabytes(kind):
    rng = np.random.default_rng(23)
    values = 272.0 * np.arange(10**6) + rng.normal(1e6, 1e4, 10**6)
    control = rng.uniform(1, 2, 10**6) if kind is Kind.LATENCY else None
    tracemalloc.start()
    judge(series(values, kind, control), final=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6

"""From passes to findings: which pass is believed, what decides, what a bound settles."""

import numpy as np
import pytest

from leakkit.frameworks.memory import fragmented
from leakkit.judgement import Judgement, settle_bounded, verdict
from leakkit.series import Kind, Quantity, Series
from leakkit.settings import Settings
from leakkit.suspects import Suspect
from leakkit.trend import Verdict

STEPS = np.arange(480.0)
RISING, LEVEL = 64 * STEPS, np.zeros(480)


def series(name, values, kind=Kind.EXACT, **more):
    return {name: Series(Quantity(name, "B", kind, **more), np.asarray(values, float))}


def judged(settings=None, **passes):
    judgement = Judgement(settings or Settings())
    for name, found in passes.items():
        judgement.look(name, found, last=True)
    return judgement


def test_exact_growth_is_believed_before_noisy():
    found = judged(
        watch=series("native_heap", 70 * STEPS, Kind.NOISY), trace=series("native_heap", RISING)
    ).findings()["native_heap"]
    assert found.measured == "trace"
    assert found.trend.slope == 64


def test_growth_that_only_the_watch_pass_sees_counts():
    """memray does not see every allocator: a flat trace does not clear a heap that grows."""
    findings = judged(
        watch=series("native_heap", 300 * STEPS, Kind.NOISY), trace=series("native_heap", LEVEL)
    ).findings()
    assert findings["native_heap"].measured == "watch"
    assert verdict(findings) is Verdict.GROWS


def test_a_flat_trace_settles_an_undecided_watch():
    wandering = np.random.default_rng(0).normal(0, 1e5, 480).cumsum()
    findings = judged(
        watch=series("native_heap", wandering, Kind.NOISY), trace=series("native_heap", LEVEL)
    ).findings()
    assert findings["native_heap"].measured == "trace"
    assert verdict(findings) is Verdict.FLAT


def test_an_advisory_series_never_fails_a_run_unless_it_has_a_limit():
    rising = series("rss", 1e5 * STEPS, Kind.NOISY, advisory=True)
    others = series("threads", LEVEL, Kind.COUNTER)
    assert verdict(judged(watch={**rising, **others}).findings()) is Verdict.FLAT
    limited = judged(Settings(limits={"rss": "0 B"}), watch={**rising, **others})
    assert verdict(limited.findings()) is Verdict.GROWS


def test_a_limit_accepts_growth():
    accepted = judged(Settings(limits={"python_heap": "64 B"}), trace=series("python_heap", RISING))
    assert verdict(accepted.findings()) is Verdict.FLAT


def blocks(watch, trace):
    """Passes of a heap whose bytes say nothing, and whose blocks are counted in both."""
    wild = np.random.default_rng(2).normal(0, 1e6, 480)
    count = {"kind": Kind.COUNTER, "advisory": True}
    return {
        "watch": {**series("python_blocks", watch, **count), **series("threads", LEVEL)},
        "trace": {
            **series("python_heap", wild, Kind.NOISY),
            **series("python_heap_blocks", trace, **count),
        },
    }


@pytest.mark.parametrize(
    ("watch", "trace", "expected"),
    [
        (STEPS, STEPS, Verdict.GROWS),
        (STEPS, LEVEL, Verdict.FLAT),
        (LEVEL, STEPS, Verdict.FLAT),
    ],
)
def test_blocks_that_rise_in_both_passes_decide_and_in_one_do_not(watch, trace, expected):
    findings = judged(**blocks(watch, trace)).findings()
    assert (findings["python_blocks"].decides) is (expected is Verdict.GROWS)
    limited = {name: found for name, found in findings.items() if name != "python_heap"}
    assert verdict(limited) is expected


def test_bytes_that_are_allowed_allow_the_blocks_that_they_lie_in():
    allowed = Settings(limits={"python_heap": "1 KiB/step"})
    assert not judged(allowed, **blocks(STEPS, STEPS)).findings()["python_blocks"].decides


def test_an_undecided_latency_leaves_the_verdict_to_what_was_counted():
    noisy = np.exp(np.random.default_rng(1).normal(0, 1.5, 30))
    found = judged(
        watch={
            **series("latency", noisy, Kind.LATENCY),
            **series("threads", LEVEL[:30], Kind.COUNTER),
        }
    ).findings()
    assert found["latency"].trend.verdict is Verdict.UNDECIDED
    assert verdict(found) is Verdict.FLAT


@pytest.mark.parametrize(
    ("allocations", "expected"),
    [(1000 + 3 * STEPS, Verdict.GROWS), (1000 + LEVEL, Verdict.UNDECIDED)],
    ids=["more each step", "the same each step"],
)
def test_allocations_decide_a_latency_that_the_clock_cannot(allocations, expected):
    noise = np.exp(np.random.default_rng(0).normal(0, 0.8, 480))
    slower = Series(
        Quantity("latency", "s", Kind.LATENCY), np.exp(2e-3 * STEPS) * noise, np.ones(480)
    )
    counted = series("allocations", allocations, Kind.COUNTER, advisory=True, grain=5)
    judgement = judged(watch={"latency": slower}, trace=counted)
    found = judgement.findings()["latency"].trend
    assert found.low > 0
    assert found.verdict is expected
    assert judgement.grows is (expected is Verdict.GROWS)  # then its cause is looked for


def test_more_allocations_alone_are_no_slowdown():
    noise = np.exp(np.random.default_rng(1).normal(0, 0.1, 480))
    steady = Series(Quantity("latency", "s", Kind.LATENCY), noise, np.ones(480))
    counted = series("allocations", 1000 + 3 * STEPS, Kind.COUNTER, advisory=True, grain=5)
    findings = judged(watch={"latency": steady}, trace=counted).findings()
    assert findings["allocations"].trend.verdict is Verdict.GROWS
    assert findings["latency"].trend.verdict is Verdict.FLAT
    assert verdict(findings) is not Verdict.GROWS


@pytest.mark.parametrize(("allocated", "notes"), [(LEVEL, 1), (1e6 * STEPS, 0)])
def test_reserved_memory_that_grows_alone_is_fragmentation(allocated, notes):
    reserved = series("device_reserved:GPU:0", 2e6 * STEPS, Kind.NOISY, advisory=True)
    findings = judged(watch={**reserved, **series("device_memory:GPU:0", allocated)}).findings()
    said = fragmented(findings)
    assert len(said) == notes
    assert all(s.startswith("GPU:0 reserves +2,000,000 B a step") for s in said)


def test_nothing_measured_is_undecided():
    assert verdict({}) is Verdict.UNDECIDED


def test_a_decided_run_asks_for_no_more_steps():
    judgement = judged(watch=series("threads", STEPS, Kind.COUNTER))
    assert judgement.grows
    assert judgement.look("trace", series("python_heap", RISING[:60]), last=False) == 0


def test_what_a_framework_keeps_is_taken_out_of_the_whole():
    own = series("tf_own_bytes", 1000 * STEPS, advisory=True, part_of="native_heap")
    findings = judged(trace={**series("native_heap", 1000 * STEPS), **own}).findings()
    assert findings["native_heap"].trend.verdict is Verdict.FLAT
    assert findings["tf_own_bytes"].trend.verdict is Verdict.GROWS
    assert verdict(findings) is Verdict.FLAT


def test_a_users_growth_shows_beside_a_frameworks_own():
    own = series("tf_own_bytes", 1000 * STEPS, advisory=True, part_of="native_heap")
    findings = judged(trace={**series("native_heap", 1064 * STEPS), **own}).findings()
    assert findings["native_heap"].trend.slope == 64
    assert verdict(findings) is Verdict.GROWS


def container(bytes_per_step, bound, length):
    facts = {"bytes_per_step": bytes_per_step, "bound": bound, "length": length}
    return Suspect("container", "deque `memory`", "+1 tuple a step", 1.0, "items", facts=facts)


@pytest.mark.parametrize(
    ("suspect", "expected"),
    [
        (container(64, 10_000, 6_120), Verdict.FLAT),
        (container(64, None, 6_120), Verdict.GROWS),  # no bound in sight
        (container(10, 10_000, 6_120), Verdict.GROWS),  # something else grows too
        (container(64, 6_120, 6_120), Verdict.GROWS),  # full: this is not what grows
    ],
)
def test_a_container_with_a_visible_bound_fills(suspect, expected):
    findings = judged(trace=series("python_heap", RISING)).findings()
    settled, notes = settle_bounded(findings, [suspect])
    assert verdict(settled) is expected
    if expected is Verdict.FLAT:
        assert notes == ["deque `memory` fills to 10,000, now 6,120"]

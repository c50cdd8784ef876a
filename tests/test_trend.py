"""What judge() says about series whose truth is plain."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from leakkit.series import Kind, Quantity, Series
from leakkit.trend import Trend, Verdict, default_limit, judge
from leakkit.trend.rank import critical_score, pair_slopes, score, sen_bound

BASE = 500_000_000.0
LEVELS = (Kind.EXACT, Kind.COUNTER, Kind.NOISY)


def series(values, kind=Kind.EXACT, control=None, grain=0.0):
    quantity = Quantity("x", "B", kind, grain=grain)
    return Series(quantity, np.asarray(values, dtype=float), control)


def steps(count):
    return np.arange(count, dtype=float)


def last(values, kind=Kind.EXACT, **options):
    return judge(series(values, kind), final=True, **options)


class TestExact:
    @pytest.mark.parametrize("count", [12, 30, 60, 120, 200, 240, 480, 1000])
    @pytest.mark.parametrize("size", [16, 64, 4096])
    def test_a_steady_leak_grows_at_its_rate(self, count, size):
        trend = last(BASE + size * steps(count))
        assert trend.verdict is Verdict.GROWS
        assert trend.slope == trend.low == trend.high == size

    @pytest.mark.parametrize("count", [8, 12, 30, 120, 480])
    def test_what_never_rises_is_flat_at_once(self, count):
        trend = judge(series(np.full(count, BASE)))
        assert (trend.verdict, trend.slope, trend.high, trend.more_steps) == (Verdict.FLAT, 0, 0, 0)

    @pytest.mark.parametrize("count", range(8))
    def test_fewer_than_eight_values_say_nothing(self, count):
        trend = last(64 * steps(count))
        assert trend.verdict is Verdict.UNDECIDED
        assert f"{count} values" in trend.reason

    def test_growth_is_declared_by_the_last_look_only(self):
        early = judge(series(64 * steps(240)))
        assert early.verdict is Verdict.UNDECIDED
        assert early.more_steps == 240
        assert last(64 * steps(240)).more_steps == 0

    @pytest.mark.parametrize(("every", "count"), [(10, 240), (25, 480), (37, 480), (37, 260)])
    def test_a_sparse_leak_grows(self, every, count):
        assert last(BASE + 4096 * (steps(count) // every)).verdict is Verdict.GROWS

    def test_even_bursts_grow_in_a_run_cut_short(self):
        trend = last(4096 * (steps(80) // 12))
        assert trend.verdict is Verdict.GROWS

    def test_small_rises_between_even_bursts_do_not_hide_them(self):
        bursts = 50_000 * (steps(480) // 60)
        assert last(bursts + 32 * np.minimum(steps(480) // 7, 20)).verdict is Verdict.GROWS

    def test_bursts_of_all_sizes_are_no_clockwork(self):
        sizes = np.cumsum([0, 9, 1, 7, 2, 8, 0, 0, 3]) * 5_000
        assert last(sizes[steps(480).astype(int) // 60]).verdict is not Verdict.GROWS

    def test_a_leak_from_step_100_on_grows(self):
        assert last(2048 * np.maximum(steps(200) - 80, 0)).verdict is Verdict.GROWS

    @pytest.mark.parametrize("full", [20, 110, 200, 384])
    def test_a_container_full_by_four_fifths_of_the_cap_does_not_grow(self, full):
        assert last(1024 * np.minimum(steps(480), full)).verdict is not Verdict.GROWS

    @pytest.mark.parametrize("full", [20, 110, 200, 300, 384])
    def test_and_is_flat_once_it_has_been_full_for_long(self, full):
        trend = last(1024 * np.minimum(steps(480), full))
        assert trend.verdict is Verdict.FLAT
        assert trend.slope == 0

    def test_a_late_one_off_is_forgiven_by_the_last_look_only(self):
        values = BASE + 4e6 * (steps(120) >= 90)
        assert judge(series(values)).verdict is Verdict.UNDECIDED
        assert last(values).verdict is Verdict.FLAT

    def test_what_rises_every_cadence_steps_is_looked_at_over_two_periods(self):
        values = 4096 * ((steps(160) + 25) // 100)
        assert judge(series(values)).verdict is Verdict.FLAT
        assert judge(series(values), cadence=60).verdict is Verdict.UNDECIDED

    def test_a_run_shorter_than_two_cadences_says_nothing(self):
        assert "two periods of 100" in judge(series(steps(120)), cadence=100).reason

    def test_64_bytes_a_step_under_a_sawtooth_a_thousand_times_their_size(self):
        teeth = 64_000 * (steps(240) % 23) / 23
        trend = last(BASE + 64 * steps(240) + teeth)
        assert trend.verdict is Verdict.GROWS
        assert 55 < trend.slope < 75

    def test_the_sawtooth_alone_does_not_grow(self):
        assert last(BASE + 64_000 * (steps(240) % 23) / 23).verdict is Verdict.FLAT

    def test_a_leak_beside_a_large_release_is_not_called_flat(self):
        values = BASE + 64 * steps(480) - 1e6 * (steps(480) >= 200)
        assert last(values).verdict is not Verdict.FLAT


class TestLimit:
    def test_growth_within_the_limit_is_flat(self):
        trend = last(64 * steps(240), limit=64)
        assert trend.verdict is Verdict.FLAT
        assert trend.high <= 64

    @pytest.mark.parametrize("kind", LEVELS)
    @pytest.mark.parametrize(("share", "verdict"), [(0.9, Verdict.FLAT), (3.0, Verdict.GROWS)])
    def test_the_default_is_that_of_the_kind(self, kind, share, verdict):
        slope = share * default_limit(kind)
        values = np.floor(slope * steps(480) * 64) / 64
        assert last(values, kind).verdict is verdict

    def test_growth_above_the_limit_grows(self):
        assert last(64 * steps(240), limit=63).verdict is Verdict.GROWS

    def test_a_limit_between_the_bounds_is_undecided(self):
        rng = np.random.default_rng(3)
        noisy = 64 * steps(480) + rng.exponential(500, 480)
        assert last(noisy, limit=64).verdict is Verdict.UNDECIDED

    @pytest.mark.parametrize("limit", [-1.0, float("nan")])
    def test_a_limit_below_zero_is_refused(self, limit):
        with pytest.raises(ValueError, match="limit"):
            judge(series(steps(20)), limit=limit)

    def test_a_cadence_below_one_is_refused(self):
        with pytest.raises(ValueError, match="cadence"):
            judge(series(steps(20)), cadence=0)


class TestNoisy:
    @pytest.mark.parametrize("count", [200, 240, 480])
    def test_272_bytes_a_step_grow(self, count):
        assert last(BASE + 272 * steps(count), Kind.NOISY).verdict is Verdict.GROWS

    def test_a_creep_of_tens_of_bytes_does_not(self):
        assert last(BASE + 40 * steps(480), Kind.NOISY).verdict is Verdict.FLAT

    def test_a_creep_that_fades_does_not(self):
        values = 16_000 * (1 - np.exp(-steps(480) / 60))
        assert last(BASE + np.round(values / 16) * 16, Kind.NOISY).verdict is Verdict.FLAT

    def test_a_rise_below_the_grain_is_none(self):
        pages = 4096.0 * (steps(480) // 100)
        coarse = judge(series(pages, Kind.NOISY, grain=8 * 4096.0), final=True)
        assert coarse.verdict is Verdict.FLAT

    @staticmethod
    def verdicts(rise):
        noise = [np.random.default_rng(seed).normal(0, 1000, 480) for seed in range(60)]
        return Counter(last(BASE + rise + own).verdict for own in noise)

    @pytest.mark.parametrize("size", [6_000, 20_000])
    def test_one_change_of_level_in_noise_is_no_growth(self, size):
        found = self.verdicts(size * (steps(480) > 300))
        assert found[Verdict.GROWS] == 0
        assert found[Verdict.FLAT] >= 40

    def test_a_small_slope_in_noise_is_no_change_of_level(self):
        assert self.verdicts(16 * steps(480))[Verdict.FLAT] <= 2

    def test_dips_that_cease_are_no_growth(self):
        """What an autotuner gives back now and then, and takes again."""
        floors = [-1_624, -1_112, -1_624, -1_112, 5_572, -1_112, -1_624, *[7_208] * 5]
        level = np.full(480, 7_208.0)
        level[130:480:30] = floors
        assert "stopped rising" in last(level).reason
        assert last(level).verdict is Verdict.FLAT
        assert last(level + 64 * steps(480)).verdict is not Verdict.FLAT

    def test_two_changes_of_level_are_not_one(self):
        twice = 6_000 * (steps(480) > 240) + 6_000 * (steps(480) > 360)
        assert self.verdicts(twice)[Verdict.FLAT] == 0


class TestCounter:
    @pytest.mark.parametrize("every", [1, 10, 50])
    def test_one_more_every_so_often_grows(self, every):
        assert last(40 + steps(480) // every, Kind.COUNTER).verdict is Verdict.GROWS

    def test_a_pool_that_fills_is_flat(self):
        assert last(np.minimum(1 + steps(120), 48), Kind.COUNTER).verdict is Verdict.FLAT

    def test_the_limit_is_in_things_a_step(self):
        assert last(steps(240), Kind.COUNTER, limit=1).verdict is Verdict.FLAT


def times(rate=0.0, count=480, drift=0.0, noise=0.02, seed=5):
    rng = np.random.default_rng(seed)
    machine = np.exp(drift * steps(count) / count)
    step = 0.01 * machine * (1 + rate * steps(count)) * np.exp(rng.normal(0, noise, count))
    return step, 0.001 * machine * np.exp(rng.normal(0, noise, count))


def timed(step, control, **options):
    return judge(series(step, Kind.LATENCY, control), **options)


class TestLatency:
    def test_a_step_that_slows_down_grows_in_percent_a_step(self):
        trend = timed(*times(0.001), final=True)
        assert trend.verdict is Verdict.GROWS
        assert trend.low < 0.08 < trend.high or 0.07 < trend.slope < 0.1

    @pytest.mark.parametrize("drift", [-0.3, 0.0, 0.3])
    def test_a_machine_that_slows_down_does_not(self, drift):
        assert timed(*times(drift=drift), final=True).verdict is Verdict.FLAT

    def test_the_same_without_a_control_is_never_growth(self):
        trend = timed(times(0.001)[0], None, final=True)
        assert trend.verdict is not Verdict.GROWS
        assert "without a control" in trend.reason

    def test_a_single_change_of_level_is_no_slow_down(self):
        step, control = times()
        step[200:] *= 1.2
        assert timed(step, control, final=True).verdict is not Verdict.GROWS

    def test_an_early_look_asks_for_more_only_when_it_leans(self):
        clean = [timed(*times(count=120, noise=0.1, seed=seed)).verdict for seed in range(100)]
        assert clean.count(Verdict.FLAT) >= 70
        leaning = timed(*times(0.001, count=120))
        assert (leaning.verdict, leaning.more_steps) == (Verdict.UNDECIDED, 120)

    def test_cadence_finds_what_only_every_tenth_step_shows(self):
        step, control = times()
        step[3::10] *= 2 * (1 + 0.003 * steps(480)[3::10])
        assert timed(step, control, final=True).verdict is Verdict.FLAT
        assert timed(step, control, final=True, cadence=10).verdict is Verdict.GROWS

    def test_a_limit_that_was_set_must_be_proved(self):
        clean = times(noise=0.1)
        assert timed(*clean, final=True, limit=0.2).verdict is Verdict.FLAT
        assert timed(*clean, final=True, limit=0.001).verdict is Verdict.UNDECIDED


class TestRank:
    @pytest.mark.parametrize("points", [3, 5, 6, 7])
    def test_critical_scores_agree_with_counting_all_orders(self, points):
        scores = [score(np.array(p, float)) for p in itertools.permutations(range(points))]
        for alpha in (0.2, 0.05, 0.01, 0.001):
            wanted = [s for s in set(scores) if np.mean(np.array(scores) >= s) <= alpha + 1e-12]
            assert critical_score(points, alpha) == (min(wanted) if wanted else None)

    def test_bounds_cover_the_slope_as_often_as_they_say(self):
        rng, covered = np.random.default_rng(8), 0
        at = steps(12)
        for _ in range(2000):
            slopes = pair_slopes(3 * at + rng.normal(0, 5, 12), at)
            covered += sen_bound(slopes, 12, 0.025) <= 3 <= sen_bound(slopes, 12, 0.025, upper=True)
        assert 0.945 <= covered / 2000 <= 0.985


def test_the_words_of_the_trend_need_no_numpy():
    code = "import sys, leakkit.trend; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", LEVELS)
def test_a_trend_is_plain_numbers(kind):
    trend = last(steps(100), kind)
    assert isinstance(trend, Trend)
    fields = (trend.slope, trend.low, trend.high, trend.total)
    assert all(type(value) is float for value in fields)

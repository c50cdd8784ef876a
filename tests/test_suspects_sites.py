"""Allocation sites: which lines grow, and how they are merged."""

from dataclasses import replace

import numpy as np
import pytest

from leakkit.heap import Frame, Site
from leakkit.suspects.sites import IN_THREADS, grows_in_every_window, rank_sites, slope

USER = Frame("step", "/home/me/train.py", 41)
CALLER = Frame("main", "/home/me/train.py", 90)
LIBRARY = Frame("concat", "/x/site-packages/lib/array_ops.py", 7)
OTHER = Frame("stack", "/x/site-packages/lib/array_ops.py", 99)


def site(stack: tuple[Frame, ...], step: float, allocator: str = "python", steps: int = 40) -> Site:
    live = np.arange(steps) * step
    return Site(stack, allocator, live, np.arange(steps) * 1.0)


def test_stacks_are_merged_by_the_users_innermost_line() -> None:
    found = rank_sites([site((LIBRARY, USER, CALLER), 10.0), site((OTHER, USER, CALLER), 5.0)])
    assert len(found) == 1
    assert found[0].where.endswith("train.py:41 in step")
    assert (found[0].slope, found[0].facts["blocks_per_step"]) == (15.0, 2.0)
    assert found[0].facts["calls"] == {"array_ops.concat": 10.0, "array_ops.stack": 5.0}


def test_the_full_stack_is_that_of_the_heaviest() -> None:
    found = rank_sites([site((LIBRARY, USER), 10.0), site((OTHER, USER), 50.0)])
    assert found[0].facts["stack"][0] == ("stack", OTHER.file, 99)


def test_native_frames_are_those_of_the_site_that_grows_fastest() -> None:
    slow, fast = (
        replace(site((USER,), rate, "native"), native=(name,))
        for rate, name in ((10, "Attributes::Build"), (4096, "CPUAllocator::AllocateRaw"))
    )
    assert rank_sites([slow, fast])[0].facts["native"] == ["CPUAllocator::AllocateRaw"]


def test_allocations_without_python_frames_are_said_to_be_in_threads() -> None:
    found = rank_sites([site((), 100.0, "native")])
    assert (found[0].where, found[0].explains) == (IN_THREADS, ("native_heap",))


def test_leakkits_own_allocations_are_left_out() -> None:
    import leakkit.suspects.sites as own

    assert rank_sites([site((Frame("rank_sites", str(own.__file__), 1),), 100.0)]) == []


def test_a_single_rise_is_no_growth() -> None:
    live = np.where(np.arange(40) < 20, 0.0, 1e6)
    assert not grows_in_every_window(live)
    assert rank_sites([Site((USER,), "native", live, live)]) == []


def test_a_sawtooth_is_no_growth() -> None:
    live = np.tile(np.arange(10.0), 4)
    assert not grows_in_every_window(live)


def test_rare_bursts_are_seen_in_two_halves() -> None:
    live = np.floor(np.arange(120) / 37) * 200_000
    assert not grows_in_every_window(live)
    assert [s.slope for s in rank_sites([Site((USER,), "native", live, live)])] == [
        pytest.approx(slope(live))
    ]


def test_the_biggest_line_comes_first_and_noise_is_dropped() -> None:
    small = Frame("log", "/home/me/log.py", 3)
    tiny = Frame("note", "/home/me/note.py", 1)
    found = rank_sites([site((small,), 100.0), site((USER,), 1000.0), site((tiny,), 1.0)])
    assert [s.facts["function"] for s in found] == ["step", "log"]

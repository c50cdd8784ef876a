"""The ledger on hand-made streams, and against a replay in plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leakkit.heap.ledger import BLOCK, FOREVER, Events, Ledger, crossing

PAGE = 4096


NOTHING = np.empty(0, BLOCK)


def stream(*records):
    """Events from ``(step, "alloc" | "free" | "map" | "unmap", address, size, site)``."""
    step, what, address, size, site = zip(*records, strict=True) if records else ((),) * 5

    def ints(values):
        return np.array(values, np.int64)

    return Events(
        address=ints(address),
        size=ints(size),
        site=ints(site),
        record=np.arange(len(records)),
        step=ints(step),
        free=np.array([w in ("free", "unmap") for w in what], bool),
        ranged=np.array([w in ("map", "unmap") for w in what], bool),
    )


def spans(events):
    found, _ = crossing(events, NOTHING)
    return sorted((b["born"], b["died"], b["size"], b["site"]) for b in found)


def test_a_block_lives_from_its_allocation_to_its_release():
    events = stream((0, "alloc", 1, 64, 7), (2, "free", 1, 0, 0))
    assert spans(events) == [(0, 2, 64, 7)]


def test_an_unreleased_block_lives_for_ever():
    assert spans(stream((1, "alloc", 1, 64, 7))) == [(1, FOREVER, 64, 7)]


def test_an_address_used_twice_is_two_blocks():
    events = stream((0, "alloc", 1, 10, 1), (0, "free", 1, 0, 0), (1, "alloc", 1, 20, 2))
    assert spans(events) == [(1, FOREVER, 20, 2)]


def test_a_release_of_unknown_memory_is_dropped():
    assert spans(stream((0, "free", 9, 0, 0))) == []


def test_a_second_allocation_ends_a_block_whose_release_went_unseen():
    events = stream((0, "alloc", 1, 10, 1), (3, "alloc", 1, 20, 2))
    assert spans(events) == [(0, 3, 10, 1), (3, FOREVER, 20, 2)]


def test_part_of_a_mapping_can_be_unmapped():
    events = stream((0, "map", 0, 3 * PAGE, 5), (1, "unmap", PAGE, PAGE, 0))
    assert spans(events) == [(0, 1, PAGE, 5), (0, FOREVER, PAGE, 5), (0, FOREVER, PAGE, 5)]


def test_one_call_can_unmap_several_mappings():
    events = stream((0, "map", 0, PAGE, 5), (0, "map", PAGE, PAGE, 6), (1, "unmap", 0, 2 * PAGE, 0))
    assert spans(events) == [(0, 1, PAGE, 5), (0, 1, PAGE, 6)]


def test_levels_are_what_is_alive_at_each_boundary():
    events = stream(
        (0, "alloc", 1, 10, 1), (1, "alloc", 2, 10, 1), (2, "free", 1, 0, 0), (2, "alloc", 3, 5, 2)
    )
    ledger = Ledger.of(crossing(events, NOTHING)[0], 4)
    assert ledger.sites.tolist() == [1, 2]
    assert ledger.bytes.tolist() == [[10, 20, 10, 10], [0, 0, 5, 5]]
    assert ledger.counts.tolist() == [[1, 2, 1, 1], [0, 0, 1, 1]]


def test_a_block_within_one_step_never_shows():
    events = stream((1, "alloc", 1, 10, 1), (1, "free", 1, 0, 0))
    assert Ledger.of(crossing(events, NOTHING)[0], 3).sites.size == 0


def test_no_events_make_an_empty_ledger():
    ledger = Ledger.of(crossing(stream(), NOTHING)[0], 3)
    assert ledger.total(np.zeros(0, bool)).tolist() == [0, 0, 0]


def in_pieces(records, size):
    """All blocks of a stream that is read ``size`` records at a time."""
    ended, alive = [NOTHING], NOTHING
    for start in range(0, len(records), size):
        found, _ = crossing(stream(*records[start : start + size]), alive)
        ended.append(found[found["died"] != FOREVER])
        alive = found[found["died"] == FOREVER]
    return np.concatenate([*ended, alive])


MOVES = st.lists(st.tuples(st.booleans(), st.integers(1, 6), st.integers(1, 99)), max_size=60)


@given(MOVES, st.integers(1, 20))
def test_totals_equal_a_replay(moves, piece):
    """Any stream of allocations, releases and boundaries gives what replaying it gives."""
    alive, levels, records, step = {}, [], [], 0
    for index, (allocate, address, size) in enumerate(moves):
        if allocate and address not in alive:
            alive[address] = size
            records.append((step, "alloc", address, size, address))
        elif not allocate:
            alive.pop(address, None)
            records.append((step, "free", address, 0, 0))
        if index % 4 == 3:
            levels.append(sum(alive.values()))
            step += 1
    ledger = Ledger.of(in_pieces(records, piece), step)
    assert ledger.total(np.ones(len(ledger.sites), bool)).tolist() == levels

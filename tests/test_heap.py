"""Both heap engines on real allocations of known size."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

from leakkit.heap import HeapError, engine

ENGINES = ["memray", "tracemalloc"]


@pytest.fixture(autouse=True)
def frozen():
    """What other tests have imported would make every collection slow."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def trace(name, folder, step, steps=60, stretches=1):
    """An engine that has seen ``steps`` steps in each stretch."""
    heap = engine(name, folder)
    for _ in range(stretches):
        heap.start()
        heap.fence()
        for index in range(steps):
            step(index)
            gc.collect()
            heap.fence()
        heap.stop()
    heap.close()
    return heap


def exact(name, rises, size):
    """Whether nearly all steps rise by ``size``; other threads may release a block at any time."""
    return np.mean(rises[5:] == size) >= {"memray": 0.95, "tracemalloc": 0.85}[name]


def level(heap, name="python_heap"):
    return next(s.values for s in heap.series() if s.name == name)


@pytest.mark.parametrize("name", ENGINES)
def test_a_kept_object_is_counted_to_the_byte(name, tmp_path):
    kept = [None] * 1000  # its slots are there: only the objects are new
    values = level(trace(name, tmp_path, lambda i: kept.__setitem__(i, bytes(64))))
    assert exact(name, np.diff(values), sys.getsizeof(bytes(64)))


@pytest.mark.parametrize("name", ENGINES)
def test_a_step_that_keeps_nothing_is_level(name, tmp_path):
    values = level(trace(name, tmp_path, lambda i: [bytes(100) for _ in range(500)]))
    assert exact(name, np.diff(values), 0)


@pytest.mark.parametrize("name", ENGINES)
def test_a_second_stretch_goes_on_where_the_first_ended(name, tmp_path):
    kept = [None] * 1000
    heap = trace(name, tmp_path, lambda i: kept.__setitem__(i, bytes(64)), stretches=2)
    values = level(heap)
    assert len(values) == 120
    # The second stretch puts new objects in the place of the 60 old ones: the level stays.
    assert abs(values[-1] - values[59]) < 60 * sys.getsizeof(bytes(64)) / 4


@pytest.mark.parametrize("name", ENGINES)
def test_the_line_that_keeps_is_the_first_site(name, tmp_path):
    kept = []

    def step(index):
        kept.append(bytes(1000))  # this line

    site = trace(name, tmp_path, step).sites()[0]
    assert site.stack[0].file == __file__
    assert site.stack[0].line == step.__code__.co_firstlineno + 1
    assert site.allocator == "python"


def test_memray_sees_native_memory_apart_from_pythons(tmp_path):
    kept = []
    heap = trace("memray", tmp_path, lambda i: kept.append(np.zeros(100_000, np.uint8)))
    rises = np.diff(level(heap, "native_heap"))
    assert (rises == 100_000).all()


def test_stacks_are_whole_wherever_the_engine_was_started(tmp_path):
    """memray hides the frames that its starting thread had; the step must not lose its own."""
    kept = []

    def start_deeply(heap, depth):
        return start_deeply(heap, depth - 1) if depth else heap.start()

    heap = engine("memray", tmp_path)
    start_deeply(heap, 20)
    heap.fence()
    for _ in range(10):
        kept.append(bytes(1000))
        heap.fence()
    heap.stop()
    functions = [frame.function for frame in heap.sites()[0].stack]
    assert "test_stacks_are_whole_wherever_the_engine_was_started" in functions


def test_off_is_no_engine(tmp_path):
    assert engine("off", tmp_path) is None


def test_a_second_memray_tracker_is_a_clear_error(tmp_path):
    first, second = engine("memray", tmp_path / "a"), engine("memray", tmp_path / "b")
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    first.start()
    try:
        with pytest.raises(HeapError, match=r"pytest --memray"):
            second.start()
    finally:
        first.stop()


def test_tracemalloc_in_use_is_a_clear_error(tmp_path):
    tracemalloc.start()
    try:
        with pytest.raises(HeapError, match="already tracing"):
            engine("tracemalloc", tmp_path).start()
    finally:
        tracemalloc.stop()


def test_memory_from_before_the_trace_is_counted_when_it_is_replaced(tmp_path):
    """The size of such a block is unknown, but that one went is not."""
    ring = [bytes(1000) for _ in range(100)]

    def step(index):
        ring[index % 100] = bytes(1000)

    heap = trace("memray", tmp_path, step, steps=40)
    assert set(np.diff(level(heap))[5:]) == {sys.getsizeof(bytes(1000))}
    assert set(np.diff(level(heap, "python_heap_freed"))[5:]) == {1}
    assert set(np.diff(level(heap, "python_heap_blocks"))[5:]) == {0}


def test_allocations_are_counted_whether_or_not_they_outlive_the_step(tmp_path):
    def step(index):
        return [bytes(1000) for _ in range(100 + 2 * index)]

    heap = trace("memray", tmp_path, step, stretches=2)
    blocks, size = level(heap, "allocations"), level(heap, "allocated")
    assert len(blocks) == len(size) == 120
    assert np.median(np.diff(blocks)[5:55]) == 2
    assert 2000 < np.mean(np.diff(size)[5:55]) < 2400  # and the list's own slots
    assert 100 <= blocks[0] < 300 and 100_000 < size[0] < 200_000  # nothing of leakkit's own


def test_a_second_stretch_adds_nothing_of_leakkits_own(tmp_path):
    values = level(trace("memray", tmp_path, lambda i: None, stretches=3))
    assert np.ptp(values[10:]) <= 2 * 32  # an integer of the tracer's own may become a larger one

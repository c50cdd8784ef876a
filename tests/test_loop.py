"""The recorder: phases, short loops, steps that raise, runs that are killed."""

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import deque

import numpy as np
import pytest

from leakkit.check import Check, StepError
from leakkit.judgement import Judgement
from leakkit.recording import Recording
from leakkit.result import LeakError
from leakkit.settings import Settings, SettingsError
from leakkit.trend import Verdict

QUICK = {"steps": 24, "max_steps": 48, "warmup": 5, "heap": "off"}


def check(tmp_path, **settings):
    return Check(Settings(directory=tmp_path / "recording", **{**QUICK, **settings}))


def test_a_step_that_keeps_nothing_is_flat_after_the_first_look(tmp_path):
    calls = []
    result = check(tmp_path).run(lambda: calls.append(None) or calls.clear())
    assert result.verdict is Verdict.FLAT
    assert len(result.recording.watch["latency"]) == QUICK["steps"]


def test_a_step_that_keeps_objects_grows(tmp_path):
    kept = []
    result = check(tmp_path).run(lambda: kept.append([]))
    assert result.verdict is Verdict.GROWS
    found = result.findings["live_objects"].trend
    assert found.verdict is Verdict.GROWS
    assert found.slope == pytest.approx(1.0)
    assert found.steps == QUICK["max_steps"]


def test_calling_the_check_raises_the_report(tmp_path):
    kept = []
    with pytest.raises(LeakError, match="objects alive") as caught:
        check(tmp_path)(lambda: kept.append([]))
    assert caught.value.result.verdict is Verdict.GROWS


def test_both_passes_extend_and_the_trace_is_exact(tmp_path):
    kept = [None] * 1000

    def step(index):
        kept[index] = bytes(64)

    result = check(tmp_path, heap="memray").run(step)
    trend = result.findings["python_heap"].trend
    assert trend.steps == QUICK["max_steps"]
    assert trend.slope == sys.getsizeof(bytes(64))


def test_a_step_may_take_its_index_and_arguments(tmp_path):
    seen = []
    check(tmp_path).run(
        lambda index, scale, shift=0: seen.append(index * scale + shift), 2, shift=1
    )
    assert seen[:3] == [1, 3, 5]


def test_arguments_that_fit_leave_no_room_for_an_index(tmp_path):
    seen = set()
    check(tmp_path).run(lambda scale: seen.add(scale), 7)
    assert seen == {7}


@pytest.mark.parametrize("step", [3, None, "train"])
def test_what_is_no_step_is_refused(tmp_path, step):
    with pytest.raises(StepError, match="must be callable"):
        check(tmp_path)(step)


def test_a_step_that_cannot_be_called_so_says_why(tmp_path):
    with pytest.raises(StepError, match="missing a required argument"):
        check(tmp_path)(lambda a, b, c: None)


def test_an_exception_reaches_the_user_unchanged_and_nothing_stays_changed(tmp_path):
    error = ValueError("mine")

    def step(index):
        if index == 40:  # in the trace pass
            raise error

    with pytest.raises(ValueError, match="mine") as caught:
        check(tmp_path, heap="memray").run(step)
    assert caught.value is error
    assert gc.get_freeze_count() == 0
    kept = Recording.load(tmp_path / "recording")
    assert len(kept.watch["latency"]) == 24
    assert kept.cut
    # memray is stopped: another tracker can start
    assert check(tmp_path / "again", heap="memray").run(lambda: None).verdict is Verdict.FLAT


def test_the_garbage_of_each_step_is_counted_and_is_no_leak(tmp_path):
    def step():
        cycle = []
        cycle.append(cycle)

    result = check(tmp_path).run(step)
    assert result.findings["garbage"].trend.slope == pytest.approx(1.0)
    assert not result.findings["garbage"].decides
    assert result.verdict is Verdict.FLAT


def test_garbage_is_a_leak_where_the_collector_is_off(tmp_path):
    def step():
        cycle = []
        cycle.append(cycle)

    gc.disable()
    try:
        result = check(tmp_path).run(step)
    finally:
        gc.enable()
    assert result.findings["garbage"].decides
    assert result.verdict is Verdict.GROWS
    assert [suspect.kind for suspect in result.suspects] == ["cycle"]
    assert result.diagnoses[0].name == "reference-cycles"


def test_a_step_that_collects_by_itself_needs_no_collector(tmp_path):
    calls = iter(range(10_000))

    def step():
        cycle = []
        cycle.append(cycle)
        if next(calls) % 25 == 0:
            gc.collect()

    listening = list(gc.callbacks)
    gc.disable()
    try:
        result = check(tmp_path).run(step)
    finally:
        gc.enable()
    assert not result.findings["garbage"].decides
    assert result.verdict is Verdict.FLAT
    assert gc.callbacks == listening


def test_one_check_measures_on_one_device(tmp_path):
    with pytest.raises(SettingsError, match="one check, one device"):
        check(tmp_path, device="all").run(lambda: None)


def test_a_loop_is_measured_as_a_step_is(tmp_path):
    kept = []
    with pytest.raises(LeakError):
        for batch in check(tmp_path).steps(iter(range(10_000))):
            kept.append([batch])
    assert 24 < len(kept) < 1000


def test_a_loop_that_is_left_early_is_judged_by_what_it_has(tmp_path):
    kept, loop = [], check(tmp_path)
    for batch in loop.steps(iter(range(10_000))):
        kept.append([batch])
        if batch == 40:
            break
    result = loop.finish()
    assert any("steps before" in note for note in result.notes)
    assert result.verdict is Verdict.GROWS


def test_a_loop_too_short_to_say_is_undecided_and_says_how_short(tmp_path):
    loop = check(tmp_path)
    for _ in loop.steps(iter(range(7))):
        pass
    result = loop.finish()
    assert result.verdict is Verdict.UNDECIDED
    assert any(n.startswith("the loop ended 22 steps before the watch") for n in result.notes)


def test_a_loop_of_known_length_shares_its_steps_between_the_passes(tmp_path):
    loop = check(tmp_path, heap="memray", steps=120, max_steps=480, warmup=20)
    for _ in loop.steps(range(80)):
        pass
    result = loop.finish()
    assert len(result.recording.watch["latency"]) == 40
    assert len(result.recording.trace["python_heap"]) >= 20


def test_a_check_runs_once(tmp_path):
    used = check(tmp_path)
    used.run(lambda: None)
    with pytest.raises(RuntimeError, match="one check for each step"):
        used.run(lambda: None)


def test_a_slow_step_takes_fewer_steps(tmp_path, monkeypatch):
    """The time budget, not the step count, ends a slow run; it is still judged."""
    clock = [0.0]
    monkeypatch.setattr("leakkit.loop.time.monotonic", lambda: clock[0])

    def step():
        clock[0] += 0.5

    result = check(tmp_path, steps=400, max_steps=400, max_seconds=30).run(step)
    assert 12 <= len(result.recording.watch["latency"]) < 40
    assert result.verdict is Verdict.FLAT


def test_a_step_slower_than_the_budget_still_gets_values_to_judge(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("leakkit.loop.time.monotonic", lambda: clock[0])

    def step():
        clock[0] += 60

    recording = check(tmp_path, max_seconds=30, heap="memray").run(step).recording
    assert len(recording.watch["latency"]) == len(recording.trace["python_heap"]) == 8


KILLED = """
    import os, signal
    from leakkit.check import Check
    from leakkit.settings import Settings

    def step(index):
        if index == {last}:
            os.kill(os.getpid(), signal.SIGKILL)

    Check(Settings(steps=30, warmup=5, directory={folder!r}))(step)
"""


@pytest.mark.parametrize(
    ("last", "watched", "traced"), [(5, 0, 0), (6, 1, 0), (25, 20, 0), (45, 30, 10)]
)
def test_a_killed_run_shows_every_finished_step(tmp_path, last, watched, traced):
    folder = str(tmp_path / "killed")
    code = textwrap.dedent(KILLED.format(last=last, folder=folder))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    recording = Recording.load(folder)
    assert recording.cut
    assert len(recording.watch["latency"]) == watched
    assert len(recording.trace.get("garbage", ())) == traced


def test_the_recording_describes_its_run(tmp_path):
    result = check(tmp_path).run(lambda: None)
    meta = json.loads((result.recording.path / "meta.json").read_text())
    assert meta["environment"]["python"] == sys.version.split()[0]
    assert meta["environment"]["packages"]["memray"]
    assert meta["settings"]["steps"] == QUICK["steps"]
    assert meta["finished"] is True


def test_files_left_behind_grow(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()

    def step(index):
        (folder / f"{index}.txt").write_text("x" * 100)

    result = check(tmp_path).run(step)
    assert result.findings["files"].trend.slope == pytest.approx(1.0)
    assert result.findings["file_bytes"].trend.slope == pytest.approx(100.0)


def test_what_a_look_keeps_is_not_counted_as_the_steps_own(tmp_path, monkeypatch):
    kept = []

    def look_and_keep(self, name, series, *, last):
        kept.extend([] for _ in range(100))
        return 0 if last else 12

    monkeypatch.setattr(Judgement, "look", look_and_keep)
    recording = check(tmp_path).run(lambda: None).recording
    assert len(kept) >= 300
    assert np.ptp(recording.watch["live_objects"].values) < 50


@pytest.mark.parametrize("left", [True, False])
def test_a_folder_that_is_first_written_to_while_the_step_is_watched_is_watched_too(tmp_path, left):
    folder = tmp_path / "late"
    folder.mkdir()
    (folder / "older.txt").write_text("of another run")

    def step(index):
        if index % 5 == 4 and index > 15:
            (folder / f"{index if left else 0}.txt").write_text("x" * 100)

    result = check(tmp_path, warmup=10, steps=120, max_steps=120).run(step)
    verdict = Verdict.GROWS if left else Verdict.FLAT
    assert result.findings["files"].trend.verdict is verdict


def test_a_log_held_open_grows(tmp_path):
    with (tmp_path / "train.log").open("w") as log:

        def step():
            log.write("x" * 99 + "\n")
            log.flush()

        result = check(tmp_path).run(step)
    assert result.findings["file_bytes"].trend.slope == pytest.approx(100.0)


def test_an_experiments_event_file_is_made_to_grow(tmp_path):
    with (tmp_path / "events.out.tfevents.1.host").open("w") as events:

        def step():
            events.write("x" * 99 + "\n")
            events.flush()

        result = check(tmp_path, folders=(tmp_path,)).run(step)
    assert result.findings["file_bytes"].trend.verdict is Verdict.FLAT


def test_descriptors_and_threads_grow(tmp_path):
    import threading

    held, stop = [], threading.Event()

    def step():
        held.append(os.open(os.devnull, os.O_RDONLY))
        threading.Thread(target=stop.wait, daemon=True).start()

    try:
        result = check(tmp_path).run(step)
    finally:
        stop.set()
        for number in held:
            os.close(number)
    for name in ("fds", "threads"):
        assert result.findings[name].trend.verdict is Verdict.GROWS
        assert result.findings[name].trend.slope == pytest.approx(1.0)


FULL = """
    import resource
    from leakkit.check import Check
    from leakkit.settings import Settings

    def step():
        return [bytes(100 + size) for size in range(3000)]

    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))  # what a full disk does
    result = Check(Settings(steps=30, max_steps=30, warmup=5, directory={folder!r})).run(step)
    print(result.verdict.value, result.notes[-1], sep="|")
"""


def test_a_disk_that_fills_up_costs_the_trace_and_nothing_else(tmp_path):
    code = textwrap.dedent(FULL.format(folder=str(tmp_path / "full")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    verdict, note = done.stdout.strip().split("|")
    assert verdict == "undecided"
    assert "is the disk full?" in note
    assert len(Recording.load(tmp_path / "full").watch["latency"]) == 30


def ring(size=2000):
    kept = deque((bytes(1000) for _ in range(size)), maxlen=size)
    return lambda: kept.append(bytes(1000))


def test_a_full_ring_that_replaces_old_memory_is_flat(tmp_path):
    """Its old items were made before the trace, so their release has no known size."""
    result = check(tmp_path, heap="memray", steps=60, max_steps=120).run(ring())
    assert result.verdict is Verdict.FLAT
    assert "replaced" in result.findings["python_heap"].trend.reason


def test_a_leak_beside_a_full_ring_still_grows(tmp_path):
    kept, turn = [], ring()

    def step():
        turn()
        kept.append(bytes(64))

    result = check(tmp_path, heap="memray", steps=60, max_steps=120).run(step)
    assert result.findings["python_heap"].trend.verdict is Verdict.GROWS

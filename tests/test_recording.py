"""The recording: round trips, and what is left of it after a cut at any byte."""

import json
import shutil

import numpy as np
import pytest

from leakkit.heap import Frame, Site
from leakkit.recording import Recording, RecordingError
from leakkit.series import Kind, Quantity, Series

QUANTITIES = [
    Quantity("latency", "s", Kind.LATENCY),
    Quantity("control", "s", Kind.LATENCY, advisory=True),
    Quantity("threads", "threads", Kind.COUNTER),
]


def record(folder, steps=5, capacity=8):
    recording = Recording.create(folder, {"name": "step"})
    table = recording.table("watch", QUANTITIES, capacity)
    for index in range(steps):
        table.append([index / 10, 0.5, 3 + index])
    return recording


def test_finished_steps_are_there_and_no_others(tmp_path):
    record(tmp_path / "r")
    loaded = Recording.load(tmp_path / "r")
    assert loaded.watch["threads"].values.tolist() == [3, 4, 5, 6, 7]
    assert loaded.watch["threads"].quantity == QUANTITIES[2]
    assert loaded.steps == 5


def test_a_recording_says_whether_it_was_finished(tmp_path):
    recording = record(tmp_path / "r")
    assert Recording.load(tmp_path / "r").cut
    recording.finish()
    assert not Recording.load(tmp_path / "r").cut


def test_the_control_belongs_to_the_latency(tmp_path):
    record(tmp_path / "r")
    watch = Recording.load(tmp_path / "r").watch
    assert "control" not in watch
    assert watch["latency"].control.tolist() == [0.5] * 5


def test_heap_and_sites_come_back(tmp_path):
    recording = record(tmp_path / "r")
    levels = np.arange(3.0)
    site = Site((Frame("step", "train.py", 41),), "python", levels, levels * 2, ("malloc",))
    recording.keep("trace", [Series(Quantity("python_heap", "B", Kind.EXACT), levels)], [site])
    loaded = Recording.load(tmp_path / "r")
    assert loaded.trace["python_heap"].values.tolist() == [0, 1, 2]
    assert loaded.sites()[0].stack == site.stack
    assert loaded.sites()[0].native == ("malloc",)
    assert loaded.sites()[0].blocks.tolist() == [0, 2, 4]


@pytest.mark.parametrize("file", ["watch.npy", "meta.json"])
def test_cut_at_any_byte_it_loads_what_is_complete(tmp_path, file):
    whole = record(tmp_path / "whole")
    whole.finish()
    size = (whole.path / file).stat().st_size
    seen = set()
    for length in range(0, size, 7):
        folder = tmp_path / "cut"
        shutil.copytree(whole.path, folder)
        with (folder / file).open("rb+") as cut:
            cut.truncate(length)
        loaded = Recording.load(folder)
        assert loaded.cut
        steps = loaded.steps
        seen.add(steps)
        if steps:
            assert loaded.watch["threads"].values.tolist() == [3 + i for i in range(steps)]
        shutil.rmtree(folder)
    assert max(seen) == 5
    assert (min(seen) == 0) == (file == "watch.npy")


def test_a_cut_heap_file_is_no_error(tmp_path):
    recording = record(tmp_path / "r")
    recording.keep("trace", [Series(Quantity("python_heap", "B", Kind.EXACT), np.arange(3.0))], [])
    recording.finish()
    heap = recording.path / "trace.npz"
    heap.write_bytes(heap.read_bytes()[:-20])
    loaded = Recording.load(recording.path)
    assert loaded.cut
    assert loaded.steps == 5


def test_nothing_is_pickled(tmp_path):
    recording = record(tmp_path / "r")
    for path in recording.path.glob("*.np*"):
        np.load(path, allow_pickle=False)


def test_a_folder_that_is_no_recording_says_so(tmp_path):
    with pytest.raises(RecordingError, match="no such folder"):
        Recording.load(tmp_path / "nowhere")
    with pytest.raises(RecordingError, match=r"no meta\.json"):
        Recording.load(tmp_path)


def test_a_later_schema_says_which(tmp_path):
    recording = record(tmp_path / "r")
    meta = json.loads((recording.path / "meta.json").read_text())
    (recording.path / "meta.json").write_text(json.dumps({**meta, "schema": 99}))
    with pytest.raises(RecordingError, match="schema 99"):
        Recording.load(recording.path)


def test_an_unwritable_folder_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot record in"):
        Recording.create(tmp_path / "file" / "below", {})

"""Snapshots of a framework's own allocator, on adapters made for the test."""

from leakkit.frameworks import Framework
from leakkit.suspects.snapshots import Snapshots, saved


class Recording(Framework):
    """A fake that writes a file, as PyTorch does on a GPU."""

    name, viewer = "Fake", "open it with a viewer"
    recording = False

    def record(self):
        self.recording = True

    def snapshot(self, folder):
        assert self.recording
        path = folder / "fake-memory-snapshot.pickle"
        path.write_bytes(b"blocks")
        return [path]


class Moved(Framework):
    """A fake whose private function is gone."""

    name = "Moved"

    def record(self):
        raise AttributeError("no _record_memory_history")

    def snapshot(self, folder):
        raise AssertionError("nothing was recorded")


def test_what_was_recorded_is_saved_and_named(tmp_path):
    folder = tmp_path / "recording"
    folder.mkdir()
    snapshots = Snapshots([Recording(), Framework()], folder)
    snapshots.begin()
    snapshots.end()
    [file] = saved(tmp_path)  # a folder above will do
    assert file == folder / "fake-memory-snapshot.pickle"
    assert file.read_bytes() == b"blocks"
    assert snapshots.notes == [f"Fake recorded its allocations: {file}; open it with a viewer"]


def test_a_snapshot_that_fails_costs_one_note(tmp_path):
    snapshots = Snapshots([Moved(), Recording()], tmp_path / "absent")
    snapshots.begin()
    snapshots.end()
    assert [note.partition(":")[0] for note in snapshots.notes] == [
        "Moved gave no snapshot of its allocations",
        "Fake gave no snapshot of its allocations",
    ]

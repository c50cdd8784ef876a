from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leakkit.cli import _temporary, main

STEPS = """
kept = []

def leaky():
    kept.append(bytes(64))

def clean():
    return sum(range(100))

class Trainer:
    def step(self):
        return 1

trainer = Trainer()

class Collector:
    def __init__(self):
        self.history = b""

    def __call__(self):
        self.history += bytes(640)

def make_clean():
    return clean

def make_nothing():
    return None

def broken(index):
    if index == 50:
        raise ValueError("boom")

def leaves():
    raise SystemExit(7)

def stopped(index):
    if index == 50:
        raise KeyboardInterrupt

answer = 42
"""


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """A file of steps in the current folder; what importing it changes is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mysteps.py").write_text(STEPS)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("mysteps")]:
        del sys.modules[name]


def test_a_flat_step_is_0_and_a_leaky_one_1(steps, capsys):
    assert main(["run", "mysteps.py:clean"]) == 0
    assert capsys.readouterr().out.startswith("FLAT  clean does not grow")
    assert main(["run", "mysteps.py:leaky"]) == 1
    assert capsys.readouterr().out.startswith("LEAK  leaky grows by")


def test_what_the_step_object_itself_holds_is_named(steps, tmp_path):
    target = tmp_path / "result.json"
    assert main(["run", "mysteps.py:Collector", "--factory", "--json", str(target)]) == 1
    held = json.loads(target.read_text())["suspects"][0]
    assert held["where"] == "bytes `self.history` of Collector"


def test_an_undecided_step_is_3(steps, capsys):
    assert main(["run", "mysteps.py:clean", "--steps", "4", "--max-steps", "4"]) == 3
    assert capsys.readouterr().out.startswith("UNDECIDED  clean")


@pytest.mark.parametrize(
    "target",
    ["mysteps:clean", "mysteps.py:trainer.step", "./mysteps.py:clean"],
)
def test_targets(steps, target):
    assert main(["run", target]) == 0


def test_a_factory_returns_the_step(steps):
    assert main(["run", "mysteps.py:make_clean", "--factory"]) == 0


def test_a_file_called_like_a_loaded_module_does_not_take_its_place(steps):
    (steps / "json.py").write_text("def step(): pass")
    assert main(["run", "json.py:step"]) == 0
    assert sys.modules["json"] is json


def test_all_devices_are_measured_in_turn(steps, capsys, monkeypatch):
    """The second device is the first under another name: there is only a CPU here."""
    monkeypatch.setattr("leakkit.frameworks.present", lambda: ["CPU:0", "cpu"])
    arguments = ["mysteps.py:leaky", "--device", "all", "--json", "r.json"]
    assert main(["run", *arguments]) == 1
    assert capsys.readouterr().out.count("LEAK  leaky") == 2
    assert {f.name for f in Path().glob("r*.json")} == {"r-CPU-0.json", "r-cpu.json"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["mysteps.py"], "FILE.py:NAME"),
        ([":clean"], "FILE.py:NAME"),
        (["absent.py:step"], "there is no file absent.py"),
        (["absent:step"], "there is no module 'absent'"),
        (["mysteps.py:claen"], "did you mean clean?"),
        (["mysteps.py:answer"], "an int, which cannot be called"),
        (["mysteps.py:make_nothing", "--factory"], "returned a NoneType"),
        (["mysteps.py:clean", "--steps", "0"], "steps must be 1 or more"),
        (["mysteps.py:clean", "--heap", "x"], "auto, memray, tracemalloc, off"),
        (["mysteps.py:clean", "--limit", "x=1"], "unknown series 'x'"),
        (["mysteps.py:clean", "--limit", "fds"], "SERIES=VALUE"),
        (["mysteps.py:clean", "--max-seconds", "soon"], "no duration"),
        (["mysteps.py:clean", "--device", "TPU:7"], "TPU"),
        (["mysteps.py:clean", "--json", "absent/r.json"], "there is no folder"),
        (["mysteps.py:clean", "--dir", "."], "not an empty folder"),
        (["mysteps.py:clean", "--dir", "mysteps.py/in"], "cannot record in mysteps.py/in"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_2(steps, capsys, arguments, says):
    assert main(["run", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("leakkit: ")
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_module_without_py_is_hinted_at(steps, capsys):
    (steps / "odd").mkdir()
    (steps / "odd" / "name.py").write_text("")
    assert main(["run", "odd/name:step"]) == 2
    assert "write its name with .py" in capsys.readouterr().err


def test_a_step_that_raises_shows_its_own_stack_and_is_2(steps, capsys):
    assert main(["run", "mysteps.py:broken", "--dir", "kept"]) == 2
    error = capsys.readouterr().err
    assert 'raise ValueError("boom")' in error
    assert "loop.py" not in error
    assert error.splitlines()[-1].startswith("leakkit: the step raised ValueError: boom;")
    assert main(["report", "kept"]) in (0, 3)
    assert "cut short" in capsys.readouterr().out


def test_a_step_that_exits_is_2(steps, capsys):
    assert main(["run", "mysteps.py:leaves"]) == 2
    assert "the step raised SystemExit: 7" in capsys.readouterr().err


def test_an_interrupted_run_says_where_its_recording_is(steps, capsys):
    assert main(["run", "mysteps.py:stopped", "--dir", "kept"]) == 2
    assert capsys.readouterr().err == "leakkit: interrupted; what was recorded is in kept\n"


def test_a_file_that_does_not_import_shows_why(steps, capsys):
    (steps / "wrong.py").write_text("import a_module_that_is_not_there")
    assert main(["run", "wrong.py:step"]) == 2
    error = capsys.readouterr().err
    assert "a_module_that_is_not_there" in error
    assert "frozen importlib" not in error


def test_json_is_written(steps):
    assert main(["run", "mysteps.py:leaky", "--json", "r.json"]) == 1
    data = json.loads((steps / "r.json").read_text())
    assert data["verdict"] == "grows"
    assert data["series"]["python_heap"]["verdict"] == "grows"
    assert data["series"]["python_heap"]["slope"] > 64
    assert data["suspects"]


def test_json_alone_on_standard_output(steps, capsys):
    assert main(["run", "mysteps.py:clean", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "flat"


def test_markdown_is_written(steps):
    assert main(["run", "mysteps.py:clean", "--markdown", "r.md"]) == 0
    assert (steps / "r.md").read_text().startswith("### FLAT")


def test_a_limit_accepts_growth(steps):
    options = [
        "--limit=python_heap=1 KiB/step",
        "--limit=live_objects=10 objects/step",
    ]
    assert main(["run", "mysteps.py:leaky", *options]) == 0


def test_a_recording_is_shown_again_as_it_was(steps, capsys):
    assert main(["run", "mysteps.py:leaky", "--dir", "kept"]) == 1
    first = capsys.readouterr().out
    assert main(["report", "kept"]) == 1
    assert capsys.readouterr().out == first


def test_what_is_no_recording_is_one_line_and_2(steps, capsys):
    assert main(["report", "."]) == 2
    assert main(["report", "absent"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "no recording" in first
    assert "no recording" in second


def test_without_dir_nothing_is_left_behind(steps, monkeypatch):
    temporary = steps / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert main(["run", "mysteps.py:clean"]) == 0
    assert main(["run", "mysteps.py:absent"]) == 2
    assert list(temporary.iterdir()) == []
    assert main(["run", "mysteps.py:broken"]) == 2
    assert (next(temporary.iterdir()) / "meta.json").exists()


def test_a_folder_with_a_snapshot_in_it_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with _temporary(None, keep=False) as temp:
        (temp.parent / "fake-memory-snapshot.pickle").write_bytes(b"blocks")
    assert [f.name for f in tmp_path.rglob("*.pickle")] == ["fake-memory-snapshot.pickle"]


def test_help_teaches_with_examples(capsys):
    with pytest.raises(SystemExit) as done:
        main(["run", "--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    assert "leakkit run train.py:train_step" in text
    assert "exit code: 0 flat, 1 grows" in text


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["run"]])
def test_wrong_usage_is_2(arguments):
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert done.value.code == 2


def test_without_a_command_all_of_them_are_shown(capsys):
    with pytest.raises(SystemExit):
        main([])
    assert "doctor" in capsys.readouterr().err


def leakkit(*arguments, **how):
    command = [sys.executable, "-m", "leakkit", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **how)


def test_in_a_fresh_process_without_unicode_the_report_is_ascii(steps):
    done = leakkit("run", "mysteps.py:leaky", env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    assert done.returncode == 1, done.stderr
    assert done.stdout.isascii()
    assert done.stdout.startswith("LEAK  leaky grows")
    assert done.stderr == ""


KEEPS = """
import atexit
atexit.register(print, "goodbye")

class Slow:
    def __del__(self):
        print("taken down")

def make_step():
    kept = Slow()
    return lambda: kept and None
"""


def test_the_command_ends_without_taking_down_what_the_step_kept(tmp_path):
    (tmp_path / "keeps.py").write_text(KEEPS)
    done = leakkit("run", "keeps.py:make_step", "--factory", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("FLAT")
    assert done.stdout.endswith("goodbye\n")
    assert "taken down" not in done.stdout


def test_a_missing_tensorflow_is_said_by_the_demo(monkeypatch, capsys):
    monkeypatch.setattr("leakkit.demo.find_spec", lambda name: None)
    assert main(["demo"]) == 2
    assert "pip install 'leakkit[tensorflow]'" in capsys.readouterr().err


def test_the_demo_finds_its_leak_and_passes_corrected():
    pytest.importorskip("tensorflow")
    done = leakkit("demo", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    leak, _, corrected = done.stdout.partition("FLAT  corrected_train_step does not grow")
    assert "LEAK  train_step grows by" in leak
    assert "train.py:" in leak
    assert corrected

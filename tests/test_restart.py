"""Whether a restart would help: in a process that slows down, on a disk that does, in neither."""

import subprocess
import sys

import pytest

from leakkit.restart import Restart

STEPS = """
from pathlib import Path

LOG = Path(__file__).with_name("losses.txt")


def in_process():
    history = []

    def step(i):
        history.extend(range(400))
        return sorted(history, key=abs)[0]

    return step


def on_disk():
    def step(i):
        with LOG.open("a") as lines:
            lines.write("loss 0.125\\n" * 40)
        with LOG.open() as lines:
            return sum(float(line.split()[1]) for line in lines)

    return step


def neither():
    return lambda i: i
"""


@pytest.fixture
def check(tmp_path):
    (tmp_path / "slow_steps.py").write_text(STEPS)

    def checked(name):
        command = ["leakkit", "run", f"slow_steps.py:{name}", "--factory", "--restart-check"]
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout.splitlines()[-1]

    return checked


def test_a_slowdown_in_the_process_is_cleared(check):
    assert check("in_process").endswith("× in this process; a restart clears it")


def test_a_slowdown_on_disk_is_not_cleared(check):
    answer = check("on_disk")
    assert answer.startswith("Restart check: slower by ")
    assert answer.endswith("not cleared by a restart (disk, external state)")


def test_a_steady_step_has_nothing_to_clear(check):
    assert check("neither").startswith("Restart check: the step does not get slower")


def test_a_fresh_process_that_breaks_is_said(tmp_path):
    once = "from pathlib import Path\nPath(__file__).with_name('mark').touch(exist_ok=False)\n"
    (tmp_path / "slow_steps.py").write_text(once + STEPS)
    command = ["leakkit", "run", "slow_steps.py:in_process", "--factory", "--restart-check"]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Restart check: the fresh process broke" in done.stdout


def test_cleared_is_nearer_to_the_early_steps():
    assert Restart(early=1.0, late=2.0, fresh=1.4).cleared
    assert not Restart(early=1.0, late=2.0, fresh=1.6).cleared
    assert str(Restart(1.0, 1.8, 1.0)) == "slower by 1.8× in this process; a restart clears it"

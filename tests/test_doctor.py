"""``leakkit doctor``: what it prints, what it confirms, and what it does not."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from leakkit import doctor
from leakkit.frameworks import Device, Framework

CPU = Device("CPU:0", "cpu")


class Honest(Framework):
    """A fake framework whose arrays are numpy's."""

    name, module = "Honest", "numpy"

    def allocate(self, device, nbytes):
        return np.ones(nbytes, np.uint8)


class Stingy(Honest):
    """A fake whose arrays hold less than they were asked for."""

    def allocate(self, device, nbytes):
        return np.ones(nbytes // 2, np.uint8)


def test_a_planted_leak_is_confirmed_at_its_size():
    planted = doctor.plant_leak(Honest(), CPU)
    assert planted.series == "native_heap"
    assert planted.control == "flat"
    assert planted.found.trend.slope == doctor.PLANTED
    assert planted.confirmed


def test_a_leak_of_another_size_is_not_confirmed():
    planted = doctor.plant_leak(Stingy(), CPU)
    assert planted.found.trend.slope == doctor.PLANTED // 2
    assert not planted.confirmed


def test_a_framework_that_is_not_there_is_said_and_fails(capfd):
    assert doctor.main(["othernet"]) == 1
    printed = capfd.readouterr().out
    assert "othernet was asked for and is not installed" in printed
    assert "native_heap" in printed and "µs" in printed
    assert printed.rstrip().endswith("not in order: othernet")


@pytest.mark.skipif(not find_spec("torch"), reason="PyTorch is not installed")
def test_a_device_that_is_missing_fails_with_one_line():
    command = [sys.executable, "-m", "leakkit", "doctor", "torch", "--device", "tpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "torch cannot be examined: " in done.stdout
    assert "TPU:0 is not there: PyTorch sees" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", doctor.FRAMEWORKS)
def test_each_installed_framework_is_in_order_on_this_machine(name):
    if not find_spec(name):
        pytest.skip(f"{name} is not installed")
    command = [sys.executable, "-m", "leakkit", "doctor", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "native_heap counts what malloc gives" in done.stdout
    assert "planted on CPU:0" in done.stdout and "confirmed: expected" in done.stdout
    assert done.stdout.rstrip().endswith(f"in order: {name}")

"""The NVML probe on a fake driver: there is no GPU here, so all counts below are made up."""

import os
import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from leakkit.check import Check
from leakkit.frameworks import present
from leakkit.probes import Unavailable
from leakkit.probes.nvml import Nvml, gpus, starved
from leakkit.series import Kind, Quantity, Series
from leakkit.settings import Settings

MIB = 2**20


class FakeNvml:
    """A fake of the module ``pynvml``: two GPUs, this process on the first."""

    class NVMLError(Exception):
        pass

    def __init__(self, gpus=2, *, answers=True, pid=None):
        self.gpus, self.answers, self.open = gpus, answers, 0
        self.processes = [SimpleNamespace(pid=pid or os.getpid(), usedGpuMemory=300 * MIB)]
        self.processes.append(SimpleNamespace(pid=1, usedGpuMemory=9000 * MIB))

    def nvmlInit(self):
        if not self.answers:
            raise self.NVMLError("Driver Not Loaded")
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        if handle == 1:
            raise self.NVMLError("Not Supported")
        return self.processes

    def nvmlDeviceGetUtilizationRates(self, handle):
        return SimpleNamespace(gpu=40 + (handle if isinstance(handle, int) else 0))


@pytest.fixture(autouse=True)
def all_visible(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_memory_of_this_process_and_utilisation_of_each_gpu():
    fake = FakeNvml()
    probe = Nvml(fake)
    read = dict(zip([q.name for q in probe.quantities], probe.read(), strict=True))
    assert read["gpu_process_memory:GPU:0"] == 300 * MIB
    assert read["gpu_process_memory:GPU:1"] != read["gpu_process_memory:GPU:1"]  # not told: NaN
    assert read["gpu_utilisation:GPU:0"] == 40
    assert read["gpu_utilisation:GPU:1"] == 41
    assert all(q.advisory for q in probe.quantities)
    probe.close()
    assert fake.open == 0


def test_a_container_that_hides_pids_reads_nan_and_not_0():
    memory = Nvml(FakeNvml(pid=77)).read()[0]
    assert memory != memory


def test_a_driver_that_does_not_answer_is_unavailable():
    with pytest.raises(Unavailable, match="does not answer: Driver Not Loaded"):
        Nvml(FakeNvml(answers=False))


def test_no_gpu_is_unavailable_and_lets_the_driver_go():
    fake = FakeNvml(gpus=0)
    with pytest.raises(Unavailable, match="no GPU that this process may use"):
        Nvml(fake)
    assert fake.open == 0


@pytest.mark.parametrize(
    ("visible", "utilisation"),
    [("1", [41]), ("1,0", [41, 40]), ("0,9,1", [40]), ("GPU-abc", [40])],
)
def test_gpus_are_numbered_as_cuda_numbers_them(monkeypatch, visible, utilisation):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert Nvml(FakeNvml()).read()[1::2] == utilisation


@pytest.mark.parametrize("visible", ["", "-1", "7"])
def test_no_visible_gpu_is_unavailable(monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(Unavailable):
        Nvml(FakeNvml())


def watched(busy, seconds):
    """Series of a watch pass in which a fake GPU was busy so many percent."""
    steps = np.full(8, seconds / 8)
    return {
        "latency": Series(Quantity("latency", "s", Kind.LATENCY), steps),
        "gpu_utilisation:GPU:0": Series(
            Quantity("gpu_utilisation:GPU:0", "%", Kind.NOISY), np.full(8, busy)
        ),
    }


def test_an_idle_gpu_is_put_down_to_the_input_pipeline_where_the_loop_waits_for_it():
    found = starved(watched(30.0, seconds=4.0), waiting=6.0)
    assert (found.busy, found.waiting) == ({"GPU:0": 30.0}, 0.6)
    assert str(found).startswith(
        "GPU:0 is busy 30 % of the time; 60 % of each step's time is spent waiting for data: "
        "the input pipeline is the likely cause."
    )


@pytest.mark.parametrize(
    ("busy", "seconds", "waiting"),
    [
        (90.0, 4.0, 6.0),  # the GPU works
        (30.0, 4.0, 0.1),  # the loop does not wait
        (30.0, 0.4, 0.5),  # too short for the driver's figure
        (30.0, 0.0, 0.0),
        (float("nan"), 4.0, 6.0),  # the driver does not say
    ],
)
def test_nothing_is_said_of_the_input_pipeline(busy, seconds, waiting):
    assert starved(watched(busy, seconds), waiting) is None


def test_a_pass_without_steps_and_a_machine_without_a_driver_say_nothing():
    none = {name: s.first(0) for name, s in watched(30.0, 4.0).items()}
    assert starved(none, waiting=6.0) is None
    assert starved({"latency": watched(30.0, 4.0)["latency"]}, waiting=6.0) is None


def test_only_a_loop_that_takes_items_waits_for_data(monkeypatch, tmp_path):
    """A fake driver and real waits: what is told of the watch pass of three kinds of loop."""

    class IdleGpu(Nvml):
        """A fake GPU that is busy 31 % of the time."""

        traced = False

        def __init__(self):
            super().__init__(FakeNvml())

        def _utilisation(self, handle):
            return 31.0

    def slow_items(seconds):
        for index in range(1000):
            time.sleep(seconds)
            yield index

    monkeypatch.setattr("leakkit.loop.make_probes", lambda *_: ([IdleGpu()], []))
    monkeypatch.setattr("leakkit.probes.nvml.LEAST_SECONDS", 0.05)

    def said(name, drive):
        check = Check(Settings(24, 24, warmup=3, heap="off", directory=tmp_path / name))
        drive(check)
        return [note for note in check.finish().notes if "input pipeline" in note]

    def loop(wait, step):
        return lambda check: [time.sleep(step) for _ in check.steps(slow_items(wait))]

    [note] = said("slow", loop(0.01, 0.002))
    assert note.startswith("GPU:0 is busy 31 % and GPU:1 is busy 31 % of the time; ")
    assert 60 < int(re.search(r"; (\d+) % of each", note)[1]) < 95
    assert said("fast", loop(0.0, 0.005)) == []
    assert said("step", lambda check: check.run(time.sleep, 0.005)) == []


def test_gpus_are_named_without_asking_a_framework(monkeypatch):
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    assert gpus() == ["GPU:0", "GPU:1"]
    assert fake.open == 0
    assert present() == ["CPU:0", "GPU:0", "GPU:1"]


def test_where_no_driver_answers_there_are_no_gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(answers=False))
    assert gpus() == []

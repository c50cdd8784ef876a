"""The protocol, the choice of devices, and what needs no framework."""

import sys
import textwrap
from contextlib import contextmanager

import fresh_process
import numpy as np
import pytest

from leakkit import frameworks
from leakkit.frameworks import Device, DeviceMemory, DeviceMissing, Framework
from leakkit.frameworks.combined import combine
from leakkit.frameworks.counted import CallCounter
from leakkit.frameworks.memory import DeviceMemoryProbe
from leakkit.probes import Kind, Probe, Quantity, Unavailable

GPU = Device("GPU:0", "gpu", 16 * 2**30, "a fake")


class FakeGpu(Framework):
    """A fake GPU framework: there is no GPU here, so its allocator is a number in a list."""

    name, module = "FakeGpu", "sys"

    def __init__(self):
        self.used = 0
        self.peak = 0

    def devices(self):
        return [Device("CPU:0", "cpu"), GPU, Device("GPU:1", "gpu")]

    def memory(self, device):
        return DeviceMemory(self.used, self.peak, self.used + 100) if device == GPU else None

    def reset_peak(self, device):
        self.peak = self.used


class Constant(Probe):
    def __init__(self, **values):
        self.quantities = tuple(Quantity(name, "things", Kind.COUNTER) for name in values)
        self._values = list(values.values())
        self.closed = False

    def read(self):
        return self._values

    def close(self):
        self.closed = True


def test_looking_for_frameworks_imports_none():
    said = fresh_process.run("""
        import leakkit, leakkit.plugin, leakkit.frameworks
        active = len(leakkit.frameworks.active())
        names = ("tensorflow", "keras", "jax", "torch", "memray")
        say(loaded=[n for n in names if n in sys.modules], active=active)
    """)
    assert said == {"loaded": [], "active": 0}


def test_a_third_party_adapter_is_found_by_its_entry_point(tmp_path):
    (tmp_path / "othernet.py").write_text("")
    (tmp_path / "othernet_leakkit.py").write_text(
        textwrap.dedent("""
            from leakkit.frameworks import Framework
            class OtherNet(Framework):
                name, module = "OtherNet", "othernet"
                def versions(self): return {"othernet": "1.2"}
        """)
    )
    metadata = tmp_path / "othernet_leakkit-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: othernet-leakkit\nVersion: 1\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[leakkit.frameworks]\nothernet = othernet_leakkit:OtherNet\n"
    )
    said = fresh_process.run(
        """
        from leakkit.frameworks import active
        before = [f.name for f in active()]
        import othernet
        say(before=before, after=[f.versions() for f in active()])
        """,
        PYTHONPATH=str(tmp_path),
    )
    assert said == {"before": [], "after": [{"othernet": "1.2"}]}


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("cpu", ["CPU:0"]),
        ("GPU", ["GPU:0"]),
        ("gpu:1", ["GPU:1"]),
        ("all", ["CPU:0", "GPU:0", "GPU:1"]),
    ],
)
def test_devices_are_found_by_kind_and_number(spec, names):
    assert [d.name for d in frameworks.find_devices(spec, [FakeGpu()])] == names


def test_what_a_framework_knows_of_a_device_is_kept():
    assert frameworks.find_devices("gpu", [FakeGpu()]) == [GPU]


def test_a_missing_device_is_one_line_that_says_who_was_asked():
    with pytest.raises(DeviceMissing, match=r"^TPU:0 is not there: FakeGpu sees CPU:0, GPU:0"):
        frameworks.find_devices("tpu", [FakeGpu()])
    with pytest.raises(DeviceMissing, match="no framework is imported"):
        frameworks.find_devices("gpu", [])


def test_a_framework_is_placed_on_a_device_once():
    class Counting(FakeGpu):
        name, placed = "Counting", 0

        @contextmanager
        def on(self, device):
            self.placed += 1
            yield

    fake = Counting()
    cpu, gpu = frameworks.find_devices("cpu", [fake])[0], GPU
    with frameworks.on(gpu, [fake]):
        with frameworks.on(gpu, [fake]):
            assert fake.placed == 1
        with frameworks.on(cpu, [fake]), frameworks.on(gpu, [fake]):
            assert fake.placed == 3
        with frameworks.on(gpu, [fake]):
            assert fake.placed == 3
    with frameworks.on(gpu, [fake]):
        assert fake.placed == 4


@pytest.mark.parametrize("spec", ["", "cuda", "gpu:", "gpu:x", "gpu:1:2", "everything"])
def test_a_device_that_cannot_be_is_refused(spec):
    with pytest.raises(ValueError, match="none of cpu, gpu"):
        frameworks.find_devices(spec, [FakeGpu()])


def test_device_memory_gives_the_peak_of_each_step():
    fake = FakeGpu()
    fake.used = 1000
    probe = DeviceMemoryProbe(fake, GPU)
    fake.peak = 5000
    first = dict(zip([q.name for q in probe.quantities], probe.read(), strict=True))
    assert first == {
        "device_memory:GPU:0": 1000,
        "device_peak:GPU:0": 5000,
        "device_reserved:GPU:0": 1100,
    }
    assert probe.read()[1] == 1000  # nothing more was taken in the second step
    assert [q.advisory for q in probe.quantities] == [False, True, True]


def test_a_device_without_a_count_is_no_probe():
    with pytest.raises(Unavailable, match="FakeGpu has no memory count for CPU:0"):
        DeviceMemoryProbe(FakeGpu(), Device("CPU:0", "cpu"))


def test_quantities_of_one_name_are_summed_and_others_left_alone():
    first, second, third = Constant(live=2, a=5), Constant(live=3), Constant(b=7)
    probes = combine([first, second, third])
    read = {q.name: v for p in probes for q, v in zip(p.quantities, p.read(), strict=True)}
    assert read == {"live": 5, "a": 5, "b": 7}
    for probe in probes:
        probe.close()
    assert first.closed and second.closed and third.closed


class Thing:
    def act(self, fail=False):
        if fail:
            raise KeyError("asked to")
        return 5


def test_calls_are_counted_and_the_method_put_back():
    original = Thing.__dict__["act"]
    counter = CallCounter(Thing, "act")
    assert [Thing().act() for _ in range(3)] == [5, 5, 5]
    counter.close()
    Thing().act()
    assert counter.total == 3
    assert Thing.__dict__["act"] is original


def test_only_calls_that_raise_are_counted_where_that_is_asked():
    counter = CallCounter(Thing, "act", error=KeyError)
    Thing().act()
    with pytest.raises(KeyError):
        Thing().act(fail=True)
    counter.close()
    assert counter.total == 1


def test_a_method_that_was_wrapped_again_is_left_to_the_later_wrapper():
    class Other(Thing):
        def act(self):
            return 1

    counter = CallCounter(Other, "act")
    ours = Other.__dict__["act"]
    Other.act = lambda self: ours(self) + 1
    later = Other.__dict__["act"]
    counter.close()
    assert Other.__dict__["act"] is later
    assert Other().act() == 2


def test_reading_a_counter_keeps_nothing():
    counter = CallCounter(Thing, "act")
    thing = Thing()
    for _ in range(1000):
        thing.act()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        thing.act()
    kept = sys.getallocatedblocks() - before
    counter.close()
    assert counter.total == 2000
    assert kept < 10


def test_own_growth_per_step_is_the_mean_rise():
    own = frameworks.OwnGrowth("x_own_bytes", "native_heap", np.arange(5) * 10.0, "X 1", "")
    assert own.per_step == 10.0

"""The PyTorch adapter, on real PyTorch in fresh processes."""

import fresh_process
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

SETUP = """
import torch
from leakkit import frameworks
kept = []
x = torch.ones(16, 16)
w = torch.ones(16, 16, requires_grad=True)
"""


def test_what_is_read_of_pytorch():
    said = fresh_process.run(
        SETUP,
        """
        import gc
        adapter, = frameworks.active()
        probes = frameworks.probes([adapter])
        gc.collect(); gc.freeze()
        start = read(probes)
        kept += [x + i for i in range(10)]
        plain = read(probes)
        kept += [(x * w).sum() for i in range(5)]
        graphs = read(probes)
        for _ in range(2):  # the first round fills the interpreter's own caches
            blocks = sys.getallocatedblocks()
            for _ in range(500):
                for p in probes:
                    p.read()
            grown = sys.getallocatedblocks() - blocks
        say(tensors=plain["live_tensors"] - start["live_tensors"],
            bytes=plain["live_tensor_bytes"] - start["live_tensor_bytes"],
            none=plain["torch_autograd_graphs"], graphs=graphs["torch_autograd_graphs"],
            grown=grown, versions=adapter.versions(),
            devices=[d.name for d in adapter.devices()], notes=adapter.notes(),
            remarks=adapter.remarks(), snapshot=adapter.snapshot(None),
            started=torch.cuda.is_initialized())
        """,
    )
    assert said["tensors"] == 10
    assert said["bytes"] == 10 * 16 * 16 * 4
    assert (said["none"], said["graphs"]) == (0, 5)
    assert said["grown"] < 10  # looking at tensors must make nothing that stays
    assert "torch" in said["versions"]
    assert said["devices"][0] == "CPU:0"
    assert said["notes"] == []
    assert "native_heap counts what malloc gives" in said["remarks"][0]
    assert said["started"] is False  # looking must not make a CUDA context


FAKE_CUDA = """
from pathlib import Path
from types import SimpleNamespace
from leakkit.suspects.snapshots import saved

class FakeCuda:
    # A fake: there is no GPU here, so what is allocated on it is a number that steps raise.
    allocated, reserved, recording, calls, fails = 0, 2**30, False, [], False

    def _record_memory_history(self, enabled="all", **options):
        self.recording = enabled is not None
        self.calls.append([enabled, options.get("stacks")])

    def _dump_snapshot(self, file):
        assert self.recording and not self.fails, "no snapshot of a fake"
        Path(file).write_bytes(b"blocks")

fake = FakeCuda()
torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
torch.cuda.device_count = lambda: 1
torch.cuda.get_device_properties = lambda i: SimpleNamespace(total_memory=2**30, name="a fake")
torch.cuda.synchronize = torch.cuda.reset_peak_memory_stats = lambda i: None
torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = lambda i: fake.allocated
torch.cuda.memory_reserved = lambda i: fake.reserved
torch.cuda.memory = fake
torch._C._cuda_isHistoryEnabled = lambda: fake.recording

def on_the_gpu():
    fake.allocated += 512

def on_the_cpu():
    kept.append(torch.ones(4))

def measured(step):
    result = check(step, steps=24, max_steps=24, heap="off")
    say(verdict=result.verdict.value, files=[f.name for f in saved(result.recording.path)],
        notes=[n for n in result.notes if "snapshot" in n or "removed" in n],
        calls=fake.calls, recording=fake.recording)
"""


def test_what_a_fake_gpu_allocated_while_its_memory_grew_is_saved():
    said = fresh_process.run(SETUP, FAKE_CUDA, "measured(on_the_gpu)")
    assert said["verdict"] == "grows"
    assert said["files"] == ["torch-memory-snapshot.pickle"]
    note, fleeting = said["notes"]
    assert note.startswith("PyTorch recorded its allocations: /")
    assert note.endswith("torch-memory-snapshot.pickle; open it at https://pytorch.org/memory_viz")
    assert "give directory= to keep it" in fleeting
    assert said["calls"] == [["all", "python"], [None, None]]
    assert said["recording"] is False


@pytest.mark.parametrize(
    ("before", "step", "calls", "notes"),
    [
        ("", "on_the_cpu", 0, 0),
        ("fake.recording = True", "on_the_gpu", 0, 0),  # the user's own recording
        ("fake.fails = True", "on_the_gpu", 2, 1),
        ("del FakeCuda._record_memory_history", "on_the_gpu", 0, 1),
    ],
)
def test_no_snapshot_is_made_of_a_fake_gpu(before, step, calls, notes):
    said = fresh_process.run(SETUP, FAKE_CUDA, before, f"measured({step})")
    assert (said["verdict"], said["files"]) == ("grows", [])
    assert (len(said["calls"]), len(said["notes"])) == (calls, notes)
    assert said["recording"] is (before == "fake.recording = True")
    assert all(note.startswith("PyTorch gave no snapshot") for note in said["notes"])


@pytest.mark.parametrize(("kept", "notes"), [(0, 1), (512, 0)])
def test_what_a_fake_gpu_only_reserves_is_fragmentation_and_no_leak(kept, notes):
    said = fresh_process.run(
        SETUP,
        FAKE_CUDA,
        f"""
        def step():
            fake.reserved += 2**21
            fake.allocated += {kept}
        result = check(step, heap="off")
        say(verdict=result.verdict.value, notes=[n for n in result.notes if "fragmented" in n])
        """,
    )
    assert said["verdict"] == ("grows" if kept else "flat")
    assert len(said["notes"]) == notes
    for note in said["notes"]:
        assert note.startswith("GPU:0 reserves +2,097,152 B a step while what is allocated stays")
        assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in note


STEPS = {
    "loss with its graph": (
        "step = lambda: kept.append((x * w).sum())",
        "step = lambda: float((x * w).sum())",
        "torch_autograd_graphs",
    ),
    "tensor kept": (
        "step = lambda: kept.append(x * 2)",
        "step = lambda: (x * 2).sum().item()",
        "live_tensors",
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_leaking_step_grows_and_its_corrected_form_is_flat(name):
    leaking, corrected, series = STEPS[name]
    grown = fresh_process.run(SETUP, leaking, "say(**summary(check(step)))")
    assert grown["verdict"] == "grows"
    assert grown["trends"][series] == ["grows", 1.0]
    flat = fresh_process.run(
        SETUP, corrected, "say(**summary(check(step)), tf='tensorflow' in sys.modules)"
    )
    assert flat["verdict"] == "flat", flat
    assert flat["trends"][series] == ["flat", 0.0]
    assert flat["tf"] is False


def test_recompilations_are_counted():
    said = fresh_process.run(
        SETUP,
        """
        import torch._dynamo
        adapter, = frameworks.active()
        f = torch.compile(lambda a: (a * 2).sum(), backend="eager", dynamic=False)
        f(torch.ones(3))
        probes = frameworks.probes([adapter])
        start = read(probes)["traces"]
        f(torch.ones(3))
        same = read(probes)["traces"] - start
        for n in range(4, 7):
            f(torch.ones(n))
        say(same=same, new=read(probes)["traces"] - start)
        """,
    )
    assert said == {"same": 0, "new": 3}


def test_jax_and_pytorch_in_one_process_are_summed():
    pytest.importorskip("jax", reason="JAX is not installed")
    said = fresh_process.run(
        SETUP,
        """
        import gc, jax, jax.numpy as jnp
        jnp.zeros(1)  # JAX is not in use before
        found = frameworks.active()
        probes = frameworks.probes(found)
        gc.collect(); gc.freeze()
        start = read(probes)["live_tensors"]
        kept += [x + 1, x + 2, jnp.ones(3)]
        names = [q.name for p in probes for q in p.quantities]
        say(found=[f.name for f in found], new=read(probes)["live_tensors"] - start,
            unique=len(names) == len(set(names)))
        """,
    )
    assert said == {"found": ["JAX", "PyTorch"], "new": 3, "unique": True}

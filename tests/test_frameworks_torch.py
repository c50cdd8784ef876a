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
            snapshot=adapter.snapshot(None), started=torch.cuda.is_initialized())
        """,
    )
    assert said["tensors"] == 10
    assert said["bytes"] == 10 * 16 * 16 * 4
    assert (said["none"], said["graphs"]) == (0, 5)
    assert said["grown"] < 10  # looking at tensors must make nothing that stays
    assert "torch" in said["versions"]
    assert said["devices"][0] == "CPU:0"
    assert said["started"] is False  # looking must not make a CUDA context


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

"""Device memory on a real NVIDIA GPU, through PyTorch and JAX, each in a fresh process."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
import fresh_process

if shutil.which("nvidia-smi") is None or subprocess.run(["nvidia-smi", "-L"]).returncode:
    pytest.skip("there is no NVIDIA GPU here", allow_module_level=True)

ENVIRONMENT = {"JAX_PLATFORMS": "", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}

TORCH = """
import torch
from leakkit import frameworks
kept = []
def make(n=65536):
    return torch.ones(n, dtype=torch.uint8, device="cuda")
"""
JAX = """
import jax, jax.numpy as jnp
from leakkit import frameworks
kept = []
def make(n=65536):
    return jax.block_until_ready(jnp.ones(n, jnp.uint8))
"""
MADE = [
    pytest.param(code, id=name)
    for name, code in (("torch", TORCH), ("jax", JAX))
    if find_spec(name) is not None
]


def run(*code):
    return fresh_process.run(*code, **ENVIRONMENT)


@pytest.mark.parametrize("framework", MADE)
def test_an_array_kept_on_the_gpu_is_measured_to_the_byte(framework):
    said = run(
        framework,
        """
        make()
        grown = summary(check(lambda: kept.append(make())))
        kept.clear()
        say(grown=grown, flat=summary(check(lambda: (make(), None)[1])),
            devices=[d.name for d in frameworks.find_devices("gpu")],
            tensorflow="tensorflow" in sys.modules)
        """,
    )
    assert said["devices"] == ["GPU:0"]
    assert said["grown"]["verdict"] == "grows"
    assert said["grown"]["trends"]["device_memory:GPU:0"] == ["grows", 65536.0]
    assert said["flat"]["trends"]["device_memory:GPU:0"] == ["flat", 0.0]
    assert said["tensorflow"] is False


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_memory_that_pytorch_caches_is_no_leak():
    said = run(
        TORCH,
        """
        sizes = iter(range(1, 10**6))
        step = lambda: (make(next(sizes) * 2**21), None)[1]  # ever larger: the cache keeps growing
        say(**summary(check(step, steps=24, max_steps=24, heap="off")))
        """,
    )
    assert said["trends"]["device_memory:GPU:0"] == ["flat", 0.0]
    assert said["trends"]["device_reserved:GPU:0"][1] > 0
    assert said["verdict"] != "grows"


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_the_peak_is_that_of_one_step(tmp_path):
    said = run(
        TORCH,
        f"""
        from pathlib import Path
        make()
        adapter, = frameworks.imported()
        adapter.record()
        probes = frameworks.probes([adapter])
        big = make(10 * 2**20); del big
        first = read(probes)
        second = read(probes)
        kept.append(make())
        saved = adapter.snapshot(Path({str(tmp_path)!r}))
        say(first=first, second=second, saved=[p.stat().st_size for p in saved])
        """,
    )
    rise = said["first"]["device_peak:GPU:0"] - said["second"]["device_peak:GPU:0"]
    assert rise == 10 * 2**20
    assert said["saved"][0] > 0


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_what_was_allocated_while_device_memory_grew_is_saved():
    said = run(
        TORCH,
        """
        import pickle
        from leakkit.suspects.snapshots import saved
        make()
        result = check(lambda: kept.append(make()), heap="off")
        file, = saved(result.recording.path)
        frames = [f["name"] for t in pickle.loads(file.read_bytes())["device_traces"]
                  for entry in t for f in entry.get("frames", [])]
        kept.clear()
        flat = check(lambda: (make(), None)[1], heap="off")
        say(named=any(str(file) in note for note in result.notes), made="make" in frames,
            on=torch._C._cuda_isHistoryEnabled(), flat=len(saved(flat.recording.path)))
        """,
    )
    assert said == {"named": True, "made": True, "on": False, "flat": 0}


@pytest.mark.skipif(find_spec("pynvml") is None, reason="nvidia-ml-py is not installed")
@pytest.mark.parametrize("framework", MADE)
def test_the_driver_is_asked(framework):
    said = run(
        framework,
        """
        make()
        probes = frameworks.probes(frameworks.active())
        values = read(probes)
        say(names=sorted(n for n in values if n.startswith("gpu_")),
            busy=values["gpu_utilisation:GPU:0"])
        """,
    )
    assert "gpu_process_memory:GPU:0" in said["names"]
    assert 0 <= said["busy"] <= 100


@pytest.mark.parametrize("framework", MADE)
def test_a_step_is_placed_on_the_device_that_was_asked_for(framework):
    said = run(
        framework,
        """
        adapter, = frameworks.imported()
        cpu, = frameworks.find_devices("cpu")
        gpu, = frameworks.find_devices("gpu")
        make()
        before = adapter.memory(gpu).allocated
        with frameworks.on(cpu):
            kept.append(jnp.ones(2**20) if "jax" in sys.modules else torch.ones(2**20))
            on_cpu = adapter.memory(gpu).allocated - before
        with frameworks.on(gpu):
            kept.append(jnp.ones(2**20) if "jax" in sys.modules else torch.ones(2**20))
            on_gpu = adapter.memory(gpu).allocated - before
        say(on_cpu=on_cpu, on_gpu=on_gpu)
        """,
    )
    assert said == {"on_cpu": 0, "on_gpu": 4 * 2**20}

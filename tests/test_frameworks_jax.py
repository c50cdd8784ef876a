"""The JAX adapter, on real JAX in fresh processes."""

import fresh_process
import pytest

pytest.importorskip("jax", reason="JAX is not installed")

SETUP = """
import jax, jax.numpy as jnp
from leakkit import frameworks
kept = []
x = jnp.ones((16, 16))
"""


def test_what_is_read_of_jax():
    said = fresh_process.run(
        SETUP,
        """
        import numpy as np
        adapter, = frameworks.active()
        probes = frameworks.probes([adapter])
        start = read(probes)
        kept += [jnp.ones(4, jnp.float32) + i for i in range(10)]
        held = read(probes)
        before = read(probes)["traces"]
        for _ in range(3):
            jax.jit(lambda a: a * 3)(x)
        compiled = read(probes)["traces"] - before
        f = jax.jit(lambda a: a * 2)
        f(x)
        steady = read(probes)["traces"]
        for _ in range(5):
            f(x)
        again = read(probes)["traces"] - steady
        f(np.ones((2, 2), np.float32))
        shape = read(probes)["traces"] - steady
        for p in probes:
            p.close()
        closed = read(probes)["traces"]
        jax.jit(lambda a: a * 4)(x)
        say(tensors=held["live_tensors"] - start["live_tensors"],
            bytes=held["live_tensor_bytes"] - start["live_tensor_bytes"],
            compiled=compiled, again=again, shape=shape,
            after=read(probes)["traces"] - closed,
            versions=sorted(adapter.versions()), devices=[d.name for d in adapter.devices()],
            remarks=adapter.remarks(), tensorflow="tensorflow" in sys.modules)
        """,
    )
    assert said["tensors"] == 10
    assert said["bytes"] == 10 * 16
    assert (said["compiled"], said["again"], said["shape"], said["after"]) == (3, 0, 1, 0)
    assert said["versions"] == ["jax", "jaxlib"]
    assert said["devices"] == ["CPU:0"]
    assert "no memory statistics for a CPU" in said["remarks"][0]
    assert said["tensorflow"] is False


STEPS = {
    "array kept": (
        "f = jax.jit(lambda a: (a * a).sum(axis=0))\nstep = lambda: kept.append(f(x))",
        "f = jax.jit(lambda a: (a * a).sum(axis=0))\nstep = lambda: f(x).block_until_ready()",
        "live_tensors",
    ),
    "jit of a new lambda": (
        "step = lambda: jax.jit(lambda a: (a * a).sum())(x)",
        "f = jax.jit(lambda a: (a * a).sum())\nstep = lambda: f(x)",
        "traces",
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


def test_an_idle_jax_is_placed_on_the_cpu_and_not_started():
    said = fresh_process.run(
        """
        import jax
        from leakkit import frameworks
        adapter, = frameworks.imported()
        cpu, = frameworks.find_devices("cpu")
        with frameworks.on(cpu):
            say(started=adapter.in_use(), default=str(jax.config.jax_default_device))
        """
    )
    assert said == {"started": False, "default": "cpu"}


@pytest.mark.parametrize("other", [True, False])
def test_an_idle_jax_is_asked_for_all_devices_only_where_nobody_else_is(other):
    said = fresh_process.run(
        f"""
        import jax
        from leakkit import frameworks
        class Other(frameworks.Framework):
            name, module = "Other", "sys"
            def devices(self): return [frameworks.Device("CPU:0", "cpu")]
        adapter, = frameworks.imported()
        frameworks._adapters = lambda: [type(adapter)] + [Other] * {other}
        say(present=frameworks.present(), started=adapter.in_use())
        """
    )
    assert said == {"present": ["CPU:0"], "started": not other}


def test_the_memory_profile_is_saved(tmp_path):
    said = fresh_process.run(
        SETUP,
        f"""
from pathlib import Path
adapter, = frameworks.active()
say(sizes=[p.stat().st_size for p in adapter.snapshot(Path({str(tmp_path)!r}))])
""",
    )
    assert len(said["sizes"]) == 1 and said["sizes"][0] > 0

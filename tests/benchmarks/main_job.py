"""The figures of the main job: ``python tests/benchmarks/main_job.py [--runs 20] [NAME …]``.

Each runs in fresh processes and prints what was measured beside what must hold. Timings are
ratios within one process or medians over several; nothing here is a test.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

STEP = """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras, numpy as np, tensorflow as tf

    def make_step():
        rng = np.random.default_rng(0)
        x = tf.constant(rng.normal(size=(2048, 64)).astype("float32"))
        y = tf.constant(rng.normal(size=(2048, 1)).astype("float32"))
        model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"),
                                  keras.layers.Dense(1)])
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.build(model.trainable_variables)

        @tf.function
        def train_step(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        return lambda: train_step(x, y)
"""
MEMORY = (
    "python_heap", "native_heap", "live_tensors", "live_tensor_bytes", "live_objects", "traces",
)  # fmt: skip
MISSION = {
    "graph-retracing": "traces",
    "variable-in-loop": "native_heap",
    "growing-list-of-tensors": "live_tensors",
    "uncapped-logs": "python_heap",
    "log-file-unrotated": "file_bytes",
}


def python(code: str, *arguments: str) -> str:
    """Standard output of ``code`` in a fresh interpreter."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


def leakkit_run(target: str, *options: str) -> dict[str, Any]:
    """The JSON of one ``leakkit run`` in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "leakkit", "run", target, "--json", str(out), *options]
        subprocess.run(command, capture_output=True, check=False)
        return dict(json.loads(out.read_text()))


def clean(runs: int) -> str:
    """A correct train step: flat for every memory series, and quick."""
    code = (
        STEP
        + """
    import time
    import leakkit
    step = make_step()
    began = time.perf_counter()
    result = leakkit.watch().run(step)
    seconds = time.perf_counter() - began
    import json
    print(json.dumps([seconds, result.verdict.value,
                      {n: f.trend.verdict.value for n, f in result.findings.items()}]))
    """
    )
    results = [json.loads(python(code)) for _ in range(runs)]
    good = sum(all(found.get(n) == "flat" for n in MEMORY) for _, _, found in results)
    whole = sum(verdict == "flat" for _, verdict, _ in results)
    seconds = statistics.median(r[0] for r in results)
    worst = max(r[0] for r in results)
    return (
        f"memory series flat in {good} of {runs} processes, run flat in {whole}; "
        f"{seconds:.1f} s median, {worst:.1f} s at most (must: all, 6 s)"
    )


def mission(runs: int) -> str:
    """The mission's scenarios, both forms."""
    lines = []
    for name, series in MISSION.items():
        path = Path(__file__).parents[2] / "scenarios" / f"{name.replace('-', '_')}.py"
        targets = [f"{path}:leaky"] * runs + [f"{path}:corrected"] * runs
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda target: leakkit_run(target, "--factory"), targets))
        hits = sum(r["series"][series]["verdict"] == "grows" for r in found[:runs])
        flat = sum(r["verdict"] == "flat" for r in found[runs:])
        lines.append(f"{name}: leaky caught on {series} {hits} of {runs}, corrected flat {flat}")
        print(f"    {lines[-1]}", flush=True)
    return f"{len(lines)} scenarios"


def exact(runs: int) -> str:
    """A kept 64-byte object, to the byte."""
    code = """
    import leakkit, sys
    kept = [None] * 4096
    def step(index): kept[index] = bytes(64)
    trend = leakkit.watch().run(step).findings["python_heap"].trend
    print(trend.slope, sys.getsizeof(bytes(64)))
    """
    found = {python(code) for _ in range(runs)}
    return f"B/step measured, bytes with the object header: {sorted(found)}"


def overhead(runs: int) -> str:
    """What watching adds: to the step's own time, and around it.

    Both loops begin alike, with a recorder's preparation and its warm-up: after any pause a
    processor is faster for some ten steps, and slower for some hundred.
    """
    code = (
        STEP
        + """
    import statistics, time
    import leakkit
    from leakkit.settings import Settings
    from leakkit.check import Check
    step = make_step()

    def prepared():
        recorder = Check(Settings(steps=240, max_steps=240, heap="off")).start()
        while recorder.step_index < 20:
            recorder.begin(); recorder.end(step())
        return recorder

    def bare():
        recorder = prepared()
        times = []
        for _ in range(240):
            began = time.perf_counter(); step(); times.append(time.perf_counter() - began)
        recorder.close()
        return statistics.median(times)

    def recorded():
        recorder = prepared()
        around = []
        while not recorder.done:
            began = time.perf_counter(); recorder.begin(); entered = time.perf_counter()
            out = step()
            left = time.perf_counter(); recorder.end(out); ended = time.perf_counter()
            around.append((entered - began) + (ended - left))
        latency = statistics.median(recorder.recording.watch["latency"].values)
        return float(latency), statistics.mean(around[:-1])

    bare(), recorded()
    pairs = []
    for _ in range(5):
        before, (latency, around), after = bare(), recorded(), bare()
        pairs.append((2 * latency / (before + after), around * 1e6, before * 1e3))
    print(*map(statistics.median, zip(*pairs)))
    """
    )
    rows = [[float(v) for v in python(code).split()] for _ in range(runs)]
    ratio, around, step = (statistics.median(row[i] for row in rows) for i in range(3))
    return (
        f"recorded latency / bare loop {ratio:.3f} on a step of {step:.2f} ms, {runs} processes "
        f"(must: within 3 %); {around:.0f} µs a step outside the timed stretch (must: 250)"
    )


def idle(runs: int) -> str:
    """The plugin, installed and unused."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_nothing.py").write_text("")

        def seconds(*options: str) -> float:
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
            began = time.perf_counter()
            subprocess.run(command, cwd=folder, capture_output=True, check=False)
            return time.perf_counter() - began

        pairs = [(seconds(), seconds("-p", "no:leakkit")) for _ in range(max(10, runs))]
    cost = statistics.median(with_it - without for with_it, without in pairs)
    code = """
    import sys, leakkit.plugin
    print([m for m in ("numpy", "memray", "tensorflow", "jax", "torch") if m in sys.modules])
    """
    return f"adds {cost * 1e3:.1f} ms to an empty suite (must: 15); imports {python(code)}"


FIGURES: dict[str, Callable[[int], str]] = {
    f.__name__: f for f in (clean, mission, exact, overhead, idle)
}


def main() -> None:
    """Print the figures that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*FIGURES, []], metavar="NAME")
    parser.add_argument("--runs", type=int, default=20, help="fresh processes for each figure")
    arguments = parser.parse_args()
    for name in arguments.names or FIGURES:
        print(f"{name}: {FIGURES[name](arguments.runs)}", flush=True)


if __name__ == "__main__":
    main()

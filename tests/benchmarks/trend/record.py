"""Record real series: run a case's step in a fresh process and keep one .npy a quantity.

    python record.py OUT_FOLDER CASE.py[:FACTORY] ... [--steps 480] [--warmup 20]

Each case is a file with ``make_step()`` (or the named factory) that returns ``step(i)``. There are
two passes, as in the kit: a watch pass (glibc's in-use bytes, resident pages, threads, objects,
step time with a control kernel around each step), then a trace pass (Python's allocated bytes,
counted one by one by tracemalloc, with the caches of the interpreter and the standard library
emptied at each boundary).
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import gc
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

WATCHED = ("native_heap", "rss", "threads", "live_objects", "latency")
Step = Callable[[int], object]


def load(case: str) -> tuple[str, Step]:
    """The step of ``FILE.py[:FACTORY]`` and a name for it."""
    path, _, factory = case.partition(":")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    name = Path(path).stem + (f"-{factory.removeprefix('make_')}" if factory else "")
    return name, getattr(module, factory or "make_step")()


def spin(loops: int) -> float:
    """Seconds of a fixed amount of arithmetic that allocates nothing that stays."""
    begin, value = time.perf_counter(), 1
    for _ in range(loops):
        value = (value * 1103515245 + 12345) & 0x7FFFFFFF
    return time.perf_counter() - begin


def calibrated(step: Step, warmup: int) -> int:
    """Warm up, and size the control kernel to about a seventh of a step, 20 µs to 2 ms."""
    times = []
    for i in range(warmup):
        begin = time.perf_counter()
        step(i)
        times.append(time.perf_counter() - begin)
    wanted = min(max(float(np.median(times[warmup // 2 :])) / 7, 2e-5), 2e-3)
    return max(100, int(wanted / (min(spin(10_000) for _ in range(5)) / 10_000)))


def watch(step: Step, first: int, steps: int, loops: int) -> dict[str, np.ndarray]:
    """The watch pass: shape (steps,), for latency (2, steps): step and control seconds."""
    import psutil

    process = psutil.Process()
    rows = np.full((steps, 6), np.nan)
    before = spin(loops)
    for i in range(steps):
        begin = time.perf_counter()
        step(first + i)
        taken = time.perf_counter() - begin
        gc.collect()
        after = spin(loops)
        rows[i, 0] = psutil.heap_info().heap_used
        rows[i, 1] = process.memory_info().rss
        rows[i, 2] = threading.active_count()
        rows[i, 3] = len(gc.get_objects())
        rows[i, 4:] = taken, (before + after) / 2
        before = after
    series = dict(zip(WATCHED, rows.T[:4], strict=False))
    return {**series, "latency": rows.T[4:]}


def trace(step: Step, first: int, steps: int) -> dict[str, np.ndarray]:
    """The trace pass: bytes through Python's allocators, shape (steps,)."""
    clear = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache
    patterns = fnmatch._compile_pattern
    row = np.full(steps, np.nan)
    tracemalloc.start()
    for i in range(steps):
        step(first + i)
        clear()
        re.purge()
        patterns.cache_clear()
        gc.collect()
        row[i] = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"python_heap": row}


def record(case: str, out: Path, steps: int, warmup: int) -> None:
    """Run one case here and write its series."""
    with contextlib.redirect_stdout(io.StringIO()):
        name, step = load(case)
        loops = calibrated(step, warmup)
        gc.collect()
        gc.freeze()
        gc.disable()
        series = watch(step, warmup, steps, loops) | trace(step, warmup + steps, steps)
    out.mkdir(parents=True, exist_ok=True)
    for quantity, values in series.items():
        np.save(out / f"{name}.{quantity}.npy", values)


def main() -> None:
    """Record each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--steps", type=int, default=480)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--here", action="store_true", help="in this process, one case")
    args = parser.parse_args()
    if args.here:
        return record(args.cases[0], args.out, args.steps, args.warmup)
    for case in args.cases:
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "CASE_TMP": folder, "TF_CPP_MIN_LOG_LEVEL": "3"}
            words = [sys.executable, __file__, str(args.out), case, "--here"]
            words += ["--steps", str(args.steps), "--warmup", str(args.warmup)]
            done = subprocess.run(words, env=env, check=False, cwd=folder)
            print(f"{case}: {'recorded' if done.returncode == 0 else 'FAILED'}", flush=True)


if __name__ == "__main__":
    main()

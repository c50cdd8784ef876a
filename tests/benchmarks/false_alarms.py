"""How often a correct TensorFlow step is said to grow.

``python tests/benchmarks/false_alarms.py [--processes 4] [--runs 40]``: each kind of step is run
so many times, in so many fresh processes, at the default settings. Every memory series of every
trace pass counts once.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
MEMORY = ("python_heap", "native_heap")


def eager():
    """A tape on one batch, without tf.function."""
    import tensorflow as tf

    model, optimizer, x, y = _parts()

    def train():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train


def compiled():
    """The same in a tf.function."""
    import tensorflow as tf

    return tf.function(eager())


def on_batch():
    """Keras' own train_on_batch."""
    model, optimizer, x, y = _parts()
    model.compile(optimizer, "mse", metrics=["mae"])
    x, y = x.numpy(), y.numpy()
    return lambda: model.train_on_batch(x, y)


def pipeline():
    """A shuffled, mapped, prefetched dataset and a compiled step."""
    import tensorflow as tf

    model, optimizer, x, y = _parts()
    model.compile(optimizer, "mse")
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().shuffle(64)
    batches = iter(data.batch(32).map(lambda a, b: (a * 2.0, b)).prefetch(2))
    return lambda: model.train_on_batch(*next(batches))


def bounded_history():
    """The last 50 losses, as numbers."""
    step, history = compiled(), collections.deque(maxlen=50)
    return lambda: history.append(float(step()))


STEPS = {f.__name__: f for f in (compiled, eager, on_batch, pipeline, bounded_history)}


def _parts():
    import keras
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((16,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)]
    )
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    return model, optimizer, tf.random.normal((128, 16)), tf.random.normal((128, 1))


def child(name: str, runs: int) -> None:
    """Judge one kind of step so many times; a JSON object a run."""
    import leakkit

    step = STEPS[name]()
    for _ in range(runs):
        result = leakkit.watch().run(step)
        verdicts = {n: f.trend.verdict.value for n, f in result.findings.items() if n in MEMORY}
        open_ones = {
            n: f"{f.trend.verdict.value}: {f.trend.reason}"
            for n, f in result.findings.items()
            if f.decides and f.trend.verdict.value != "flat"
        }
        print(json.dumps([result.verdict.value, verdicts, open_ones]), flush=True)


def sample(name: str, runs: int) -> list[list]:
    """The same in a fresh process."""
    command = [sys.executable, __file__, "--child", name, "--runs", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]


def main() -> None:
    """Print one line a kind of step, and the total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*STEPS, []], metavar="KIND")
    parser.add_argument("--processes", type=int, default=4, help="fresh processes a kind of step")
    parser.add_argument("--runs", type=int, default=40, help="runs in each process")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--child", choices=[*STEPS], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.runs)
        return
    kinds = arguments.kinds or STEPS
    tasks = [name for name in kinds for _ in range(arguments.processes)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = list(pool.map(lambda name: sample(name, arguments.runs), tasks))
    total: collections.Counter[str] = collections.Counter()
    for name in kinds:
        rows = [r for task, rows in zip(tasks, found, strict=True) if task == name for r in rows]
        runs = collections.Counter(verdict for verdict, _, _ in rows)
        series = collections.Counter(v for _, verdicts, _ in rows for v in verdicts.values())
        total += series
        print(f"{name}: runs {dict(runs)}, memory series {dict(series)}", flush=True)
        for verdict, _, others in rows:
            if verdict != "flat":
                print(f"    {verdict}: {others}")
    print(f"memory series: {dict(total)} of {sum(total.values())} (must: 1 in 1,000 grows)")


if __name__ == "__main__":
    main()

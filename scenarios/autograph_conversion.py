"""A module with a compiled function is reloaded on every step, and converted by AutoGraph anew.

AutoGraph rewrites Python source into graph code: it writes a module file for each function,
imports it and keeps it. The conversion of a reloaded function is a new one.
"""

import importlib
import sys

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="autograph-conversion",
    family="tracing",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one converted module a step: some 30 KB",
    diagnosis="autograph-conversion",
    symptom="A notebook or service that hot-reloads its rules needs 30 ms for each call, and "
    "sys.modules fills with generated modules.",
    cause="A reloaded function is new to AutoGraph, which generates, imports and keeps a module "
    "for it; tf.function traces it once more.",
    remedy="Load the module once (or only when its text has changed) and keep the compiled "
    "function.",
    reports=("tensorflow/tensorflow#35084", "tensorflow/tensorflow#29996"),
    seen_on="TensorFlow 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)

RULE = """
import tensorflow as tf

def reward(score):
    if tf.reduce_sum(score) > 0:
        return tf.reduce_sum(score) * 2.0
    return tf.constant(0.0)
"""


def leaky() -> Step:
    """Reload the rule on every step."""
    rule = _load()
    score = tf.ones([4])

    def step(i: int) -> float:
        importlib.reload(rule)
        return float(tf.function(rule.reward)(score))

    return step


def corrected() -> Step:
    """Load and compile the rule once."""
    reward = tf.function(_load().reward)
    score = tf.ones([4])

    def step(i: int) -> float:
        return float(reward(score))

    return step


def _load():
    folder = scratch()
    (folder / "rule.py").write_text(RULE)
    sys.path.insert(0, str(folder))
    return importlib.import_module("rule")


if __name__ == "__main__":
    raise SystemExit(main(__file__))

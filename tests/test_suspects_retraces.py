"""Why a function was traced again, in words."""

import subprocess
import sys
import textwrap

import pytest

from leakkit.suspects.retraces import Part, Trace, difference, suspects
from leakkit.suspects.tracers.jax import jax_trace

TENSOR = Part("tensor", "float32", "(4, 8)")


def trace(signature: dict[str, Part], **more: object) -> Trace:
    plain = {"instance": 1, "code": 1, **more}
    return Trace("tensorflow", "train", "m.py:1 in train", "m.py:9", signature, **plain)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "cause", "words"),
    [
        (Part("value", "float", "0.0998"), Part("value", "float", "0.0997"), "python-value",
         "argument `lr`: Python float 0.0998 → 0.0997; pass a tensor"),
        (TENSOR, Part("tensor", "float32", "(5, 8)"), "shape",
         "argument `lr`: float32(4, 8) → float32(5, 8)"),
        (TENSOR, Part("tensor", "int64", "(4, 8)"), "dtype",
         "argument `lr`: float32(4, 8) → int64(4, 8)"),
        (Part("object", "Info", "a"), Part("object", "Info", "b"), "object",
         "argument `lr`: a new Info object each time (its identity counts)"),
        (Part("method", "run", "a"), Part("method", "run", "b"), "method",
         "argument `lr`: a new bound method object each time"),
    ],
)  # fmt: skip
def test_the_argument_that_differs_is_said(old: Part, new: Part, cause: str, words: str) -> None:
    found = difference(trace({"x": TENSOR, "lr": old}), trace({"x": TENSOR, "lr": new}))
    assert (found.cause, found.words) == (cause, words)


def test_a_function_made_anew_is_told_from_one_whose_closure_changes() -> None:
    same = difference(trace({}), trace({}, instance=2))
    assert same.cause == "new-function"
    closed = difference(
        trace({}, closure={"rate": "0.1"}), trace({}, instance=2, closure={"rate": "0.2"})
    )
    assert (closed.cause, closed.words) == ("closure", "closure variable `rate`: 0.1 → 0.2")


def test_reloaded_source_is_recognised() -> None:
    assert difference(trace({}), trace({}, code=2, instance=2)).cause == "new-code"


def test_a_function_traced_now_and_then_is_no_suspect() -> None:
    two = [trace({}), trace({}, instance=2)]
    assert suspects(two, steps=40) == []
    assert suspects(two * 20, steps=40)[0].slope == 1.0


def test_jax_explanations_are_read() -> None:
    shape = jax_trace(
        "TRACING CACHE MISS at /me/t.py:8:19 (step):\n  for f defined at /me/t.py:7\n"
        "  all previously seen cache keys differ. For the closest previous key:\n"
        "  different input types:\n  * at t, now f32[4] and before f32[3]"
    )
    assert shape is not None
    assert shape.explained == ("shape", "argument `t`: f32[3] → f32[4]")
    new = jax_trace(
        "TRACING CACHE MISS at /me/t.py:9:19 (step):\n  never seen function:\n"
        "    <lambda> id=1404 defined at /me/t.py:9"
    )
    assert new is not None and new.explained is not None
    assert (new.function, new.explained[0]) == ("<lambda>", "new-function")
    assert jax_trace("something else") is None


SCRIPT = """
import tensorflow as tf
from leakkit.suspects.hunt import Hunt
from leakkit.diagnosis import diagnose

class Info: pass
x = tf.ones([4, 8])
info = Info()

@tf.function
def train(x, lr): return tf.reduce_sum(x) * lr
@tf.function(reduce_retracing=False)
def shaped(x): return tf.reduce_sum(x)
@tf.function
def objects(x, info): return tf.reduce_sum(x)
@tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None])])
def compiled(x): return tf.reduce_sum(x)

STEPS = {
    "python-value": lambda i: train(x, 0.1 / (1 + i)),
    "shape": lambda i: shaped(tf.ones([3 + i])),
    "object": lambda i: objects(x, Info()),
    "new-function": lambda i: tf.function(lambda x: x + 1)(x),
    "xla": lambda i: compiled(tf.ones([3 + i])),
    "none": lambda i: train(x, x),
}
for name, step in STEPS.items():
    for i in range(3): step(i)
    hunt = Hunt()
    hunt.begin()
    for i in range(3, 9):
        step(i)
        hunt.boundary()
    hunt.end()
    found = [s for s in hunt.suspects({}, [], 5.0) if s.kind == "retrace"]
    print(name, [(s.facts["cause"], s.facts["traces"], s.facts["xla"]) for s in found][:1])
"""


@pytest.mark.parametrize("framework", ["tensorflow"])
def test_tensorflow_says_why_it_traces(framework: str) -> None:
    pytest.importorskip(framework)
    code = textwrap.dedent(SCRIPT)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert lines == [
        "python-value [('python-value', 6, False)]",
        "shape [('shape', 6, False)]",
        "object [('object', 6, False)]",
        "new-function [('new-function', 6, False)]",
        "xla [('shape', 6, True)]",
        "none []",
    ], done.stderr[-2000:]

"""One jitted JAX function called with ever-new lengths compiles, and keeps, one executable each."""

import jax
import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="jax-new-shape",
    family="tracing",
    needs=("jax",),
    grows=("traces", "native_heap"),
    rate="one executable a step: some 1.5 MB native and 200 objects",
    diagnosis="jax-new-shape",
    symptom="Steps of 30 ms whenever a new length comes; host memory climbs.",
    cause="jax.jit compiles for each input shape, and the cache of executables has no limit "
    "that a training run would reach.",
    remedy="Pad to a few fixed lengths and mask the padding; jax.clear_caches() between phases.",
    reports=("jax-ml/jax#2072",),
    seen_on="JAX 0.1 to 0.10",
)

BUCKET = 2048


def leaky() -> Step:
    """Each signal at its own length."""
    energy, signal = _model()

    def step(i: int) -> float:
        return float(energy(signal[: _length(i)]))

    return step


def corrected() -> Step:
    """Pad with zeros, which add nothing to the energy."""
    energy, signal = _model()

    def step(i: int) -> float:
        padded = np.zeros(BUCKET, np.float32)  # a fresh buffer: JAX may still read the last one
        padded[: _length(i)] = signal[: _length(i)]
        return float(energy(padded))

    return step


def _length(i: int) -> int:
    return 8 + i * 37 % 2039  # 2039 is prime: no length comes twice


def _model():
    energy = jax.jit(lambda signal: (jax.numpy.tanh(signal) * signal).sum())
    return energy, np.random.default_rng(0).standard_normal(BUCKET).astype(np.float32)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

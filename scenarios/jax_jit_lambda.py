"""``jax.jit`` of a lambda inside the step: a new function each time, compiled each time."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="jax-jit-lambda",
    family="tracing",
    needs=("jax",),
    grows=("traces", "native_heap"),
    rate="one executable a step: some 1.5 MB native and 200 objects",
    diagnosis="jax-jit-lambda",
    symptom="Every step takes as long as the first; memory climbs while the lambdas are alive.",
    cause="JAX's compilation cache is keyed by the function. A lambda made in the loop is a new "
    "function, and one that is kept keeps its executable.",
    remedy="jit once, outside the loop; give changing values as arguments.",
    reports=("jax-ml/jax#1605", "jax-ml/jax#5210", "mlaux1/rl-blox#157"),
    seen_on="JAX 0.1 to 0.10",
)


def leaky() -> Step:
    """Jit for each rate, and keep the compiled update to be able to replay it."""
    features, target = _data()
    updates: list[Callable[[jax.Array], jax.Array]] = []
    weights = [jnp.zeros(4)]

    def step(i: int) -> float:
        rate = 0.1 / (1 + i)
        updates.append(jax.jit(lambda w: _updated(w, features, target, rate)))
        weights[0] = updates[-1](weights[0])
        return float(weights[0][0])

    return step


def corrected() -> Step:
    """Jit once, with the rate as an argument."""
    features, target = _data()
    update = jax.jit(_updated)
    weights = [jnp.zeros(4)]

    def step(i: int) -> float:
        weights[0] = update(weights[0], features, target, np.float32(0.1 / (1 + i)))
        return float(weights[0][0])

    return step


def _updated(weights: jax.Array, features: jax.Array, target: jax.Array, rate) -> jax.Array:
    return weights - rate * features.T @ (features @ weights - target) / target.size


def _data() -> tuple[jax.Array, jax.Array]:
    features = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    return jnp.asarray(features), jnp.asarray(features.sum(axis=1))


if __name__ == "__main__":
    raise SystemExit(main(__file__))

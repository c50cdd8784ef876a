"""Python numbers in eager expressions: TensorFlow caches a tensor for each that it hasn't seen."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="eager-scalar-cache",
    family="registries",
    needs=("tensorflow",),
    grows=("native_heap", "python_heap"),
    rate="some 650 bytes for each new number: 5.4 KB a step here",
    diagnosis="eager-scalar-cache",
    symptom="A slow, steady climb in eager code that keeps nothing at all.",
    cause="Python numbers become tensors through a cache keyed by their value, without a limit. "
    "A step counter or an annealed factor is a new value each time.",
    remedy="Use NumPy scalars (np.float32(x)), tensors or variables: they aren't cached.",
    reports=("ROCm/tensorflow-upstream#1149",),
    seen_on="TensorFlow 2.3 to 2.21",
    leaks_on={"tensorflow": ">=2.3"},
)

ROWS = 8


def leaky() -> Step:
    """Scale each row by a Python number."""
    return _scaling(float)


def corrected() -> Step:
    """Scale each row by a NumPy scalar."""
    return _scaling(np.float32)


def _scaling(number: type) -> Step:
    rows = tf.unstack(tf.random.stateless_normal([ROWS, 4], seed=[0, 1]))

    def step(i: int) -> float:
        factors = [number(1 + 1 / (1 + ROWS * i + k)) for k in range(ROWS)]
        return float(
            tf.add_n([tf.reduce_sum(row * by) for row, by in zip(rows, factors, strict=True)])
        )

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

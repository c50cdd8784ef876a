"""A hand-written momentum optimizer keeps slots for weights that no longer exist.

Each task gets a new output head. The optimizer looks its slots up by variable, and the table of
slots keeps the old heads, their momentum and their buffers.
"""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="slot-variables",
    family="variables",
    needs=("tensorflow",),
    grows=("live_objects", "native_heap"),
    rate="one head and its momentum a step: two variables, some 7 KB",
    diagnosis="cache-keyed-by-identity",
    symptom="Continual or meta-learning leaks with the number of tasks; the model itself has a "
    "constant size.",
    cause="The slot table is keyed by variable.ref(), which holds the variable: as long as the "
    "table has the key, the variable can't go.",
    remedy="Re-initialise one head in place, or drop the slots together with their variable.",
    reports=("tensorflow/tensorflow#34316", "keithito/tacotron#268"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


class Momentum:
    """Gradient descent with one slot for each variable."""

    def __init__(self) -> None:
        self.slots: dict[object, tf.Variable] = {}

    def apply(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """One update; the slot is made when the variable is first seen."""
        key = variable.ref()
        if key not in self.slots:
            self.slots[key] = tf.Variable(tf.zeros_like(variable))
        slot = self.slots[key]
        slot.assign(0.5 * slot + gradient)
        variable.assign_sub(0.05 * slot)


def leaky() -> Step:
    """A new head for each task."""
    task, optimizer = _task(), Momentum()

    def step(i: int) -> float:
        head = tf.Variable(tf.zeros([256, 1]))
        return task(head, optimizer)

    return step


def corrected() -> Step:
    """One head, set back for each task; its slot too."""
    task, optimizer = _task(), Momentum()
    head = tf.Variable(tf.zeros([256, 1]))

    def step(i: int) -> float:
        head.assign(tf.zeros([256, 1]))
        for slot in optimizer.slots.values():
            slot.assign(tf.zeros_like(slot))
        return task(head, optimizer)

    return step


def _task():
    features = tf.random.stateless_normal([16, 256], seed=[0, 1])
    target = tf.reduce_sum(features, axis=1, keepdims=True)

    def task(head: tf.Variable, optimizer: Momentum) -> float:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ head - target))
        optimizer.apply(tape.gradient(loss, head), head)
        return float(tf.reduce_sum(head))

    return task


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""``strategy.run`` gets a newly compiled function on every step, and the strategy keeps each.

A strategy wraps the compiled functions that it is given and notes them in a table with weak keys.
But what it notes holds its key, so no entry ever goes.
"""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="mirrored-function-retraced",
    family="distribution",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph a step: some 720 KB and 660 objects with two replicas",
    diagnosis="mirrored-function-retraced",
    symptom="Multi-device training takes seconds a step and fills host memory; with one device the "
    "same mistake only costs time.",
    cause="A new tf.function is traced on every step, once for each replica, and stays in the "
    "strategy's table of wrapped functions.",
    remedy="Call strategy.run inside one @tf.function, made once, and call that.",
    reports=(
        "tensorflow/tensorflow#76157",
        "tensorflow/tensorflow#42616",
        "keras-team/keras#14270",
    ),
    seen_on="TensorFlow 2.11 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """Compile the replica's function anew for each step."""
    strategy, weights, features = _replicas()

    def step(i: int) -> float:
        replica = tf.function(lambda batch: _train(weights, batch))
        losses = strategy.run(replica, args=(features,))
        return float(strategy.reduce("MEAN", losses, axis=None))

    return step


def corrected() -> Step:
    """Compile the whole distributed step once."""
    strategy, weights, features = _replicas()

    @tf.function
    def train(batch: tf.Tensor) -> tf.Tensor:
        losses = strategy.run(lambda batch: _train(weights, batch), args=(batch,))
        return strategy.reduce("MEAN", losses, axis=None)

    def step(i: int) -> float:
        return float(train(features))

    return step


def _train(weights: tf.Variable, batch: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


def _replicas() -> tuple[tf.distribute.Strategy, tf.Variable, tf.Tensor]:
    cpu = tf.config.list_physical_devices("CPU")[0]
    if tf.config.get_logical_device_configuration(cpu) is None:
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = tf.Variable(tf.zeros([4, 1]), aggregation=tf.VariableAggregation.MEAN)
    return strategy, weights, tf.random.stateless_normal([8, 4], seed=[0, 1])


if __name__ == "__main__":
    raise SystemExit(main(__file__))

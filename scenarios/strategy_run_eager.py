"""``strategy.run`` is called outside of a tf.function. Slow from the start, but flat.

Not every slow run leaks. This one must pass: each operation is dispatched alone, replica after
replica, on every step to the same degree.
"""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="strategy-run-eager",
    family="distribution",
    needs=("tensorflow",),
    grows=(),
    accepts={"native_heap": "1 KiB"},
    rate="nothing grows: each step dispatches every operation alone",
    symptom="A distributed step is many times slower than a local one, and the devices idle.",
    cause="Eagerly, strategy.run starts a thread for each replica and hands the turn over at "
    "every synchronisation; nothing is compiled. TensorFlow itself keeps some 0.2 KB a call.",
    remedy="Call strategy.run inside one @tf.function, made once, and call that.",
    reports=(
        "tensorflow/tensorflow#76157",
        "tensorflow/tensorflow#42616",
        "keras-team/keras#14270",
    ),
    seen_on="TensorFlow 2.11 to 2.21",
)


def leaky() -> Step:
    """Run the replicas eagerly."""
    strategy, weights, features = _replicas()

    def replica(batch: tf.Tensor) -> tf.Tensor:
        return _train(weights, batch)

    def step(i: int) -> float:
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

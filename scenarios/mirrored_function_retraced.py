"""A distributed step takes the learning rate as a Python number: one large graph a value."""

import numpy as np
import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="mirrored-function-retraced",
    family="distribution",
    needs=("tensorflow",),
    grows=("traces", "native_heap", "python_heap"),
    rate="one graph for all replicas a step: some 720 KB and 520 objects with two",
    diagnosis="mirrored-function-retraced",
    symptom="Multi-device training starts at minutes a step and fills host memory; with one "
    "device the same mistake was hardly noticed.",
    cause="A Python number is part of a tf.function's signature. Each new value is traced anew, "
    "once for each replica, into a graph as large as all of them.",
    remedy="Pass np.float32(rate) or a tensor, or keep the rate in a variable.",
    reports=("tensorflow/tensorflow#42616", "tensorflow/tensorflow#56752"),
    seen_on="TensorFlow 2.0 to 2.21",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """The rate is a Python float."""
    train = _training()

    def step(i: int) -> float:
        return float(train(0.1 / (1 + i)))

    return step


def corrected() -> Step:
    """The rate is a NumPy scalar, which becomes a tensor."""
    train = _training()

    def step(i: int) -> float:
        return float(train(np.float32(0.1 / (1 + i))))

    return step


def _training() -> tf.types.experimental.PolymorphicFunction:
    cpu = tf.config.list_physical_devices("CPU")[0]
    if tf.config.get_logical_device_configuration(cpu) is None:
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        weights = tf.Variable(tf.zeros([4, 1]), aggregation=tf.VariableAggregation.MEAN)
    features = tf.random.stateless_normal([8, 4], seed=[0, 1])

    def replica(rate: float) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(features @ weights - 1.0))
        weights.assign_sub(rate * tape.gradient(loss, weights))
        return loss

    @tf.function
    def train(rate: float) -> tf.Tensor:
        return strategy.reduce("MEAN", strategy.run(replica, args=(rate,)), axis=None)

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

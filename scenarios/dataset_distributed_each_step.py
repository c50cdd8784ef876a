"""The dataset is distributed among the replicas anew on every step."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="dataset-distributed-each-step",
    family="distribution",
    needs=("tensorflow",),
    grows=("traces",),
    rate="13 graphs a step, freed by the collector; some 1.6 KB that TensorFlow keeps",
    diagnosis="dataset-distributed-each-step",
    symptom="Each epoch starts with a long pause, and the devices idle through it.",
    cause="experimental_distribute_dataset() rewrites and shards the pipeline, traces its "
    "functions, and its iterator starts threads on every device.",
    remedy="Distribute once, before the loop, with repeat(), and keep one iterator.",
    reports=(
        "tensorflow/tensorflow#44688",
        "tensorflow/tensorflow#42616",
        "keras-team/keras#14270",
    ),
    seen_on="TensorFlow 2.2 to 2.21",
    leaks_on={"tensorflow": ">=2.2"},
)


def leaky() -> Step:
    """Distribute for each epoch."""
    strategy, dataset = _replicas()

    def step(i: int) -> float:
        batches = iter(strategy.experimental_distribute_dataset(dataset))
        return _total(strategy, next(batches))

    return step


def corrected() -> Step:
    """Distribute once."""
    strategy, dataset = _replicas()
    batches = iter(strategy.experimental_distribute_dataset(dataset))

    def step(i: int) -> float:
        return _total(strategy, next(batches))

    return step


def _total(strategy: tf.distribute.Strategy, batch) -> float:
    return sum(float(tf.reduce_sum(part)) for part in strategy.experimental_local_results(batch))


def _replicas() -> tuple[tf.distribute.Strategy, tf.data.Dataset]:
    cpu = tf.config.list_physical_devices("CPU")[0]
    if tf.config.get_logical_device_configuration(cpu) is None:
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    samples = tf.random.stateless_normal([8, 4], seed=[0, 1])
    return strategy, tf.data.Dataset.from_tensor_slices(samples).batch(8).repeat()


if __name__ == "__main__":
    raise SystemExit(main(__file__))

"""A checkpoint is written on every evaluation and none is ever deleted."""

import tensorflow as tf

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="checkpoints-never-pruned",
    family="logs and disk",
    needs=("tensorflow",),
    grows=("files", "file_bytes"),
    rate="two files of some 1.3 KB a step; of the model's size in real life",
    diagnosis="checkpoints-never-pruned",
    symptom="The disk fills with checkpoints, and the last one is cut short when it is full.",
    cause="Checkpoint.write() and ModelCheckpoint with the epoch in its path keep everything.",
    remedy="tf.train.CheckpointManager(max_to_keep=...), save_best_only=True, or one path that "
    "is written over.",
    reports=("tensorflow/decision-forests#41", "PrimeIntellect-ai/prime-rl#1936"),
    seen_on="every framework",
    leaks_on={"tensorflow": ">=2.0"},
)


def leaky() -> Step:
    """Write under a new name each time."""
    weights, checkpoint = _model()
    folder = scratch()

    def step(i: int) -> float:
        weights.assign_add(tf.ones([64]))
        checkpoint.write(str(folder / f"step-{i}"))
        return float(tf.reduce_sum(weights))

    return step


def corrected() -> Step:
    """Keep the last two."""
    weights, checkpoint = _model()
    manager = tf.train.CheckpointManager(checkpoint, str(scratch()), max_to_keep=2)

    def step(i: int) -> float:
        weights.assign_add(tf.ones([64]))
        manager.save(checkpoint_number=i)
        return float(tf.reduce_sum(weights))

    return step


def _model() -> tuple[tf.Variable, tf.train.Checkpoint]:
    weights = tf.Variable(tf.zeros([64]))
    return weights, tf.train.Checkpoint(weights=weights)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

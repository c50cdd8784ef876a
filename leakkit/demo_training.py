"""Train a small Keras model to tell rising tones from falling ones.

``leakkit demo`` measures the two steps below: one keeps what it should let go.
"""

from __future__ import annotations

from collections import deque

import keras
import numpy as np
import tensorflow as tf

BATCH, BATCHES, LENGTH = 32, 8, 64


def make_tones() -> tuple[tf.Tensor, tf.Tensor]:
    """Sounds, shape ``(batches, batch, length, 1)``, and 1 for each that rises, else 0."""
    random = np.random.default_rng(7)
    time = np.linspace(0.0, 1.0, LENGTH)
    rises = random.integers(0, 2, (BATCHES, BATCH))
    bend = np.where(rises, 1.0, -1.0)[..., None] * random.uniform(2.0, 6.0, (BATCHES, BATCH, 1))
    tones = np.sin(2 * np.pi * (8.0 * time + bend * time * (time - 1.0)))
    tones += random.normal(0.0, 0.3, tones.shape)
    return tf.constant(tones[..., None], tf.float32), tf.constant(rises, tf.float32)


model = keras.Sequential(
    [
        keras.layers.Input((LENGTH, 1)),
        keras.layers.Conv1D(8, 9, strides=2, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
optimizer = keras.optimizers.Adam(0.01)
optimizer.build(model.trainable_variables)
cross_entropy = keras.losses.BinaryCrossentropy()
tones, rises = make_tones()


@tf.function
def update(batch: tf.Tensor) -> tf.Tensor:
    """One step of gradient descent on a batch, by its index; returns the loss."""
    with tf.GradientTape() as tape:
        loss = cross_entropy(rises[batch], model(tones[batch], training=True)[:, 0])
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


batches = [tf.constant(index) for index in range(BATCHES)]
history: list[tf.Tensor] = []
recent: deque[float] = deque(maxlen=20)


def train_step(index: int) -> None:
    """Leaks: every loss stays alive as a tensor of its own."""
    loss = update(batches[index % BATCHES])
    history.append(loss)


def corrected_train_step(index: int) -> None:
    """Keeps the last few losses, as numbers."""
    loss = update(batches[index % BATCHES])
    recent.append(float(loss))

"""The Keras callback in real training, on the backends that are installed."""

from importlib.util import find_spec

import fresh_process
import pytest

BACKENDS = [name for name in ("tensorflow", "jax", "torch") if find_spec(name)]

if not (BACKENDS and find_spec("keras")):  # importing Keras would need its default backend
    pytest.skip("Keras, or a backend for it, is not installed", allow_module_level=True)

SETUP = """
import numpy as np, keras
from leakkit.check import Check
from leakkit.settings import Settings
from leakkit.frameworks.keras import callback
rows = np.random.default_rng(0)
x = rows.random((32, 4), np.float32)
y = rows.random((32, 2), np.float32)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile("sgd", "mse")
kept = []
class Keeper(keras.callbacks.Callback):
    "Another callback, with a leak."
    def on_train_batch_end(self, batch, logs=None):
        kept.append(np.zeros(1000))
class EpochKeeper(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        kept.append(np.zeros(1000))
def fit(check, *others, every="batch", epochs=400, **settings):
    mine = callback(check, every=every)
    return model.fit(x, y, batch_size=4, epochs=epochs, verbose=0, callbacks=[mine, *others],
                     **settings)
def quick(**settings):
    return Check(Settings(**{"steps": 32, "max_steps": 96, "warmup": 8, **settings}))
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_is_measured_and_another_callbacks_leak_is_seen(backend):
    said = fresh_process.run(
        SETUP,
        """
        flat, grown = quick(heap="off"), quick(max_seconds=60.0)
        history = fit(flat)
        fit(grown, Keeper())
        say(flat=summary(flat.finish()), grown=summary(grown.finish()), epochs=len(history.epoch),
            backend=keras.backend.backend())
        """,
        KERAS_BACKEND=backend,
    )
    assert said["backend"] == backend
    assert said["epochs"] < 400  # training ends when enough was seen
    assert said["flat"]["trends"]["traces" if backend != "torch" else "live_tensors"] == ["flat", 0]
    assert said["grown"]["verdict"] == "grows"
    verdict, slope = said["grown"]["trends"]["native_heap"]
    assert verdict == "grows" and 7900 <= slope < 8600, said["grown"]


@pytest.mark.parametrize("backend", BACKENDS[:1])
def test_an_epoch_can_be_the_step_with_validation_inside(backend):
    said = fresh_process.run(
        SETUP,
        """
        check = quick(steps=14, max_steps=14, warmup=3, max_seconds=60.0)
        history = fit(check, EpochKeeper(), every="epoch", epochs=400, validation_data=(x, y))
        result = check.finish()
        say(**summary(result), steps=len(result.recording.watch["latency"].values),
            epochs=len(history.epoch), validated="val_loss" in history.history)
        """,
        KERAS_BACKEND=backend,
    )
    assert said["steps"] == 14
    assert said["validated"] is True
    assert said["epochs"] < 400
    assert said["verdict"] == "grows", said


@pytest.mark.parametrize("backend", BACKENDS[:1])
def test_several_fits_are_one_loop(backend):
    said = fresh_process.run(
        SETUP,
        """
        check = quick(steps=10, max_steps=10, warmup=2, heap="off")
        mine = callback(check, fits=12, every="epoch", stop=False)
        for _ in range(20):
            model.fit(x, y, epochs=1, verbose=0, callbacks=[mine])
        result = check.finish()
        say(steps=len(result.recording.watch["latency"].values), notes=list(result.notes))
        """,
        KERAS_BACKEND=backend,
    )
    assert said["steps"] >= 6
    assert not [note for note in said["notes"] if "ended" in note]


def test_what_a_step_is_must_be_known():
    from leakkit.frameworks.keras import callback

    with pytest.raises(ValueError, match="'batch' or 'epoch', not 'step'"):
        callback(None, every="step")

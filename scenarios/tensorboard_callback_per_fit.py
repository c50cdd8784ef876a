"""Every fit() gets a new TensorBoard callback, and every callback starts new event files."""

import keras
import numpy as np

from leakkit.scenarios import Scenario, Step, main, scratch

SCENARIO = Scenario(
    name="tensorboard-callback-per-fit",
    family="logs and disk",
    needs=("tensorflow", "keras", "tensorboard"),
    grows=("files",),
    rate="one event file a fit()",
    diagnosis="tensorboard-callback-per-fit",
    symptom="A folder with tens of thousands of event files; TensorBoard takes minutes to start.",
    cause="The callback opens a file per fit(). In a loop of short fits there are soon as many "
    "files as steps.",
    remedy="Call fit() once with many epochs, or train_on_batch() in a loop with a log of your "
    "own; delete the runs that nobody looks at.",
    reports=("tensorflow/tensorflow#25678", "tensorflow/tensorboard#766", "keras-team/keras#4533"),
    seen_on="Keras 2 and 3",
    leaks_on={"keras": ">=3"},
)


def leaky() -> Step:
    """A fit() and a callback for each round."""
    model, features, target = _model()
    folder = scratch()

    def step(i: int) -> float:
        log = keras.callbacks.TensorBoard(str(folder / f"round-{i}"), write_graph=False)
        done = model.fit(features, target, verbose=0, shuffle=False, callbacks=[log])
        return done.history["loss"][0]

    return step


def corrected() -> Step:
    """Train on the batch, and write each round's loss over the last one's."""
    model, features, target = _model()
    status = (scratch() / "loss.txt").open("w", encoding="utf-8")

    def step(i: int) -> float:
        loss = float(model.train_on_batch(features, target))
        status.seek(0)
        status.write(f"{loss:.6e}")
        status.flush()
        return loss

    return step


def _model() -> tuple[keras.Model, np.ndarray, np.ndarray]:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    features = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    return model, features, features.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    raise SystemExit(main(__file__))

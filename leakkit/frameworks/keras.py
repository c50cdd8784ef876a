"""The Keras callback: the recorder, driven by ``model.fit`` on any backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakkit.check import Check
    from leakkit.loop import Recorder


def callback(check: Check, *, every: str = "batch", fits: int = 1, stop: bool = True) -> Any:
    """A ``keras.callbacks.Callback`` that measures training.

    A step lasts from the beginning of one batch to the beginning of the next, so that it holds
    all that other callbacks and the validation do in between, and what they leak is seen.

    Args:
        check: measures; call its ``finish()`` when training is over.
        every: ``batch`` or ``epoch``: what a step is.
        fits: how many calls of ``fit`` the callback will be given to, one after the other.
        stop: end the training once enough was seen.

    Raises:
        ValueError: ``every`` is neither.
    """
    if every not in ("batch", "epoch"):
        raise ValueError(f"every must be 'batch' or 'epoch', not {every!r}")
    return _callback_class()(check, every, fits, stop)


def _callback_class() -> Any:
    """Made when it is asked for: importing this module must not import Keras."""
    import keras

    class LeakCheckCallback(keras.callbacks.Callback):  # type: ignore[misc]
        """Drives a check's recorder."""

        async_safe = False  # else Keras may call it from another thread, after the fact

        def __init__(self, check: Check, every: str, fits: int, stop: bool) -> None:
            super().__init__()
            self._check, self._every, self._fits, self._stop = check, every, fits, stop
            self._recorder: Recorder | None = None
            self._open = False
            self._logs: Any = None

        def on_train_begin(self, logs: Any = None) -> None:
            if self._recorder is None:
                self._recorder = self._check.start(_expected(self.params, self._every, self._fits))

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if self._every == "epoch":
                self._boundary()

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            if self._every == "batch":
                self._boundary()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self._logs = logs  # what a backend that computes lazily is to wait for

        def on_train_end(self, logs: Any = None) -> None:
            self._end()

        def _boundary(self) -> None:
            self._end()
            recorder = self._recorder
            if recorder is None:
                return
            if not recorder.done:
                self._open = True
                recorder.begin()
            elif self._stop:
                self.model.stop_training = True

        def _end(self) -> None:
            logs, self._logs = self._logs, None
            if self._open and self._recorder is not None:
                self._open = False
                self._recorder.end(logs)

    return LeakCheckCallback


def _expected(params: Any, every: str, fits: int) -> int | None:
    """Steps that ``fit`` will give, where Keras knows it."""
    epochs, batches = params.get("epochs"), params.get("steps")
    if epochs is None:
        return None
    if every == "epoch":
        return int(epochs) * fits
    return int(epochs) * int(batches) * fits if batches else None

"""What the fixture ``leak_check`` gives a test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from leakkit.plugin.marker import fail
from leakkit.settings import SettingsError

if TYPE_CHECKING:
    from leakkit.check import Check
    from leakkit.reports.progress import Progress
    from leakkit.result import Result


T = TypeVar("T")


class LeakkitWarning(UserWarning):
    """Something about a leak test that a reader should know, and that is no failure."""


class LeakCheck:
    """What the fixture ``leak_check`` gives a test: one measurement, judged once.

    Args:
        check: measures and judges.
        strict: an undecided run fails.
        report: a result as the text that a person reads.
    """

    def __init__(
        self,
        check: Check,
        *,
        strict: bool,
        report: Callable[[Result], str],
        progress: Progress | None = None,
    ) -> None:
        self._check = check
        self._strict = strict
        self._report = report
        self._progress = progress
        self._open = False
        self.used = False

    @property
    def result(self) -> Result | None:
        """What was found, once it is."""
        return self._check.result

    def __call__(self, step: Callable[..., object], *args: Any, **kwargs: Any) -> Result:
        """Repeat ``step(*args, **kwargs)`` and judge it.

        A step that takes one more argument than it is given gets the step index first.

        Raises:
            LeakError: the step grows; the text is the report.
        """
        __tracebackhide__ = True
        self._take()
        with self._measuring():
            result = self._check.run(step, *args, **kwargs)
        self._judge(result)
        return result

    def steps(self, iterable: Iterable[T]) -> Iterator[T]:
        """Wrap the iterable of a training loop; judged when the test function has returned."""
        __tracebackhide__ = True
        self._take()
        self._open = True
        return self._check.steps(iterable)

    def keras_callback(self, **options: Any) -> Any:
        """A callback for ``model.fit``; judged when the test function has returned.

        Args:
            **options: of :func:`leakkit.frameworks.keras.callback`: ``every="epoch"``, …
        """
        __tracebackhide__ = True
        self._take()
        self._open = True
        return self._check.keras_callback(**options)

    def finish(self) -> None:
        """Judge a loop that the test has driven itself."""
        __tracebackhide__ = True
        if not self._open:
            return
        self._open = False
        if not self._check.started:
            pytest.fail("leakkit: the loop ran no step, so nothing was measured", pytrace=False)
        with self._measuring():
            result = self._check.finish()
        self._judge(result)

    def abandon(self) -> None:
        """The test raised inside its own loop: undo what measuring changed, judge nothing."""
        if self._open:
            self._open = False
            self._check.close()

    @contextmanager
    def _measuring(self) -> Iterator[None]:
        """What is wrong with the measurement, and not with the step, is one line, no stack."""
        __tracebackhide__ = True
        try:
            yield
        except Exception as error:
            if not _is_ours(error):
                raise
            message = f"leakkit: {error}"
        else:
            return
        finally:
            if self._progress is not None:
                self._progress.close()
        fail(message)

    def _take(self) -> None:
        __tracebackhide__ = True
        if self.used:
            pytest.fail(
                "leak_check measures one step or loop a test, and this test has used it before; "
                "write a second test",
                pytrace=False,
            )
        self.used = True

    def _judge(self, result: Result) -> None:
        __tracebackhide__ = True
        from leakkit.result import LeakError
        from leakkit.trend import Verdict

        if result.verdict is Verdict.GROWS:
            raise LeakError(self._report(result), result)
        if result.verdict is Verdict.UNDECIDED and self._strict:
            raise LeakError(self._report(result), result)
        if result.verdict is Verdict.UNDECIDED:
            warnings.warn(LeakkitWarning(self._report(result)), stacklevel=3)


class LeakCheckOff:
    """``leak_check`` under ``--leakkit=off``: each step runs once, nothing is measured."""

    used = True
    result = None

    def __call__(self, step: Callable[..., object], *args: Any, **kwargs: Any) -> None:
        """Run the step once."""
        from leakkit.check import call_once

        call_once(step, *args, **kwargs)

    def steps(self, iterable: Iterable[T]) -> Iterator[T]:
        """The first item only."""
        for item in iterable:
            yield item
            return

    def keras_callback(self, **options: Any) -> Any:
        """A callback that does nothing."""
        import keras

        return keras.callbacks.Callback()


def _is_ours(error: BaseException) -> bool:
    from leakkit.check import StepError
    from leakkit.heap import HeapError
    from leakkit.recording import RecordingError

    return isinstance(error, (SettingsError, StepError, HeapError, RecordingError))

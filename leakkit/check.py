"""One check: drives a step, or is driven by a loop, and says what it found."""

from __future__ import annotations

import inspect
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from leakkit.diagnosis import Diagnosis, diagnose
from leakkit.environment import describe, describe_frameworks
from leakkit.frameworks import placed
from leakkit.frameworks.memory import fragmented
from leakkit.judgement import Judgement, settle_bounded, verdict
from leakkit.loop import Progress, Recorder
from leakkit.recording import Recording
from leakkit.result import Finding, LeakError, Result
from leakkit.settings import Settings, SettingsError, make_settings
from leakkit.suspects import Suspect
from leakkit.suspects.snapshots import saved
from leakkit.trend import Verdict

T = TypeVar("T")

SUSPECT_SECONDS = 10.0


class StepError(TypeError):
    """What was given is not a step; the text says why."""


class Check:
    """Measures one step or loop. Use it once.

    Args:
        settings: how far, how long, with which probes and limits.
        name: what the report calls the step; a step's own name where it is empty.
        progress: called with the pass, its step and its length.
        report: turns a result into the text of a LeakError.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        name: str = "",
        progress: Progress | None = None,
        report: Callable[[Result], str] | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.name = name
        self.result: Result | None = None
        self._progress = progress
        self._report = report or _plain_report
        self._recorder: Recorder | None = None

    def __call__(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Result:
        """Run ``step(*args, **kwargs)`` until it is decided whether it grows.

        A step with one more positional parameter than ``args`` gives gets the step index first.

        Raises:
            LeakError: the step grows.
            StepError: ``step`` is not callable, or not with these arguments.
        """
        return self._raising(self.run(step, *args, **kwargs))

    def run(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> Result:
        """The same, but growth is only in the result."""
        call = _with_index(step, args, kwargs)
        self.name = self.name or getattr(step, "__name__", type(step).__name__)
        with placed(self.settings.device), self._recording() as recorder:
            while not recorder.done:
                recorder.begin()
                result = call(recorder.step_index)
                recorder.end(result)
                del result
        return self.finish()

    def steps(self, iterable: Iterable[T]) -> Iterator[T]:
        """Hand out the items of ``iterable``, measuring the loop's body, as tqdm does.

        Ends early once it has seen enough, so that an endless data set will do.

        Raises:
            LeakError: at the loop's end, when its body grows.
        """
        with self._recording(_length_hint(iterable)) as recorder:
            try:
                for item in _Timed(iterable, recorder.waited):
                    recorder.begin()
                    yield item
                    del item
                    recorder.end()
                    if recorder.done:
                        break
            except GeneratorExit:  # the loop was left with `break`
                recorder.stop()
                raise
        self._raising(self.finish())

    def keras_callback(self, **options: Any) -> Any:
        """A callback that measures ``model.fit``; call ``finish`` or ``raise_for_growth`` after it.

        Args:
            **options: those of :func:`leakkit.frameworks.keras.callback`.
        """
        from leakkit.frameworks.keras import callback

        return callback(self, **options)

    def start(self, expected: int | None = None) -> Recorder:
        """The recorder, for a loop that calls ``begin`` and ``end`` itself."""
        if self._recorder is not None:
            raise RuntimeError("this check has already run: use one check for each step")
        if self.settings.device == "all":
            raise SettingsError("device 'all' is for tests and leakkit run: one check, one device")
        self._judgement = Judgement(self.settings)
        self._began = time.monotonic()
        self._recorder = Recorder(
            self.settings,
            self._new_recording(),
            self._judgement,
            expected=expected,
            progress=self._progress,
        )
        return self._recorder

    @property
    def started(self) -> bool:
        """Whether a step was ever measured."""
        return self._recorder is not None

    def finish(self) -> Result:
        """Judge what was recorded; the same result again when called again."""
        if self.result is None:
            if self._recorder is None:
                raise RuntimeError("nothing was measured yet")
            self.result = self._conclude(self._recorder)
        return self.result

    def close(self) -> None:
        """Undo what measuring changed and judge nothing: for a loop whose body raised."""
        if self._recorder is not None:
            self._recorder.close()

    def raise_for_growth(self) -> Result:
        """``finish``, raising LeakError when the step grows."""
        return self._raising(self.finish())

    def _raising(self, result: Result) -> Result:
        __tracebackhide__ = True
        if result.verdict is Verdict.GROWS:
            raise LeakError(self._report(result), result)
        return result

    @contextmanager
    def _recording(self, expected: int | None = None) -> Iterator[Recorder]:
        """A recorder that is closed whatever happens; an exception leaves what was recorded."""
        recorder = self.start(expected)
        try:
            yield recorder
        except BaseException:
            recorder.close()
            raise

    def _new_recording(self) -> Recording:
        temporary = None
        folder = self.settings.directory
        if folder is None:
            temporary = tempfile.TemporaryDirectory(prefix="leakkit-")
            folder = Path(temporary.name)
        meta = {
            "name": self.name,
            "environment": describe(),
            "settings": _plain(vars(self.settings)),
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        recording = Recording.create(folder, meta)
        recording.temporary = temporary  # removed with the last reference to the recording
        return recording

    def _conclude(self, recorder: Recorder) -> Result:
        recorder.stop()
        recorder.close()
        findings: Mapping[str, Finding] = self._judgement.findings()
        recorder.notes += fragmented(findings)
        outcome = verdict(findings)
        suspects: list[Suspect] = []
        diagnoses: list[Diagnosis] = []
        recording = recorder.recording
        if outcome is Verdict.GROWS and recorder.hunt is not None:
            suspects = recorder.hunt.suspects(findings, recording.sites(), SUSPECT_SECONDS)
            recorder.notes += [*recorder.hunt.notes, *_fleeting(recording)]
            findings, filling = settle_bounded(findings, suspects)
            recorder.notes += filling
            outcome = verdict(findings)
        if outcome is Verdict.GROWS:
            diagnoses = diagnose(suspects, findings)
        else:
            suspects = []
        setup = recorder.setup
        recording.meta["frameworks"] = describe_frameworks(setup.frameworks if setup else ())
        with suppress(OSError):  # a full disk, which the recorder has noted
            recording.finish()
        return Result(
            name=self.name,
            verdict=outcome,
            findings=findings,
            recording=recording,
            notes=tuple(recorder.notes),
            remarks=tuple(setup.remarks) if setup else (),
            suspects=tuple(suspects),
            diagnoses=tuple(diagnoses),
            seconds=time.monotonic() - self._began,
        )


class _Timed(Iterator[T]):
    """Items, and how long each took to come. It keeps none: what it kept would count as alive."""

    def __init__(self, items: Iterable[T], tell: Callable[[float], None]) -> None:
        self._items, self._tell = iter(items), tell

    def __next__(self) -> T:
        began = time.perf_counter()
        item = next(self._items)
        self._tell(time.perf_counter() - began)
        return item


def watch(**settings: Any) -> Check:
    """A check outside pytest: ``leakkit.watch(steps=60)(step)``, or ``.run`` to get a result.

    Args:
        **settings: the fields of :class:`leakkit.settings.Settings`.
    """
    return Check(make_settings(settings))


def call_once(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a step once as a check would, measuring nothing; returns what it returned."""
    return _with_index(step, args, kwargs)(0)


def _plain_report(result: Result) -> str:
    from leakkit.reports.terminal import render

    return render(result, color=False, unicode=True, width=80)


def _with_index(
    step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[int], Any]:
    """``step`` as a function of the step index, which it gets only where it asks for it."""
    if not callable(step):
        raise StepError(f"a step must be callable; {step!r} is a {type(step).__name__}")
    try:
        signature = inspect.signature(step)
    except (TypeError, ValueError):  # some built-ins have none
        return lambda index: step(*args, **kwargs)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        return _indexed(step, signature, args, kwargs, error)
    return lambda index: step(*args, **kwargs)


def _indexed(
    step: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reason: TypeError,
) -> Callable[[int], Any]:
    try:
        signature.bind(0, *args, **kwargs)
    except TypeError:
        name = getattr(step, "__name__", repr(step))
        raise StepError(
            f"{name}{signature} cannot be called as given ({reason}); a step takes its arguments, "
            "and may take the step index first"
        ) from None
    return lambda index: step(index, *args, **kwargs)


def _fleeting(recording: Recording) -> list[str]:
    """A note where files that another program is to open go with the result."""
    if recording.temporary is None or not saved(recording.path):
        return []
    return [f"{recording.path} is removed with this result; give directory= to keep it"]


def _length_hint(iterable: Iterable[Any]) -> int | None:
    """How many items there are, where the iterable knows."""
    try:
        return len(iterable)  # type: ignore[arg-type]
    except TypeError:
        return None


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return os.fspath(value) if isinstance(value, Path) else value

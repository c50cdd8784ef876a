"""The pytest surface: options, marker, fixture, verdicts in the call phase, summary.

Nothing heavy is imported when this module loads: a suite that uses no ``leak_check`` pays for
reading a few options and nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

from leakkit import __version__
from leakkit.settings import Settings, SettingsError, make_settings, setting_names, split_limits

if TYPE_CHECKING:
    from leakkit.check import Check
    from leakkit.reports.progress import Progress
    from leakkit.result import Result

T = TypeVar("T")

MODES = ("on", "off")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class LeakkitWarning(UserWarning):
    """Something about a leak test that a reader should know, and that is no failure."""


@dataclass(frozen=True)
class Option:
    """One setting as a command-line option ``--leakkit-NAME`` and an ini key ``leakkit_NAME``.

    Args:
        name: of the setting.
        help: for ``pytest --help``.
        metavar: for the same; ``None`` for a flag.
        many: the option may be given several times, the ini key has one value a line.
    """

    name: str
    help: str
    metavar: str | None = None
    many: bool = False

    @property
    def flag(self) -> str:
        """The command-line spelling."""
        return f"--leakkit-{self.name.replace('_', '-')}"

    @property
    def key(self) -> str:
        """The ini spelling, which is also the name under which argparse keeps the value."""
        return f"leakkit_{self.name}"


OPTIONS = (
    Option("steps", "steps of the first look, per pass (default 120)", "N"),
    Option("max_steps", "the most steps a pass is extended to (default 480)", "N"),
    Option("warmup", "steps before the first sample (default 20)", "N"),
    Option("max_seconds", "time for one measurement, e.g. 30 or '2 min' (default 30)", "TIME"),
    Option("limit", "accepted growth, e.g. 'python_heap=64 B/step'", "SERIES=VALUE", many=True),
    Option("probes", "names of the probes to use, separated by commas", "NAMES"),
    Option("device", "where tests must run: cpu, gpu, gpu:1, tpu, or all: once on each", "NAME"),
    Option("cadence", "what happens every N steps is not growth within them", "N"),
    Option("heap", "heap engine: auto, memray, tracemalloc or off", "ENGINE"),
    Option("native", "name the native functions that allocate, too (slower)"),
    Option("folder", "a folder to watch for files left behind", "PATH", many=True),
    Option("dir", "where recordings go; a folder for each test", "DIR"),
    Option("strict", "an undecided run fails instead of warning"),
    Option("require_device", "a missing device fails instead of skipping"),
    Option("verbose", "reports show all series, suspects and reasons"),
)
# Options that are called otherwise than the setting they give.
_SETTING_OF = {"limit": "limits", "folder": "folders", "dir": "directory"}
_NO_SETTING = ("strict", "require_device", "verbose")


@dataclass(frozen=True)
class Config:
    """What the options of this session say."""

    off: bool
    settings: Mapping[str, Any]
    strict: bool
    require_device: bool
    verbose: bool


_CONFIG = pytest.StashKey[Config]()
_USE: pytest.StashKey[LeakCheck] = pytest.StashKey()
_TERMINAL: pytest.StashKey[int | None] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; each defaults to ``None``, so that the ini file can have a say."""
    group = parser.getgroup("leakkit", "memory leaks and slowdowns of training steps")
    mode = f"{' or '.join(MODES)}: off runs each step once and judges nothing"
    group.addoption("--leakkit", dest="leakkit", metavar="MODE", default=None, help=mode)
    parser.addini("leakkit", mode, default=None)
    for option in OPTIONS:
        _add(group, parser, option)


def _add(group: Any, parser: pytest.Parser, option: Option) -> None:
    how: dict[str, Any] = {"dest": option.key, "default": None, "help": option.help}
    if option.metavar is None:
        how |= {"action": "store_true"}
    else:
        how |= {"metavar": option.metavar, "action": "append" if option.many else "store"}
    group.addoption(option.flag, **how)
    kind: Any = "linelist" if option.many else None
    parser.addini(option.key, option.help, type=kind, default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and read the options."""
    config.addinivalue_line(
        "markers",
        "leakkit(steps=, max_steps=, warmup=, limits=, probes=, device=, cadence=, ...): "
        "settings of this test's leak_check; " + ", ".join(setting_names()),
    )
    try:
        config.stash[_CONFIG] = _read_config(config)
    except SettingsError as error:
        raise pytest.UsageError(f"leakkit: {error}") from None


def _read_config(config: pytest.Config) -> Config:
    values = {o.name: _value(config, o) for o in OPTIONS}
    settings = {
        _SETTING_OF.get(name, name): value
        for name, value in values.items()
        if value is not None and name not in _NO_SETTING
    }
    if "limits" in settings:
        settings["limits"] = split_limits(settings["limits"])
    if "directory" in settings:
        settings["directory"] = config.invocation_params.dir / settings["directory"]
    make_settings(settings)  # what is wrong is said now, not by the first test
    return Config(
        off=_mode(config) == "off",
        settings=settings,
        **{name: bool(values[name]) for name in _NO_SETTING},
    )


def _value(config: pytest.Config, option: Option) -> Any:
    """From the command line, else the ini file, else ``None``."""
    value = config.getoption(option.key)
    if value is None:
        value = config.getini(option.key) or None
    if value is not None and option.metavar is None:
        return _truth(option, value)
    return value


def _truth(option: Option, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in _TRUE + _FALSE:
        return str(value).lower() in _TRUE
    raise SettingsError(f"{option.key} must be true or false, not {value!r}")


def _mode(config: pytest.Config) -> str:
    mode = config.getoption("leakkit")
    if mode is None:
        mode = config.getini("leakkit") or MODES[0]
    if mode not in MODES:
        raise SettingsError(f"--leakkit must be {' or '.join(MODES)}, not {mode!r}")
    return str(mode)


def pytest_report_header(config: pytest.Config) -> str:
    """One line: the version and what differs from the defaults."""
    read = config.stash[_CONFIG]
    if read.off:
        return f"leakkit: {__version__}, off: each step runs once and nothing is judged"
    settings = make_settings(read.settings)
    parts = [
        f"leakkit: {__version__}",
        f"{settings.steps} to {settings.max_steps} steps a pass",
        f"at most {settings.max_seconds:g} s",
        f"heap {settings.heap}",
    ]
    return ", ".join(parts + ["strict"] * read.strict)


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
        pytest.fail(message, pytrace=False)

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


def _fail(message: str) -> NoReturn:
    """Fail with one clear line, whatever was being handled."""
    raise pytest.fail.Exception(message, pytrace=False) from None


def _is_ours(error: BaseException) -> bool:
    from leakkit.check import StepError
    from leakkit.heap import HeapError
    from leakkit.recording import RecordingError

    return isinstance(error, (SettingsError, StepError, HeapError, RecordingError))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A leak test on ``all`` devices is one test for each that is there."""
    if "leak_check" not in metafunc.fixturenames or _device_of(metafunc) != "all":
        return
    from leakkit.frameworks import present

    metafunc.fixturenames.append("leakkit_device")
    metafunc.parametrize("leakkit_device", present(), indirect=True)


def _device_of(metafunc: pytest.Metafunc) -> str | None:
    """The device that a test is to run on; what is wrong with its markers is told at its set-up."""
    config = metafunc.config.stash[_CONFIG]
    marks = metafunc.definition.iter_markers("leakkit")
    asked = (mark.kwargs["device"] for mark in marks if "device" in mark.kwargs)
    device = next(asked, None) or config.settings.get("device")
    try:
        return None if config.off else make_settings({"device": device}).device
    except SettingsError:
        return None


@pytest.fixture
def leakkit_device(request: pytest.FixtureRequest) -> str | None:
    """The name of the device, such as ``GPU:0``, in a leak test that runs on all of them."""
    return getattr(request, "param", None)


@pytest.fixture
def leak_check(
    request: pytest.FixtureRequest,
) -> Generator[LeakCheck | LeakCheckOff, None, None]:
    """Measure that a training step does not grow.

    ``leak_check(step, *args, **kwargs)`` repeats a step; ``for batch in leak_check.steps(data):``
    measures a loop. The test fails when the step grows, and its failure is the report.
    """
    config = request.config.stash[_CONFIG]
    if config.off:
        yield LeakCheckOff()
        return
    with _private_temp(request, config) as (settings, temp):
        settings = replace(settings, folders=(*settings.folders, temp))
        use = _make(request, config, settings)
        request.node.stash[_USE] = use
        from leakkit.frameworks import placed

        with placed(settings.device):  # the whole test, with what it makes before its step
            yield use
        use.abandon()
    if not use.used:
        text = f"{request.node.nodeid} asks for leak_check and does not use it: nothing was judged"
        warnings.warn(LeakkitWarning(text), stacklevel=1)


@contextmanager
def _private_temp(
    request: pytest.FixtureRequest, config: Config
) -> Iterator[tuple[Settings, Path]]:
    """The settings of a test, and a temporary folder of its own that is watched."""
    from leakkit.probes.folders import private_temp
    from leakkit.recording import RecordingError

    settings = _settings_of(request.node, config.settings, request)
    assert settings.directory is not None
    with ExitStack() as stack:
        try:
            temp = stack.enter_context(private_temp(settings.directory / "tmp"))
        except RecordingError as error:
            _fail(f"leakkit: {error}")
        yield settings, temp


def _make(request: pytest.FixtureRequest, config: Config, settings: Settings) -> LeakCheck:
    item = request.node
    _need_device(settings, config)
    _need_tracker(settings, request.config)
    from leakkit.check import Check
    from leakkit.reports.terminal import render

    def report(result: Result) -> str:
        return render(result, verbose=config.verbose, unicode=_unicode(item))

    progress = _progress(request.config)
    check = Check(settings, name=item.name, progress=progress, report=report)
    return LeakCheck(check, strict=config.strict, report=report, progress=progress)


def _settings_of(
    item: pytest.Item, session: Mapping[str, Any], request: pytest.FixtureRequest
) -> Settings:
    """The marker before the command line before the ini file; limits are put together."""
    marked = _marked(item)
    options = {**session, **marked}
    options["limits"] = {**session.get("limits", {}), **marked.get("limits", {})}
    if "folders" not in options and "tmp_path" in request.fixturenames:
        options["folders"] = (request.getfixturevalue("tmp_path"),)
    options["device"] = request.getfixturevalue("leakkit_device") or options.get("device")
    options["directory"] = _folder(item, options.get("directory"), request)
    try:
        return make_settings(options)
    except SettingsError as error:
        _fail(f"leakkit: {error}")


def _marked(item: pytest.Item) -> dict[str, Any]:
    """The settings in the markers of a test, the closest last and so the strongest."""
    options: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("leakkit"))):
        options.update(_checked(marker))
        limits.update(options.get("limits") or {})
    return {**options, "limits": limits} if limits else options


def _checked(marker: pytest.Mark) -> Mapping[str, Any]:
    try:
        if marker.args:
            raise SettingsError(
                f"the marker takes settings by name, not {marker.args[0]!r}; "
                f"the settings are {', '.join(setting_names())}"
            )
        make_settings(marker.kwargs)
    except SettingsError as error:
        _fail(f"leakkit: {error}")
    return marker.kwargs


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that says nothing valid, or that nothing reads, is told."""
    marker = item.get_closest_marker("leakkit")
    if marker is None:
        return
    _marked(item)
    if "leak_check" not in getattr(item, "fixturenames", ()):
        text = f"{item.nodeid} has the marker leakkit but does not use the fixture leak_check"
        warnings.warn(LeakkitWarning(text), stacklevel=1)


def _need_device(settings: Settings, config: Config) -> None:
    if settings.device is None:
        return
    from leakkit.frameworks import DeviceMissing, find_devices

    if settings.device == "all":  # a parametrised test has one device by now
        _fail(
            "leakkit: a test on all devices must name leak_check among its arguments or its "
            "fixtures', so that there is one test for each"
        )
    try:
        find_devices(settings.device)
    except DeviceMissing as error:
        if config.require_device:
            _fail(f"leakkit: {error}")
        pytest.skip(f"leakkit: {error}")


def _need_tracker(settings: Settings, config: pytest.Config) -> None:
    """Only one memray tracker can be active in a process, and ``--memray`` has it."""
    if settings.heap in ("auto", "memray") and config.getoption("memray", False):
        pytest.fail(
            "leakkit: pytest --memray traces this test already, and only one memray tracker can "
            "be active; run without --memray, or with --leakkit-heap=tracemalloc",
            pytrace=False,
        )


def _folder(item: pytest.Item, directory: Any, request: pytest.FixtureRequest) -> Path:
    """Where a test's recording goes: a new one replaces that of the session before."""
    if directory is None:
        factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        return factory.mktemp("leakkit")
    folder = Path(directory) / _slug(item.nodeid)
    if (folder / "meta.json").exists():
        shutil.rmtree(folder)
    return folder


def _slug(nodeid: str) -> str:
    return re.sub(r"[^\w.-]+", "_", nodeid).strip("_")[-120:]


def _unicode(item: pytest.Item) -> bool:
    """Whether the terminal that will show the report can print block characters."""
    reporter = item.config.pluginmanager.get_plugin("terminalreporter")
    file = getattr(getattr(reporter, "_tw", None), "_file", sys.stdout)
    return "utf" in (getattr(file, "encoding", None) or "utf-8").lower()


def _progress(config: pytest.Config) -> Progress | None:
    """A progress line for long runs, where standard output is a terminal."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not getattr(reporter, "isatty", False):
        return None
    from leakkit.reports.progress import Progress

    if _TERMINAL not in config.stash:
        config.stash[_TERMINAL] = _open_terminal(config)
    terminal = config.stash[_TERMINAL]
    if terminal is None:
        return None
    return Progress(terminal, column=reporter._tw.width_of_current_line)


def _open_terminal(config: pytest.Config) -> int | None:
    """pytest captures standard output while a test runs; the terminal itself stays reachable."""
    try:
        terminal = os.open("/dev/tty", os.O_WRONLY)
    except OSError:
        return None
    config.add_cleanup(lambda: os.close(terminal))
    return terminal


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Judge a loop that the test drove itself while the test can still fail.

    A loop left by ``break`` never tells its iterator, so the fixture alone would judge it only
    in the teardown, where xfail and reruns no longer work.
    """
    __tracebackhide__ = True
    use = pyfuncitem.stash.get(_USE, None)
    try:
        outcome = yield
    except BaseException:
        if use is not None:
            use.abandon()
        raise
    if use is not None:
        use.finish()
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a leak's report instead of a stack, and put what the summary needs on the report."""
    report = yield
    if call.when != "call":
        return report
    _show_report(report, call.excinfo)
    use = item.stash.get(_USE, None)
    if use is not None and use.result is not None:
        _keep(use.result)
        # Builtins only: anything else ends a session under xdist.
        report.leakkit = _summary_of(use.result)  # type: ignore[attr-defined]
        report.user_properties.append(("leakkit_verdict", use.result.verdict.value))
    return report


def _show_report(
    report: pytest.TestReport, info: pytest.ExceptionInfo[BaseException] | None
) -> None:
    loaded = sys.modules.get("leakkit.result")
    if info is None or loaded is None or not isinstance(info.value, loaded.LeakError):
        return
    shown: Any = info.getrepr(style="value")
    if getattr(shown, "reprcrash", None) is not None:
        shown.reprcrash.message = str(info.value).partition("\n")[0]
    if report.failed:
        report.longrepr = shown


def _keep(result: Result) -> None:
    from leakkit.replay import keep

    # Not worth failing for: the report is shown all the same.
    with suppress(OSError):
        keep(result)


def _summary_of(result: Result) -> dict[str, Any]:
    from leakkit.reports.terminal import headline, summary

    return {
        "verdict": result.verdict.value,
        "headline": headline(result),
        "text": summary(result),
        "steps": int(result.steps),
        "seconds": float(result.seconds),
        "recording": str(result.recording.path),
    }


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line for each leak test of the session, the growing ones first."""
    reports = [
        report
        for kind in terminalreporter.stats.values()
        for report in kind
        if getattr(report, "leakkit", None)
    ]
    if not reports:
        return
    terminalreporter.section("leakkit", sep="-")
    order = ("grows", "undecided", "flat")
    for report in sorted(reports, key=lambda r: order.index(r.leakkit["verdict"])):
        _write_line(terminalreporter, report.nodeid, report.leakkit)
    directory = config.stash[_CONFIG].settings.get("directory")
    if directory is not None:
        terminalreporter.line(f"recordings in {directory}; leakkit report FOLDER shows one")


def _write_line(terminal: Any, nodeid: str, data: Mapping[str, Any]) -> None:
    color = {"grows": "red", "undecided": "yellow", "flat": "green"}[data["verdict"]]
    terminal.write(f"{data['verdict']:<9}", **{color: True})
    terminal.line(f"  {nodeid}  {data['text']}")

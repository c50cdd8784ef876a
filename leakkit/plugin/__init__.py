"""The pytest surface: options, marker, fixture, verdicts in the call phase, summary.

Nothing heavy is imported when this package loads: a suite that uses no ``leak_check`` pays for
reading a few options and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from leakkit import __version__
from leakkit.plugin.fixture import LeakCheck, LeakCheckOff, LeakkitWarning
from leakkit.plugin.marker import device_of, fail, marked, settings_of
from leakkit.plugin.options import Config, add_options, read_options
from leakkit.plugin.summary import keep_report, show_report, summary_of, write_line
from leakkit.plugin.terminal import progress, shows_unicode
from leakkit.settings import Settings, SettingsError, make_settings, setting_names

if TYPE_CHECKING:
    from leakkit.result import Result

_CONFIG = pytest.StashKey[Config]()
_USE = pytest.StashKey[LeakCheck]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line and the ini file."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and read the options."""
    config.addinivalue_line(
        "markers",
        "leakkit(steps=, max_steps=, warmup=, limits=, probes=, device=, cadence=, ...): "
        "settings of this test's leak_check; " + ", ".join(setting_names()),
    )
    try:
        config.stash[_CONFIG] = read_options(config)
    except SettingsError as error:
        raise pytest.UsageError(f"leakkit: {error}") from None


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


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A leak test on ``all`` devices is one test for each that is there."""
    config = metafunc.config.stash[_CONFIG]
    if "leak_check" not in metafunc.fixturenames or device_of(metafunc, config) != "all":
        return
    from leakkit.frameworks import present

    metafunc.fixturenames.append("leakkit_device")
    metafunc.parametrize("leakkit_device", present(), indirect=True)


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

    settings = settings_of(request.node, config.settings, request)
    assert settings.directory is not None
    with ExitStack() as stack:
        try:
            temp = stack.enter_context(private_temp(settings.directory / "tmp"))
        except RecordingError as error:
            fail(f"leakkit: {error}")
        yield settings, temp


def _make(request: pytest.FixtureRequest, config: Config, settings: Settings) -> LeakCheck:
    item = request.node
    _need_device(settings, config)
    _need_tracker(settings, request.config)
    from leakkit.check import Check
    from leakkit.reports.terminal import render

    def report(result: Result) -> str:
        return render(result, verbose=config.verbose, unicode=shows_unicode(item))

    shown = progress(request.config)
    check = Check(settings, name=item.name, progress=shown, report=report)
    return LeakCheck(check, strict=config.strict, report=report, progress=shown)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marker that says nothing valid, or that nothing reads, is told."""
    marker = item.get_closest_marker("leakkit")
    if marker is None:
        return
    marked(item)
    if "leak_check" not in getattr(item, "fixturenames", ()):
        text = f"{item.nodeid} has the marker leakkit but does not use the fixture leak_check"
        warnings.warn(LeakkitWarning(text), stacklevel=1)


def _need_device(settings: Settings, config: Config) -> None:
    if settings.device is None:
        return
    from leakkit.frameworks import DeviceMissing, find_devices

    if settings.device == "all":  # a parametrised test has one device by now
        fail(
            "leakkit: a test on all devices must name leak_check among its arguments or its "
            "fixtures', so that there is one test for each"
        )
    try:
        find_devices(settings.device)
    except DeviceMissing as error:
        if config.require_device:
            fail(f"leakkit: {error}")
        pytest.skip(f"leakkit: {error}")


def _need_tracker(settings: Settings, config: pytest.Config) -> None:
    """Only one memray tracker can be active in a process, and ``--memray`` has it."""
    if settings.heap in ("auto", "memray") and config.getoption("memray", False):
        fail(
            "leakkit: pytest --memray traces this test already, and only one memray tracker can "
            "be active; run without --memray, or with --leakkit-heap=tracemalloc"
        )


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
    show_report(report, call.excinfo)
    use = item.stash.get(_USE, None)
    if use is not None and use.result is not None:
        keep_report(use.result)
        report.leakkit = summary_of(use.result)  # type: ignore[attr-defined]
        report.user_properties.append(("leakkit_verdict", use.result.verdict.value))
    return report


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
        write_line(terminalreporter, report.nodeid, report.leakkit)
    directory = config.stash[_CONFIG].settings.get("directory")
    if directory is not None:
        terminalreporter.line(f"recordings in {directory}; leakkit report FOLDER shows one")

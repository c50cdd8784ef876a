"""The command line: ``leakkit run | report | demo | doctor | scenarios``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from leakkit import __version__
from leakkit.settings import HEAPS, Settings, SettingsError, make_settings, split_limits
from leakkit.target import TargetError, load_step

if TYPE_CHECKING:
    from leakkit.reports.progress import Progress
    from leakkit.result import Result

FLAT, GROWS, BROKEN, UNDECIDED = 0, 1, 2, 3
_OWN = os.path.dirname(os.path.abspath(__file__))
_alive: dict[str, Any] = {}  # the measured step, which outlives the command: see leakkit.__main__

_DESCRIPTION = """\
Find out whether a training step leaks memory or gets slower, and what makes it so.

  leakkit demo                          see a leak found, explained and corrected
  leakkit run train.py:train_step       measure a step of yours
  leakkit doctor                        what works on this machine
"""
_WORST_FIRST = (2, 1, 3, 0)
_EXIT_CODES = "exit code: 0 flat, 1 grows, 2 wrong usage or a step that raised, 3 undecided"
_RUN = f"""\
Repeat a step, measure it at every boundary, and say whether it grows.

examples:
  leakkit run train.py:train_step
  leakkit run train.py:make_step --factory         NAME returns the step
  leakkit run package.training:train_step --max-steps 960 --max-seconds 120
  leakkit run train.py:train_step --limit 'python_heap=64 B/step' \\
                                  --limit 'latency=1 %/100 steps'
  leakkit run train.py:train_step --json result.json --dir recordings

NAME is called without arguments, or with the step index where it takes one argument.

{_EXIT_CODES}
"""


class UsageError(Exception):
    """What was asked for cannot be done; the text is one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments[:1] == ["scenarios"]:
            return _scenarios(arguments[1:])
        if arguments[:1] == ["doctor"]:
            return _doctor(arguments[1:])
        parser = make_parser()
        if not arguments:
            parser.exit(BROKEN, parser.format_help())
        args = parser.parse_args(arguments)
        command: Callable[[argparse.Namespace], int] = args.command
        return command(args)
    except (UsageError, SettingsError, TargetError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted")
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="leakkit",
        description=_DESCRIPTION,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"leakkit {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_report(commands)
    demo = commands.add_parser("demo", help="a real Keras model that leaks, and its correction")
    demo.set_defaults(command=_demo)
    # These two read their own arguments; they stand here for the list of commands.
    commands.add_parser("doctor", help="what works on this machine")
    commands.add_parser("scenarios", help="known leaks with their corrections")
    return parser


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="measure a step",
        description=_RUN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("target", metavar="FILE.py:NAME | package.module:NAME")
    run.add_argument("--factory", action="store_true", help="NAME() returns the step")
    run.add_argument(
        "--restart-check",
        action="store_true",
        help="where it gets slower: compare with a fresh process, and say whether a restart helps",
    )
    _add_settings(run.add_argument_group("measurement"))
    out = run.add_argument_group("output")
    out.add_argument("--json", metavar="FILE", help="write the result as JSON; - for stdout")
    out.add_argument("--markdown", metavar="FILE", help="write the report for an issue")
    out.add_argument("--dir", metavar="DIR", type=Path, help="keep the recording in this folder")
    out.add_argument("-v", "--verbose", action="store_true", help="all series and reasons")
    run.set_defaults(command=_run)


def _add_settings(group: Any) -> None:
    group.add_argument("--steps", metavar="N", help="steps of the first look (120)")
    group.add_argument("--max-steps", metavar="N", help="the most steps of a pass (480)")
    group.add_argument("--warmup", metavar="N", help="steps before the first sample (20)")
    group.add_argument("--max-seconds", metavar="TIME", help="time for it all, e.g. '2 min' (30)")
    group.add_argument(
        "--limit",
        metavar="SERIES=VALUE",
        action="append",
        dest="limits",
        help="accepted growth, e.g. 'python_heap=64 B/step'; may be given again",
    )
    group.add_argument("--probes", metavar="NAMES", help="probes to use, separated by commas")
    group.add_argument(
        "--device",
        metavar="NAME",
        help="the device it must run on: cpu, gpu, gpu:1, tpu; with all, once on each",
    )
    group.add_argument("--cadence", metavar="N", help="what happens every N steps is no growth")
    group.add_argument("--heap", metavar="ENGINE", help=f"one of {', '.join(HEAPS)} (auto)")
    group.add_argument(
        "--native",
        action="store_const",
        const=True,
        help="name the native functions that allocate, too (slower)",
    )
    group.add_argument(
        "--folder",
        metavar="PATH",
        action="append",
        dest="folders",
        help="watch a folder for files left behind; may be given again",
    )


def _add_report(commands: Any) -> None:
    report = commands.add_parser("report", help="show a recording again", epilog=_EXIT_CODES)
    report.add_argument("directory", metavar="DIR", type=Path, help="the recording's folder")
    report.add_argument("--json", metavar="FILE", help="write the result as JSON; - for stdout")
    report.add_argument("--markdown", metavar="FILE", help="write the report for an issue")
    report.add_argument("-v", "--verbose", action="store_true", help="all series and reasons")
    report.set_defaults(command=_report)


def _run(args: argparse.Namespace) -> int:
    settings = make_settings(
        {
            "steps": args.steps,
            "max_steps": args.max_steps,
            "warmup": args.warmup,
            "max_seconds": args.max_seconds,
            "limits": split_limits(args.limits) if args.limits else None,
            "probes": args.probes,
            "device": args.device,
            "cadence": args.cadence,
            "heap": args.heap,
            "native": args.native,
            "folders": args.folders,
            "directory": args.dir,
        }
    )
    _check_writable(args)
    with _temporary(settings.directory, keep=args.dir is not None) as temp:
        folders = (*settings.folders, temp)
        settings = replace(settings, directory=temp.parent, folders=folders)
        if settings.device == "all":
            return _on_all(settings, args)
        step = _load(args.target, factory=args.factory)
        _need_device(settings.device)
        return _measure(step, settings, args)


def _load(target: str, *, factory: bool) -> Callable[..., Any]:
    with _blame("the module of the step"):
        return load_step(target, factory=factory)


def _on_all(settings: Settings, args: argparse.Namespace) -> int:
    """Once on each device; the worst outcome. Files get the name of their device."""
    from leakkit.frameworks import placed, present

    _load(args.target, factory=False)  # only now are its frameworks imported, and can be asked
    codes = []
    for name in present():
        _need_device(name)
        own = argparse.Namespace(**vars(args) | {"json": _named(args.json, name)})
        own.markdown = _named(args.markdown, name)
        assert settings.directory is not None
        here = replace(settings, device=name, directory=settings.directory / _slug(name))
        print(f"{name}", file=sys.stderr if args.json == "-" else sys.stdout)
        with placed(name):
            step = _load(args.target, factory=args.factory)
        codes.append(_measure(step, here, own))
    return min(codes, key=_WORST_FIRST.index)


def _named(file: str | None, device: str) -> str | None:
    """``result-GPU-0.json``."""
    if file is None or file == "-":
        return file
    path = Path(file)
    return str(path.with_stem(f"{path.stem}-{_slug(device)}"))


def _slug(device: str) -> str:
    return device.replace(":", "-")


@contextmanager
def _temporary(folder: Path | None, *, keep: bool) -> Iterator[Path]:
    """Temporary files of the step go below the recording's folder, where they are counted.

    A folder that nobody asked for is dropped, unless the step raised, where it may be all there
    is, or a note names a snapshot in it.
    """
    from leakkit.probes.folders import private_temp
    from leakkit.recording import RecordingError
    from leakkit.suspects.snapshots import saved

    folder = folder or Path(tempfile.mkdtemp(prefix="leakkit-"))
    try:
        with private_temp(folder / "tmp") as temp:
            yield temp
    except RecordingError as error:
        raise UsageError(str(error)) from None
    except BaseException:
        keep |= (folder / "meta.json").exists()
        raise
    finally:
        if not keep and not saved(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _measure(step: Callable[..., Any], settings: Settings, args: argparse.Namespace) -> int:
    """Measure and report."""
    from leakkit.check import Check
    from leakkit.replay import keep

    kept = f"; what was recorded is in {settings.directory}"
    with _blame("the step", kept), _progress() as progress:
        try:
            result = Check(settings, progress=progress).run(step)
        finally:
            _alive["step"] = step
        with suppress(OSError):  # a full disk costs the recording, not the report
            keep(result)
    code = _show(result, args)
    if args.restart_check:
        _compare_with_fresh(result, args)
    return code


def _compare_with_fresh(result: Result, args: argparse.Namespace) -> None:
    from leakkit.restart import NoAnswer, restart_check

    options = ["--factory"] if args.factory else []
    if args.warmup:
        options.append(f"--warmup={args.warmup}")
    try:
        answer = str(restart_check(result, args.target, options))
    except NoAnswer as error:
        answer = str(error)
    print(f"Restart check: {answer}", file=sys.stderr if args.json == "-" else sys.stdout)


def _report(args: argparse.Namespace) -> int:
    from leakkit.recording import Recording, RecordingError
    from leakkit.replay import judge_recording

    _check_writable(args)
    try:
        result = judge_recording(Recording.load(args.directory))
    except RecordingError as error:
        raise UsageError(str(error)) from None
    return _show(result, args)


def _demo(args: argparse.Namespace) -> int:
    from leakkit.demo import run

    return run(print_report)


def _scenarios(arguments: Sequence[str]) -> int:
    from leakkit.scenario_commands import main as scenarios

    return int(scenarios(arguments))


def _doctor(arguments: Sequence[str]) -> int:
    from leakkit.doctor import main as doctor

    return int(doctor(arguments))


def _show(result: Result, args: argparse.Namespace) -> int:
    from leakkit.reports import json, markdown

    if args.json != "-":  # JSON alone on standard output
        print_report(result, verbose=args.verbose)
    if args.json:
        _write(args.json, json.render(result))
    if args.markdown:
        _write(args.markdown, markdown.to_markdown(result) + "\n")
    return exit_code(result)


def exit_code(result: Result) -> int:
    """0 flat, 1 grows, 3 undecided."""
    return {"flat": FLAT, "grows": GROWS, "undecided": UNDECIDED}[result.verdict.value]


def print_report(result: Result, *, verbose: bool = False) -> None:
    """Print the report as standard output can show it."""
    from leakkit.reports.terminal import render

    terminal = sys.stdout.isatty()
    width = min(100, max(80, shutil.get_terminal_size().columns)) if terminal else 80
    print(
        render(
            result,
            color=terminal and "NO_COLOR" not in os.environ,
            unicode="utf" in (sys.stdout.encoding or "").lower(),
            width=width,
            verbose=verbose,
        )
    )


def _check_writable(args: argparse.Namespace) -> None:
    """Said before the measurement, so that nothing measured is lost."""
    folder = getattr(args, "dir", None)
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder: a recording needs one of its own")
    for file in (args.json, args.markdown):
        if file and file != "-":
            folder = Path(file).absolute().parent
            if not folder.is_dir():
                raise UsageError(f"cannot write {file}: there is no folder {folder}")
            if not os.access(file if os.path.exists(file) else folder, os.W_OK):
                raise UsageError(f"cannot write {file}: permission denied")


def _write(file: str, text: str) -> None:
    if file == "-":
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from None


def _need_device(device: str | None) -> None:
    if device is None:
        return
    from leakkit.frameworks import DeviceMissing, find_devices

    try:
        find_devices(device)
    except DeviceMissing as error:
        raise UsageError(str(error)) from None


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A progress line on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from leakkit.reports.progress import Progress

    progress = Progress(sys.stderr.fileno())
    try:
        yield progress
    finally:
        progress.close()


@contextmanager
def _blame(what: str, kept: str = "") -> Iterator[None]:
    """What the user's own code raises is shown with the user's own frames."""
    from leakkit.check import StepError
    from leakkit.heap import HeapError
    from leakkit.recording import RecordingError

    try:
        yield
    except (UsageError, SettingsError, TargetError):
        raise
    except (HeapError, RecordingError, StepError) as error:
        raise UsageError(str(error)) from None
    except (Exception, SystemExit) as error:
        traceback.print_exception(type(error), error, _users(error.__traceback__))
        raise UsageError(f"{what} raised {_first_line(error)}{kept}") from None
    except KeyboardInterrupt:
        raise UsageError(f"interrupted{kept}") from None


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0].removesuffix(": ")


def _users(trace: TracebackType | None) -> TracebackType | None:
    """The part of a stack that starts in the user's code."""
    start = trace
    while start is not None and _is_plumbing(start.tb_frame.f_code.co_filename):
        start = start.tb_next
    return start or trace


def _is_plumbing(file: str) -> bool:
    own = file.startswith(_OWN + os.sep) and not file.startswith(os.path.join(_OWN, "scenarios"))
    return own or file.startswith("<frozen importlib") or file.endswith("importlib/__init__.py")


def _fail(message: str) -> int:
    print(f"leakkit: {message}", file=sys.stderr)
    return BROKEN

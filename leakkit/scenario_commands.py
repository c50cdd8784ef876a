"""``leakkit scenarios list | show | run | matrix | new | verify``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from leakkit.scenarios import CardError, Scenario, families, get, load

AS_EXPECTED, DIFFERENT, BROKEN = 0, 1, 2

_DESCRIPTION = """\
Known leaks, each with a leaky form and a corrected one that does the same work.

  leakkit scenarios list                     what there is
  leakkit scenarios show graph-retracing     what it is, why, and the code of both forms
  leakkit scenarios run graph-retracing      see it caught, and its correction pass
"""
_EXIT_CODES = (
    "exit code: 0 as expected, 1 different from what was expected, 2 wrong usage or broken"
)


class UsageError(Exception):
    """What was asked for cannot be done; the text is one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``leakkit scenarios`` with these arguments; returns the exit code."""
    arguments, options = _split(sys.argv[1:] if argv is None else argv)
    args = make_parser().parse_args(arguments, argparse.Namespace(options=options))
    try:
        command: Callable[[argparse.Namespace], int] = args.command
        return command(args)
    except (CardError, UsageError, OSError) as error:
        print(f"leakkit scenarios: {error}", file=sys.stderr)
        return BROKEN


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``leakkit scenarios``; each command sets ``command``, a function."""
    parser = argparse.ArgumentParser(
        prog="leakkit scenarios",
        description=_DESCRIPTION,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in (_add_list, _add_show, _add_run, _add_matrix, _add_new, _add_verify):
        add(commands)
    return parser


def _add_list(commands: Any) -> None:
    command = commands.add_parser("list", help="all scenarios, by family")
    command.add_argument("--family", help="only those of one family")
    command.add_argument("--names", action="store_true", help="names alone, one a line")
    command.set_defaults(command=_list)


def _add_show(commands: Any) -> None:
    command = commands.add_parser("show", help="one scenario: cause, remedy, code")
    command.add_argument("name", metavar="NAME")
    command.set_defaults(command=_show)


def _add_run(commands: Any) -> None:
    command = commands.add_parser(
        "run",
        help="measure one, each form in a fresh process",
        epilog="What stands after -- goes to leakkit run, e.g. -- --max-steps 960",
    )
    command.add_argument("name", metavar="NAME | FILE.py")
    command.add_argument("--form", choices=("leaky", "corrected", "both"), default="both")
    command.set_defaults(command=_run)


def _add_matrix(commands: Any) -> None:
    command = commands.add_parser("matrix", help="measure many and show one table")
    command.add_argument("names", metavar="NAME", nargs="*", help="which ones; all without it")
    command.add_argument("--family", help="only those of one family")
    command.add_argument("--jobs", type=_positive, default=1, metavar="N", help="at a time (1)")
    command.add_argument("--repeat", type=_positive, default=1, metavar="N", help="times each (1)")
    command.add_argument(
        "--markdown",
        type=Path,
        metavar="FILE",
        help="write the table; in a file with <!-- matrix --> marks, only between them",
    )
    command.add_argument("--reports", type=Path, metavar="DIR", help="keep each report in DIR")
    command.set_defaults(command=_matrix)


def _add_new(commands: Any) -> None:
    command = commands.add_parser("new", help="write the skeleton of a scenario")
    command.add_argument("name", metavar="NAME", help="kebab-case, e.g. my-cache-leaks")
    command.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="where (.)")
    command.set_defaults(command=_new)


def _add_verify(commands: Any) -> None:
    command = commands.add_parser("verify", help="check a contributed scenario")
    command.add_argument("file", type=Path, metavar="FILE")
    command.set_defaults(command=_verify)


def _list(args: argparse.Namespace) -> int:
    chosen = _chosen([], args.family)
    if args.names:
        print("\n".join(scenario.name for scenario in chosen))
        return AS_EXPECTED
    from leakkit.scenarios._tables import overview, print_rich

    print_rich(overview(chosen))
    return AS_EXPECTED


def _show(args: argparse.Namespace) -> int:
    from leakkit.scenarios._tables import card, print_rich

    print_rich(*card(_find(args.name)))
    return AS_EXPECTED


def _run(args: argparse.Namespace) -> int:
    from leakkit.scenarios._fresh import FORMS, show

    scenario = _find(args.name)
    _need(scenario)
    forms = FORMS if args.form == "both" else (args.form,)
    return int(show(scenario, forms, args.options))


def _matrix(args: argparse.Namespace) -> int:
    from leakkit.scenarios._matrix import markdown, measure, write_between_marks
    from leakkit.scenarios._tables import matrix, print_rich

    rows = measure(_chosen(args.names, args.family), args.jobs, args.repeat, args.reports)
    print_rich(matrix(rows))
    if args.markdown:
        write_between_marks(args.markdown, markdown(rows))
    wrong = [row for row in rows if row.complaints]
    for row in wrong:
        print(f"{row.scenario.name}: {'; '.join(row.complaints)}")
    return DIFFERENT if wrong else AS_EXPECTED


def _new(args: argparse.Namespace) -> int:
    from leakkit.scenarios._skeleton import NameTaken, write

    try:
        path = write(args.name, args.folder)
    except (NameTaken, ValueError) as error:
        raise UsageError(str(error)) from None
    print(f"{path} written. Fill it in, then: leakkit scenarios verify {path}")
    return AS_EXPECTED


def _verify(args: argparse.Namespace) -> int:
    from leakkit.scenarios._fresh import FORMS, run, same_work

    scenario = load(args.file.resolve())
    _need(scenario)
    complaints = [f"same work: {text}" for text in same_work(scenario)]
    for form in FORMS:
        outcome = run(scenario, form)
        print(outcome.report)
        complaints += [f"{form}: {text}" for text in outcome.complaints()]
    for text in complaints:
        print(text)
    if not complaints:
        print(f"{scenario.name}: leaky is caught, corrected is flat, both do the same work")
    return DIFFERENT if complaints else AS_EXPECTED


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before and after ``--``."""
    if "--" not in arguments:
        return arguments, ()
    cut = list(arguments).index("--")
    return arguments[:cut], arguments[cut + 1 :]


def _find(name: str) -> Scenario:
    path = Path(name)
    if path.suffix == ".py":
        return load(path.resolve())
    try:
        return get(name)
    except LookupError as error:
        raise UsageError(str(error)) from None


def _need(scenario: Scenario) -> None:
    missing = scenario.missing()
    if missing:
        raise UsageError(f"{scenario.name} needs {', '.join(missing)}, which isn't installed")


def _chosen(wanted: Sequence[str], family: str | None) -> list[Scenario]:
    if wanted:
        return [_find(name) for name in wanted]
    shelves: dict[str, list[Scenario]] = families()
    if family is None:
        return [scenario for shelf in shelves.values() for scenario in shelf]
    if family not in shelves:
        raise UsageError(f"no family {family!r}; the families are {', '.join(shelves)}")
    return shelves[family]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number

"""The verdict on every variant of a folder of cases, beside what must be said.

    python tests/benchmarks/cases.py CASES [NAME …] [--jobs 1] [--times 1] [--markdown FILE]

CASES holds files with ``make_leaky()`` and ``make_fixed()``, or ``make_step()``, and a table
``truth.tsv`` with the columns case, variant and expect (``grows``, ``flat``, or ``skip``: shown,
not judged). Every variant runs in a fresh process by ``leakkit run … --factory --json``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One variant in one process."""

    case: str
    variant: str
    expected: str
    verdict: str
    grew: tuple[str, ...]
    diagnosis: str
    seconds: float

    @property
    def right(self) -> bool:
        """Whether the verdict is the expected one, where one is expected."""
        return self.expected in ("skip", self.verdict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the confusion; 1 where a verdict is wrong."""
    options = _options(arguments)
    jobs = [job for job in _jobs(options) for _ in range(options.times)]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda job: _run(options, *job), jobs):
            rows.append(row)
            print(_line(row), flush=True)
    print("\n" + "\n".join(_confusion(rows)))
    if options.markdown:
        options.markdown.write_text(_markdown(rows), encoding="utf-8")
    return 0 if all(row.right for row in rows) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    parser.add_argument("--times", type=int, default=1, help="processes for each variant")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for one process")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--python", default=sys.executable)
    return parser.parse_args(arguments)


def _jobs(options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    """Case, variant and expected verdict of each chosen row of the truth."""
    with (options.cases / "truth.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            name = f"{row['case']}.{row['variant']}"
            if not options.names or any(part in name for part in options.names):
                yield row["case"], row["variant"], row["expect"]


def _run(options: argparse.Namespace, case: str, variant: str, expected: str) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        out, scratch = Path(folder) / "result.json", Path(folder) / "scratch"
        scratch.mkdir()
        target = f"{options.cases / case}.py:make_{variant}"
        command = [options.python, "-m", "leakkit", "run", target, "--factory", "--json", str(out)]
        env = {**os.environ, "CASE_TMP": str(scratch), "TF_CPP_MIN_LOG_LEVEL": "3"}
        began = time.monotonic()
        try:
            done = subprocess.run(
                command, env=env, capture_output=True, text=True, timeout=options.timeout
            )
        except subprocess.TimeoutExpired:
            return Row(case, variant, expected, "timeout", (), "", options.timeout)
        seconds = time.monotonic() - began
        if not out.exists():
            reason = (done.stderr.strip().splitlines() or ["failed"])[-1]
            return Row(case, variant, expected, reason[:60], (), "", seconds)
        return _judged(case, variant, expected, json.loads(out.read_text("utf-8")), seconds)


def _judged(case: str, variant: str, expected: str, result: dict[str, Any], seconds: float) -> Row:
    grew = tuple(n for n, s in result["series"].items() if s["verdict"] == "grows")
    diagnosis = ", ".join(f"{d['name']} ({d['confidence']})" for d in result["diagnosis"][:2])
    return Row(case, variant, expected, result["verdict"], grew, diagnosis, seconds)


def _line(row: Row) -> str:
    mark = "-" if row.expected == "skip" else "✓" if row.right else "✗"
    return (
        f"{mark} {row.case:32.32} {row.variant:6} {row.expected:6} {row.verdict:10.60} "
        f"{row.seconds:5.0f} s  {row.diagnosis}  [{' '.join(row.grew)}]"
    )


def _confusion(rows: Sequence[Row]) -> list[str]:
    """Expected against found, and the share that is right."""
    found = Counter((row.expected, row.verdict) for row in rows)
    lines = [f"expected {e:6} found {v:10.40} {n}" for (e, v), n in sorted(found.items())]
    judged = [row for row in rows if row.expected != "skip"]
    right = sum(row.right for row in judged)
    return [*lines, f"{right} of {len(judged)} right; {sum(row.seconds for row in rows):.0f} s"]


def _markdown(rows: Sequence[Row]) -> str:
    head = (
        "# Verdicts on the cases\n\n"
        "Reproductions of public reports, correct code that looks like a leak, and leaks that are\n"
        "hard to see; each variant in a fresh process. Written by `tests/benchmarks/cases.py`.\n"
        "`skip` rows are shown, not judged. The series that grew include those that only advise,\n"
        "so that a flat row may have some.\n\n"
    )
    table = ["| case | variant | expected | verdict | series that grew | diagnosis | seconds |",
             "|---|---|---|---|---|---|---:|"]  # fmt: skip
    table += [
        f"| {r.case} | {r.variant} | {r.expected} | {r.verdict} | {', '.join(r.grew)} "
        f"| {r.diagnosis} | {r.seconds:.0f} |"
        for r in rows
    ]
    summary = "\n".join(f"- {line}" for line in _confusion(rows))
    return f"{head}{summary}\n\n" + "\n".join(table) + "\n"


if __name__ == "__main__":
    sys.exit(main())

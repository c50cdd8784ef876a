"""Which suspect and which pattern each growing case is given, judged against a labelled table.

    python tests/benchmarks/attribution.py CASES [NAME …] [--jobs 1] [--timeout 120]

CASES is a folder of files with ``make_leaky()`` or ``make_step()``. Each growing one runs in a
fresh process by ``leakkit run … --factory --json``. The labels lie beside this file: places that
the top suspect may name, and patterns that are right.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LABELS = Path(__file__).with_suffix(".tsv")


@dataclass(frozen=True)
class Label:
    """What is right for one case: parts of the top suspect's text, and pattern names."""

    places: tuple[str, ...]
    patterns: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """What one case was given."""

    case: str
    verdict: str
    suspect: str
    kind: str
    diagnosis: str
    confidence: str
    share: float
    place_right: bool
    pattern_right: bool
    wrong_and_sure: bool
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and the figures; 1 where they miss what is promised."""
    options = _options(arguments)
    cases = sorted(_cases(options.cases, options.names))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = []
        for row in pool.map(lambda case: _run(case, options), cases):
            rows.append(row)
            print(_line(row), flush=True)
    return _summary(rows)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("names", nargs="*", help="only cases whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=180.0)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--keep", type=Path, help="keep each result's JSON in this folder")
    parser.add_argument("--options", default="", help="more options for leakkit run")
    options = parser.parse_args(arguments)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    return options


def _labels() -> dict[str, Label]:
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            row["case"]: Label(tuple(row["place"].split("|")), tuple(row["patterns"].split(",")))
            for row in rows
        }


def _cases(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """The files with a label, which are the ones that may grow."""
    for path in folder.glob("*.py"):
        if path.stem in _labels() and (not names or any(n in path.stem for n in names)):
            yield path


def _run(case: Path, options: argparse.Namespace) -> Row:
    factory = "make_leaky" if "def make_leaky" in case.read_text(encoding="utf-8") else "make_step"
    with tempfile.TemporaryDirectory() as folder:
        out = (options.keep or Path(folder)) / f"{case.stem}.json"
        command = [options.python, "-m", "leakkit", "run", f"{case}:{factory}", "--factory",
                   "--json", str(out), *options.options.split()]  # fmt: skip
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        env = {**os.environ, "CASE_TMP": str(scratch), "TF_CPP_MIN_LOG_LEVEL": "3"}
        said = _said(command, env, options.timeout)
        # A result may be there all the same: thousands of kept threads end slowly.
        if not out.exists():
            return _empty(case, said)
        return _judge(case, json.loads(out.read_text(encoding="utf-8")))


def _said(command: Sequence[str], env: dict[str, str], timeout: float) -> str:
    """Run it; the last line that it wrote to standard error, or that it took too long."""
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return "timeout"
    return (done.stderr.strip().splitlines() or ["failed"])[-1][:60]


def _judge(case: Path, result: dict[str, Any]) -> Row:
    label = _labels()[case.stem]
    suspect = next(iter(result.get("suspects") or []), {})
    diagnoses = result.get("diagnosis") or []
    top = diagnoses[0] if diagnoses else {}
    text = f"{suspect.get('where', '')} {suspect.get('what', '')}"
    wrong = [d for d in diagnoses if d["confidence"] == "high" and d["name"] not in label.patterns]
    return Row(
        case.stem, result["verdict"], suspect.get("where", ""), suspect.get("kind", ""),
        top.get("name", ""), top.get("confidence", ""), float(top.get("explains", 0.0)),
        any(place in text for place in label.places), top.get("name") in label.patterns,
        bool(wrong), float(result.get("seconds", 0.0)),
    )  # fmt: skip


def _empty(case: Path, why: str) -> Row:
    return Row(case.stem, why, "", "", "", "", 0.0, False, False, False, 0.0)


def _line(row: Row) -> str:
    marks = "".join("✓" if right else "✗" for right in (row.place_right, row.pattern_right))
    sure = " !" if row.wrong_and_sure else ""
    return (
        f"{row.case:32.32} {row.verdict:9.9} {marks}{sure:2} {row.kind:9} {row.suspect[:70]:70} "
        f"{row.diagnosis} ({row.confidence}, {row.share:.0%}) {row.seconds:.0f} s"
    )


def _summary(rows: Sequence[Row]) -> int:
    growing = [row for row in rows if row.verdict == "grows"]
    flat_with_suspects = [row for row in rows if row.verdict == "flat" and row.suspect]
    count = max(1, len(growing))
    places = sum(row.place_right for row in growing) / count
    patterns = sum(row.pattern_right for row in growing) / count
    wrong = [row.case for row in growing if row.wrong_and_sure]
    print(f"\n{len(growing)} of {len(rows)} cases grow")
    print(f"top suspect names the right line or container: {places:.0%} (promised 90 %)")
    print(f"diagnosis names the right pattern: {patterns:.0%} (promised 85 %)")
    print(f"a wrong pattern at high confidence: {', '.join(wrong) or 'none'}")
    print(f"suspects for a flat run: {', '.join(r.case for r in flat_with_suspects) or 'none'}")
    good = places >= 0.9 and patterns >= 0.85 and not wrong and not flat_with_suspects
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Score the judgement, and what others do, on labelled series. Prints Markdown tables.

    python tests/benchmarks/trend/score.py [--draws 2000] [--baseline-draws 200] [--only exact]

Each generator's series is looked at after 120, 240 and 480 steps (growth is declared by the last
look only); baselines see all 480 steps at once. ``recorded/index.tsv`` names the real series.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from baselines import RULES
from generators import CASES, Case, Floats

from leakkit.series import Kind, Quantity, Series
from leakkit.trend import Trend, Verdict, judge

LOOKS = (120, 240, 480)
RECORDED = Path(__file__).parent / "recorded"
KINDS = {"exact": "bytes counted one by one", "noisy": "bytes as an allocator or the kernel sees"}
KINDS |= {"counter": "whole things", "latency": "step times with a control kernel"}


def looked(series: Series, looks: Sequence[int] = LOOKS) -> Trend:
    """Look as a run does: stop when flat, declare growth at the last look."""
    ends = [end for end in looks if end < len(series)] + [min(len(series), looks[-1])]
    for end in ends:
        control = None if series.control is None else series.control[:end]
        part = Series(series.quantity, series.values[:end], control)
        trend = judge(part, final=end == ends[-1])
        if trend.verdict is Verdict.FLAT:
            return trend
    return trend


def drawn(case: Case, rng: np.random.Generator) -> Series:
    """One series of a generator, on a realistic base level."""
    made = case.make(rng, LOOKS[-1])
    quantity = Quantity(case.name, "", case.kind)
    if isinstance(made, tuple):
        return Series(quantity, *made)
    return Series(quantity, made + (0.0 if case.kind is Kind.COUNTER else 5e8))


@dataclass(frozen=True)
class Score:
    """Shares of verdicts in percent, and the mean steps a run takes."""

    draws: int
    grows: float
    flat: float
    steps: float
    others: dict[str, float]

    def passes(self, case: Case) -> bool:
        """Whether the promise for this case is kept: 1 in 1,000, which few draws round up to 1."""
        if case.grows:
            return self.grows >= 100 * case.floor
        return not case.apart or self.grows * self.draws / 100 <= math.ceil(self.draws / 1000)


def looks_for(case: Case) -> tuple[int, ...]:
    """A case that must be found early gets no later look."""
    return (*(end for end in LOOKS if end < case.by), case.by) if case.grows else LOOKS


def score(case: Case, draws: int, baseline_draws: int) -> Score:
    """Judge many draws of one case."""
    rng = np.random.default_rng([2, zlib.crc32(case.name.encode())])
    found, steps, others = Counter[Verdict](), 0, Counter[str]()
    for number in range(draws):
        series = drawn(case, rng)
        trend = looked(series, looks_for(case))
        found[trend.verdict] += 1
        steps += trend.steps
        if number < baseline_draws:
            others.update(rule for rule, grows in RULES.items() if grows(_plain(series)))
    rates = {rule: 100 * others[rule] / max(1, min(draws, baseline_draws)) for rule in RULES}
    parts = (100 * found[v] / draws for v in (Verdict.GROWS, Verdict.FLAT))
    return Score(draws, *parts, steps / draws, rates)


def _plain(series: Series) -> Floats:
    """What a baseline sees: the raw values, for step times their logarithm."""
    return np.log(series.values) if series.quantity.kind is Kind.LATENCY else series.values


def recorded() -> Iterator[tuple[Series, bool]]:
    """The real series of the index, with their truth."""
    with (RECORDED / "index.tsv").open(newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            values = np.load(RECORDED / row["file"]).astype(np.float64)
            control = values[1] if values.ndim == 2 else None
            grain = float(row["grain"] or 0)
            quantity = Quantity(row["file"], row["unit"], Kind(row["kind"]), grain=grain)
            main = values[0] if values.ndim == 2 else values
            yield Series(quantity, main, control), row["truth"] == "grows"


def table(kind: str, draws: int, baseline_draws: int) -> int:
    """Print one kind's table; returns how many promises are broken."""
    names = " | ".join(RULES)
    print(f"\n#### {kind}: {KINDS[kind]}\n")
    print(f"| case | truth | promise | grows % | flat % | mean steps | {names} |")
    print("|---|---|---|---|---|---|" + "---|" * len(RULES))
    broken = 0
    for case in (case for case in CASES if case.kind.value == kind):
        result = score(case, max(1, draws // 2) if case.grows else draws, baseline_draws)
        kept = result.passes(case)
        broken += not kept
        others = " | ".join(f"{rate:.0f}" for rate in result.others.values())
        truth = "grows" if case.grows else "flat"
        print(
            f"| {case.name} | {truth} | {promise(case)}{'' if kept else ' **broken**'} "
            f"| {result.grows:.2f} | {result.flat:.1f} | {result.steps:.0f} | {others} |",
            flush=True,
        )
    return broken


def promise(case: Case) -> str:
    """What the benchmark holds the judgement to."""
    if case.grows:
        return f"≥ {100 * case.floor:.0f} by {case.by}" if case.floor else "–"
    return "≤ 0.1" if case.apart else "cannot tell"


def table_recorded() -> int:
    """Print the verdicts on real series; returns how many are wrong."""
    print("\n#### recorded series\n")
    print("| series | kind | truth | verdict | steps | per step | 95 % interval | reason |")
    print("|---|---|---|---|---|---|---|---|")
    wrong = 0
    for series, grows in recorded():
        trend = looked(series)
        right = trend.verdict is (Verdict.GROWS if grows else Verdict.FLAT)
        wrong += not right
        numbers = f"{trend.slope:.4g} | [{trend.low:.4g}, {trend.high:.4g}]"
        verdict = trend.verdict.value + ("" if right else " **wrong**")
        print(
            f"| {series.name.removesuffix('.npy')} | {series.quantity.kind.value} "
            f"| {'grows' if grows else 'flat'} | {verdict} | {trend.steps} | {numbers} "
            f"| {trend.reason} |"
        )
    return wrong


def main() -> int:
    """Print all tables; exit status 1 when a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--baseline-draws", type=int, default=200)
    parser.add_argument("--only", choices=[*KINDS, "recorded"])
    args = parser.parse_args()
    broken = 0
    for kind in KINDS:
        if args.only in (None, kind):
            broken += table(kind, args.draws, args.baseline_draws)
    if args.only in (None, "recorded"):
        broken += table_recorded()
    print(f"\n{broken} promises broken" if broken else "\nall promises kept")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())

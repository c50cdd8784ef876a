"""Evidence in, named leak pattern out.

A rule is data: the clues that it needs, those that forbid it, a confidence and a remedy. Clues look
at what was found (kinds of suspects, what a container holds, a library's registries, series that
grow), never at what the user's files and functions are called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leakkit.suspects import Suspect
from leakkit.suspects.ranking import family, total_bytes
from leakkit.trend import Verdict

if TYPE_CHECKING:
    from leakkit.result import Finding

UNKNOWN = "unknown"
_KIN = {"native_heap": ("native_heap", "device_memory", "live_tensor_bytes")}
_LEAST_SHARE = 0.02  # of the growth: a pattern that explains less is not worth a line
_ORDER = {"high": 0, "medium": 1, "low": 2}


@dataclass(frozen=True)
class Diagnosis:
    """A known pattern that the suspects match.

    Args:
        name: kebab-case, the name of the scenario that shows it where there is one.
        confidence: ``high``, ``medium`` or ``low``.
        because: the evidence in one sentence.
        remedy: what to write instead.
        explains: share of the growth that this accounts for, 0 to 1.
        scenario: the scenario that shows it, or ``None``.
    """

    name: str
    confidence: str
    because: str
    remedy: str
    explains: float = 0.0
    scenario: str | None = None


# What a clue asks of one fact: any of several values, or a test.
Asked = Collection[Any] | Callable[[Any], bool]


@dataclass(frozen=True)
class Clue:
    """Asks for a suspect.

    Args:
        kinds: one of these kinds; empty for any.
        facts: by fact name: values of which one must be there, or a test of the value.
        calls: for a site: library functions of which one must have allocated.
    """

    kinds: tuple[str, ...] = ()
    facts: Mapping[str, Asked] = field(default_factory=dict)
    calls: tuple[str, ...] = ()

    def find(self, evidence: Evidence) -> list[Suspect]:
        """The suspects that fit."""
        return [s for s in evidence.suspects if self._fits(s)]

    def _fits(self, suspect: Suspect) -> bool:
        if self.kinds and suspect.kind not in self.kinds:
            return False
        facts = suspect.facts
        if not all(_answers(facts.get(name), asked) for name, asked in self.facts.items()):
            return False
        return not self.calls or self.called_bytes(suspect) > 0

    def called_bytes(self, suspect: Suspect) -> float:
        """Bytes a step that a site allocated in one of the functions asked for."""
        calls: Mapping[str, float] = suspect.facts.get("calls") or {}
        found = [b for name, b in calls.items() if any(_named(name, c) for c in self.calls)]
        return max(found, default=0.0)


@dataclass(frozen=True)
class Grows:
    """Asks for a series that grows, by name."""

    names: tuple[str, ...]

    def find(self, evidence: Evidence) -> list[Suspect]:
        """A stand-in for the series, empty where it is flat."""
        return [_series_suspect(f) for name in self.names for f in evidence.growing(name)]


@dataclass(frozen=True)
class Rule:
    """One pattern.

    Args:
        name: of the pattern.
        confidence: when every needed clue is found.
        needs: all of them must be found; the first names the place.
        remedy: what to write instead.
        unless: none of these may be found.
        surer: with one of these too, the confidence is ``high``.
        share: what it explains where bytes do not say; ``None`` to add up the suspects' bytes.
        scenario: whether the library has a scenario of this name.
        fallback: only for suspects that no other rule has taken as its evidence.
        alone: only where no other rule fits: elsewhere it is a side effect of that.
    """

    name: str
    confidence: str
    needs: tuple[Clue | Grows, ...]
    remedy: str
    unless: tuple[Clue | Grows, ...] = ()
    surer: tuple[Clue | Grows, ...] = ()
    share: float | None = None
    scenario: bool = True
    fallback: bool = False
    alone: bool = False


@dataclass(frozen=True)
class Evidence:
    """Everything that rules may look at."""

    suspects: Sequence[Suspect]
    findings: Mapping[str, Finding]

    def grows(self, name: str) -> bool:
        """Whether a series was judged to grow."""
        return bool(self.growing(name))

    def growing(self, name: str) -> list[Finding]:
        """The findings of a series, and of its kin, that grow.

        Tensors on a device are to a pattern what native memory is on a CPU.
        """
        kin = _KIN.get(name, (name,))
        found = [f for n, f in self.findings.items() if family(n) in kin]
        return [f for f in found if f.trend.verdict is Verdict.GROWS]

    @property
    def bytes_per_step(self) -> float:
        """What both heaps gain a step, or else the devices; 0 where none grows."""
        return total_bytes(self.findings)


def diagnose(suspects: Sequence[Suspect], findings: Mapping[str, Finding]) -> list[Diagnosis]:
    """The patterns that fit, those that explain most first.

    Args:
        suspects: what the hunt found, best first.
        findings: the judged series by name.

    Returns:
        At least one: ``unknown`` where no pattern fits.
    """
    from leakkit.patterns import RULES

    evidence = Evidence(suspects, findings)
    found, taken = _match([r for r in RULES if not (r.fallback or r.alone)], evidence)
    rest = Evidence([s for s in suspects if id(s) not in taken], findings)
    found += _match([rule for rule in RULES if rule.fallback], rest)[0]
    found = found or _match([rule for rule in RULES if rule.alone], evidence)[0]
    ranked = sorted(found, key=lambda d: (-round(d.explains, 1), _ORDER[d.confidence]))
    return _once(ranked) or [_unknown(evidence)]


def _match(rules: Sequence[Rule], evidence: Evidence) -> tuple[list[Diagnosis], set[int]]:
    """The diagnoses, and the ids of the suspects that they rest on."""
    found: list[Diagnosis] = []
    taken: set[int] = set()
    for rule in rules:
        answers = [clue.find(evidence) for clue in rule.needs]
        if all(answers) and not any(clue.find(evidence) for clue in rule.unless):
            diagnosis = _diagnosis(rule, answers, evidence)
            if diagnosis is not None:
                found.append(diagnosis)
                taken.update(id(s) for found_by in answers for s in found_by)
    return found, taken


def _once(ranked: Sequence[Diagnosis]) -> list[Diagnosis]:
    """The best of each name: several rules may lead to one pattern."""
    best: dict[str, Diagnosis] = {}
    for diagnosis in ranked:
        best.setdefault(diagnosis.name, diagnosis)
    return list(best.values())


def _diagnosis(
    rule: Rule, answers: Sequence[Sequence[Suspect]], evidence: Evidence
) -> Diagnosis | None:
    explains = _share(rule, answers, evidence)
    if explains < _LEAST_SHARE:
        return None
    sure = any(clue.find(evidence) for clue in rule.surer)
    return Diagnosis(
        rule.name,
        _confidence("high" if sure else rule.confidence, explains),
        _because(answers[0][0]),
        rule.remedy,
        explains,
        rule.name if rule.scenario else None,
    )


def _confidence(confidence: str, explains: float) -> str:
    """A pattern that explains little of the growth is not what the run is about."""
    return "medium" if confidence == "high" and explains < 0.1 else confidence


def _share(rule: Rule, answers: Sequence[Sequence[Suspect]], evidence: Evidence) -> float:
    total = evidence.bytes_per_step
    clue, first = rule.needs[0], answers[0]
    if rule.share is not None or total <= 0:
        return rule.share if rule.share is not None else 0.5
    if isinstance(clue, Clue) and clue.calls:
        return min(1.0, sum(clue.called_bytes(s) for s in first) / total)
    counted = [float(s.facts.get("bytes_per_step") or 0.0) for s in first]
    return min(1.0, max(sum(counted) / total, _floor(first)))


def _floor(found: Sequence[Suspect]) -> float:
    """What is weighed by walking references is a lower bound: graphs and buffers hide much."""
    best = found[0]
    if best.facts.get("measured") or not best.facts.get("opaque", True):
        return 0.0
    return 0.3 if best.kind in ("container", "cache") else 0.1


def _because(suspect: Suspect) -> str:
    return f"{suspect.where}: {suspect.what}" if suspect.what else suspect.where


def _unknown(evidence: Evidence) -> Diagnosis:
    best = next(iter(evidence.suspects), None)
    because = _because(best) if best else "no suspect was found"
    return Diagnosis(
        UNKNOWN, "low", because, "No known pattern fits; the suspects are all that is known."
    )


def _answers(value: Any, asked: Asked) -> bool:
    if callable(asked):
        try:
            return bool(asked(value))
        except TypeError:  # the fact is missing or of another kind
            return False
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(item in asked for item in value)
    return value in asked


def _named(name: str, asked: str) -> bool:
    """``gen_lookup_ops.*`` asks for a module, ``*.add_weight`` for a function."""
    if asked.endswith(".*"):
        return name.startswith(asked[:-1])
    return name.endswith(asked[1:]) if asked.startswith("*.") else name == asked


def _series_suspect(finding: Finding) -> Suspect:
    trend, quantity = finding.trend, finding.series.quantity
    what = f"{trend.slope:+,.3g} {quantity.unit} a step"
    return Suspect("series", quantity.name, what, trend.slope, quantity.unit, (quantity.name,))

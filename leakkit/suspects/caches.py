"""Native caches of a framework, measured by the framework's own audit during the hunt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leakkit.suspects import Suspect

if TYPE_CHECKING:
    from leakkit.frameworks import CacheAudit, Framework

_LEAST = 50.0  # B/step: below this the allocator's bookkeeping cannot be told from a cache
_WORDS = {
    "tf_kernel_cache": "TensorFlow's eager kernel cache",
    "tf_scalar_cache": "TensorFlow's eager cache of Python scalars",
}


class Audits:
    """Drives every framework's audit; one that fails is left out and named."""

    def __init__(self, frameworks: Sequence[Framework]) -> None:
        self.failed: list[str] = []
        self.growth: dict[str, float] = {}
        self._audits: list[CacheAudit] = []
        self._frameworks = frameworks

    def begin(self) -> None:
        """Start each audit, which empties the caches."""
        for framework in self._frameworks:
            try:
                audit = framework.audit()
                if audit is not None:
                    audit.begin()
                    self._audits.append(audit)
            except Exception as error:
                self.failed.append(f"caches of {framework.name} not audited ({error})")

    def boundary(self) -> None:
        """One step is over."""
        for audit in list(self._audits):
            try:
                audit.boundary()
            except Exception as error:
                self.failed.append(f"an audit of caches stopped ({error})")
                self._audits.remove(audit)

    def end(self) -> None:
        """Ask each audit for what its caches gain a step."""
        for audit in self._audits:
            try:
                self.growth.update(audit.end())
            except Exception as error:
                self.failed.append(f"an audit of caches ended badly ({error})")
        self._audits.clear()

    def suspects(self, lines: Sequence[Suspect]) -> list[Suspect]:
        """The caches that grow, each with the line that fills it.

        Args:
            lines: the suspects of the allocation sites, most bytes first.
        """
        grown = [(name, rate) for name, rate in self.growth.items() if rate >= _LEAST]
        return [_suspect(name, rate, lines) for name, rate in grown]


def _suspect(name: str, rate: float, lines: Sequence[Suspect]) -> Suspect:
    facts = {"registry": name, "bytes_per_step": rate, "measured": True, "owner": "library"}
    what = f"gains {rate:,.0f} B a step; measured by emptying it"
    where = _WORDS.get(name, f"the framework's cache {name}")
    filled = next((line for line in lines if _could_fill(line, rate)), None)
    if filled is not None:
        where += f", filled at {filled.where}"
        facts["line"] = filled.where
    return Suspect("cache", where, what, rate, "B", ("native_heap",), facts)


def _could_fill(line: Suspect, rate: float) -> bool:
    """Whether a line of the user's allocates as much native memory as a cache gains."""
    native = float(line.facts.get("native_bytes", 0.0))
    return bool(line.facts.get("file")) and native >= 0.3 * rate

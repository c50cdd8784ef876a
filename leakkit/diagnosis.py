"""Evidence in, named leak pattern out."""

from __future__ import annotations

from dataclasses import dataclass


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

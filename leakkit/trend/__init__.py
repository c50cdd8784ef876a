"""Trend and verdict of one series: pure statistics, no I/O.

This module holds the words (``Verdict``, ``Trend``, ``judge``) and imports no numpy; the
mathematics is in ``rank``, ``blocks``, ``level`` and ``latency``, the constants in ``rules``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from leakkit.trend import rules

if TYPE_CHECKING:
    from leakkit.series import Kind, Series

__all__ = ["Trend", "Verdict", "default_limit", "judge"]


class Verdict(str, Enum):
    """What a series, or a run, was found to do."""

    FLAT = "flat"
    GROWS = "grows"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Trend:
    """Growth per step fitted to one series.

    Args:
        verdict: the outcome of this look.
        slope: growth per step; in the series' unit, for latency in percent of the step time.
        low: lower end of the 95 % confidence interval of ``slope``; may be ``-inf``.
        high: upper end of the same; for a flat series this is the bound that was proved.
        total: last block floor minus first over the whole series, in the series' unit.
        steps: the number of values looked at.
        reason: why this verdict, in words a person reads ("rose in 11 of 11 blocks").
        more_steps: how many further steps this series asks for; 0 when it needs none.
    """

    verdict: Verdict
    slope: float
    low: float
    high: float
    total: float
    steps: int
    reason: str
    more_steps: int = 0


def judge(
    series: Series, *, limit: float | None = None, cadence: int = 1, final: bool = False
) -> Trend:
    """Look once at a series.

    Growth is declared only by a final look, so that looking more than once costs no error:
    an early look can only end the run as flat. ``grows`` when the lower bound of the slope
    exceeds the limit and the rise went on to the end; ``flat`` when the floors stopped rising,
    or the upper bound is at most the limit; else ``undecided``, with the reason.

    Args:
        series: the values so far, after the warm-up; a NaN tail (a cut run) is ignored.
        limit: accepted growth per step, in the unit of ``Trend.slope``; ``None`` for the default
            of the series' kind.
        cadence: what happens every ``cadence`` steps is not growth within one such period.
        final: this is the last look: decide growth now, and ask for no more steps. Before it,
            the outcome is ``FLAT`` or ``UNDECIDED`` with ``more_steps`` > 0.

    Returns:
        The trend with its verdict.

    Raises:
        ValueError: ``limit`` is negative or NaN, or ``cadence`` is below 1.
    """
    if cadence < 1:
        raise ValueError(f"cadence must be at least 1, not {cadence}")
    if limit is not None and not limit >= 0:
        raise ValueError(f"limit must be at least 0, not {limit}")
    from leakkit.series import Kind

    if series.quantity.kind is Kind.LATENCY:
        from leakkit.trend.latency import judge_latency

        return judge_latency(series, limit=limit, cadence=cadence, final=final)
    from leakkit.trend.level import judge_level

    return judge_level(series, limit=limit, cadence=cadence, final=final)


def default_limit(kind: Kind) -> float:
    """The growth per step that is accepted without a limit, in the unit of ``Trend.slope``."""
    if kind.value == "latency":
        return 100 * rules.LATENCY.limit
    return {"exact": rules.EXACT, "counter": rules.COUNTER, "noisy": rules.NOISY}[kind.value].limit

"""Growth that is a framework's own, taken out of a series: what is left is the step's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakkit.frameworks import OwnGrowth
    from leakkit.series import Series


def users_share(
    series: Mapping[str, Series], growth: Sequence[OwnGrowth], measured: str
) -> dict[str, Series]:
    """The series of one pass, less what the frameworks keep.

    What is taken out is an upper bound of the framework's own, so the share that is left is at
    most that much too low.

    Args:
        series: of the pass ``measured``.
        growth: from ``Framework.own_growth``, of any passes; others than ``measured`` are left.
        measured: ``watch`` or ``trace``.

    Returns:
        A new mapping; series that no framework explains are the same objects.
    """
    shares = dict(series)
    for own in growth:
        if own.measured == measured and own.explains in shares:
            shares[own.explains] = _less(shares[own.explains], own)
    return shares


def _less(series: Series, own: OwnGrowth) -> Series:
    import numpy as np

    steps = len(series.values)
    if own.measured == "watch" and len(own.values) == steps:
        kept = own.values
    else:  # other steps than those counted: at the same rate
        kept = own.per_step * np.arange(steps, dtype=np.float64)
    return replace(series, values=series.values - kept)

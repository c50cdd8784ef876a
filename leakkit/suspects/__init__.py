"""Evidence of what grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Suspect:
    """One piece of evidence.

    Args:
        kind: ``site``, ``container``, ``object``, ``retrace``, ``file``, ``thread``, ``child``,
            ``descriptor``, ``cache``, ``cycle`` or ``time``.
        where: the place as a person would write it: ``train.py:41 in train_step`` or
            ``list `history` in module train``.
        what: what is there: ``+1 EagerTensor a step, 220 items``.
        slope: growth per step, in ``unit``.
        unit: ``B``, ``items``, ``objects``, ``traces`` …
        explains: the series whose growth this accounts for, e.g. ``("python_heap",)``.
        facts: machine-readable detail that diagnosis rules match on.
    """

    kind: str
    where: str
    what: str
    slope: float
    unit: str
    explains: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

"""Objects that the collector tracks."""

from __future__ import annotations

import gc
from collections.abc import Sequence

from leakkit.probes import Kind, Probe, Quantity


class LiveObjects(Probe):
    """``live_objects``: objects made since the warm-up that are still alive.

    What lived before is frozen out of the collector's sight, so this counts the loop's own.
    """

    quantities = (Quantity("live_objects", "objects", Kind.COUNTER),)

    def read(self) -> Sequence[float]:
        return (len(gc.get_objects()),)

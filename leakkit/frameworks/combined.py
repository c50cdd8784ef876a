"""Several frameworks in one process: what two of them count is summed under one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from leakkit.probes import Probe, Quantity


class Combined(Probe):
    """Probes read as one; quantities of the same name are added up.

    Two frameworks in one process (PyTorch data loading under JAX, say) both count
    ``live_tensors``; a leak of either must show, and a series has one name.
    """

    def __init__(self, probes: Sequence[Probe]) -> None:
        self._probes = probes
        self.traced = any(probe.traced for probe in probes)
        names: dict[str, Quantity] = {}
        for quantity in (q for probe in probes for q in probe.quantities):
            names.setdefault(quantity.name, quantity)
        self.quantities = tuple(names.values())
        place = {name: i for i, name in enumerate(names)}
        self._places = [[place[q.name] for q in probe.quantities] for probe in probes]

    def read(self) -> Sequence[float]:
        """The sums, in the order of ``quantities``."""
        sums = [0.0] * len(self.quantities)
        for probe, places in zip(self._probes, self._places, strict=True):
            for place, value in zip(places, probe.read(), strict=True):
                sums[place] += value
        return sums

    def close(self) -> None:
        """Close every probe, also when one of them raises."""
        errors = []
        for probe in self._probes:
            try:
                probe.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]


def combine(probes: Sequence[Probe]) -> list[Probe]:
    """The probes as they are, but those that share a quantity's name joined into one."""
    times = Counter(q.name for probe in probes for q in probe.quantities)
    shared = [p for p in probes if any(times[q.name] > 1 for q in p.quantities)]
    alone = [p for p in probes if p not in shared]
    return [Combined(shared), *alone] if shared else alone

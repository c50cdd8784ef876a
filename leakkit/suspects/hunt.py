"""The hunt: some extra steps of a run that grows, watched for who holds what is added."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leakkit.suspects import Suspect
from leakkit.suspects.census import Censuses
from leakkit.suspects.containers import Grower, growers, suspect, target, weigh_grower
from leakkit.suspects.paths import Namer
from leakkit.suspects.sites import rank_sites

if TYPE_CHECKING:
    from leakkit.frameworks import Framework
    from leakkit.heap import Site
    from leakkit.result import Finding

_CENSUSES = (4, 8, 16, 32, 64, 128, 256)  # boundaries with a census, besides first and last
_NAMED = 24  # containers to look for names for


class Hunt:
    """Driven by the loop: ``begin()``, ``boundary()`` after each step, ``end()``; then asked.

    Args:
        frameworks: the adapters of the frameworks that the step uses.
        folders: folders to look for files that grow in.
    """

    def __init__(self, frameworks: Sequence[Framework] = (), folders: Sequence[Any] = ()) -> None:
        self.notes: list[str] = []
        self._frameworks = frameworks
        self._folders = folders
        self._censuses = Censuses()
        self._steps = 0
        self._ended = False
        self._fresh: set[int] = set()
        self._growers: list[Grower] = []

    def begin(self) -> None:
        """Look at the heap for the first time."""
        gc.unfreeze()
        self._census()

    def boundary(self) -> None:
        """One step is over."""
        self._steps += 1
        gc.collect()
        if self._steps in _CENSUSES:
            self._census()

    def end(self) -> None:
        """Look for the last time and undo every hook; safe to call twice."""
        if self._ended:
            return
        self._ended = True
        gc.collect()
        self._fresh = set(map(id, gc.get_objects()))  # made since the freeze of the last census
        self._census()
        gc.unfreeze()
        if len(self._censuses.taken) > 2:
            steps = [census.step for census in self._censuses.taken]
            self._growers = growers(self._censuses.release(), steps)

    def suspects(
        self, findings: Mapping[str, Finding], sites: Sequence[Site], seconds: float = 10.0
    ) -> list[Suspect]:
        """Everything that grew, best evidence first.

        Args:
            findings: the judged series by name.
            sites: allocation sites of the trace pass.
            seconds: the budget; what did not fit is said in ``notes``.
        """
        deadline = time.monotonic() + seconds
        found = [*self._containers(deadline), *rank_sites(sites)]
        return found

    def _census(self) -> None:
        gc.unfreeze()
        gc.collect()
        self._censuses.take(self._steps)
        gc.freeze()

    def _containers(self, deadline: float) -> list[Suspect]:
        others = {id(g.tracked.holder) for g in self._growers}
        for grower in self._growers:
            weigh_grower(grower, self._fresh, others)
        ranked = sorted(self._growers, key=lambda g: -g.bytes_per_step)
        if len(ranked) > _NAMED:
            self.notes.append(f"{len(ranked) - _NAMED} smaller growing containers were not named")
        self._name(ranked[:_NAMED], deadline)
        found = [suspect(grower) for grower in ranked[:_NAMED]]
        return [s for s in found if s is not None]

    def _name(self, ranked: list[Grower], deadline: float) -> None:
        ignore = {id(ranked), id(self._growers), id(self._censuses.__dict__)}
        ignore |= {id(g.tracked.__dict__) for g in self._growers} | {id(g.tracked) for g in self._growers}
        namer = Namer(deadline, ignore)
        targets = [target(grower) for grower in ranked]
        namer._ignore.add(id(targets))
        for grower, path in zip(ranked, namer.name(targets), strict=True):
            grower.path = path
        if namer.skipped:
            self.notes.append(f"{namer.skipped} growing containers: no time left to name them")
        namer.close()

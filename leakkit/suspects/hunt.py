"""The hunt: some extra steps of a run that grows, watched for who holds what is added."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakkit.probes.folders import FolderFinder
from leakkit.suspects import (
    Suspect,
    containers,
    files,
    objects,
    presence,
    processes,
    ranking,
    retraces,
)
from leakkit.suspects.caches import Audits
from leakkit.suspects.census import Censuses
from leakkit.suspects.cycles import Cycles
from leakkit.suspects.makers import Makers
from leakkit.suspects.own import holdings
from leakkit.suspects.paths import Namer, Sought
from leakkit.suspects.sites import rank_sites
from leakkit.suspects.snapshots import Snapshots
from leakkit.suspects.times import Times
from leakkit.suspects.tracers import Tracers

if TYPE_CHECKING:
    from leakkit.frameworks import Framework
    from leakkit.heap import Site
    from leakkit.result import Finding

_CENSUSES = (2, 4, 8, 16, 32, 64, 128, 256)  # boundaries with a census, besides first and last
# Boundaries before the steps that are profiled, three together; the hunt may end at any of them.
_PROFILED = {first + more for first in (1, 5, 9, 17, 33, 65, 113) for more in range(3)}
_COLLECTED = 3  # the boundary at which reference cycles are looked at: a step like any other
_NAMED = 24  # containers to look for names for


class Hunt:
    """Driven by the loop: ``begin()``, ``boundary()`` after each step, ``end()``; then asked.

    Args:
        frameworks: the adapters of the frameworks that the step uses.
        folders: folders to look for files in, besides those that the hunt sees the step write to.
        saved: where the frameworks' own snapshots go; none are made without it.
    """

    def __init__(
        self,
        frameworks: Sequence[Framework] = (),
        folders: Sequence[Path] = (),
        saved: Path | None = None,
    ) -> None:
        self.notes: list[str] = []
        self._finder = FolderFinder(folders)
        self._censuses = Censuses()
        self._tracers = Tracers()
        self._times = Times()
        self._makers = Makers()
        self._present: list[Suspect] = []
        self._audits = Audits(frameworks)
        self._cycles = Cycles()
        self._snapshots = Snapshots(frameworks, saved) if saved is not None else None
        self._files = files.Folders()
        self._processes: list[processes.Snapshot] = []
        self._steps = 0
        self._ended = False
        self._fresh: set[int] = set()
        self._growers: list[containers.Grower] = []
        self._multiplying: list[objects.Multiplying] = []

    def begin(self) -> None:
        """Look at everything for the first time, and begin to listen."""
        self._finder.start()
        self._audits.begin()
        self._look()
        self._tracers.start()
        self._makers.start()
        self._files.names.start()
        if self._snapshots is not None:
            self._snapshots.begin()

    def boundary(self) -> None:
        """One step is over."""
        self._steps += 1
        self._times.stop(self._steps)
        if self._steps == _COLLECTED:
            self._cycles.collect()
        gc.collect()
        self._audits.boundary()
        if self._steps in _CENSUSES:
            self._look()
        if self._steps in _PROFILED:
            self._times.start()

    def end(self) -> None:
        """Look for the last time and undo every hook; safe to call twice."""
        if self._ended:
            return
        self._ended = True
        if self._snapshots is not None:
            self._snapshots.end()
            self.notes += self._snapshots.notes
        self._times.cancel()
        self._tracers.stop()
        self._makers.stop()
        self._finder.stop()
        self._files.names.stop()
        self._audits.end()
        self._look()
        gc.unfreeze()
        self._present = presence.suspects(gc.get_objects())
        self._conclude([o for o in gc.get_objects() if id(o) in self._fresh])

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
        self._name(deadline)
        lines = rank_sites(sites)
        found = [
            *retraces.suspects(self._tracers.traces, self._steps),
            *self._container_suspects(),
            *self._audits.suspects(lines),
            *lines,
            *processes.suspects(self._processes),
            *files.suspects(self._files),
            *(objects.suspect(m) for m in self._multiplying),
            *self._times.suspects(),
            *self._makers.suspects(self._steps),
            *self._present,
        ]
        if "garbage" in findings and findings["garbage"].decides:
            found += self._cycles.suspects()
        self.notes += [*self._tracers.failed, *self._audits.failed]
        return ranking.rank(found, findings)

    def _look(self) -> None:
        gc.collect()
        if not self._censuses.taken or self._censuses.taken[-1].step < self._steps:
            # Made since the last census, which froze what there was then.
            self._fresh = set(map(id, gc.get_objects()))
            gc.unfreeze()
            self._censuses.take(self._steps)
        gc.unfreeze()
        self._files.look(self._steps, self._finder.folders())
        self._processes.append(processes.snapshot(self._steps))
        gc.freeze()

    def _conclude(self, latest: list[Any]) -> None:
        taken, ours = self._censuses.taken, holdings(self)
        grown = [t for t in self._censuses.release() if id(t.holder) not in ours]
        self._growers = containers.growers(grown, [census.step for census in taken])
        if len(taken) > 2:
            self._multiplying = objects.multiplying(taken)
            objects.take_samples(self._multiplying, latest)
        others = {id(g.tracked.holder) for g in self._growers}
        since = taken[-1].step - taken[-2].step if len(taken) > 1 else 0
        for grower in self._growers:
            containers.weigh_grower(grower, self._fresh, others, since)
        self._growers.sort(key=lambda g: -g.bytes_per_step)

    def _container_suspects(self) -> list[Suspect]:
        found = (containers.suspect(grower) for grower in self._growers[:_NAMED])
        return [s for s in found if s is not None]

    def _name(self, deadline: float) -> None:
        """Give the growing containers, then the samples of growing types, a path."""
        growers, samples = self._growers[:_NAMED], self._sampled()
        if len(self._growers) > _NAMED:
            self.notes.append(f"{len(self._growers) - _NAMED} small growing containers not named")
        sought = [containers.sought(g) for g in growers] + [Sought(m.sample) for m in samples]
        namer = Namer(deadline, self._own())
        paths = namer.name(sought)
        for grower, path in zip(growers, paths[: len(growers)], strict=True):
            grower.path = path
        for sample, path in zip(samples, paths[len(growers) :], strict=True):
            sample.path = path
        if namer.skipped:
            self.notes.append(_nameless(namer.skipped))
        namer.close()

    def _sampled(self) -> list[objects.Multiplying]:
        return [m for m in self._multiplying if m.sample is not None]

    def _own(self) -> set[int]:
        """Ids of what the hunt itself holds the growing things with."""
        held: list[Any] = [self.__dict__, self._growers, self._multiplying]
        for grower in self._growers:
            held += [grower, grower.__dict__, grower.tracked, grower.tracked.__dict__]
        for found in self._multiplying:
            held += [found, found.__dict__]
        return {id(value) for value in held} | {id(held)}


def _nameless(number: int) -> str:
    things = "1 growing thing has" if number == 1 else f"{number} growing things have"
    return f"{things} no name or none was found in time"

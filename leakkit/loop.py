"""The loop, inverted: a recorder that any loop drives with ``begin`` and ``end``.

The recorder owns the order of things at a boundary. What to do next stands in one place, the
generator ``Recorder._plan``, which reads like the sentence that it is: warm up, watch until
nothing asks for more, trace until nothing asks for more, and hunt when the step grows.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from leakkit.frameworks import Framework, active
from leakkit.frameworks.memory import of_a_device
from leakkit.heap import Engine, Site, engine
from leakkit.heap.caches import StandardCaches
from leakkit.probes import Probe
from leakkit.probes.clock import QUANTITIES as CLOCK_QUANTITIES
from leakkit.probes.clock import Clock
from leakkit.probes.control import QUANTITY as CONTROL_QUANTITY
from leakkit.probes.control import Control
from leakkit.probes.folders import FolderFinder
from leakkit.probes.garbage import QUANTITY as GARBAGE_QUANTITY
from leakkit.probes.garbage import Garbage
from leakkit.probes.nvml import starved
from leakkit.probes.registry import make_probes
from leakkit.recording import Recording, Table
from leakkit.series import Kind, Quantity, Series
from leakkit.settings import Settings
from leakkit.suspects.hunt import Hunt

Progress = Callable[[str, int, int], None]  # pass, step, steps so far planned

# Until when, as a share of the time budget, each pass may go on. A pass that ends early leaves
# its time to the next.
WARMUP_UNTIL, WATCH_UNTIL, TRACE_UNTIL, HUNT_UNTIL = 0.15, 0.45, 0.85, 1.0
# A slow step still has to reach its steady state: these many warm-up steps whatever they take.
LEAST_WARMUP = 5
LEAST_VALUES = 8  # of a pass, below which nothing can be said: worth overspending for
HUNT_STEPS = 120
# A run that overspent is still given this share of its budget to find out what it found.
LEAST_HUNT = 0.1


# Collecting and reading leave cold caches, and any pause lets a framework's threads fall asleep:
# both slow a short step by a quarter. Between short steps all of it, the control kernel too, is
# done every few steps only, and what was read stands until then; but a first look has this many
# readings at least.
SHORT_STEP = 5e-3  # seconds
READ_EVERY, LEAST_READINGS = 8, 15


class Judge(Protocol):
    """Looks at a pass and says how far it must go on."""

    def look(self, name: str, series: Mapping[str, Series], *, last: bool) -> int:
        """Further steps that the pass ``name`` needs; with ``last`` there will be none."""

    def must_decide(self, name: str) -> None:
        """Let a series decide that otherwise only advises."""

    @property
    def grows(self) -> bool:
        """Whether the looks so far already found that the step grows."""

    @property
    def growing(self) -> set[str]:
        """Names of the series that the looks so far found to grow."""


class Phase:
    """A stretch of steps that are treated alike.

    Args:
        name: for progress and notes.
        steps: how many.
        until: the clock's time at which it ends early, or ``None``.
        least: steps that are run whatever they take.
    """

    def __init__(self, name: str, steps: int, until: float | None = None, least: int = 1) -> None:
        self.name, self.steps, self.until, self.least = name, steps, until, least
        self.done = 0

    def before(self) -> None:
        """Just before a step."""

    def after(self, result: Any) -> None:
        """Just after a step."""

    def waited(self, seconds: float) -> None:
        """The loop waited so long for the next step's data."""

    def analysis_seconds(self) -> float:
        """What must still be done with these steps takes about this long."""
        return 0.0

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        if self.until is None or self.done < self.least:
            return False
        return time.monotonic() + self.analysis_seconds() > self.until

    @property
    def full(self) -> bool:
        """Whether it needs no more steps."""
        return self.done >= self.steps or self.late


class Warmup(Phase):
    """Steps before the first sample; the fastest tells how long a step takes."""

    seconds = float("inf")

    def before(self) -> None:
        self._began = time.perf_counter()

    def after(self, result: Any) -> None:
        self.seconds = min(self.seconds, time.perf_counter() - self._began)


class WatchPass(Phase):
    """Uninstrumented steps: times, and what the probes read at each boundary."""

    def __init__(self, table: Table, setup: Setup, steps: int, until: float | None) -> None:
        super().__init__("watch", steps, until, least=LEAST_VALUES - table.filled)
        self._table, self._setup = table, setup
        self._clock, self._garbage = setup.clock, setup.garbage
        self._readings: list[float] = []

    def waited(self, seconds: float) -> None:
        self._setup.waiting += seconds

    def before(self) -> None:
        self._garbage.in_step = True
        self._clock.start()

    def after(self, result: Any) -> None:
        for framework in self._setup.frameworks:
            framework.synchronize(result)
        wall, cpu = self._clock.stop()
        self._garbage.in_step = False
        del result  # what it held must not count as alive
        if self.done % self._setup.every == 0:
            self._readings = self._read()
        self._table.append([wall, cpu, *self._readings])

    def _read(self) -> list[float]:
        """Run the control kernel, collect, then ask every probe."""
        control = self._setup.control.run(min(3, self._setup.every))
        self._setup.caches.trim()
        return [control, self._garbage.collect(), *self._setup.readings()]


class TracePass(Phase):
    """Steps under the heap engine, with a fence at each boundary. Never timed."""

    def __init__(self, table: Table, setup: Setup, steps: int, until: float | None) -> None:
        super().__init__("trace", steps, until, least=LEAST_VALUES - table.filled)
        self._table, self._setup = table, setup

    def before(self) -> None:
        self._setup.garbage.in_step = True

    def after(self, result: Any) -> None:
        for framework in self._setup.frameworks:
            framework.synchronize(result)
        self._setup.garbage.in_step = False
        del result
        row = [value for probe in self._setup.traced for value in probe.read()]
        self._table.append([self.boundary(), *row])

    def analysis_seconds(self) -> float:
        assert self._setup.engine is not None
        return self._setup.engine.reading_seconds()

    def boundary(self) -> float:
        """Empty the caches, collect, fence; the number of objects collected so far."""
        assert self._setup.engine is not None
        self._setup.caches.trim()
        garbage = self._setup.garbage.collect()
        self._setup.caches.clear_types()
        self._setup.engine.fence()
        return garbage


class HuntPass(Phase):
    """Extra steps of a run that grows, to find what holds the memory."""

    def __init__(self, hunt: Hunt, until: float | None) -> None:
        super().__init__("hunt", HUNT_STEPS, until, least=4)
        self._hunt = hunt

    def after(self, result: Any) -> None:
        del result
        self._hunt.boundary()


class Setup:
    """What the warm-up made known: frameworks in use, probes that work, how long a step takes."""

    def __init__(
        self,
        settings: Settings,
        recording: Recording,
        finder: FolderFinder,
        caches: StandardCaches,
        step_seconds: float,
    ) -> None:
        self.frameworks: list[Framework] = active()
        self.probes: Sequence[Probe]
        self.probes, self.notes = make_probes(
            settings.probes, self.frameworks, finder, recording.path
        )
        self.traced = [probe for probe in self.probes if probe.traced]
        for framework in self.frameworks:
            self.notes += framework.notes()
        self.remarks = [said for framework in self.frameworks for said in framework.remarks()]
        self.control = Control(step_seconds)
        self.clock, self.garbage = Clock(), Garbage()
        short = step_seconds < SHORT_STEP
        self.every = max(1, min(READ_EVERY, settings.steps // LEAST_READINGS)) if short else 1
        self.engine: Engine | None = engine(settings.heap, recording.path, native=settings.native)
        self.caches = caches
        self.waiting = 0.0  # seconds of the watch pass in which the loop waited for data
        self.own: dict[str, str] = {}  # a sentence for each series that is the framework's own
        self._apart = [0.0] * sum(len(probe.quantities) for probe in self.probes)

    def readings(self) -> list[float]:
        """What every probe reads now, without what leakkit added."""
        read = [value for probe in self.probes for value in probe.read()]
        return [value - own for value, own in zip(read, self._apart, strict=True)]

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is made or dropped inside the ``with`` block is leakkit's own, and is left out."""
        before = self.readings()
        yield
        gc.collect()
        grown = [now - then for now, then in zip(self.readings(), before, strict=True)]
        self._apart = [own + more for own, more in zip(self._apart, grown, strict=True)]

    def own_growth(self, series: Mapping[str, Series]) -> dict[str, Series]:
        """What the frameworks themselves keep, as series of their own."""
        found = {}
        for own in (o for framework in self.frameworks for o in framework.own_growth(series)):
            quantity = Quantity(own.name, "B", Kind.EXACT, advisory=True, part_of=own.explains)
            found[own.name] = Series(quantity, own.values)
            self.own[own.name] = own.sentence
        return found

    def close(self) -> None:
        """Undo what the probes and the engine did."""
        if self.engine is not None:
            self.engine.close()
        self.garbage.close()
        for probe in self.probes:
            probe.close()


class Recorder:
    """Measures a loop that calls ``begin`` and ``end`` around each step until it is ``done``.

    Args:
        settings: how far, how long, with which probes.
        recording: where the steps go.
        judge: says after each look how far a pass must go on.
        expected: steps that the loop can give at most, where it knows.
        progress: called with the pass, its step and its length.
    """

    def __init__(
        self,
        settings: Settings,
        recording: Recording,
        judge: Judge,
        *,
        expected: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.settings, self.recording, self.judge = settings, recording, judge
        self.done = False
        self.notes: list[str] = []
        self.hunt: Hunt | None = None
        self.setup: Setup | None = None
        self.step_index = 0
        self._ended = False  # the loop has no more steps
        self._expected = expected
        self._progress = progress
        self._began = time.monotonic()
        self._collects = gc.isenabled()
        self._undo = ExitStack()
        self._plan_steps = self._plan()
        self._phase: Phase = next(self._plan_steps)

    def waited(self, seconds: float) -> None:
        """Just before ``begin``, by a loop that knows how long it waited for the step's data."""
        self._phase.waited(seconds)

    def begin(self) -> None:
        """Just before a step."""
        self._phase.before()

    def end(self, result: Any = None) -> None:
        """Just after a step that ended well; ``result`` is what it returned."""
        phase = self._phase
        phase.after(result)
        del result
        phase.done += 1
        self.step_index += 1
        if self._progress is not None and phase.name != "trace":  # it would allocate in the trace
            self._progress(phase.name, phase.done, phase.steps)
        if phase.full:
            self._advance()

    def stop(self) -> None:
        """The loop has no more steps: judge what there is."""
        if not self.done:
            short = self._phase.steps - self._phase.done
            self.notes.append(
                f"the loop ended {short} steps before the {self._phase.name} pass was complete"
            )
            self._ended = True
            while not self.done:
                self._advance()

    def close(self) -> None:
        """Undo everything that was changed for the measurement; also when a step raised."""
        self.done = True
        self._undo.close()

    def _advance(self) -> None:
        try:
            self._phase = next(self._plan_steps)
        except StopIteration:
            self.close()

    def _until(self, share: float) -> float:
        return self._began + share * self.settings.max_seconds

    def _plan(self) -> Iterator[Phase]:
        """The order of things."""
        finder = FolderFinder(self.settings.folders, [self.recording.path])
        finder.start()
        self._undo.callback(finder.stop)
        # The long collection is done before the warm-up: a pause of a quarter of a second makes
        # a hundred short steps after it slower, and the watch pass would begin with them.
        caches = StandardCaches()
        self._undo.callback(gc.unfreeze)
        self._freeze()
        warmup = Warmup("warm-up", self._share(8, self.settings.warmup), self._until(WARMUP_UNTIL))
        warmup.least = min(LEAST_WARMUP, warmup.steps)
        if warmup.steps:
            yield warmup
        setup = self._settle(finder, caches, warmup.seconds)
        yield from self._watch(setup)
        finder.stop()
        if setup.engine is not None and not self._ended:
            yield from self._trace(setup, setup.engine)
        self.notes += setup.own.values()
        if not (self._collects and gc.isenabled()) and not setup.garbage.step_collects:
            self.judge.must_decide("garbage")  # nobody else collects it
        gc.unfreeze()  # referrers of a frozen object cannot be found
        if self.judge.grows and not self._ended:
            yield from self._hunt(setup, finder.folders())

    def _share(self, divisor: int, wanted: int) -> int:
        """``wanted`` steps, or a fair share of a loop that is known to be short."""
        if self._expected is None:
            return wanted
        return min(wanted, max(1, self._expected // divisor))

    def _settle(self, finder: FolderFinder, caches: StandardCaches, step_seconds: float) -> Setup:
        """Make the probes, and take everything that lives by now out of the collector's sight."""
        caches.find()
        self.setup = Setup(self.settings, self.recording, finder, caches, step_seconds)
        self.notes += self.setup.notes
        self._undo.callback(self.setup.close)
        self._freeze()
        return self.setup

    def _freeze(self) -> None:
        gc.collect()
        gc.freeze()

    def _watch(self, setup: Setup) -> Iterator[Phase]:
        quantities = [*CLOCK_QUANTITIES, CONTROL_QUANTITY, GARBAGE_QUANTITY]
        quantities += [q for probe in setup.probes for q in probe.quantities]
        table = self.recording.table("watch", quantities, self.settings.max_steps)
        steps = self._share(2, self.settings.steps)
        while steps > 0:
            phase = WatchPass(table, setup, steps, self._until(WATCH_UNTIL))
            yield phase
            with setup.apart():
                series = table.series()
                own = setup.own_growth(series)
                steps = self._more("watch", {**series, **own}, phase, table.filled)
        self.recording.watch = series
        if hungry := starved(series, setup.waiting):
            self.notes.append(str(hungry))
        self._keep("watch", list(own.values()))

    def _trace(self, setup: Setup, heap: Engine) -> Iterator[Phase]:
        quantities = [GARBAGE_QUANTITY, *(q for probe in setup.traced for q in probe.quantities)]
        table = self.recording.table("trace", quantities, self.settings.max_steps)
        steps = self._share(2, self.settings.steps)
        while steps > 0:
            phase = TracePass(table, setup, steps, self._until(TRACE_UNTIL))
            heap.start()
            phase.boundary()
            yield phase
            heap.stop()
            found = {s.name: s for s in heap.series()}
            traced = len(found["python_heap"])
            rows = {name: s.first(traced) for name, s in table.series().items()}
            found |= setup.own_growth({**rows, **found})
            found[GARBAGE_QUANTITY.name] = rows[GARBAGE_QUANTITY.name]
            lost = table.filled - traced
            steps = self._more("trace", found, phase, table.filled, last=lost > 0)
        heap.close()
        if lost:
            self.notes.append(f"the trace of the last {lost} steps is lost: is the disk full?")
        self.recording.trace = table.series()
        self._keep("trace", list(found.values()), heap.sites())

    def _keep(self, name: str, series: Sequence[Series], sites: Sequence[Site] = ()) -> None:
        """A disk that is full by now costs the recording, not the verdict."""
        try:
            self.recording.keep(name, series, sites)
        except OSError as error:
            self.notes.append(
                f"the recording is incomplete: {self.recording.path}: {error.strerror or error}"
            )

    def _more(
        self,
        name: str,
        series: Mapping[str, Series],
        phase: Phase,
        filled: int,
        *,
        last: bool = False,
    ) -> int:
        """Steps by which a pass goes on after a look; with ``last`` it cannot."""
        room = self._share(2, self.settings.max_steps) - filled
        last = last or room <= 0 or phase.done < phase.steps or self._ended
        more = self.judge.look(name, series, last=last)
        return 0 if last else min(more, room)

    def _hunt(self, setup: Setup, folders: Sequence[Path]) -> Iterator[Phase]:
        saved = self.recording.path if of_a_device(self.judge.growing) else None
        self.hunt = Hunt(setup.frameworks, folders, saved)
        self.hunt.begin()
        self._undo.callback(self.hunt.end)
        least = time.monotonic() + LEAST_HUNT * self.settings.max_seconds
        yield HuntPass(self.hunt, max(self._until(HUNT_UNTIL), least))
        self.hunt.end()

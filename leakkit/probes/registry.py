"""Which probes a run uses: the built-in ones, those of frameworks, and third parties'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path

from leakkit.frameworks import Framework
from leakkit.frameworks import probes as framework_probes
from leakkit.probes import Probe, Unavailable
from leakkit.probes.blocks import PythonBlocks
from leakkit.probes.children import Children
from leakkit.probes.fds import Fds
from leakkit.probes.files import Files
from leakkit.probes.folders import FolderFinder
from leakkit.probes.heap import NativeHeap
from leakkit.probes.objects import LiveObjects
from leakkit.probes.rss import Rss
from leakkit.probes.threads import Threads
from leakkit.settings import SettingsError

GROUP = "leakkit.probes"


class UnknownProbe(SettingsError):
    """A probe was asked for that there is not; the text names those that there are."""


def make_probes(
    wanted: Sequence[str] | None,
    frameworks: Sequence[Framework],
    finder: FolderFinder,
    recording: Path,
) -> tuple[list[Probe], list[str]]:
    """New probes, and a note for each that cannot work here.

    Args:
        wanted: names of series to read; ``None`` for all.
        frameworks: those that the step uses.
        finder: knows the folders that are watched for files.
        recording: leakkit's own folder, whose files are not the step's.
    """
    makers: list[Callable[[], Probe]] = [
        NativeHeap,
        PythonBlocks,
        Rss,
        Threads,
        Fds,
        LiveObjects,
        Children,
        lambda: Files(finder, [recording]),
        *(entry.load() for entry in entry_points(group=GROUP)),
    ]
    probes, notes = [], []
    for make in makers:
        try:
            probes.append(make())
        except Unavailable as reason:
            notes.append(str(reason))
    probes += framework_probes(frameworks)
    return (probes if wanted is None else _chosen(probes, wanted)), notes


def _chosen(probes: Sequence[Probe], wanted: Sequence[str]) -> list[Probe]:
    names = {q.name for probe in probes for q in probe.quantities}
    for name in wanted:
        if name not in names:
            raise UnknownProbe(f"no probe reads {name!r}; there are {', '.join(sorted(names))}")
    return [p for p in probes if any(q.name in wanted for q in p.quantities)]

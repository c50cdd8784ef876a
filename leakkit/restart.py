"""Would a restart help? Late steps of this process against the first steps of a fresh one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leakkit.recording import Recording
from leakkit.result import Result
from leakkit.trend import Verdict

FRESH_STEPS = 60  # enough for a median; a slowdown that shows within them is not for a restart
_PATIENCE = 600.0  # seconds that the fresh process may take


class NoAnswer(Exception):
    """There is nothing to compare, or it could not be compared; the text says why."""


@dataclass(frozen=True)
class Restart:
    """Median step times in seconds.

    Args:
        early: of the first quarter of this process's watch pass.
        late: of its last quarter.
        fresh: of the first steps of a fresh process, after the warm-up.
    """

    early: float
    late: float
    fresh: float

    @property
    def slower(self) -> float:
        """How many times slower the late steps are than the early ones."""
        return self.late / self.early

    @property
    def cleared(self) -> bool:
        """Whether the fresh process is nearer to the early steps than to the late ones."""
        return self.fresh < (self.early + self.late) / 2

    def __str__(self) -> str:
        head = f"slower by {self.slower:.1f}× in this process; "
        if self.cleared:
            return head + "a restart clears it"
        return head + "not cleared by a restart (disk, external state)"


def restart_check(result: Result, target: str, options: Sequence[str] = ()) -> Restart:
    """Compare a finished run with a fresh process that takes the same step from its start.

    Args:
        result: of the run; its watch pass is what is compared.
        target: the step, as ``leakkit run`` takes it.
        options: how it was run: ``--factory`` and the like.

    Raises:
        NoAnswer: the step does not get slower, there are too few step times, or the fresh process
            broke.
    """
    finding = result.findings.get("latency")
    if finding is None or finding.trend.verdict is Verdict.FLAT:
        raise NoAnswer("the step does not get slower, so there is nothing that it could clear")
    latency = _latency(result.recording)
    quarter = len(latency) // 4
    if not quarter:
        raise NoAnswer("too few step times were recorded")
    fresh = _fresh_latency(target, options)
    return Restart(
        early=float(np.median(latency[:quarter])),
        late=float(np.median(latency[-quarter:])),
        fresh=float(np.median(fresh)),
    )


def _fresh_latency(target: str, options: Sequence[str]) -> NDArray[np.float64]:
    with tempfile.TemporaryDirectory(prefix="leakkit-restart-") as folder:
        recording = Path(folder, "recording")
        steps = [f"--steps={FRESH_STEPS}", f"--max-steps={FRESH_STEPS}", "--heap=off"]
        command = ["leakkit", "run", target, *options, *steps, f"--dir={recording}"]
        done = subprocess.run(
            [sys.executable, "-m", *command],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode == 2:  # broken; any other status is a verdict
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            raise NoAnswer(f"the fresh process broke: {lines[-1]}")
        return _latency(Recording.load(recording))


def _latency(recording: Recording) -> NDArray[np.float64]:
    series = recording.watch.get("latency")
    if series is None:
        return np.empty(0)
    return series.values[np.isfinite(series.values)]

"""Each epoch starts a loader process, and the old ones are never stopped."""

import subprocess
import sys

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="worker-processes-left",
    family="threads and processes",
    grows=("children", "fds"),
    rate="one process and two pipes a step",
    diagnosis="worker-processes-left",
    symptom="Dozens of sleeping Python processes after some epochs; the machine swaps.",
    cause="A worker waits for work on its pipe. Nobody closes the pipe, sends a stop, or waits "
    "for the process.",
    remedy="Close the pipes and wait (with Popen(...) as worker:), or keep the workers through "
    "all epochs.",
    reports=(
        "keras-team/keras#8946",
        "tensorflow/tensorflow#37026",
        "pytorch/pytorch#62066",
        "tensorflow/tensorflow#55623",
    ),
    seen_on="every framework",
)

# A loader without a Python interpreter, because starting one takes longer than a step should.
WORKER = ["sort", "-n"] if sys.platform == "win32" else ["cat"]


def leaky() -> Step:
    """Start a worker and keep it."""
    workers = []

    def step(i: int) -> float:
        worker = _start()
        workers.append(worker)
        return _load(worker)

    return step


def corrected() -> Step:
    """Start a worker for the length of a block."""

    def step(i: int) -> float:
        with _start() as worker:
            sample = _load(worker)
            worker.stdin.close()
        return sample

    return step


def _start() -> subprocess.Popen:
    return subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def _load(worker: subprocess.Popen) -> float:
    worker.stdin.write(b"0.25\n")
    return float(worker.stdout.readline())


if __name__ == "__main__":
    raise SystemExit(main(__file__))

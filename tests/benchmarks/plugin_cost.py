"""What the installed but unused plugin adds to a pytest session, in milliseconds.

Run ``python tests/benchmarks/plugin_cost.py``. Processor time is compared, since wall time tells
more about the neighbours; sessions with and without the plugin alternate.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 15
SESSIONS = {"pytest --version": ["--version"], "an empty suite": ["-q"]}


def seconds(arguments: list[str], folder: str) -> float:
    """Processor time of one pytest session in a fresh process."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the median of the paired differences, and the fastest session of each."""
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in SESSIONS.items():
            without, with_plugin = [], []
            for _ in range(ROUNDS):
                without.append(seconds(["-p", "no:leakkit", *arguments], folder))
                with_plugin.append(seconds(arguments, folder))
            pairs = zip(with_plugin, without, strict=True)
            added = statistics.median(a - b for a, b in pairs) * 1e3
            fastest = (min(with_plugin) - min(without)) * 1e3
            print(f"{name}: {added:+.1f} ms (median of {ROUNDS} pairs), {fastest:+.1f} ms (least)")


if __name__ == "__main__":
    main()

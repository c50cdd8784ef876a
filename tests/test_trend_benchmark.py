"""The labelled benchmark keeps its promises, on a few draws of each generator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCORE = Path(__file__).parent / "benchmarks" / "trend" / "score.py"


def scored(*options):
    words = [sys.executable, str(SCORE), *options]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["exact", "noisy", "counter", "latency"])
def test_generated_series(kind):
    done = scored("--only", kind, "--draws", "100", "--baseline-draws", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all promises kept" in done.stdout


def test_recorded_series():
    done = scored("--only", "recorded")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| flat |") > done.stdout.count("| grows |") > 10

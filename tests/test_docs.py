"""What the documentation shows does what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STEP = """
import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

def step():
    pyplot.figure()

def corrected():
    pyplot.close(pyplot.figure())
"""


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def leakkit(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "leakkit", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def installed_probe(tmp_path):
    """The example of the documentation, as an installed package looks to Python."""
    (source,) = blocks("docs/probes.md", "python")
    (tmp_path / "figures_probe.py").write_text(source)
    (declared,) = blocks("docs/probes.md", "toml")
    name, target = re.search(r'^(\w+) = "(.+)"$', declared, re.MULTILINE).groups()
    group = re.search(r'entry-points."(.+)"', declared)[1]
    metadata = tmp_path / "figures_probe-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: figures-probe\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{name} = {target}\n")
    (tmp_path / "plots.py").write_text(STEP)
    return tmp_path


def test_the_example_probe_finds_figures_that_stay_open(installed_probe):
    pytest.importorskip("matplotlib")
    short = ("--steps=40", "--max-steps=60", "--json=r.json")
    done = leakkit(installed_probe, "run", "plots.py:step", *short)
    assert done.returncode == 1, done.stdout + done.stderr
    figures = json.loads((installed_probe / "r.json").read_text())["series"]["figures"]
    assert figures["verdict"] == "grows"
    assert figures["slope"] == pytest.approx(1)
    assert figures["unit"] == "figures"


def test_a_limit_for_the_example_probe_is_read(installed_probe):
    pytest.importorskip("matplotlib")
    limit = "--limit=figures=1 figure/100 steps"
    done = leakkit(installed_probe, "run", "plots.py:corrected", limit, "--json=r.json")
    assert done.stderr == ""
    figures = json.loads((installed_probe / "r.json").read_text())["series"]["figures"]
    assert figures["verdict"] == "flat"
    assert figures["limit"] == pytest.approx(0.01)


def test_the_readme_has_exactly_the_two_set_up_lines():
    assert blocks("README.md", "sh") == [
        "pip install '.[tensorflow]' && leakkit demo\n",
        "pip install -e '.[dev]' && pytest\n",
    ]


def test_continuous_integration_runs_the_second_set_up_line():
    assert "pip install --quiet -e '.[dev]' && pytest" in (ROOT / ".ci/run").read_text()


def test_every_setting_and_option_is_documented():
    from leakkit.plugin.options import OPTIONS
    from leakkit.settings import SERIES_UNITS, setting_names

    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    missing = [f"`{n}=`" for n in setting_names() if f"`{n}=`" not in text]
    missing += [o.flag for o in OPTIONS if f"`{o.flag}`" not in text]
    missing += [o.key for o in OPTIONS if f"`{o.key}`" not in text]
    missing += [n for n in SERIES_UNITS if f"`{n}`" not in text]
    assert missing == []


def test_every_package_is_installed():
    """setuptools is told the packages by name, since one of them stands elsewhere."""
    listed = re.search(r"packages = \[\n(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    named = set(re.findall(r'"([\w.]+)"', listed[1]))
    found = {
        str(path.parent.relative_to(ROOT)).replace(os.sep, ".")
        for path in (ROOT / "leakkit").rglob("__init__.py")
    }
    assert named == found | {"leakkit.scenarios"}

"""The registry of scenarios: what the cards say, and that nothing heavy is needed to read them."""

import re
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.specifiers import SpecifierSet

import leakkit.scenarios
from leakkit.scenarios import CardError, Scenario, load, scratch
from leakkit.settings import series_unit

ALL = leakkit.scenarios.scenarios()
WITHOUT_FRAMEWORK = [scenario for scenario in ALL if not scenario.needs]
MISSION = [
    "graph-retracing",
    "variable-in-loop",
    "growing-list-of-tensors",
    "uncapped-logs",
    "log-file-unrotated",
]


def named(scenario):
    return scenario.name


def test_there_is_a_library():
    assert len(ALL) >= 65
    assert set(MISSION) <= set(leakkit.scenarios.names())
    assert sum(map(len, leakkit.scenarios.families().values())) == len(ALL)


@pytest.mark.parametrize("scenario", ALL, ids=named)
def test_card_is_complete(scenario):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", scenario.name)
    assert scenario.source.stem == scenario.name.replace("-", "_")
    assert scenario.summary.endswith(".") and len(scenario.summary) <= 97
    for text in (scenario.family, scenario.rate, scenario.symptom, scenario.cause):
        assert text
    assert scenario.remedy and scenario.seen_on
    assert bool(scenario.grows) == bool(scenario.diagnosis)
    assert scenario.reports
    for report in scenario.reports:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", report)


@pytest.mark.parametrize("scenario", ALL, ids=named)
def test_card_names_known_series_and_ranges(scenario):
    for series in (*scenario.grows, *scenario.accepts):
        assert series_unit(series) is not None, series
    for package, span in scenario.leaks_on.items():
        assert SpecifierSet(span), package
        assert package in scenario.needs, "a range is about a package that the file needs"


def test_reading_all_cards_imports_nothing_heavy():
    code = (
        "import sys, leakkit.scenarios as s; s.scenarios(); s.families();"
        "print([m for m in ('tensorflow', 'keras', 'jax', 'torch', 'numpy', 'matplotlib')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("scenario", WITHOUT_FRAMEWORK, ids=named)
def test_the_card_that_is_read_is_the_one_that_runs(scenario):
    module = scenario._module()
    assert scenario == module.SCENARIO


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(LookupError, match="graph-retracing"):
        leakkit.scenarios.get("graph-retrace")


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="leaky and corrected"):
        leakkit.scenarios.get("uncapped-logs").form("fixed")


def test_a_scenario_made_by_hand_has_no_forms():
    scenario = Scenario("a-b", "f", ("fds",), "r", "s", "c", "r")
    with pytest.raises(ValueError, match="no file"):
        scenario.leaky()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n", "no SCENARIO"),
        ("SCENARIO = 1\n", "1: SCENARIO must be a call"),
        ("SCENARIO = Scenario(name=f())\n", "1: SCENARIO is read without running"),
        ("SCENARIO = Scenario(name='a', colour=1)\n", "colour"),
        ("SCENARIO = Scenario(name='a')\n", "missing"),
        ("SCENARIO = (\n", "never closed"),
    ],
)
def test_a_bad_card_is_one_clear_line(tmp_path, text, complaint):
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(CardError, match=complaint) as raised:
        load(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_outside_its_version_range_the_leaky_form_must_be_flat(monkeypatch):
    scenario = leakkit.scenarios.get("add-loss")
    monkeypatch.setattr(metadata, "version", lambda package: "2.15.0")
    assert scenario.expected("leaky") == "grows"
    assert scenario.expected("corrected") == "flat"
    monkeypatch.setattr(metadata, "version", lambda package: "3.15.1")
    assert scenario.expected("leaky") == "flat"


def test_a_slow_form_must_be_flat():
    assert leakkit.scenarios.get("missing-prefetch").expected("leaky") == "flat"


def test_missing_packages_are_named():
    scenario = Scenario("a-b", "f", (), "r", "s", "c", "r", needs=("json", "no_such_package"))
    assert scenario.missing() == ("no_such_package",)


def test_each_scratch_folder_is_new_and_goes_with_the_process(tmp_path):
    code = "from leakkit.scenarios import scratch; a, b = scratch(), scratch(); print(a, a != b)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folder, different = done.stdout.split()
    assert different == "True"
    assert not tmp_path.__class__(folder).exists()
    assert scratch().is_dir()

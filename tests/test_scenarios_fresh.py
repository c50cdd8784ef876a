"""Measuring scenarios in fresh processes, and saying what isn't as expected."""

import subprocess
import sys
from pathlib import Path

import pytest

import leakkit.scenarios
from leakkit.scenarios import load
from leakkit.scenarios._fresh import Outcome, run, same_work
from leakkit.scenarios._matrix import Row, markdown, write_between_marks

WITHOUT_FRAMEWORK = [one for one in leakkit.scenarios.scenarios() if not one.needs]
FOLDER = Path(leakkit.scenarios.__file__).parent
SCENARIO = leakkit.scenarios.get("uncapped-logs")
GROWS = {"verdict": "grows", "slope": 623.0}


def outcome(form="leaky", verdict="grows", diagnosis="uncapped-logs", **series):
    series = series or {"python_heap": GROWS, "live_objects": GROWS}
    result = {"verdict": verdict, "series": series, "diagnosis": [{"name": diagnosis}]}
    return Outcome(SCENARIO, form, result, seconds=3.0)


@pytest.mark.parametrize("scenario", WITHOUT_FRAMEWORK, ids=lambda one: one.name)
def test_both_forms_do_the_same_work(scenario):
    assert same_work(scenario) == []


def test_a_leak_is_caught_and_its_correction_passes():
    for form in ("leaky", "corrected"):
        measured = run(SCENARIO, form)
        assert measured.complaints() == [], measured.report


def test_files_left_behind_are_seen():
    measured = run(leakkit.scenarios.get("temp-files-kept"), "leaky")
    assert {"files", "file_bytes"} <= set(measured.grew), measured.report


def test_as_expected():
    assert outcome().complaints() == []
    assert outcome("corrected", verdict="flat").complaints() == []


def test_a_wrong_verdict_is_the_only_complaint():
    assert outcome(verdict="undecided").complaints() == ["expected grows, got undecided"]
    assert outcome("corrected").complaints() == ["expected flat, got grows"]


def test_growth_of_the_wrong_series_or_of_the_wrong_name_is_a_complaint():
    assert outcome(python_heap=GROWS).complaints() == ["live_objects should have grown"]
    assert outcome(diagnosis="growing-list-of-tensors").complaints() == [
        "expected diagnosis uncapped-logs, got growing-list-of-tensors"
    ]


def test_a_form_that_broke_has_its_error_as_the_report(tmp_path):
    path = tmp_path / "broken_form.py"
    path.write_text(
        "from leakkit.scenarios import Scenario\n"
        "SCENARIO = Scenario(name='broken-form', family='f', grows=('fds',), rate='r',"
        " symptom='s', cause='c', remedy='r')\n"
        "def leaky():\n    raise RuntimeError('no model today')\n"
        "def corrected():\n    return float\n"
    )
    scenario = load(path)
    broken = run(scenario, "leaky")
    assert broken.verdict == "broke"
    assert "no model today" in broken.report
    assert "no model today" in same_work(scenario)[0]


def test_forms_that_disagree_are_told_apart(tmp_path):
    path = tmp_path / "other_work.py"
    path.write_text(
        "from leakkit.scenarios import Scenario\n"
        "SCENARIO = Scenario(name='other-work', family='f', grows=('fds',), rate='r',"
        " symptom='s', cause='c', remedy='r')\n"
        "def leaky():\n    return lambda i: float(i)\n"
        "def corrected():\n    return lambda i: float(min(i, 7))\n"
    )
    assert same_work(load(path)) == [
        "step 8: leaky returns 8.0, corrected 7.0",
        "step 9: leaky returns 9.0, corrected 7.0",
    ]


def test_pytest_collects_a_scenario_that_is_named_and_the_folder():
    items = ["::leaky", "::corrected", "::same-work"]
    one = _collected(str(FOLDER / "uncapped_logs.py"))
    assert [line.partition("uncapped_logs.py")[2] for line in one] == items
    assert len(_collected(str(FOLDER))) == 3 * len(leakkit.scenarios.names())


def test_the_matrix_as_a_table():
    flat = outcome("corrected", verdict="flat")
    row = Row(SCENARIO, [outcome(), flat])
    assert row.state == "as expected"
    assert "| uncapped-logs | python_heap +623 B<br>live_objects " in markdown([row])
    assert "| grows | flat | uncapped-logs | 6 |" in markdown([row])
    again = Row(SCENARIO, [outcome(), outcome(verdict="undecided")])
    assert again.verdict("leaky") == "1 × grows, 1 × undecided"
    assert again.state == "different"


def test_the_matrix_is_written_between_its_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- matrix -->\nold\n<!-- /matrix -->\nafter\n")
    write_between_marks(page, "new\n")
    assert page.read_text() == "before\n<!-- matrix -->\nnew\n<!-- /matrix -->\nafter\n"


def _collected(path):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if "::" in line]

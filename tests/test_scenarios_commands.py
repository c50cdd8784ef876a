"""``leakkit scenarios …`` as a person calls it."""

import subprocess
import sys

import pytest

import leakkit.scenarios
from leakkit.scenario_commands import main


def test_list_shows_every_name(capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in leakkit.scenarios.names())


def test_list_of_one_family(capsys):
    assert main(["list", "--family", "slowdowns", "--names"]) == 0
    assert capsys.readouterr().out.split() == [
        "file-per-step-listing",
        "growing-scan",
        "log-parsing",
        "sorting-history",
    ]


def test_show_has_cause_remedy_and_code(capsys):
    assert main(["show", "lru-cache-on-method"]) == 0
    shown = capsys.readouterr().out
    assert "cached_property" in shown
    assert "getsentry/seer#2512" in shown
    assert "def leaky() -> Step:" in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["show", "graph-retrace"], "nearest: graph-retracing"),
        (["list", "--family", "trace"], "the families are"),
        (["matrix", "no-such-leak"], "no scenario 'no-such-leak'"),
        (["new", "graph-retracing"], "taken"),
        (["new", "Leak"], "kebab-case"),
        (["verify", "no_such_file.py"], "no_such_file.py"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, complaint, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_run_prints_both_reports(capsys):
    assert main(["run", "log-file-unrotated"]) == 0
    shown = capsys.readouterr().out
    assert "log-file-unrotated, leaky: as expected" in shown
    assert "log-file-unrotated, corrected: as expected" in shown


def test_run_hands_options_on(capsys):
    assert main(["run", "log-file-unrotated", "--form", "leaky", "--", "--heap", "none"]) == 2
    assert "memray, tracemalloc, off" in capsys.readouterr().out


def test_a_new_scenario_is_valid_as_it_is_written(tmp_path, capsys):
    assert main(["new", "my-own-leak", "--folder", str(tmp_path)]) == 0
    assert main(["verify", str(tmp_path / "my_own_leak.py")]) == 0, capsys.readouterr().out
    assert "both do the same work" in capsys.readouterr().out
    assert main(["new", "my-own-leak", "--folder", str(tmp_path)]) == 2


def test_matrix_writes_its_table(tmp_path, capsys):
    page = tmp_path / "matrix.md"
    assert main(["matrix", "replay-buffer-unbounded", "--markdown", str(page)]) == 0
    assert "replay-buffer-unbounded" in capsys.readouterr().out
    assert "| replay-buffer-unbounded | native_heap +" in page.read_text()


def test_a_scenario_file_runs_by_itself():
    source = leakkit.scenarios.get("view-pins-base").source
    done = subprocess.run(
        [sys.executable, str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "view-pins-base, corrected: as expected" in done.stdout

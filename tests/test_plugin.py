from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

# pytester forgets the modules that an inner session imported, and numpy cannot be imported twice.
import leakkit.check
import leakkit.replay
import leakkit.reports.terminal  # noqa: F401

# In a session inside this one, the plugin is imported before pytest could rewrite its asserts.
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")

LEAKY = """
    kept = []

    def test_step(leak_check):
        leak_check(lambda: kept.append(bytes(64)))
"""
FLAT = """
    def test_step(leak_check):
        leak_check(lambda: sum(range(100)))
"""
# A step that nobody can decide in the steps that its loop gives.
SHORT = """
    def test_step(leak_check):
        for item in leak_check.steps(range(6)):
            pass
"""


@pytest.fixture
def suite(pytester):
    """Run a test file in this process; the outer session's own options stay out of it."""

    def run(source, *options):
        pytester.makepyfile(test_it=source)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *QUIET, *options)

    return run


def test_a_flat_step_passes_and_is_summarised(suite):
    done = suite(FLAT)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(
        ["leakkit: 0.*, 120 to 480 steps a pass*", "flat *::test_step*python heap at most*"]
    )


def test_a_leaky_step_fails_with_the_report_and_no_stack(suite):
    done = suite(LEAKY)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*LEAK  *grows by * a step",
            "*python heap *grows*",
            "*Held by *kept*",
            "grows *::test_step  python heap*",
            "FAILED *::test_step - LEAK *",
        ]
    )
    text = done.stdout.str()
    assert "Traceback" not in text
    assert "_judge" not in text
    assert "\nE " not in text


def test_a_leak_is_raised_in_the_call_phase_so_xfail_and_exitfirst_work(suite):
    done = suite(
        """
        import pytest
        kept = []

        @pytest.mark.xfail(raises=AssertionError, strict=True)
        def test_expected(leak_check):
            leak_check(lambda: kept.append(bytes(64)))

        def test_step(leak_check):
            leak_check(lambda: kept.append(bytes(64)))

        def test_never_run():
            raise SystemError
        """,
        "-x",
    )
    done.assert_outcomes(xfailed=1, failed=1)


def test_the_error_has_the_result(suite):
    done = suite(
        """
        import pytest, leakkit
        kept = []

        def test_step(leak_check):
            with pytest.raises(leakkit.LeakError) as caught:
                leak_check(lambda: kept.append(bytes(64)))
            assert caught.value.result.findings["python_heap"].trend.slope > 64
            assert str(caught.value).startswith("LEAK")
        """
    )
    done.assert_outcomes(passed=1)


def test_a_loop_is_judged_when_it_ends(suite):
    done = suite(
        """
        kept = []

        def test_loop(leak_check):
            for item in leak_check.steps(iter(int, 1)):
                kept.append(bytes(64))
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*LEAK  test_loop grows*"])


def test_a_loop_left_by_break_is_judged_in_the_call_phase(suite):
    done = suite(
        """
        kept = []

        def test_loop(leak_check):
            for number, item in enumerate(leak_check.steps(iter(int, 1))):
                kept.append(bytes(64))
                if number == 900:
                    break
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*LEAK  test_loop grows*"])


def test_what_a_step_raises_reaches_the_test_unchanged_and_is_undone(suite):
    done = suite(
        """
        import gc, pytest

        def step(index):
            if index == 50:
                raise KeyError("mine")

        def test_step(leak_check):
            with pytest.raises(KeyError, match="mine"):
                leak_check(step)
            assert gc.get_freeze_count() == 0

        def test_loop(leak_check):
            for number, item in enumerate(leak_check.steps(iter(int, 1))):
                if number == 50:
                    raise KeyError("mine")

        def test_after():
            assert gc.get_freeze_count() == 0
        """
    )
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["E *KeyError: 'mine'"])


def test_undecided_warns_and_fails_under_strict(suite):
    done = suite(SHORT)
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.fnmatch_lines(["*LeakkitWarning: UNDECIDED*", "undecided *::test_step*"])
    done = suite(SHORT, "--leakkit-strict")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*UNDECIDED  test_step*"])


def test_strict_can_stand_in_the_ini_file(suite, pytester):
    pytester.makeini("[pytest]\nleakkit_strict = true\n")
    suite(SHORT).assert_outcomes(failed=1)


def test_a_second_use_in_a_test_is_refused(suite):
    done = suite(
        """
        def test_step(leak_check):
            leak_check(lambda: None)
            leak_check(lambda: None)
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["leak_check measures one step or loop a test*"])


def test_a_fixture_that_is_never_used_warns(suite):
    done = suite("def test_nothing(leak_check): pass")
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.fnmatch_lines(["*asks for leak_check and does not use it*"])


def test_a_loop_that_was_never_begun_fails_and_one_without_steps_is_undecided(suite):
    done = suite(
        """
        def test_never(leak_check):
            leak_check.steps([1])

        def test_empty(leak_check):
            for item in leak_check.steps([]):
                pass
        """
    )
    done.assert_outcomes(failed=1, passed=1, warnings=1)
    done.stdout.fnmatch_lines(["leakkit: the loop ran no step*", "undecided *test_empty*"])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("leak_check(3)", "leakkit: *callable*"),
        ("leak_check(lambda a, b, c: None)", "leakkit: *cannot be called as given*"),
    ],
)
def test_what_is_no_step_gets_one_clear_line(suite, call, says):
    done = suite(f"def test_step(leak_check): {call}")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([says])
    assert "Traceback" not in done.stdout.str()
    assert "During handling" not in done.stdout.str()


def test_arguments_reach_the_step_and_the_index_too(suite):
    done = suite(
        """
        seen = set()

        def step(index, word, *, end):
            seen.add((type(index), word, end))

        def test_step(leak_check):
            result = leak_check(step, "a", end="b")
            assert seen == {(int, "a", "b")}
            assert result.verdict == "flat"
        """
    )
    done.assert_outcomes(passed=1)


def test_off_runs_each_step_once(suite):
    done = suite(
        """
        calls = []

        def test_step(leak_check):
            leak_check(lambda word: calls.append(word), "once")
            assert calls == ["once"]

        def test_index(leak_check):
            leak_check(lambda index, word: calls.append((index, word)), "x")
            assert calls[-1] == (0, "x")

        def test_loop(leak_check):
            assert list(leak_check.steps(iter(int, 1))) == [0]
        """,
        "--leakkit=off",
    )
    done.assert_outcomes(passed=3)
    done.stdout.fnmatch_lines(["leakkit: *, off: each step runs once*"])


SHOWS_SETTINGS = """
    def test_step(leak_check):
        settings = leak_check._check.settings
        print("steps", settings.steps, "limits", dict(settings.limits))
        leak_check(lambda: None)
"""


def test_the_command_line_is_stronger_than_the_ini_file_and_the_marker_than_both(suite, pytester):
    pytester.makeini("[pytest]\nleakkit_steps = 50\nleakkit_limit =\n  fds=1\n  threads=2\n")
    suite(SHOWS_SETTINGS, "-s").stdout.fnmatch_lines(
        ["*steps 50 limits {'fds': 1.0, 'threads': 2.0}*"]
    )
    suite(SHOWS_SETTINGS, "-s", "--leakkit-steps=40", "--leakkit-limit=fds=3").stdout.fnmatch_lines(
        ["*steps 40 limits {'fds': 3.0}*"]
    )
    marked = SHOWS_SETTINGS.replace(
        "def", "import pytest\n    @pytest.mark.leakkit(steps=30, limits={'rss': '1 KiB'})\n    def"
    )
    suite(marked, "-s", "--leakkit-steps=40").stdout.fnmatch_lines(
        ["*steps 30 limits {'fds': 1.0, 'threads': 2.0, 'rss': 1024.0}*"]
    )


def test_a_nearer_marker_is_stronger(suite):
    done = suite(
        """
        import pytest
        pytestmark = pytest.mark.leakkit(steps=50, warmup=3, limits={"fds": 1})

        @pytest.mark.leakkit(steps=40, limits={"threads": 1})
        def test_step(leak_check):
            settings = leak_check._check.settings
            assert (settings.steps, settings.warmup) == (40, 3)
            assert settings.limits == {"fds": 1, "threads": 1}
            leak_check(lambda: None)
        """
    )
    done.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ("stepz=3", "leakkit: unknown setting 'stepz'; the settings are steps, max_steps*"),
        ("steps=0", "leakkit: steps must be 1 or more*"),
        ("30", "leakkit: the marker takes settings by name*"),
        ("limits={'python_heap': '1 X'}", "leakkit: limit for python_heap*KiB*"),
        ("limits={'python_heep': 1}", "leakkit: limit for unknown series*python_heap*"),
    ],
)
def test_a_wrong_marker_is_one_line_that_names_what_is_right(suite, marker, says):
    done = suite(
        f"""
        import pytest

        @pytest.mark.leakkit({marker})
        def test_step(leak_check):
            leak_check(lambda: None)
        """
    )
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines([says])
    assert "another exception" not in done.stdout.str()


def test_a_marker_that_nothing_reads_warns(suite):
    done = suite(
        """
        import pytest

        @pytest.mark.leakkit(steps=5)
        def test_step():
            pass
        """
    )
    done.assert_outcomes(passed=1, warnings=1)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--leakkit=maybe", "*--leakkit must be on or off*"),
        ("--leakkit-steps=0", "*steps must be 1 or more*"),
        ("--leakkit-heap=valgrind", "*auto, memray, tracemalloc, off*"),
        ("--leakkit-limit=python_heap", "*SERIES=VALUE*"),
        ("--leakkit-limit=python_heap=1 X", "*KiB*"),
        ("--leakkit-max-seconds=soon", "*2 min*"),
    ],
)
def test_a_wrong_option_is_a_usage_error(suite, option, says):
    done = suite(FLAT, option)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([says])
    assert "Traceback" not in done.stderr.str()


def test_a_wrong_ini_value_is_a_usage_error(suite, pytester):
    pytester.makeini("[pytest]\nleakkit_strict = perhaps\n")
    done = suite(FLAT)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*leakkit_strict must be true or false*"])


def test_a_missing_device_skips_with_the_reason_or_fails_where_required(suite):
    source = """
        import pytest

        @pytest.mark.leakkit(device="TPU:7")
        def test_step(leak_check):
            leak_check(lambda: None)
    """
    done = suite(source, "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*leakkit: *"])
    done = suite(source, "--leakkit-require-device")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["leakkit: *"])


@pytest.mark.parametrize(
    ("marker", "option"),
    [('@pytest.mark.leakkit(device="all")', ()), ("", ("--leakkit-device=all",))],
    ids=["marker", "option"],
)
def test_all_devices_are_one_test_each(suite, marker, option):
    done = suite(
        f"""
        import pytest

        {marker}
        def test_step(leak_check, leakkit_device):
            leak_check(lambda: None)
            assert leakkit_device == "CPU:0"

        def test_another():
            pass
        """,
        "-v",
        *option,
    )
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["*::test_step[[]CPU:0[]] PASSED*", "*::test_another PASSED*"])


def test_a_device_of_all_that_no_framework_sees_skips_or_fails_where_required(suite, monkeypatch):
    """As where a driver lists a GPU and no framework can use it; the GPU is made up."""
    monkeypatch.setattr("leakkit.frameworks.present", lambda: ["CPU:0", "GPU:0"])
    done = suite(FLAT, "--leakkit-device=all", "-rs")
    done.assert_outcomes(passed=1, skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*leakkit: GPU:0*"])
    done = suite(FLAT, "--leakkit-device=all", "--leakkit-require-device")
    done.assert_outcomes(passed=1, errors=1)


def test_a_test_that_hides_its_leak_check_cannot_be_one_for_each_device(suite):
    done = suite(
        """
        def test_step(request):
            request.getfixturevalue("leak_check")(lambda: None)
        """,
        "--leakkit-device=all",
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["leakkit: a test on all devices must name leak_check *"])


@pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed")
def test_each_test_of_all_runs_on_its_device_with_what_it_makes(pytester, monkeypatch):
    """JAX divides the CPU into two devices: a second one that is real."""
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    pytester.makepyfile(
        """
        import jax.numpy as jnp

        def test_loop(leak_check, leakkit_device):
            weights, places = jnp.ones(3), set()
            for number in leak_check.steps(range(1000)):
                places |= {f"CPU:{d.id}" for x in (weights, jnp.ones(3)) for d in x.devices()}
            assert places == {leakkit_device}

        def test_step(leak_check, leakkit_device):
            places = set()
            leak_check(lambda: places.update(d.id for d in jnp.ones(3).devices()))
            assert [f"CPU:{number}" for number in places] == [leakkit_device]

        def test_elsewhere():
            assert [d.id for d in jnp.ones(3).devices()] == [0]
        """
    )
    options = ("--leakkit-steps=12", "--leakkit-max-steps=12", "--leakkit-heap=off")
    done = pytester.runpytest_subprocess(*QUIET, "-v", "--leakkit-device=all", *options)
    names = {line.split()[0].partition("::")[2] for line in done.outlines if "PASSED" in line}
    assert names == {
        "test_loop[CPU:0]", "test_loop[CPU:1]", "test_step[CPU:0]", "test_step[CPU:1]",
        "test_elsewhere",
    }  # fmt: skip


def test_recordings_go_where_they_are_asked_to_and_are_replaced(suite, pytester):
    for _ in range(2):
        done = suite(FLAT, "--leakkit-dir=recordings")
        done.assert_outcomes(passed=1)
    (folder,) = (pytester.path / "recordings").iterdir()
    assert "test_step" in folder.name
    assert json.loads((folder / "result.json").read_text())["verdict"] == "flat"
    done.stdout.fnmatch_lines(["recordings in *recordings*"])


def test_an_unwritable_folder_is_one_clear_line(suite, pytester):
    (pytester.path / "taken").write_text("a file where a folder should be")
    done = suite(FLAT, "--leakkit-dir=taken")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["leakkit: *cannot record in*taken*"])
    assert "Traceback" not in done.stdout.str()
    assert "direct cause" not in done.stdout.str()


def test_files_left_in_the_temporary_folder_of_the_test_are_seen(suite):
    done = suite(
        """
        def test_step(leak_check, tmp_path):
            leak_check(lambda index: (tmp_path / f"{index}.txt").write_text("x"))
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*files *grows*"])


def test_the_memray_plugin_and_a_memray_trace_cannot_both_be(suite, pytester):
    pytester.makeconftest(
        "def pytest_addoption(parser): parser.addoption('--memray', action='store_true')"
    )
    done = suite(FLAT, "--memray")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["leakkit: pytest --memray traces this test already*tracemalloc*"])
    suite(FLAT, "--memray", "--leakkit-heap=tracemalloc").assert_outcomes(passed=1)


def test_another_tracker_is_one_clear_line(suite):
    pytest.importorskip("memray")
    done = suite(
        """
        import memray

        def test_step(leak_check, tmp_path):
            with memray.Tracker(tmp_path / "mine.bin"):
                leak_check(lambda: None)
        """
    )
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["leakkit: *"])
    assert "Traceback" not in done.stdout.str()


def test_a_parametrized_test_is_named_and_measured_by_itself(suite):
    done = suite(
        """
        import pytest
        kept = []

        @pytest.mark.parametrize("keeps", [False, True])
        def test_step(leak_check, keeps):
            leak_check(lambda: keeps and kept.append(bytes(64)))
        """
    )
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["grows *test_step?True?*", "flat *test_step?False?*"])


@pytest.mark.skipif(find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_under_xdist_the_report_and_the_summary_arrive(pytester):
    pytester.makepyfile(test_leaky=LEAKY, test_flat=FLAT)
    done = pytester.runpytest_subprocess("-n", "2")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*LEAK *grows by*", "grows *test_leaky*", "flat *test_flat*"])
    assert "INTERNALERROR" not in done.stdout.str()


def test_loading_the_plugin_imports_nothing_heavy():
    """In a fresh process: this one has long imported everything."""
    heavy = ["numpy", "memray", "psutil", "tensorflow", "keras", "jax", "torch", "rich"]
    code = (
        "import sys, pytest; before = set(sys.modules); import leakkit.plugin;"
        f"print([m for m in {heavy} if m in sys.modules and m not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_suite_that_does_not_use_the_plugin_imports_nothing_heavy(pytester):
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            heavy = {"numpy", "memray", "psutil", "tensorflow", "keras", "jax", "torch"}
            assert not heavy & set(sys.modules)
        """
    )
    # Other installed plugins must not be blamed on this one.
    done = pytester.runpytest_subprocess(
        "-p", "no:hypothesispytest", "-p", "no:benchmark", "-p", "no:xdist"
    )
    done.assert_outcomes(passed=1)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_in_a_terminal_a_long_run_shows_its_progress_and_removes_it(pytester):
    pytester.makepyfile(
        test_it="""
        import time

        def test_step(leak_check):
            leak_check(time.sleep, 0.02)
        """
    )
    text = in_terminal([sys.executable, "-m", "pytest", "--leakkit-heap=off", "test_it.py"])
    assert "watch pass  1" in text
    after = text.rpartition(" steps  ")[2]
    assert "\x1b[A\x1b[12G" in after  # back behind "test_it.py "
    assert "1 passed" in after


def in_terminal(command):
    """What a command writes when it has a terminal of its own."""
    import os
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.execv(command[0], command)
    written = b""
    try:
        while part := os.read(terminal, 65536):
            written += part
    except OSError:  # Linux: the child has closed its end
        pass
    os.close(terminal)
    os.waitpid(child, 0)
    return written.decode()

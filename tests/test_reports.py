from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leakkit.check
from leakkit.diagnosis import Diagnosis
from leakkit.reports import json as json_report
from leakkit.reports.forecast import forecasts
from leakkit.reports.labels import label
from leakkit.reports.markdown import to_markdown
from leakkit.reports.progress import Progress
from leakkit.reports.source import source_line
from leakkit.reports.sparkline import ASCII, UNICODE, sparkline
from leakkit.reports.stacks import native_name
from leakkit.reports.terminal import headline, render, summary
from leakkit.result import Finding, Result
from leakkit.series import Kind, Quantity, Series
from leakkit.suspects import Suspect
from leakkit.trend import Trend, Verdict

GROWS, FLAT, UNDECIDED = Verdict.GROWS, Verdict.FLAT, Verdict.UNDECIDED
STEPS = np.arange(120.0)


def finding(
    name: str,
    unit: str = "B",
    kind: Kind = Kind.EXACT,
    verdict: Verdict = FLAT,
    slope: float = 0.0,
    low: float | None = None,
    high: float | None = None,
    decides: bool = True,
    limit: float = 0.0,
    reason: str = "rose in 11 of 11 blocks",
    more: int = 0,
    values: np.ndarray | None = None,
) -> Finding:
    values = slope * STEPS if values is None else values
    trend = Trend(
        verdict,
        slope,
        slope if low is None else low,
        slope if high is None else high,
        float(values[-1] - values[0]),
        len(values),
        reason,
        more,
    )
    return Finding(Series(Quantity(name, unit, kind), values), trend, limit, "trace", decides)


def latency(verdict: Verdict = FLAT, **how) -> Finding:
    noise = 1e-3 + np.random.default_rng(1).normal(0, 1e-5, 120)
    how = {"low": -0.1, "high": 0.1, "values": noise, **how}
    return finding("latency", "s", Kind.LATENCY, verdict, **how)


def result(*findings: Finding, verdict: Verdict = GROWS, **how) -> Result:
    meta = {
        "environment": {
            "memory_bytes": 24 * 2**30,
            "python": "3.11",
            "packages": {"memray": "1.20", "numpy": "2.4"},
        },
        "frameworks": {
            "frameworks": {"tensorflow": {"keras": "3.15"}},
            "devices": [{"name": "GPU:0", "total_bytes": 8 * 2**30}],
        },
    }
    recording = SimpleNamespace(steps=240, path=Path("rec"), meta=meta)
    named = {f.name: f for f in findings}
    return Result("train_step", verdict, named, recording, seconds=2.1, **how)


def leak(**how) -> Result:
    return result(
        latency(),
        finding("python_heap", verdict=GROWS, slope=1560.0),
        finding("native_heap", verdict=GROWS, slope=1808.0, low=1790.0, high=1826.0),
        finding("live_tensors", "tensors", Kind.COUNTER, GROWS, 1.0),
        finding("traces", "traces", Kind.COUNTER),
        finding("threads", "threads", Kind.COUNTER),
        finding("rss", "B", Kind.NOISY, GROWS, 2000.0, -math.inf, 3e6, decides=False),
        finding("children", "processes", Kind.COUNTER),
        suspects=[
            Suspect("site", "train.py:41 in train_step", "+1560 B a step", 1560, "B",
                    facts={"source": "history.append(loss)"}),
            Suspect("container", "list `history` in module train",
                    "+1 EagerTensor a step, 220 items", 1, "items"),
        ],
        diagnoses=[
            Diagnosis("growing-list-of-tensors", "high", "a list grows",
                      "keep the number, not the tensor", 1.0, "growing-list-of-tensors"),
        ],
        **how,
    )  # fmt: skip


def test_a_leak_is_shown_in_the_order_in_which_a_person_asks():
    text = render(leak(notes=["The loop ended 12 steps early."]))
    parts = [
        "LEAK  train_step grows by 3.29 KiB a step",
        "series",
        "python heap",
        "native heap",
        "tensors alive",
        "resident memory",
        "traces",
        "latency",
        "Held by",
        "list `history` in module train",
        "Made at",
        "train.py:41 in train_step  history.append(loss)",
        "Looks like",
        "growing-list-of-tensors: keep the number",
        "leakkit scenarios show",
        "At this rate",
        "24 GiB is full after 7.65 million steps (2.13 h at 1 ms a step)",
        "Note",
        "The loop ended 12 steps early.",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_the_row_of_a_growing_series():
    row = next(line for line in render(leak()).splitlines() if "native heap" in line)
    words = " ".join(row.split())
    assert words == "native heap +1808 B [1790, 1826] +210 KiB grows ▁▂▃▄▅▆▇█"


def test_a_series_that_only_advises_is_starred_and_explained():
    text = render(leak())
    assert re.search(r"resident memory .* grows \*", text)
    assert "* shown, but not a reason to fail" in text


def test_only_rows_that_matter_unless_all_are_asked_for():
    assert "child processes" not in render(leak())
    assert "child processes" in render(leak(), verbose=True)
    assert "trace pass: rose in 11 of 11 blocks (limit 0 B a step)" in render(leak(), verbose=True)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_without_unicode_all_is_ascii_and_the_columns_stand(verdict):
    shown = leak(notes=["naïve – “quoted”"])
    shown = Result(**{**vars(shown), "verdict": verdict})
    text = render(shown, unicode=False, verbose=True)
    assert text.isascii()
    rows = [line for line in text.splitlines() if re.search(r"  (grows|flat)", line)]
    assert len({re.search(r"(grows|flat)", row).start() for row in rows}) == 1


def test_colour_adds_nothing_but_colour():
    colored = render(leak(), color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == render(leak())


def test_no_line_is_wider_than_the_width():
    shown = leak(notes=["a long note " * 30])
    for width in (80, 100):
        assert max(len(line) for line in render(shown, width=width).splitlines()) <= width


def test_a_flat_report_prints_the_bound_that_was_proved():
    text = render(
        result(
            finding("python_heap"),
            finding("native_heap", high=31.5),
            latency(high=0.02, low=-0.01),
            verdict=FLAT,
        )
    )
    assert text.startswith("FLAT  train_step does not grow: 240 steps in 2.1 s")
    assert "proved at most" in text
    assert re.search(r"native heap +0 B +31.5 B a step", text)
    assert re.search(r"latency +0 % +0.02 % a step", text)


def test_a_flat_report_does_not_claim_what_was_not_proved():
    open_question = latency(UNDECIDED, reason="too noisy", high=0.5)
    advisory = finding("rss", "B", Kind.NOISY, GROWS, 10.0, decides=False)
    text = render(result(finding("python_heap"), open_question, advisory, verdict=FLAT))
    assert re.search(r"latency .* not proved .* undecided", text)
    assert re.search(r"resident memory .* not proved .* grows \*", text)
    assert "Undecided     latency: too noisy" in text


def test_an_undecided_report_says_what_is_open_and_why():
    open_question = latency(UNDECIDED, reason="too noisy", more=240, high=math.inf)
    text = render(result(finding("python_heap"), open_question, verdict=UNDECIDED))
    assert text.startswith("UNDECIDED  train_step: 240 steps in 2.1 s do not tell")
    assert "latency: too noisy; about 240 more steps would tell" in text
    assert "[-0.1, ∞]" in text


def test_a_limit_that_was_broken_is_named():
    text = render(result(finding("python_heap", verdict=GROWS, slope=100.0, limit=64.0)))
    assert "Limit         python heap may grow by at most 64 B a step" in text


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (finding("python_heap", slope=69.0), "LEAK  train_step grows by 69 B a step"),
        (
            finding("threads", "threads", Kind.COUNTER, slope=1.0),
            "LEAK  train_step grows by 1 thread a step",
        ),
        (
            finding("fds", "descriptors", Kind.COUNTER, slope=0.1),
            "LEAK  train_step grows by 1 descriptor every 10 steps",
        ),
        (
            finding("file_bytes", slope=2048.0),
            "LEAK  train_step grows by 2 KiB on disk a step",
        ),
        (latency(slope=0.12), "SLOWER  train_step takes 0.12 % longer each step"),
    ],
)
def test_the_headline_speaks_of_what_grows(found, line):
    trend = Trend(GROWS, *list(vars(found.trend).values())[1:])
    grown = Finding(found.series, trend, 0.0, "watch", True)
    assert headline(result(grown, finding("traces", "traces", Kind.COUNTER))) == line


def test_the_headline_prefers_memory_to_things_to_time():
    slow = latency(GROWS, slope=1.0)
    threads = finding("threads", "threads", Kind.COUNTER, GROWS, 1.0)
    heap = finding("native_heap", verdict=GROWS, slope=8.0)
    assert "1 thread a step" in headline(result(slow, threads))
    assert "8 B a step" in headline(result(slow, threads, heap))


def test_heaps_add_up_where_the_trace_pass_tells_them_apart_and_overlap_elsewhere():
    python = finding("python_heap", verdict=GROWS, slope=300.0)
    native = finding("native_heap", verdict=GROWS, slope=500.0)
    assert "grows by 800 B a step" in headline(result(python, native))
    watched = Finding(native.series, native.trend, 0.0, "watch", True)
    assert "grows by 500 B a step" in headline(result(python, watched))


def test_device_memory_is_measured_against_its_own_device():
    grown = finding("device_memory:GPU:0", verdict=GROWS, slope=2.0**20)
    (sentence,) = forecasts(result(grown))
    assert sentence.startswith("the 8 GiB of device memory GPU:0 are full after 8192 steps")


def test_a_slower_step_is_told_when_it_takes_twice_as_long():
    assert forecasts(result(latency(GROWS, slope=0.5)))[0].startswith(
        "a step takes twice as long after 200 steps"
    )


def test_the_summary_is_one_line_that_answers():
    assert summary(leak()) == (
        "python heap +1.52 KiB a step, native heap +1.77 KiB a step, tensors alive +1 tensor a step"
    )
    flat = result(finding("python_heap"), verdict=FLAT)
    assert summary(flat) == "240 steps in 2.1 s; python heap at most 0 B a step"
    undecided = result(latency(UNDECIDED, reason="too noisy"), verdict=UNDECIDED)
    assert summary(undecided) == "latency: too noisy"


def test_a_site_shows_its_line_of_code(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import x\n\n    history.append(loss)\n" + "a" * 90 + "\n")
    sites = [
        Suspect("site", f"train.py:{n}", "", 1, "B", facts={"file": str(script), "line": n})
        for n in (3, 4, 9)
    ]
    text = render(result(finding("python_heap", verdict=GROWS, slope=1.0), suspects=sites))
    assert "Made at       train.py:3  history.append(loss)" in text
    assert source_line(sites[1]) == "a" * 58 + " …"
    assert source_line(sites[2]) == ""


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("tensorflow::(anonymous namespace)::EagerLocalExecute(tensorflow::EagerOperation*, int*)",
         "tensorflow::EagerLocalExecute"),
        ("tensorflow::MklMatMulOp<Eigen::ThreadPoolDevice, float, false>::Compute(int*)",
         "MklMatMulOp::Compute"),
        ("void foo::Bar<std::pair<int, long> >::run(int) const", "Bar::run"),
        ("TFE_Execute", "TFE_Execute"),
    ],
)  # fmt: skip
def test_native_frames_are_named_by_class_and_function(frame, name):
    assert native_name(frame) == name


def test_stacks_show_where_they_were_asked_for():
    facts = {
        "native": ["operator new(unsigned long)", "a::Allocator::Raw(int)", "b::Op::Compute()"],
        "stack": [
            ("matmul", "lib/math_ops.py", 7),
            ("step", "train.py", 3),
            ("run", leakkit.check.__file__, 78),
        ],
    }
    leak = result(
        finding("native_heap", verdict=GROWS, slope=1.0),
        suspects=[Suspect("site", "train.py:3", "", 1, "B", facts=facts)],
    )
    short, full = render(leak), render(leak, verbose=True)
    assert "natively    Allocator::Raw ← Op::Compute" in short
    assert "called by" not in short
    assert "called by   matmul (lib/math_ops.py:7) ← step (train.py:3)\n" in full


def test_only_a_site_has_stacks():
    """A thread's fact of the same name says that native code started it."""
    thread = Suspect("thread", "tf_data", "+1", 1, "threads", facts={"native": True})
    text = render(result(finding("threads", verdict=GROWS, slope=1.0), suspects=[thread]))
    assert "Thread        tf_data" in text


def test_labels_are_words():
    assert [label(n) for n in ("fds", "device_memory:GPU:1", "tf_gradient_registry")] == [
        "descriptors",
        "device memory GPU:1",
        "TF gradient registry",
    ]


def test_a_sparkline_rises_falls_and_lies_flat():
    assert sparkline(STEPS) == UNICODE
    assert sparkline(-STEPS) == UNICODE[::-1]
    assert sparkline(STEPS, unicode=False) == ASCII
    assert sparkline(STEPS * 0) == UNICODE[0] * 8
    assert sparkline(STEPS, floor=1e3) == UNICODE[0] * 8
    assert sparkline(np.array([1.0, 2.0])) == "▁█"
    assert sparkline(np.array([np.nan])) == ""


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=50))
def test_a_sparkline_draws_any_numbers(values):
    assert len(sparkline(np.array(values, dtype=float))) <= 8


@pytest.mark.parametrize(
    ("device", "verbose", "shown"),
    [(None, False, False), (None, True, True), ("CPU:0", False, True), ("gpu", False, False)],
)
def test_remarks_are_for_verbose_reports_and_for_who_asked_for_a_cpu(device, verbose, shown):
    found = leak(remarks=["A CPU has no count."])
    found.recording.meta["settings"] = {"device": device}
    assert ("A CPU has no count." in render(found, verbose=verbose)) is shown


def test_json_has_the_promised_shape():
    data = json.loads(json_report.render(leak(notes=["n"], remarks=["r"])))
    assert data["verdict"] == "grows"
    assert data["steps"] == 240
    heap = data["series"]["native_heap"]
    assert {k: heap[k] for k in ("verdict", "slope", "low", "high", "unit", "limit")} == {
        "verdict": "grows",
        "slope": 1808.0,
        "low": 1790.0,
        "high": 1826.0,
        "unit": "B",
        "limit": 0.0,
    }
    assert heap["reason"] == "rose in 11 of 11 blocks"
    assert data["series"]["latency"]["unit"] == "%"
    assert {"kind", "where", "what", "slope", "unit"} <= set(data["suspects"][0])
    assert {"name", "confidence", "remedy"} <= set(data["diagnosis"][0])
    assert (data["notes"], data["remarks"]) == (["n"], ["r"])


def test_json_has_neither_nan_nor_infinity():
    odd = finding("rss", "B", Kind.NOISY, UNDECIDED, math.nan, -math.inf, math.inf)

    def refuse(constant):
        raise AssertionError(constant)

    data = json.loads(json_report.render(result(odd)), parse_constant=refuse)
    assert data["series"]["rss"]["slope"] is None
    assert data["series"]["rss"]["low"] is None
    assert data["series"]["rss"]["high"] is None


def test_numpy_numbers_become_json():
    odd = finding("fds", "descriptors", Kind.COUNTER, GROWS, np.float64(1.0), limit=np.float64(0))
    assert json.loads(json_report.render(result(odd)))["series"]["fds"]["slope"] == 1.0


def test_markdown_has_a_table_and_the_whole_report():
    text = to_markdown(leak())
    assert text.startswith("### LEAK  train_step grows")
    assert "| python heap | +1560 B | [1560, 1560] |" in text
    assert "<details>" in text
    assert "Held by" in text
    assert "- python: 3.11" in text
    assert "- packages: memray 1.20, numpy 2.4" in text
    assert "- tensorflow: keras 3.15" in text


def drawn(tmp_path, **how):
    path = tmp_path / "terminal"
    with path.open("wb") as terminal:
        progress = Progress(terminal.fileno(), **how)
        progress("watch", 3, 120)
        progress.close()
        progress.close()
    return path.read_bytes().decode()


def test_progress_is_drawn_below_an_unfinished_line_and_removed(tmp_path):
    text = drawn(tmp_path, wait=0.0, column=12)
    assert "watch pass  3/120 steps" in text
    assert text.startswith("\n")
    assert text.endswith("\r\x1b[K\x1b[A\x1b[13G")


def test_a_short_run_draws_no_progress(tmp_path):
    assert drawn(tmp_path, wait=60.0) == ""


def test_progress_outlives_its_terminal(tmp_path):
    with (tmp_path / "terminal").open("wb") as terminal:
        progress = Progress(terminal.fileno(), wait=0.0)
    progress("watch", 3, 120)
    progress.close()

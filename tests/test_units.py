from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakkit.units import (
    UnitError,
    bytes_text,
    counted,
    duration_text,
    growth_text,
    large_count,
    parse_duration,
    parse_growth,
    plain,
    singular,
)


@pytest.mark.parametrize(
    ("text", "unit", "growth"),
    [
        ("0 B", "B", 0),
        ("64 B/step", "B", 64),
        ("64 B a step", "B", 64),
        ("64 B per step", "B", 64),
        ("1 KiB/10 steps", "B", 102.4),
        ("1KiB / 10 steps", "B", 102.4),
        ("1.5 kB", "B", 1500),
        ("1e3 B per 1_000 steps", "B", 1),
        ("1 %/100 steps", "%", 0.01),
        (".5%", "%", 0.5),
        ("2 threads", "threads", 2),
        ("1 thread/20 steps", "threads", 0.05),
        ("3 processes", "processes", 3),
        ("1 entry/step", "entries", 1),
        ("12", "B", 12),
        (7, "descriptors", 7),
        (0.25, "%", 0.25),
        ("10 ms/step", "s", 0.01),
    ],
)
def test_growth_is_read(text, unit, growth):
    assert parse_growth(text, unit) == pytest.approx(growth)


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("64 X", "B", "KiB"),
        ("1 %", "B", "KiB"),
        ("1 KiB", "%", "1 %/100 steps"),
        ("2 files", "threads", "threads, thread"),
        ("-1 B", "B", "0 or more"),
        (-1, "B", "0 or more"),
        (float("nan"), "B", "0 or more"),
        (float("inf"), "B", "0 or more"),
        ("1 B/0 steps", "B", "over 0 steps"),
        ("1 B/hour", "B", "write for example"),
        ("lots", "B", "write for example"),
        ("", "B", "write for example"),
        (True, "B", "write for example"),
        (None, "B", "write for example"),
        ([1], "B", "write for example"),
    ],
)
def test_what_is_no_growth_is_refused_in_one_line_that_helps(text, unit, says):
    with pytest.raises(UnitError) as caught:
        parse_growth(text, unit)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30 s", 30), ("2 min", 120), ("500 ms", 0.5), ("1.5h", 5400), (3, 3), (0.5, 0.5)],
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "3 parsecs", "s", None, True])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(UnitError, match="no duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (69, "69 B"),
        (1560, "1560 B"),
        (9999, "9999 B"),
        (10240, "10 KiB"),
        (-3e6, "-2.86 MiB"),
        (24 * 2**30, "24 GiB"),
        (1023 * 2**20, "0.999 GiB"),
        (2.0**60, "1,048,576 TiB"),
    ],
)
def test_bytes_are_written(number, text):
    assert bytes_text(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (2.5e-6, "2.5 µs"),
        (1e-3, "1 ms"),
        (0.0213, "21.3 ms"),
        (2.1, "2.1 s"),
        (119, "119 s"),
        (500, "8.33 min"),
        (16560, "4.6 h"),
        (3e6, "34.7 days"),
    ],
)
def test_durations_are_written(seconds, text):
    assert duration_text(seconds) == text


def test_large_counts_are_words():
    assert [large_count(n) for n in (12, 9999, 16_500, 16.5e6, 2e9)] == [
        "12",
        "9999",
        "16.5 thousand",
        "16.5 million",
        "2 billion",
    ]


def test_counted_things_are_singular_when_one():
    assert counted(1, "threads") == "1 thread"
    assert counted(0.5, "threads") == "0.5 threads"
    assert [singular(w) for w in ("entries", "processes", "boxes", "bytes", "loss")] == [
        "entry",
        "process",
        "box",
        "byte",
        "loss",
    ]


def test_growth_is_signed():
    written = [growth_text(n, u) for n, u in ((1560, "B"), (0, "B"), (0.021, "%"), (1, "threads"))]
    assert written == ["+1560 B", "0 B", "+0.021 %", "+1 thread"]


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_a_plain_number_reads_back_to_three_digits(number):
    text = plain(number)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(number, rel=5.1e-3, abs=1e-9)


@given(st.floats(min_value=0, max_value=1e15))
def test_written_bytes_are_read_back(number):
    text = bytes_text(number).replace(",", "")
    assert parse_growth(text, "B") == pytest.approx(number, rel=5.1e-3, abs=1e-9)

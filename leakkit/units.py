"""Quantities as a person writes and reads them: bytes, durations, growth a step."""

from __future__ import annotations

import math
import re

BYTES = {
    "B": 1.0,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
    "kB": 1e3,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
}
SECONDS = {
    "ns": 1e-9,
    "µs": 1e-6,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
ANY = ""  # the unit of things counted whose plural is not known in advance
WRITTEN_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")

_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_AMOUNT = rf"\s*(?P<number>{_NUMBER})\s*(?P<unit>[^\s/\d]+)?\s*"
_GROWTH = rf"{_AMOUNT}(?:(?:/|\ba\b|\bper\b)\s*(?P<every>\d[\d_]*)?\s*steps?\s*)?"


class UnitError(ValueError):
    """A quantity that cannot be read; the text says what would be right."""


def parse_growth(text: str | float, unit: str) -> float:
    """Growth per step in ``unit``, from ``"64 B"``, ``"1 KiB/10 steps"`` or ``"1 %/100 steps"``.

    Args:
        text: a number is taken as it is; a text without ``/ steps`` means "a step".
        unit: ``B``, ``s``, ``%``, the plural of a thing counted, such as ``threads``, or ``ANY``.

    Raises:
        UnitError: it is not a quantity, is negative, or has a unit of another kind.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise UnitError(f"{text!r} is no amount of growth; write for example {_example(unit)}")
    if not isinstance(text, str):
        return _accepted(float(text), text)
    match = re.fullmatch(_GROWTH, text)
    if match is None:
        raise UnitError(f"{text!r} is no amount of growth; write for example {_example(unit)}")
    every = int(match["every"] or 1)
    if every == 0:
        raise UnitError(f"{text!r} is growth over 0 steps; write for example {_example(unit)}")
    amount = float(match["number"]) * _factor(match["unit"], unit, text)
    return _accepted(amount / every, text)


def parse_duration(text: str | float) -> float:
    """Seconds, from a number of seconds or a text such as ``"90 s"``, ``"2 min"``.

    Raises:
        UnitError: it is no duration.
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    match = re.fullmatch(_AMOUNT, text) if isinstance(text, str) else None
    unit = (match["unit"] or "s") if match else ""
    if match is None or unit not in SECONDS:
        raise UnitError(f"{text!r} is no duration; write for example '30 s', '2 min' or '500 ms'")
    return float(match["number"]) * SECONDS[unit]


def _accepted(amount: float, text: str | float) -> float:
    if not math.isfinite(amount) or amount < 0:
        raise UnitError(f"{text!r} is no limit: growth must be a number of 0 or more")
    return amount


def _factor(written: str | None, unit: str, text: str) -> float:
    """What a number in the unit ``written`` is multiplied by to be in ``unit``."""
    known = _known(unit)
    if written is None:
        return 1.0
    if written in known:
        return known[written]
    if unit == ANY and written not in {"%", *BYTES, *SECONDS}:
        return 1.0
    if unit == ANY:
        raise UnitError(f"{text!r} has the unit {written!r}, but this is counted: write '0' or '2'")
    raise UnitError(
        f"{text!r} has the unit {written!r}, but this grows in {', '.join(known)}; "
        f"write for example {_example(unit)}"
    )


def _known(unit: str) -> dict[str, float]:
    if unit == "B":
        return BYTES
    if unit == "s":
        return SECONDS
    if unit == "%":
        return {"%": 1.0}
    return {} if unit == ANY else {unit: 1.0, singular(unit): 1.0}


def _example(unit: str) -> str:
    unit = unit or "entries"
    return f"'1 %/100 steps' or '0 {unit}'" if unit == "%" else f"'2 {unit}/10 steps' or '0 {unit}'"


def singular(unit: str) -> str:
    """The name of one of the things counted: ``threads`` → ``thread``."""
    if unit.endswith("ies"):
        return f"{unit[:-3]}y"
    if unit.endswith(("shes", "ches", "sses", "xes")):
        return unit[:-2]
    return unit[:-1] if unit.endswith("s") and not unit.endswith("ss") else unit


def counted(number: float, unit: str) -> str:
    """``1 thread``, ``0.25 threads``, ``12,000 graphs``."""
    return f"{plain(number)} {singular(unit) if number == 1 else unit}"


def plain(number: float, digits: int = 3) -> str:
    """A number with ``digits`` significant digits, never in scientific notation.

    Whole parts are kept whole, with thousands separators from 10,000 on.
    """
    if not math.isfinite(number):
        return "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")
    decimals = _decimals(number, digits)
    text = f"{number:,.{decimals}f}" if abs(number) >= 1e4 else f"{number:.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _decimals(number: float, digits: int) -> int:
    if number == 0:
        return 0
    return min(9, max(0, digits - 1 - math.floor(math.log10(abs(number)))))


def byte_unit(number: float) -> str:
    """The unit that ``number`` bytes is read best in: bytes up to 9,999, then KiB and up."""
    size = abs(number)
    if not math.isfinite(size) or size < 9999.5:
        return "B"
    for unit in WRITTEN_BYTES[1:]:
        if size < 999.5 * BYTES[unit]:
            return unit
    return WRITTEN_BYTES[-1]


def bytes_text(number: float, unit: str | None = None) -> str:
    """``1560 B``, ``152 KiB``, ``1.5 GiB``."""
    unit = unit or byte_unit(number)
    return f"{plain(number / BYTES[unit])} {unit}"


def duration_text(seconds: float) -> str:
    """``850 µs``, ``1.2 ms``, ``2.1 s``, ``4.6 h``, ``12 days``."""
    size = abs(seconds)
    if size == 0:
        return "0 s"
    for unit, below in (("µs", 1e-3), ("ms", 1.0), ("s", 120.0), ("min", 7200.0), ("h", 172800.0)):
        if size < below * 0.9995:
            return f"{plain(seconds / SECONDS[unit])} {unit}"
    return f"{plain(seconds / SECONDS['d'])} days"


def large_count(number: float) -> str:
    """``950``, ``16.5 thousand``, ``16.5 million``, ``2 billion``: for counts of steps."""
    for word, size in (("billion", 1e9), ("million", 1e6), ("thousand", 1e4)):
        if number >= size:
            return f"{plain(number / (1e3 if word == 'thousand' else size))} {word}"
    return plain(number)


def growth_text(number: float, unit: str) -> str:
    """A growth in its own unit, signed: ``+1560 B``, ``+0.02 %``, ``-1 thread``, ``0``."""
    sign = "+" if number > 0 else ""
    if unit == "B":
        return f"{sign}{bytes_text(number)}"
    if unit == "s":
        return f"{sign}{duration_text(number)}"
    if unit == "%":
        return f"{sign}{plain(number, 2)} %"
    return f"{sign}{counted(number, unit)}"

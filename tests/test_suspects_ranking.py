"""Which evidence comes first, and which is not shown at all."""

import numpy as np

from leakkit.result import Finding
from leakkit.series import Kind, Quantity, Series
from leakkit.suspects import Suspect
from leakkit.suspects.ranking import rank, total_bytes
from leakkit.trend import Trend, Verdict


def findings(**slopes: float) -> dict[str, Finding]:
    found = {}
    for name, slope in slopes.items():
        verdict = Verdict.GROWS if slope else Verdict.FLAT
        trend = Trend(verdict, slope, slope, slope, slope, 3, "made for a test")
        series = Series(Quantity(name, "B", Kind.EXACT), np.zeros(3))
        found[name] = Finding(series, trend, 0.0, "trace", True)
    return found


def suspect(kind: str, *explains: str, **facts: object) -> Suspect:
    return Suspect(kind, kind, "", 1.0, "items", explains, facts)


def test_what_explains_no_growing_series_is_left_out() -> None:
    found = rank(
        [suspect("file", "files"), suspect("container", "python_heap")],
        findings(python_heap=0.0, files=1.0),
    )
    assert [s.kind for s in found] == ["file"]


def test_explains_is_cut_to_what_grows() -> None:
    held = suspect("container", "python_heap", "device_memory", bytes_per_step=5.0)
    found = rank([held], {**findings(python_heap=0.0), **findings(**{"device_memory:GPU:0": 5.0})})
    assert found[0].explains == ("device_memory:GPU:0",)


def test_a_retrace_comes_before_the_containers_that_it_fills() -> None:
    kinds = ["site", "container", "cache", "retrace"]
    found = rank(
        [suspect(kind, "python_heap", bytes_per_step=900.0) for kind in kinds],
        findings(python_heap=1000.0),
    )
    assert [s.kind for s in found] == ["retrace", "container", "cache", "site"]


def test_a_tiny_container_comes_after_the_line_that_allocates_most() -> None:
    small = suspect("container", "native_heap", bytes_per_step=8.0, opaque=False)
    big = suspect("site", "native_heap", bytes_per_step=9000.0)
    assert [s.kind for s in rank([small, big], findings(native_heap=9000.0))] == [
        "site",
        "container",
    ]


def test_heaps_are_added_and_devices_are_not_added_to_them() -> None:
    both = findings(python_heap=10.0, native_heap=20.0, live_tensor_bytes=20.0)
    assert total_bytes(both) == 30.0
    assert total_bytes(findings(native_heap=0.0, live_tensor_bytes=7.0)) == 7.0

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from leakkit.settings import (
    Settings,
    SettingsError,
    make_settings,
    series_unit,
    setting_names,
    split_limits,
)


def test_the_defaults_are_valid():
    assert make_settings({}) == Settings()


def test_texts_are_read():
    settings = make_settings(
        {
            "steps": "60",
            "max_seconds": "2 min",
            "limits": {"python_heap": "1 KiB/10 steps", "latency": "1 %/100 steps"},
            "probes": "threads, fds",
            "folders": ["logs"],
            "directory": "recordings",
        }
    )
    assert settings.steps == 60
    assert settings.max_seconds == 120
    assert settings.limits == {"python_heap": 102.4, "latency": 0.01}
    assert settings.probes == ("threads", "fds")
    assert settings.folders == (Path("logs"),)
    assert settings.directory == Path("recordings")


def test_none_keeps_the_default():
    assert make_settings({"steps": None, "device": None}) == Settings()


def test_a_longer_first_look_raises_the_cap_and_a_lower_cap_shortens_the_look():
    assert make_settings({"steps": 1000}).max_steps == 1000
    assert make_settings({"max_steps": 50}).steps == 50


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"stepz": 1}, "max_steps"),
        ({"steps": 0}, "1 or more"),
        ({"steps": -5}, "1 or more"),
        ({"steps": 1.5}, "whole number"),
        ({"steps": "many"}, "whole number"),
        ({"steps": True}, "whole number"),
        ({"steps": float("nan")}, "whole number"),
        ({"steps": float("inf")}, "whole number"),
        ({"steps": 10, "max_steps": 5}, "before its first look"),
        ({"warmup": -1}, "0 or more"),
        ({"cadence": 0}, "1 or more"),
        ({"max_seconds": 0}, "more than 0"),
        ({"max_seconds": "x"}, "2 min"),
        ({"heap": "valgrind"}, "auto, memray, tracemalloc, off"),
        ({"native": "yes"}, "True or False"),
        ({"limits": 3}, "mapping"),
        ({"limits": {"python_heep": "0 B"}}, "python_heap"),
        ({"limits": {3: "0 B"}}, "python_heap"),
        ({"limits": {"fds": "1 B"}}, "descriptors"),
        ({"limits": {"latency": "1 ms"}}, "1 %/100 steps"),
        ({"probes": ()}, "names of probes"),
        ({"probes": 3}, "names of probes"),
        ({"device": 3}, "gpu"),
        ({"device": " "}, "gpu"),
        ({"device": "gpuu"}, "none of cpu, gpu, gpu:1, tpu, all"),
        ({"directory": 3}, "path"),
        ({"folders": 3}, "paths"),
    ],
)
def test_what_cannot_be_is_one_line_that_names_what_can(options, says):
    with pytest.raises(SettingsError) as caught:
        make_settings(options)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_setting_is_validated():
    class Nothing:
        pass

    for name in setting_names():
        with pytest.raises(SettingsError, match=name):
            make_settings({name: Nothing()})


def test_limits_are_split_at_the_first_equals_sign_of_each_line():
    assert split_limits(["fds=0", "latency = 1 %/100 steps\nthreads=1 thread"]) == {
        "fds": "0",
        "latency": "1 %/100 steps",
        "threads": "1 thread",
    }
    with pytest.raises(SettingsError, match="SERIES=VALUE"):
        split_limits(["fds"])


def test_families_of_series_have_units():
    assert series_unit("device_memory:GPU:1") == "B"
    assert series_unit("tf_own_bytes") == "B"
    assert make_settings({"limits": {"tf_iterators": "1 iterator/step"}}).limits == {
        "tf_iterators": 1
    }
    with pytest.raises(SettingsError, match="counted"):
        make_settings({"limits": {"tf_iterators": "1 KiB"}})
    assert series_unit("nonsense") is None


def test_the_units_are_those_that_the_probes_read(tmp_path):
    from leakkit.probes.clock import QUANTITIES
    from leakkit.probes.folders import FolderFinder
    from leakkit.probes.garbage import QUANTITY
    from leakkit.probes.registry import make_probes
    from leakkit.series import Kind

    probes, _ = make_probes(None, [], FolderFinder([tmp_path]), tmp_path)
    read = [*QUANTITIES, QUANTITY, *(q for probe in probes for q in probe.quantities)]
    for probe in probes:
        probe.close()
    for quantity in read:
        unit = "%" if quantity.kind is Kind.LATENCY else quantity.unit
        assert series_unit(quantity.name) == unit


def test_importing_leakkit_imports_nothing_heavy():
    """In a fresh process: this one has long imported everything."""
    heavy = ["numpy", "memray", "psutil", "tensorflow", "keras", "jax", "torch", "rich"]
    code = (
        "import sys, json, leakkit, leakkit.settings, leakkit.cli;"
        "dir(leakkit);"
        f"print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_every_public_name_can_be_imported():
    import leakkit

    for name in leakkit.__all__:
        assert getattr(leakkit, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        leakkit.nonsense  # noqa: B018

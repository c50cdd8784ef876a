"""Rules are tried on evidence as the hunt hands it over."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from leakkit.diagnosis import Clue, Evidence, Grows, diagnose
from leakkit.patterns import RULES
from leakkit.result import Finding
from leakkit.series import Kind, Quantity, Series
from leakkit.suspects import Suspect
from leakkit.trend import Trend, Verdict


def finding(name: str, slope: float, unit: str = "B") -> Finding:
    series = Series(Quantity(name, unit, Kind.EXACT), np.arange(3.0))
    verdict = Verdict.GROWS if slope else Verdict.FLAT
    trend = Trend(verdict, slope, slope, slope, slope * 3, 3, "made for a test")
    return Finding(series, trend, 0.0, "trace", True)


def growing(**slopes: float) -> dict[str, Finding]:
    return {name: finding(name, slope) for name, slope in slopes.items()}


def container(**facts: object) -> Suspect:
    plain = {
        "registry": None, "container": "list", "item": "object", "heaviest": "object",
        "holds": ["object"], "parts": 0, "view": False, "has_graph": False, "bound": None,
        "keyed_by_identity": False, "replaced": False, "length": 10, "owner": "user",
        "path_types": [], "bytes_per_step": 1000.0, "opaque": False, "path_kind": "module",
    }  # fmt: skip
    return Suspect("container", "list `x` in module m", "+1", 1.0, "items", (), {**plain, **facts})


def retrace(cause: str, **facts: object) -> Suspect:
    plain = {"framework": "tensorflow", "cause": cause, "xla": False, "inside": []}
    return Suspect("retrace", "f (m.py:1 in f)", cause, 1.0, "traces", (), {**plain, **facts})


def names(suspects: list[Suspect], **slopes: float) -> list[str]:
    return [d.name for d in diagnose(suspects, growing(**slopes))]


TENSOR = {"item": "EagerTensor", "heaviest": "EagerTensor"}


@pytest.mark.parametrize(
    ("suspect", "name"),
    [
        (retrace("python-value"), "graph-retracing"),
        (retrace("shape"), "retrace-new-shape"),
        (retrace("ragged"), "retrace-ragged"),
        (retrace("object"), "retrace-new-object"),
        (retrace("method"), "retrace-bound-method"),
        (retrace("closure"), "retrace-closure"),
        (retrace("new-function"), "function-in-step"),
        (retrace("new-function", xla=True), "xla-recompile"),
        (retrace("shape", inside=["keras"]), "keras-new-shape"),
        (retrace("new-function", inside=["distribute"]), "mirrored-function-retraced"),
        (retrace("new-function", framework="jax"), "jax-jit-lambda"),
        (retrace("shape", framework="jax"), "jax-new-shape"),
        (retrace("shape", framework="torch"), "torch-compile-recompile"),
        (container(**TENSOR), "growing-list-of-tensors"),
        (container(container="deque", **TENSOR), "replay-buffer-unbounded"),
        (container(container="dict", keyed_by_identity=True), "cache-keyed-by-identity"),
        (container(replaced=True, container="EagerTensor"), "concatenated-history"),
        (container(item="ValueError", holds=["traceback", "frame"]), "exception-keeps-frames"),
        (container(item="LogRecord"), "uncapped-logs"),
        (container(item="ndarray", heaviest="ndarray", view=True), "view-pins-base"),
        (container(item="Tensor", heaviest="Tensor", has_graph=True), "torch-loss-with-graph"),
        (container(item="ThreadPoolExecutor"), "executor-not-shut-down"),
        (container(item="TextIOWrapper"), "unclosed-files"),
        (container(container="deque", item="Future", waits=True), "tasks-never-done"),
        (container(item="Task", waits=False), "growing-container"),
        (container(item="Node", heaviest="Node"), "growing-container"),
    ],
)
def test_one_suspect_leads_to_its_pattern_first(suspect: Suspect, name: str) -> None:
    assert names([suspect], native_heap=1000.0, python_heap=500.0)[0] == name


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"registry": "tf_gradient_registry", "holds": ["user's function"]},
         "custom-gradient-registry"),
        ({"registry": "tf_scalar_cache"}, "eager-scalar-cache"),
        ({"registry": "tf_kernel_cache"}, "eager-kernel-cache"),
        ({"registry": "matplotlib_figures"}, "figures-not-closed"),
        ({"registry": "logging_handlers"}, "handlers-pile-up"),
        ({"registry": "torch_hooks"}, "hooks-pile-up"),
        ({"registry": "tf_py_function_registry"}, "py-function-per-step"),
    ],
)  # fmt: skip
def test_a_library_registry_names_its_cause(facts: dict[str, object], name: str) -> None:
    suspect = Suspect(
        "cache", "a registry", "+1", 1.0, "items", (), {"bytes_per_step": 900, **facts}
    )
    assert names([suspect], native_heap=1000.0)[0] == name


@pytest.mark.parametrize(
    ("folder", "name"), [("/data", "unclosed-files"), ("/dev/shm", "growing-list-of-tensors")]
)
def test_shared_memory_of_a_kept_tensor_is_no_unclosed_file(folder: str, name: str) -> None:
    facts = {"deleted": True, "pattern": f"{folder}/N (deleted, inode N)", "files_per_step": 1.0}
    deleted = Suspect("file", "file N", "", 100.0, "B", (), facts)
    assert names([container(**TENSOR), deleted], python_heap=10_000.0)[0] == name


def test_the_kernel_cache_is_blamed_on_what_fills_it() -> None:
    cache = Suspect(
        "cache", "kernels", "", 1.0, "B", (), {"registry": "tf_kernel_cache", "bytes_per_step": 900}
    )
    made = Suspect("object", "m.py:1 in f", "", 0.0, "objects", (), {"made": "tf-variable"})
    assert names([cache, made], native_heap=1000.0) == ["variable-in-loop"]


def test_a_dataset_that_keras_makes_is_not_the_users() -> None:
    def made(*inside: str) -> Suspect:
        facts = {"made": "tf-dataset", "inside": list(inside)}
        return Suspect("object", "m.py:1 in f", "", 0.0, "objects", (), facts)

    assert names([made()], native_heap=100.0) == ["dataset-rebuilt-each-step"]
    assert "dataset-rebuilt-each-step" not in names([made("keras")], native_heap=100.0)


def test_nothing_known_is_said_to_be_unknown() -> None:
    found = diagnose([], growing(python_heap=10.0))
    assert [(d.name, d.confidence) for d in found] == [("unknown", "low")]


def test_what_explains_more_comes_first() -> None:
    big = container(item="LogRecord", bytes_per_step=900.0)
    small = container(container="dict", keyed_by_identity=False, item="str", bytes_per_step=100.0)
    found = diagnose([small, big], growing(python_heap=1000.0))
    assert found[0].because == "list `x` in module m: +1"
    assert [round(d.explains, 1) for d in found] == sorted(
        (round(d.explains, 1) for d in found), reverse=True
    )


def test_graphs_that_pile_up_out_of_sight_are_the_pattern_of_a_loss_kept_with_its_graph() -> None:
    found = names([], native_heap=1000.0, torch_autograd_graphs=1.0)
    assert found[0] == "torch-loss-with-graph"
    assert "torch-loss-with-graph" not in names([], native_heap=1000.0, torch_autograd_graphs=0.0)


def test_native_memory_is_not_said_to_be_held_by_nothing_where_tensors_multiply() -> None:
    tensors = Suspect("object", "Tensor objects", "+2", 2.0, "objects", (), {"type": "Tensor"})
    assert names([], native_heap=1000.0) == ["native-allocation"]
    assert names([tensors], native_heap=1000.0) == ["unknown"]


def test_a_negligible_suspect_is_no_diagnosis() -> None:
    tiny = container(item="str", bytes_per_step=1.0)
    assert names([tiny], python_heap=100_000.0) == ["unknown"]


def test_growth_of_tensors_on_a_device_counts_as_bytes() -> None:
    history = container(replaced=True, container="EagerTensor", bytes_per_step=1000.0)
    findings = {"device_memory:GPU:0": finding("device_memory:GPU:0", 1000.0)}
    assert [d.name for d in diagnose([history], findings)] == ["concatenated-history"]
    assert Evidence([], findings).bytes_per_step == 1000.0


def test_the_generic_rule_yields_to_a_specific_one() -> None:
    assert names([container(item="LogRecord")], python_heap=1000.0) == ["uncapped-logs"]


@pytest.mark.parametrize(
    ("function", "held", "name"),
    [
        ("built-in method builtins.sorted", [container()], "sorting-history"),
        ("built-in method posix.stat", [], "file-per-step-listing"),
        ("method 'insert' of 'list' objects", [container()], "list-shifted"),
        ("method 'pop' of 'list' objects", [container()], "list-shifted"),
    ],
)
def test_what_takes_the_time_names_the_pattern(
    function: str, held: list[Suspect], name: str
) -> None:
    slower = Suspect("time", function, "", 1.0, "s", (), {"function": function})
    assert names([*held, slower], python_heap=1000.0, latency=0.4)[0] == name


def test_those_who_wait_for_an_event_are_no_replay_buffer() -> None:
    waiters = {"container": "deque", "item": "Future", "waits": True}
    of_a_queue = container(**waiters, path_types=["asyncio.queues.Queue"])
    assert names([of_a_queue], python_heap=1000.0) == ["tasks-never-done"]
    both = [container(**waiters), container(container="deque", item="tuple")]
    assert set(names(both, python_heap=1000.0)) == {"tasks-never-done", "replay-buffer-unbounded"}


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ({"constant_op.convert_to_eager_tensor": 900.0}, "Pass NumPy scalars"),
        ({"early_stopping.on_epoch_end": 900.0}, "Nothing in the step is wrong"),
    ],
)
def test_numbers_that_a_keras_callback_converts_are_not_the_users(
    calls: dict[str, float], told: str
) -> None:
    cache = Suspect("cache", "scalars", "", 1.0, "B", (),
                    {"registry": "tf_scalar_cache", "bytes_per_step": 900})  # fmt: skip
    site = Suspect("site", "m.py:1", "", 900.0, "B", (), {"calls": calls})
    [found] = diagnose([cache, site], growing(native_heap=1000.0))
    assert found.name == "eager-scalar-cache"
    assert found.remedy.startswith(told)


LIBRARYS = {
    "registry": None, "owner": "library", "path_kind": "module", "replaced": False,
    "bytes_per_step": 900.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "others", "expected"),
    [
        ({}, [], ["library-registry"]),
        ({"registry": "sys_modules", "owner": "stdlib"}, [], ["library-registry"]),
        ({"registry": "threads", "owner": "stdlib"}, [], ["unknown"]),
        ({"path_kind": "local"}, [], ["unknown"]),
        ({}, [retrace("shape")], ["retrace-new-shape"]),
    ],
)
def test_a_librarys_registry_that_no_rule_knows(
    facts: dict[str, object], others: list[Suspect], expected: list[str]
) -> None:
    table = Suspect("cache", "dict `table` in module lib", "+1", 1.0, "items", (),
                    {**LIBRARYS, **facts})  # fmt: skip
    assert names([table, *others], python_heap=1000.0) == expected


def test_items_that_are_moved_are_no_scan() -> None:
    function = "method 'insert' of 'list' objects"
    slower = Suspect("time", function, "", 1.0, "s", (), {"function": function})
    assert "growing-scan" in names([container()], latency=0.4)
    found = diagnose([container(), slower], growing(latency=0.4))
    assert "growing-scan" not in [d.name for d in found]
    assert "popleft()" in found[0].remedy


def test_a_clue_matches_lists_values_and_tests() -> None:
    evidence = Evidence([container(parts=4, holds=["a", "b"])], {})
    assert Clue(("container",), {"holds": ("b",)}).find(evidence)
    assert Clue((), {"parts": lambda n: n > 3}).find(evidence)
    assert not Clue((), {"parts": (1, 2)}).find(evidence)
    assert not Clue((), {"missing": lambda n: n > 3}).find(evidence)  # None > 3 is no answer
    assert not Clue(("site",)).find(evidence)


def test_a_site_clue_asks_for_the_function_that_allocated() -> None:
    site = Suspect("site", "m.py:1", "", 5.0, "B", (), {"calls": {"gen_lookup_ops.hash": 5.0}})
    evidence = Evidence([site], {})
    assert Clue(("site",), calls=("gen_lookup_ops.*",)).find(evidence)
    assert Clue(("site",), calls=("*.hash",)).find(evidence)
    assert not Clue(("site",), calls=("lookup_ops.*",)).find(evidence)


def test_a_series_that_is_flat_is_no_clue() -> None:
    findings = growing(latency=0.0, threads=1.0)
    assert not Grows(("latency",)).find(Evidence([], findings))
    assert Grows(("latency", "threads")).find(Evidence([], findings))


def test_every_rule_has_a_kebab_name_a_remedy_and_a_known_confidence() -> None:
    for rule in RULES:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
        assert len(rule.remedy) > 10 and rule.remedy.endswith(".")
        assert rule.confidence in ("high", "medium", "low")


def test_every_scenario_that_a_rule_names_exists() -> None:
    scenarios = pytest.importorskip("leakkit.scenarios")
    known = set(scenarios.names())
    missing = sorted({rule.name for rule in RULES if rule.scenario} - known)
    assert missing == []


def test_every_diagnosis_that_a_scenario_promises_has_a_rule() -> None:
    scenarios = pytest.importorskip("leakkit.scenarios")
    promised = {scenarios.get(name).diagnosis for name in scenarios.names()} - {""}
    assert sorted(promised - {rule.name for rule in RULES}) == []


def test_hostile_facts_do_not_raise() -> None:
    odd = Suspect("container", "", "", 0.0, "", (), {"parts": SimpleNamespace(), "holds": 3})
    assert diagnose([odd], growing(python_heap=1.0))

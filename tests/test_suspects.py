"""The hunt finds what grows, and names it as a person would."""

import collections
import dataclasses
import functools
import gc
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from leakkit.diagnosis import diagnose
from leakkit.suspects import Suspect, files, items, paths, processes
from leakkit.suspects.hunt import Hunt
from leakkit.suspects.registries import registry
from leakkit.suspects.times import Profile, Times

Step = Callable[[int], object]
HISTORY: list[float] = []


def hunt(step: Step, steps: int = 16) -> list[Suspect]:
    for i in range(3):
        step(i)
    found = Hunt()
    found.begin()
    try:
        for i in range(steps):
            step(3 + i)
            found.boundary()
    finally:
        found.end()
    return found.suspects({}, [], 10.0)


def first(suspects: list[Suspect], *kinds: str) -> Suspect:
    return next(s for s in suspects if s.kind in kinds)


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    assert gc.get_freeze_count() == 0


def test_a_module_global_is_named_with_its_module() -> None:
    found = first(hunt(lambda i: HISTORY.append(float(i))), "container")
    assert found.where == f"list `HISTORY` in module {__name__}"
    assert found.slope == 1.0
    assert found.what.startswith("+1 float a step")


def test_a_closure_variable_is_named_with_its_function() -> None:
    def make_step() -> Step:
        kept: dict[int, bytes] = {}

        def step(i: int) -> None:
            kept[i] = bytes(1000)

        return step

    found = first(hunt(make_step()), "container")
    assert found.where.startswith("dict `kept` closure variable of ")
    assert found.where.endswith("make_step")
    assert found.facts["bytes_per_step"] == pytest.approx(1000, rel=0.2)


class Trainer:
    shared: list[object] = []  # noqa: RUF012 - a class attribute that fills is the point

    def __init__(self) -> None:
        self.buffer: collections.deque[bytes] = collections.deque()
        self.total = np.zeros(0)

    @functools.cache  # noqa: B019 - the leak under test
    def score(self, i: int) -> bytes:
        return bytes(i)


def test_an_attribute_is_named_through_its_object() -> None:
    trainer = Trainer()
    found = first(hunt(lambda i: trainer.buffer.append(bytes(i))), "container")
    assert found.where.startswith("deque `trainer.buffer` ")
    assert found.facts["bound"] is None


def test_a_class_attribute_is_named_with_its_class() -> None:
    found = first(hunt(lambda i: Trainer.shared.append(object())), "container")
    assert found.where.startswith("list `Trainer.shared` (class attribute")
    Trainer.shared.clear()


def test_a_default_argument_is_named_with_its_function() -> None:
    def step(i: int, seen: list[int] = []) -> None:  # noqa: B006 - the leak under test
        seen.append(i)

    found = first(hunt(step), "container")
    assert "`seen` default argument of" in found.where


def test_a_local_of_a_running_frame_is_named() -> None:
    history: list[str] = []
    found = Hunt()
    found.begin()
    for i in range(12):
        history.append(str(i) * 40)
        found.boundary()
    found.end()
    suspect = first(found.suspects({}, [], 10.0), "container")
    assert "list `history` (local of running" in suspect.where


def test_an_lru_cache_is_named_with_its_function_and_its_bound() -> None:
    trainer = Trainer()
    [found] = [s for s in hunt(lambda i: trainer.score(i)) if s.kind == "cache"]
    assert found.where == "lru_cache of `Trainer.score`"
    assert (found.facts["on_method"], found.facts["bound"]) == (True, None)
    Trainer.score.cache_clear()


@functools.lru_cache(maxsize=5000)
def square(number: int) -> int:
    return number * number


def test_a_cache_of_plain_values_is_named_with_its_bound() -> None:
    """The collector does not list its table."""
    [found] = [s for s in hunt(lambda i: square(i)) if s.kind == "cache"]
    assert found.where == "lru_cache of `square`"
    assert (found.facts["bound"], found.facts["path_kind"]) == (5000, "lru_cache")
    square.cache_clear()


def test_a_visible_bound_and_the_length_are_facts() -> None:
    ring: collections.deque[int] = collections.deque(maxlen=10_000)
    found = first(hunt(lambda i: ring.extend(range(5))), "container")
    assert (found.facts["bound"], found.facts["length"]) == (10_000, 95)


def test_a_value_that_is_replaced_by_a_bigger_one() -> None:
    trainer = Trainer()

    def step(i: int) -> None:
        trainer.total = np.concatenate([trainer.total, np.ones(100)])

    found = first(hunt(step), "container")
    assert found.where.startswith("ndarray `trainer.total` ")
    assert (found.slope, found.unit) == (800.0, "B")


class Plain:
    """Its attributes are plain values: the collector tracks no dict of it."""

    def __init__(self) -> None:
        self.total = np.zeros(0)
        self.text = ""
        self.count = 0


class PlainSlots:
    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = np.zeros(0)


@pytest.mark.parametrize("kind", [Plain, PlainSlots])
def test_an_attribute_among_plain_values_is_named(kind: type[Plain] | type[PlainSlots]) -> None:
    owner = kind()

    def step(i: int) -> None:
        owner.total = np.concatenate([owner.total, np.ones(100)])

    [found] = [s for s in hunt(step) if s.kind == "container"]
    assert found.where.startswith("ndarray `owner.total` ")
    assert diagnose([found], {})[0].name == "concatenated-history"


def test_text_that_grows_in_an_attribute_is_named() -> None:
    log = Plain()

    def step(i: int) -> None:
        log.text += "a line of the log " * 20

    [found] = [s for s in hunt(step) if s.kind == "container"]
    assert found.where.startswith("str `log.text` ")
    assert diagnose([found], {})[0].name == "uncapped-logs"


def test_kept_exceptions_show_their_frames_and_lead_to_the_pattern() -> None:
    errors: list[Exception] = []

    def step(i: int) -> None:
        big = np.ones(2000)
        try:
            raise ValueError(big.size)
        except ValueError as error:
            errors.append(error)

    found = hunt(step)
    assert "traceback" in first(found, "container").facts["holds"]
    assert first(found, "container").facts["bytes_per_step"] > 16_000
    tree = next(s for s in found if s.kind == "object" and s.facts["type"] == "traceback")
    assert "__traceback__" in tree.where
    assert diagnose(found, {})[0].name == "exception-keeps-frames"


def test_threads_that_pile_up_are_counted_by_name() -> None:
    pools: list[ThreadPoolExecutor] = []

    def step(i: int) -> None:
        pools.append(ThreadPoolExecutor(1))
        pools[-1].submit(int).result()

    found = hunt(step, 10)
    thread = first(found, "thread")
    assert thread.facts["name"].startswith("ThreadPoolExecutor-N_N")
    assert thread.slope == pytest.approx(1.0)
    for pool in pools:
        pool.shutdown()


def test_files_that_pile_up_are_found_in_the_folders_written_to(tmp_path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "run"
    folder.mkdir()

    def step(i: int) -> None:
        (folder / f"step-{i}.ckpt").write_bytes(bytes(100))

    found = Hunt((), (folder,))
    found.begin()
    for i in range(12):
        step(i)
        found.boundary()
    found.end()
    suspect = first(found.suspects({}, [], 10.0), "file")
    assert (suspect.facts["files_per_step"], suspect.facts["file_bytes_per_step"]) == (1.0, 100.0)
    assert suspect.facts["name"] == "step-N.ckpt"


def test_a_file_that_comes_rarely_is_a_new_file_all_the_same() -> None:
    names = {step: {f"/r/{i}.npz": 100 for i in range(step // 50)} for step in (0, 2, 64, 120)}
    found = files.suspects(files.Folders(list(names), list(names.values())))
    assert [s.where for s in found] == ["files like 1.npz in r/"]
    assert found[0].facts["in_new_files"]
    assert diagnose(found, {})[0].name == "files-kept"


def test_a_log_with_a_new_part_now_and_then_is_a_file_that_grows() -> None:
    parts = [{f"/r/{i}.log": 10 for i in range(1, 1 + step // 8)} for step in (0, 8, 16)]
    looks = [{"/r/0.log": 1000 * i, **part} for i, part in enumerate(parts)]
    found = files.suspects(files.Folders([0, 8, 16], looks))
    assert [s.facts["in_new_files"] for s in found] == [False]
    assert diagnose(found, {})[0].name == "log-file-unrotated"


def looks_at(*children: tuple[int, int]) -> list[processes.Snapshot]:
    return [processes.Snapshot(step, {}, {}, {"work": n} if n else {}, {}) for step, n in children]


@pytest.mark.parametrize(
    "children", [[(0, 0), (2, 0), (64, 6), (120, 12)], [(0, 3), (2, 4), (4, 5)]]
)
def test_children_that_are_left_rarely_are_named(children: list[tuple[int, int]]) -> None:
    (found,) = processes.suspects(looks_at(*children))
    gained = children[-1][1] - children[0][1]
    assert (found.where, found.slope) == ("child processes work", gained / children[-1][0])
    assert diagnose([found], {})[0].name == "worker-processes-left"


@pytest.mark.parametrize(
    "children", [[(0, 0), (64, 4), (120, 4)], [(0, 0), (64, 0), (120, 9)], [(0, 0), (120, 9)]]
)
def test_children_that_came_in_one_half_only_are_no_suspects(
    children: list[tuple[int, int]],
) -> None:
    assert processes.suspects(looks_at(*children)) == []


def test_a_child_left_by_every_fourth_step_is_found() -> None:
    left: list[subprocess.Popen[bytes]] = []

    def step(i: int) -> None:
        if i % 4 == 0:
            left.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

    found = first(hunt(step, 16), "child")
    for child in left:
        child.communicate()
    assert found.slope == pytest.approx(0.25)


def hunt_in(folder: Path, step: Step, steps: int = 12) -> list[Suspect]:
    found = Hunt((), (folder,))
    found.begin()
    for i in range(steps):
        step(i)
        found.boundary()
    found.end()
    return [s for s in found.suspects({}, [], 10.0) if s.kind == "file"]


@pytest.mark.parametrize(
    ("prefix", "suffix", "name"),
    [
        (None, ".part", "tmp*.part"),
        ("shard", "-out.pt", "shard*-out.pt"),
        ("run_7-", None, "run_N-*"),
    ],
)
def test_a_temporary_file_is_shown_without_its_random_part(
    tmp_path: Path, prefix: str | None, suffix: str | None, name: str
) -> None:
    def step(i: int) -> None:
        number, _ = tempfile.mkstemp(suffix, prefix, tmp_path)
        os.close(number)

    found = hunt_in(tmp_path, step)
    assert [s.where for s in found] == [
        f"files like {name} in {Path(found[0].facts['pattern']).parent.name}/"
    ]
    assert (found[0].facts["name"], found[0].facts["files_per_step"]) == (name, 1.0)
    assert diagnose(found, {})[0].name == "temp-files-kept"


def test_a_file_in_a_new_temporary_folder_is_temporary(tmp_path: Path) -> None:
    def step(i: int) -> None:
        Path(tempfile.mkdtemp("-fold", "cv", tmp_path), "model.keras").write_bytes(bytes(10))

    found = hunt_in(tmp_path, step)
    assert [s.where for s in found] == ["files like model.keras in cv*-fold/"]
    assert diagnose(found, {})[0].name == "temp-files-kept"


def test_a_name_of_eight_letters_and_digits_is_not_temporary(tmp_path: Path) -> None:
    found = hunt_in(tmp_path, lambda i: (tmp_path / f"epoch_{i + 10}.ckpt").write_bytes(b"1"))
    assert [s.facts["temporary"] for s in found] == [False]
    assert diagnose(found, {})[0].name == "checkpoints-never-pruned"


@pytest.mark.parametrize("name", ["{}.ckpt", "always.ckpt"])
def test_files_that_are_deleted_but_not_closed_are_counted(tmp_path: Path, name: str) -> None:
    kept: list[io.FileIO] = []

    def step(i: int) -> None:
        path = tmp_path / name.format(i)
        kept.append(path.open("wb", buffering=0))
        kept[-1].write(bytes(100))
        path.unlink()

    found = hunt_in(tmp_path, step)
    for file in kept:
        file.close()
    (suspect,) = [s for s in found if s.facts["deleted"]]
    assert suspect.facts["name"] == name.format("N") + " (deleted, inode N)"
    assert (suspect.facts["files_per_step"], suspect.slope) == (1.0, 100.0)
    assert [d.name for d in diagnose(found, {})] == ["unclosed-files"]


def test_the_names_of_tempfile_are_left_as_they_were() -> None:
    before = type(tempfile._get_candidate_names()).__next__  # type: ignore[attr-defined]
    hunt(lambda i: None, 4)
    assert type(tempfile._get_candidate_names()).__next__ is before  # type: ignore[attr-defined]


def test_files_that_take_the_place_of_others_are_no_pile() -> None:
    looks = [{f"/r/{step}.npz": 100} for step in (0, 8, 16)]
    assert files.suspects(files.Folders([0, 8, 16], looks)) == []


def test_a_function_that_takes_ever_longer_is_named() -> None:
    numbers: list[int] = []

    def step(i: int) -> int:
        numbers.extend(range(20_000, 0, -1))
        return sorted(numbers)[0]

    times = [s for s in hunt(step, 20) if s.kind == "time"]
    assert any("sorted" in s.facts["function"] for s in times)


def test_an_interrupted_step_does_not_hide_the_function_that_takes_longer() -> None:
    key = ("train.py", 3, "scan")
    times = Times()
    milliseconds = {2: 1.0, 3: 9.0, 4: 1.0, 66: 2.0, 67: 2.0, 68: 7.0}  # 3 and 68 were interrupted
    times.profiles = [Profile(step, {key: ms / 1e3}) for step, ms in milliseconds.items()]
    [suspect] = times.suspects()
    assert suspect.what == "1 ms of step 3, 2 ms of step 67"
    times.profiles.reverse()
    assert times.suspects() == []


def test_a_step_that_keeps_nothing_has_no_containers_or_objects() -> None:
    def step(i: int) -> float:
        return float(np.ones(100).sum()) + len([object() for _ in range(i)])

    found = hunt(step, 24)
    assert [s for s in found if s.kind in ("container", "cache", "object", "thread", "file")] == []


def test_a_container_that_stops_growing_is_not_named() -> None:
    seen: dict[int, int] = {}
    found = hunt(lambda i: seen.setdefault(min(i, 6), i), 32)
    assert [s for s in found if s.kind == "container"] == []


@dataclasses.dataclass
class Record:
    loss: object


class Tensor:
    """As PyTorch's: what was computed says by what."""

    def __init__(self, grad_fn: object) -> None:
        self.grad_fn = grad_fn


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: (1, t), lambda t: {"loss": t}, Record])
def test_a_graph_is_seen_in_a_tensor_a_tuple_a_dict_and_a_record(
    wrap: Callable[[Tensor], object],
) -> None:
    assert items.has_graph([(wrap(Tensor(object())),)])
    assert not items.has_graph([(wrap(Tensor(None)),)])
    assert not items.has_graph([])


@pytest.mark.parametrize(
    ("name", "kind", "known"),
    [
        ('model._modules["0"]._forward_hooks', "torch.nn.modules.module.Module", "torch_hooks"),
        ("weight.<OrderedDict>", "torch.Tensor", "torch_hooks"),
        ("model._forward_hooks[0].kept", "torch.nn.modules.module.Module", None),
    ],
)
def test_the_hooks_of_a_module_are_a_registry_and_what_a_hook_keeps_is_not(
    name: str, kind: str, known: str | None
) -> None:
    found = registry(paths.Path(name, "", "module", bases=frozenset({kind})))
    assert (found.name if found else None) == known


def test_tasks_that_wait_for_ever_are_told_from_those_that_are_done() -> None:
    waiting = [(Future(),) for _ in range(items.SAMPLE)]
    done: Future[int] = Future()
    done.set_result(1)
    assert items.waits(waiting)
    assert not items.waits([*waiting, (done,)])
    assert not items.waits([])


class Hostile:
    """Answers no question that anybody asks of it."""

    def __len__(self) -> int:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError


class HostileList(list[object]):
    def __len__(self) -> int:
        raise RuntimeError

    def __iter__(self) -> Iterator[object]:
        raise RuntimeError

    def __getitem__(self, key: object) -> object:
        raise RuntimeError

    def __reversed__(self) -> Iterator[object]:
        raise RuntimeError


class Slotted:
    __slots__ = ("items", "never_set")

    def __init__(self) -> None:
        self.items: list[object] = []


class NoDict:
    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise RuntimeError


def test_hostile_objects_do_not_break_the_hunt() -> None:
    target = Trainer()
    mixed = HostileList()
    slotted = Slotted()
    half_built = [Trainer.__new__(Trainer)]

    def step(i: int) -> None:
        list.append(mixed, Hostile())
        slotted.items.append(NoDict())
        slotted.items.append(weakref.proxy(target))
        half_built.append(Trainer.__new__(Trainer))

    found = hunt(step)
    named = " ".join(s.where for s in found)
    assert "`mixed`" in named
    assert "`slotted.items`" in named
    assert "`half_built`" in named


def test_the_budget_is_kept_and_what_was_skipped_is_said() -> None:
    kept: list[object] = []
    found = Hunt()
    found.begin()
    for i in range(10):
        kept.append([i])
        found.boundary()
    found.end()
    began = time.monotonic()
    suspects = found.suspects({}, [], 0.0)
    assert time.monotonic() - began < 5.0
    assert all(s.kind != "container" for s in suspects)
    assert found.notes


def hunt_notes(step: Step, seconds: float) -> list[str]:
    found = Hunt()
    found.begin()
    for i in range(20):
        step(i)
        found.boundary()
    found.end()
    found.suspects({}, [], seconds)
    return found.notes


def test_what_the_hunt_itself_holds_is_no_growing_thing() -> None:
    kept: list[float] = []
    assert hunt_notes(lambda i: kept.append(float(i)), 10.0) == []


def test_one_thing_without_a_name_is_one_thing() -> None:
    kept: list[float] = []
    [note] = hunt_notes(lambda i: kept.append(float(i)), 0.0)
    assert note.startswith("1 growing thing has no name")


def test_end_is_safe_without_steps_and_twice() -> None:
    found = Hunt()
    found.begin()
    found.end()
    found.end()
    assert [s for s in found.suspects({}, [], 1.0) if s.kind != "object"] == []


def test_what_the_hunt_wraps_is_put_back() -> None:
    before = (ThreadPoolExecutor.__init__, threading.Thread.start)
    found = Hunt()
    found.begin()
    assert ThreadPoolExecutor.__init__ is not before[0]
    found.end()
    assert (ThreadPoolExecutor.__init__, threading.Thread.start) == before


def test_pools_made_in_the_step_are_evidence_with_their_line() -> None:
    def step(i: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int).result()

    made = [s for s in hunt(step, 8) if s.facts.get("made") == "executor"]
    assert len(made) == 1
    assert "test_suspects.py" in made[0].facts["line"]

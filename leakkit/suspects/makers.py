"""Things that a step makes anew each time: models, variables, datasets, pools, writers."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leakkit.suspects import Suspect
from leakkit.suspects.places import frame_place, library_parts, user_frame

_Place = tuple[str, tuple[str, ...]]  # the user's line, and the parts of libraries below it


@dataclass(frozen=True)
class Maker:
    """A method whose calls are counted.

    Args:
        name: what diagnosis rules call what it makes.
        words: what a report calls it.
        module: where its class is; only looked at where that is imported already.
        owner: the class.
        method: the method.
    """

    name: str
    words: str
    module: str
    owner: str
    method: str = "__init__"


_KERAS, _TF = "keras.src", "tensorflow.python"
MAKERS: tuple[Maker, ...] = (
    Maker("keras-model", "Keras model", f"{_KERAS}.models.model", "Model"),
    Maker("keras-layer", "Keras layer", f"{_KERAS}.layers.layer", "Layer"),
    Maker(
        "keras-optimizer", "Keras optimizer", f"{_KERAS}.optimizers.base_optimizer", "BaseOptimizer"
    ),
    Maker("keras-metric", "Keras metric", f"{_KERAS}.metrics.metric", "Metric"),
    Maker("keras-compile", "call of compile()", f"{_KERAS}.trainers.trainer", "Trainer", "compile"),
    Maker(
        "keras-tensorboard",
        "TensorBoard callback",
        f"{_KERAS}.callbacks.tensorboard",
        "TensorBoard",
    ),
    Maker("tf-variable", "tf.Variable", f"{_TF}.ops.resource_variable_ops", "ResourceVariable"),
    Maker("tf-dataset", "tf.data dataset", f"{_TF}.data.ops.dataset_ops", "DatasetV2"),
    Maker("tf-iterator", "tf.data iterator", f"{_TF}.data.ops.iterator_ops", "OwnedIterator"),
    Maker("tf-skip", "dataset with skip()", f"{_TF}.data.ops.skip_op", "_SkipDataset"),
    Maker(
        "tf-generator",
        "from_generator dataset",
        f"{_TF}.data.ops.from_generator_op",
        "_GeneratorDataset",
    ),
    Maker("tf-py-function", "py_function callable", f"{_TF}.ops.script_ops", "EagerFunc"),
    Maker("tf-lookup-table", "lookup table", f"{_TF}.ops.lookup_ops", "LookupInterface"),
    Maker("tf-session", "TensorFlow session", f"{_TF}.client.session", "BaseSession"),
    Maker(
        "tf-strategy", "distribution strategy", f"{_TF}.distribute.distribute_lib", "StrategyBase"
    ),
    Maker(
        "tf-strategy-run",
        "call of strategy.run",
        f"{_TF}.distribute.distribute_lib",
        "StrategyBase",
        "run",
    ),
    Maker(
        "tf-distributed-dataset",
        "distributed dataset",
        f"{_TF}.distribute.input_lib",
        "DistributedDataset",
    ),
    Maker(
        "tf-summary-writer", "summary writer", f"{_TF}.ops.summary_ops_v2", "_ResourceSummaryWriter"
    ),
    Maker("tf-profile", "profile", f"{_TF}.profiler.profiler_v2", "", "stop"),
    Maker("executor", "thread pool", "concurrent.futures.thread", "ThreadPoolExecutor"),
    Maker("process", "child process", "multiprocessing.process", "BaseProcess", "start"),
    Maker("subprocess", "child process", "subprocess", "Popen"),
    Maker("log-handler", "logging handler", "logging", "Handler"),
    Maker("figure", "figure", "matplotlib.figure", "Figure"),
    Maker("torch-optimizer", "PyTorch optimizer", "torch.optim.optimizer", "Optimizer"),
    Maker("torch-writer", "summary writer", "torch.utils.tensorboard.writer", "SummaryWriter"),
)


class Makers:
    """Counts calls between ``start`` and ``stop``, with the user's line that made them."""

    def __init__(self) -> None:
        self._counts: dict[Maker, collections.Counter[_Place]] = {}
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        """Wrap every maker whose module is imported."""
        for maker in MAKERS:
            with contextlib.suppress(Exception):  # a private name moved: go without
                self._wrap(maker)

    def stop(self) -> None:
        """Put every method back."""
        while self._undo:
            self._undo.pop()()

    def suspects(self, steps: int) -> list[Suspect]:
        """What was made in most steps; evidence for a pattern, not a holder of memory."""
        found = []
        for maker, lines in self._counts.items():
            made = sum(lines.values())
            if made >= max(2, 0.5 * steps):
                (where, inside) = lines.most_common(1)[0][0]
                found.append(_suspect(maker, where, inside, made / max(1, steps)))
        return found

    def _wrap(self, maker: Maker) -> None:
        module = sys.modules.get(maker.module)
        owner: Any = getattr(module, maker.owner) if maker.owner else module
        if owner is None:
            return
        original = vars(owner)[maker.method]
        counts = self._counts[maker] = collections.Counter()
        setattr(owner, maker.method, _counted(original, counts))
        self._undo.append(lambda: setattr(owner, maker.method, original))


def _counted(
    original: Callable[..., Any], counts: collections.Counter[_Place]
) -> Callable[..., Any]:
    @functools.wraps(original)
    def counted(*args: Any, **kwargs: Any) -> Any:
        counts[_place()] += 1
        return original(*args, **kwargs)

    with contextlib.suppress(ValueError):  # Keras reads the parameters of a layer's __init__
        counted.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    return counted


def _place() -> _Place:
    """The user's line that asked, and the libraries in between."""
    frame = sys._getframe(2)
    caller = user_frame(frame)
    return frame_place(caller), library_parts(frame, caller)


def _suspect(maker: Maker, where: str, inside: tuple[str, ...], rate: float) -> Suspect:
    what = (
        f"a new {maker.words} in every step"
        if rate <= 1.5
        else (f"{rate:,.3g} new {maker.words}s in every step")
    )
    if maker.method not in ("__init__", "start"):
        what = f"{rate:,.3g} {maker.words} in every step"
    facts = {"made": maker.name, "per_step": rate, "line": where, "inside": list(inside)}
    return Suspect("object", where or "in library code", what, 0.0, "objects", (), facts)

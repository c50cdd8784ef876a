"""What TensorFlow itself keeps, for each tf.data object that came and went.

Found with native stacks in TensorFlow 2.21 (`docs/devices.md` has the measurements):

- an eager iterator that runs to its end leaves the rendezvous that its last error aborted:
  208 + 96 + 88 + 80 + 48 bytes. One that is dropped before its end leaves none of these.
- every iterator names two cells of tf.data's monitoring after its model's address, and they
  are never removed: 104 + 80 + 32 + 24 bytes, unless the address has been used before.
- a graph that loops over a dataset does the same for each loop that it runs, and leaves two
  publishers as below.
- every dataset operation leaves an empty statistics publisher: 8 bytes.
- every map function that tf.data traces leaves its name, in the Python heap.

malloc adds to each block, so the process' in-use bytes rise by more than the bytes asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from leakkit.frameworks import OwnGrowth
from leakkit.frameworks.counted import CallCounter
from leakkit.probes import Kind, Probe, Quantity, Unavailable

if TYPE_CHECKING:
    from leakkit.series import Series

ASKED = Quantity("tf_own_bytes", "B", Kind.EXACT, advisory=True)
TAKEN = Quantity("tf_own_heap_bytes", "B", Kind.EXACT, advisory=True)
PYTHON = Quantity("tf_own_python_bytes", "B", Kind.EXACT, advisory=True)

_ENDED = (208, 96, 88, 80, 48)
_MADE = (104, 80, 32, 24)
_LOOP = (*_MADE, 8, 8)
_DATASET = (8,)
_LOOPS = ("ReduceDataset", "DatasetToSingleElement", "MakeIterator")
_DATA = "tensorflow.python.data.ops"
_FUNCTION_MODULE = "tensorflow.python.eager.polymorphic_function.atomic_function"
_NEXT = "_next_internal"

# Beside the graph's name: a bytes object, "__inference_", "_", and a number of up to 7 digits.
NAME_BESIDE = 33 + 12 + 1 + 7


class _Graphs(Protocol):
    data_name_bytes: int


class OwnBytes(Probe):
    """Bytes that TensorFlow has kept for itself since the probe was made; an upper bound.

    ``tf_own_bytes`` are the native bytes asked of malloc, as the trace pass counts them,
    ``tf_own_heap_bytes`` what glibc takes for them, as the watch pass reads it, and
    ``tf_own_python_bytes`` those in the Python heap.

    Raises:
        Unavailable: this TensorFlow has its iterators elsewhere.
    """

    quantities = (ASKED, TAKEN, PYTHON)
    traced = True

    def __init__(self, graphs: _Graphs) -> None:
        iterator = _find(f"{_DATA}.iterator_ops", "OwnedIterator", "_create_iterator", _NEXT)
        dataset = _find(f"{_DATA}.dataset_ops", "DatasetV2", "__init__", "reduce")
        function = _find(_FUNCTION_MODULE, "AtomicFunction", "call_flat", "graph")
        self._graphs, self._names_before = graphs, graphs.data_name_bytes
        end = sys.modules["tensorflow"].errors.OutOfRangeError
        self._counters = (
            (CallCounter(iterator, _NEXT, error=end), _ENDED),
            (CallCounter(iterator, "_create_iterator"), _MADE),
            (CallCounter(dataset, "__init__"), _DATASET),
            (CallCounter(dataset, "reduce"), _LOOP),
            (CallCounter(function, "call_flat", amount=_LoopsOfGraphs().of), _LOOP),
        )
        self._costs = [(c, sum(blocks), _taken(blocks)) for c, blocks in self._counters]

    def read(self) -> Sequence[float]:
        """Native bytes asked for, native bytes taken, Python bytes; so far."""
        asked = taken = 0
        for counter, bytes_asked, bytes_taken in self._costs:
            asked += counter.total * bytes_asked
            taken += counter.total * bytes_taken
        return asked, taken, self._graphs.data_name_bytes - self._names_before

    def close(self) -> None:
        """Count no more."""
        for counter, _ in self._counters:
            counter.close()


def own_growth(series: Mapping[str, Series], version: str) -> Sequence[OwnGrowth]:
    """What ``OwnBytes`` counted, as growth of ``native_heap`` and ``python_heap``.

    Args:
        series: of one pass. Where ``native_heap`` is what malloc has in use (the watch pass reads
            ``rss`` beside it), what glibc adds to each block is part of it.
        version: TensorFlow's version.
    """
    if ASKED.name not in series:
        return ()
    native = series[TAKEN.name if "rss" in series else ASKED.name]
    parts = (
        (ASKED.name, "native_heap", native, "for the tf.data iterators that the step made"),
        (PYTHON.name, "python_heap", series[PYTHON.name], "for tf.data functions that it traced"),
    )
    return [
        OwnGrowth(name, explains, part.values, version, _sentence(part, why, version))
        for name, explains, part, why in parts
        if len(part) and part.values[-1] > part.values[0]
    ]


def _sentence(part: Series, why: str, version: str) -> str:
    per_step = (part.values[-1] - part.values[0]) / (len(part) - 1)
    return f"TensorFlow {version} keeps up to {per_step:,.0f} B a step {why}; not your code."


class _LoopsOfGraphs:
    """How many loops over datasets a function's graph holds; looked up once a function.

    A loop inside another graph loop counts once however often it runs: nobody tells how often.
    """

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def of(self, function: Any) -> int:
        """Loops that this call ran; a call while a graph is built runs none."""
        if not sys.modules["tensorflow"].executing_eagerly():
            return 0
        loops = self._known.get(function)
        if loops is None:
            operations = function.graph.get_operations()
            loops = self._known[function] = sum(o.type in _LOOPS for o in operations)
        return loops


def _find(module: str, name: str, *methods: str) -> type:
    found = getattr(sys.modules.get(module), name, None)
    if not isinstance(found, type) or not all(method in vars(found) for method in methods):
        raise Unavailable(f"what tf.data keeps is not counted: {name} has moved")
    return found


def _taken(blocks: tuple[int, ...]) -> int:
    """What glibc takes for blocks: 8 bytes more each, in multiples of 16, at least 32."""
    return sum(max(32, (block + 8 + 15) // 16 * 16) for block in blocks)

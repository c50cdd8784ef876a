"""TensorFlow, and Keras on TensorFlow."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from leakkit.frameworks import (
    LIVE_TENSOR_BYTES,
    LIVE_TENSORS,
    TRACES,
    CacheAudit,
    Device,
    DeviceMemory,
    Framework,
    OwnGrowth,
)
from leakkit.frameworks.counted import CallCounter
from leakkit.frameworks.memory import DeviceMemoryProbe
from leakkit.frameworks.tensorflow_own import NAME_BESIDE, OwnBytes, own_growth
from leakkit.probes import Kind, Probe, Quantity, Unavailable

if TYPE_CHECKING:
    from leakkit.series import Series

LIVE_ITERATORS = Quantity("tf_iterators", "iterators", Kind.COUNTER, advisory=True)
DATA_TRACES = Quantity("tf_data_traces", "traces", Kind.COUNTER, advisory=True)
GRADIENTS = Quantity("tf_gradient_registry", "gradients", Kind.COUNTER, advisory=True)
FUNCTIONS = Quantity("tf_function_cache", "functions", Kind.COUNTER, advisory=True)
FUNCTION_NAMES = Quantity("tf_function_names", "names", Kind.COUNTER, advisory=True)

_ITERATOR_MODULE = "tensorflow.python.data.ops.iterator_ops"
_MAP_FUNCTION_MODULE = "tensorflow.python.data.ops.structured_function"
_ATOMIC_MODULE = "tensorflow.python.eager.polymorphic_function.atomic_function"
_CONTEXT_MODULE = "tensorflow.python.eager.context"
_OPS_MODULE = "tensorflow.python.framework.ops"


class TensorFlow(Framework):
    """Adapter for TensorFlow 2."""

    name = "TensorFlow"
    module = "tensorflow"

    def __init__(self) -> None:
        self._missing: list[str] = []
        self._waits: bool | None = None

    def versions(self) -> dict[str, str]:
        """TensorFlow's version, and Keras' where it is loaded."""
        found = {"tensorflow": _tf().__version__}
        keras = sys.modules.get("keras")
        if keras is not None and hasattr(keras, "__version__"):
            found["keras"] = keras.__version__
        return found

    def devices(self) -> Sequence[Device]:
        """Logical devices once TensorFlow runs; physical ones before, so as not to start it."""
        config = _tf().config
        listed = config.list_logical_devices() if _started() else config.list_physical_devices()
        return [
            Device(_short(d.name), d.device_type.lower())
            for d in listed
            if d.device_type in ("CPU", "GPU", "TPU")
        ]

    def synchronize(self, result: Any) -> None:
        """Wait for accelerators, and for eager execution where it is asynchronous.

        On a CPU with synchronous eager execution, the default, an op has run when its call
        returns: there is nothing to wait for, and the 14 µs of ``sync_devices`` are saved.
        """
        if self._waits is None and _started():
            asynchronous = not _tf().config.experimental.get_synchronous_execution()
            self._waits = asynchronous or any(d.kind != "cpu" for d in self.devices())
        if self._waits:
            _tf().test.experimental.sync_devices()

    def probes(self) -> Sequence[Probe]:
        """Graphs, live tensors, registries, TensorFlow's own growth, and device memory."""
        self._missing = []
        graphs = self._try(Graphs)
        made = [graphs, *(self._try(kind) for kind in (LiveTensors, Registries))]
        if isinstance(graphs, Graphs):
            made.append(self._try(lambda: OwnBytes(graphs)))
        return [probe for probe in [*made, *self._device_probes()] if probe is not None]

    def _try(self, kind: Callable[[], Probe]) -> Probe | None:
        try:
            return kind()
        except Unavailable as error:
            self._missing.append(f"TensorFlow {_tf().__version__}: {error}")
            return None

    def _device_probes(self) -> list[Probe]:
        accelerators = [d for d in self.devices() if d.kind != "cpu"] if _started() else []
        return [DeviceMemoryProbe(self, device) for device in accelerators]

    def notes(self) -> list[str]:
        """What ``probes()`` found missing, and GPUs whose memory was taken whole."""
        return [*self._missing, *(_growth_notes() if _started() else [])]

    def remarks(self) -> list[str]:
        """What stands in for the counts that a CPU does not have."""
        if not _started() or any(device.kind != "cpu" for device in self.devices()):
            return []
        return [
            "TensorFlow counts no allocations on a CPU: live_tensor_bytes counts tensors, and "
            "native_heap counts what malloc gives, but not what a large tensor gets out of a pool."
        ]

    def memory(self, device: Device) -> DeviceMemory | None:
        """Bytes that TensorFlow's allocator has handed out; it has no count for a CPU."""
        if device.kind == "cpu":  # raises in some versions, and says 0 in 2.21
            return None
        try:
            info = _tf().config.experimental.get_memory_info(device.name)
        except (ValueError, RuntimeError):
            return None
        # BFCAllocator hands out multiples of 256 bytes (kMinAllocationSize).
        return DeviceMemory(info["current"], peak=info["peak"], rounding=256)

    def reset_peak(self, device: Device) -> None:
        """Start the peak anew, so that it is the peak of one step."""
        _tf().config.experimental.reset_memory_stats(device.name)

    def on(self, device: Device) -> AbstractContextManager[Any]:
        """``tf.device``."""
        placed: AbstractContextManager[Any] = _tf().device(device.name)
        return placed

    def allocate(self, device: Device, nbytes: int) -> Any:
        """A tensor of bytes."""
        tf = _tf()
        with tf.device(device.name):
            # zeros would do, but on a CPU it may be backed by a cached constant
            tensor = tf.identity(tf.fill([nbytes], tf.constant(1, tf.uint8)))
        self._waits = None
        self.synchronize(tensor)
        return tensor

    def own_growth(self, series: Mapping[str, Series]) -> Sequence[OwnGrowth]:
        """What tf.data keeps for each iterator, dataset and map function that came and went."""
        return own_growth(series, _tf().__version__)

    def audit(self) -> CacheAudit | None:
        """An audit of the eager kernel cache and the eager scalar cache."""
        from leakkit.frameworks.tensorflow_caches import TensorFlowCaches

        return TensorFlowCaches.make()


class Graphs(Probe):
    """Graphs built since the probe was made: by functions, and by tf.data for its map functions.

    Every trace of a ``tf.function``, a Keras train, test or predict function, or a gradient
    function builds one ``FuncGraph`` outside any other; branches and loop bodies are built
    inside one and are not counted again. tf.data traces its map functions each time that a
    dataset is built, which costs time and is no leak, so those stand in a series of their own,
    as the number built in each step.
    """

    quantities = (TRACES, DATA_TRACES)

    def __init__(self) -> None:
        graph = getattr(getattr(_tf(), "__internal__", None), "FuncGraph", None)
        if graph is None or "__init__" not in graph.__dict__:
            raise Unavailable("graphs are not counted: tf.__internal__.FuncGraph has moved")
        self._for_data = 0
        self._seen = 0
        self.data_name_bytes = 0  # that the names of all map functions traced take
        self._counter = CallCounter(graph, "__init__", amount=self._counts)

    def _counts(self, graph: Any) -> bool:
        if getattr(graph.outer_graph, "building_function", False):
            return False
        if _called_from(_MAP_FUNCTION_MODULE):
            self._for_data += 1
            self.data_name_bytes += len(graph.name) + NAME_BESIDE
            return False
        return True

    def read(self) -> Sequence[float]:
        """Graphs so far; map functions since the last read."""
        new, self._seen = self._for_data - self._seen, self._for_data
        return self._counter.total, new

    def close(self) -> None:
        """Count no more."""
        self._counter.close()


class LiveTensors(Probe):
    """Eager tensors and tf.data iterators alive, in one pass over the collector's objects.

    Only objects made since ``gc.freeze()`` are seen, which are those that a loop can leak. A
    tensor's bytes are its elements times their size: a string counts 24 bytes whatever its
    length, and a variable's handle counts none (its memory shows in the native heap, or in the
    device's).
    """

    quantities = (LIVE_TENSORS, LIVE_TENSOR_BYTES, LIVE_ITERATORS)

    def __init__(self) -> None:
        tf = _tf()
        tensor = getattr(getattr(tf, "__internal__", None), "EagerTensor", None)
        if tensor is None or not hasattr(tensor, "_num_elements"):
            raise Unavailable("live tensors are not counted: EagerTensor has moved")
        self._tensor: type = tensor
        module = sys.modules.get(_ITERATOR_MODULE)
        self._iterator = getattr(module, "OwnedIterator", None)
        dtypes = {value for value in vars(tf.dtypes).values() if isinstance(value, tf.DType)}
        self._sizes = {d.as_datatype_enum: _element_size(tf, d) for d in dtypes}

    def read(self) -> Sequence[float]:
        """Tensors, their bytes, iterators."""
        objects = gc.get_objects()
        kinds = list(map(type, objects))
        tensors = kinds.count(self._tensor)
        iterators = kinds.count(self._iterator) if self._iterator is not None else 0
        return tensors, self._bytes(objects, kinds) if tensors else 0, iterators

    def _bytes(self, objects: list[Any], kinds: list[type]) -> int:
        total, at, sizes, tensor = 0, -1, self._sizes, self._tensor
        for _ in range(kinds.count(tensor)):
            at = kinds.index(tensor, at + 1)
            found = objects[at]
            total += found._num_elements() * sizes.get(found._datatype_enum(), 0)
        return total


class Registries(Probe):
    """Entries in TensorFlow's own registries, which have no way to remove one.

    - ``tf_gradient_registry``: one for each graph-mode call of a ``tf.custom_gradient`` (Keras'
      optimizers make some), kept for ever with the graph that it captures;
    - ``tf_function_cache``: functions that the eager runtime holds;
    - ``tf_function_names``: names of functions that it has ever held.
    """

    def __init__(self) -> None:
        self._gradients = _find(_OPS_MODULE, "gradient_registry", "_registry")
        self._names = _find(_ATOMIC_MODULE, "RUNTIME_FUNCTION_REFS")
        self._list = _find(_CONTEXT_MODULE, "context", call=True, then="list_function_names")
        pairs = (
            (GRADIENTS, self._gradients),
            (FUNCTIONS, self._list),
            (FUNCTION_NAMES, self._names),
        )
        self.quantities = tuple(quantity for quantity, found in pairs if found is not None)
        if not self.quantities:
            raise Unavailable("its registries have moved and are not counted")

    def read(self) -> Sequence[float]:
        """Entries in each registry found."""
        values: list[float] = []
        if self._gradients is not None:
            values.append(len(self._gradients))
        if self._list is not None:
            values.append(len(self._list()))
        if self._names is not None:
            values.append(len(self._names))
        return values


def _tf() -> Any:
    return sys.modules["tensorflow"]


def _started() -> bool:
    """Whether the eager runtime runs: asking it for devices would else take their memory."""
    context = getattr(sys.modules.get(_CONTEXT_MODULE), "context", None)
    return bool(getattr(context(), "_initialized", True)) if context is not None else False


def _short(name: str) -> str:
    """``/device:GPU:0`` and ``/physical_device:GPU:0`` as ``GPU:0``."""
    return ":".join(name.split(":")[-2:])


def _called_from(module: str) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == module:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _element_size(tf: Any, dtype: Any) -> int:
    if dtype in (tf.resource, tf.variant):
        return 0
    return 24 if dtype == tf.string else int(dtype.size)


def _find(module: str, name: str, then: str | None = None, *, call: bool = False) -> Any:
    """``module.name[()].then``, or ``None`` where a version has moved a part of it."""
    found = getattr(sys.modules.get(module), name, None)
    if found is not None and call:
        found = found()
    return getattr(found, then, None) if then is not None else found


def _growth_notes() -> list[str]:
    """GPUs whose whole memory was taken at the start: the driver's figure says nothing then."""
    config = _tf().config
    full = []
    for device in config.list_physical_devices("GPU"):
        try:
            if not config.experimental.get_memory_growth(device):
                full.append(_short(device.name))
        except (ValueError, RuntimeError):
            continue
    return [
        f"TensorFlow took all memory of {name} at the start (memory growth is off): the driver's "
        f"figure stays flat whatever the step does; device_memory:{name} counts what TensorFlow "
        "has handed out of it."
        for name in full
    ]

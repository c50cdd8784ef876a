"""The known leak patterns, as rules for ``leakkit.diagnosis``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leakkit.diagnosis import Asked, Clue, Grows, Rule

_TENSORS = {"EagerTensor", "Tensor", "ArrayImpl", "Parameter", "ResourceVariable", "Variable"}
_ARRAYS = _TENSORS | {"ndarray"}
_TEXT = {"str", "bytes", "LogRecord", "StringIO", "bytearray"}
_WRITERS = {"_ResourceSummaryWriter", "SummaryWriter", "EventFileWriter", "FileWriter",
            "EventsWriter", "_TrainSummaryWriter"}  # fmt: skip
_QUEUES = {"queue.Queue", "queue.LifoQueue", "queue.PriorityQueue", "_queue.SimpleQueue",
           "queue.SimpleQueue", "multiprocessing.queues.Queue", "asyncio.queues.Queue"}  # fmt: skip
_AWAITED = {"Future", "Task"}
_LOCKS = {"Semaphore", "Lock", "lock", "RLock", "Condition", "Event", "BoundedSemaphore"}
_HANDLES = {"BufferedReader", "BufferedWriter", "BufferedRandom", "FileIO", "TextIOWrapper",
            "_TemporaryFileWrapper"}  # fmt: skip
# Shared memory looks like a deleted file too; there it is the tensor that is kept, not a handle.
_DELETED_FILE = Clue(("file",), {"deleted": (True,), "pattern": lambda path: not path.startswith(
    ("/dev/shm/", "/memfd:"))})  # fmt: skip
_WAITING = Clue(("time",), {"function": lambda name: "acquire" in name})
_POOLS = {"ThreadPoolExecutor", "ProcessPoolExecutor", "ThreadPool", "Pool"}


def _has(*parts: str) -> Asked:
    """A text that contains one of ``parts``, or a list with such a text."""

    def test(value: Any) -> bool:
        texts = value if isinstance(value, (list, tuple)) else [value]
        return any(part in str(text).lower() for text in texts for part in parts)

    return test


def _without(*values: str) -> Asked:
    def test(value: Any) -> bool:
        return not any(v in values for v in value or ())

    return test


def _other_than(*values: str) -> Asked:
    return lambda value: value not in values


def _positive(value: Any) -> bool:
    return value is not None and value > 0


def _retrace(**facts: Asked) -> Clue:
    return Clue(("retrace",), facts)


def _container(**facts: Asked) -> Clue:
    """A growing container of the user's, in no library registry."""
    return Clue(("container",), {"registry": (None,), **facts})


def _registry(*names: str) -> Clue:
    return Clue(("cache", "container"), {"registry": names})


def _made(*names: str) -> Clue:
    return Clue((), {"made": names})


def _file(**facts: Asked) -> Clue:
    """A file that still has its name."""
    return Clue(("file",), {"deleted": lambda value: not value, **facts})


def _thread(*parts: str) -> Clue:
    return Clue(("thread",), {"name": _has(*parts)})


def _calls(*names: str) -> Clue:
    return Clue(("site",), calls=names)


_TF: Mapping[str, Asked] = {"framework": ("tensorflow",), "inside": _without("data", "keras")}
_SLOWER = Grows(("latency", "cpu_time"))
_LISTING = Clue(("time",), {"function": _has("scandir", "listdir", "glob", "posix.stat")})
_SHIFTING = Clue(("time",), {"function": _has("'insert' of 'list'", "'pop' of 'list'")})
_SORTING = Clue(("time",), {"function": _has("sorted", "'sort'")})
_READING = Clue(
    ("time",), {"function": _has("readline", "read", "splitlines", "loads", "decode", "split")}
)
_USERS_CONTAINER = _container()
_LRU_METHOD = Clue((), {"on_method": (True,), "owner": ("user",)})
_OBJECT_KEPT = Clue(("object",), {"type": ("traceback",)})

_USERS_GRADIENT = Clue(
    ("cache", "container"),
    {"registry": ("tf_gradient_registry",), "holds": ("user's function",)},
)

TRACING = (
    Rule("graph-retracing", "high", (_retrace(cause=("python-value",), **_TF),),
         "Pass a tensor, a NumPy scalar or a tf.Variable instead of a Python number; or give the "
         "function an input_signature.", share=0.9),
    Rule("retrace-new-shape", "high", (_retrace(cause=("shape", "dtype"), **_TF),),
         "Give the function an input_signature with None for the dimension that changes, or pad "
         "batches to a few fixed shapes.", share=0.9),
    Rule("retrace-ragged", "high", (_retrace(cause=("ragged",), **_TF),),
         "Give the function an input_signature with tf.RaggedTensorSpec([None, None], …).",
         share=0.9),
    Rule("retrace-new-object", "high",
         (_retrace(cause=("object", "function", "structure"), **_TF),),
         "Make the object once and pass the same one, or pass its tensors instead: the identity "
         "of a Python object is part of the trace's key, and each stays in the cache.",
         share=0.9),
    Rule("retrace-bound-method", "high", (_retrace(cause=("method",), **_TF),),
         "Keep one reference (callback = obj.method, once) and pass that: obj.method is a new "
         "object each time.", share=0.9),
    Rule("retrace-closure", "high", (_retrace(cause=("closure",), **_TF),),
         "Make the value an argument (a tensor or a NumPy scalar) or a tf.Variable that one "
         "compiled function reads.", share=0.9),
    Rule("autograph-conversion", "medium", (_retrace(cause=("new-code",), **_TF),),
         "Load or generate the source once and keep the compiled function.", share=0.9),
    Rule("function-in-step", "medium",
         (_retrace(cause=("new-function",), xla=(False,), **_TF),),
         "Make the tf.function once, outside the step.", share=0.5,
         unless=(_USERS_GRADIENT, _retrace(inside=("distribute",))),
         surer=(_registry("tf_function_cache", "tf_gradient_registry"),
                _container(item=("Function",)))),
    Rule("mirrored-function-retraced", "medium",
         (_retrace(inside=("distribute",)),),
         "Wrap strategy.run in one tf.function that is made once.", share=0.4,
         unless=(_retrace(cause=("python-value", "shape", "ragged", "object", "method")),)),
    Rule("keras-new-shape", "high",
         (_retrace(inside=("keras",), cause=("shape", "structure", "dtype")),),
         "Pad batches to a few fixed shapes, and drop the remainder of the last one.", share=0.9),
    Rule("xla-recompile", "high",
         (Clue(("retrace",), {"xla": (True,), "inside": _without("keras")}),),
         "Pad to a few fixed shapes, and make the compiled function once: XLA keeps an executable "
         "for each shape and each function, for ever.", share=0.95),
    Rule("jax-jit-lambda", "high",
         (_retrace(framework=("jax",), cause=("new-function",), inside=_without("jax")),),
         "Call jax.jit once, on a function defined outside the step: its cache is keyed by the "
         "function object.", share=0.9),
    Rule("jax-new-shape", "high",
         (_retrace(framework=("jax",), cause=("shape", "dtype", "structure"),
                   inside=_without("jax")),),
         "Pad inputs to a few fixed shapes; jax.jit keeps a compilation for each.", share=0.9),
    Rule("jax-static-argument", "high",
         (_retrace(framework=("jax",), cause=("python-value",), inside=_without("jax")),),
         "Take the argument out of static_argnums, or give it few values.", share=0.9,
         scenario=False),
    Rule("torch-compile-recompile", "high", (_retrace(framework=("torch",)),),
         "Use torch.compile(dynamic=True) or mark_dynamic, pad to a few shapes, and compile once.",
         share=0.9),
)  # fmt: skip

_MODEL = _made("keras-model")
_ON_LAYER = _container(
    heaviest=_TENSORS,
    path_types=_has("keras.src.layers.layer.layer", "module.autotrackable", "module.module.module",
                    "torch.nn.modules.module.module"),
)  # fmt: skip
VARIABLES = (
    Rule("model-rebuilt", "high", (_MODEL, Grows(("native_heap", "python_heap"))),
         "Build the model once and reset its weights (set_weights) for the next trial, or run "
         "each trial in a process of its own. clear_session() does not give everything back.",
         share=0.9,
         surer=()),
    Rule("optimizer-rebuilt", "high",
         (Clue((), {"made": ("keras-compile",)}), Grows(("native_heap", "python_heap"))),
         "Compile once and assign() the learning rate: each compile() makes a new optimizer and "
         "a new train function, whose graph stays in TensorFlow's gradient registry.",
         unless=(_MODEL,), share=0.9),
    Rule("optimizer-rebuilt", "medium",
         (_made("keras-optimizer", "torch-optimizer"), Grows(("native_heap", "python_heap"))),
         "Make the optimizer once, outside the step, and assign() its learning rate.",
         unless=(_MODEL, Clue((), {"made": ("keras-compile",)})), share=0.8),
    Rule("metric-per-epoch", "high",
         (_made("keras-metric"), Grows(("native_heap", "python_heap"))),
         "Make the metric once and call reset_state().",
         unless=(_MODEL, Clue((), {"made": ("keras-compile", "keras-optimizer")})), share=0.85),
    Rule("variable-in-loop", "high", (_registry("tf_kernel_cache"), _made("tf-variable")),
         "Make variables once, outside the loop, and assign() to them; or give them one name.",
         unless=(_MODEL, _made("keras-metric", "keras-optimizer", "keras-layer"),
                 _retrace(**_TF))),
    Rule("variable-in-loop", "medium",
         (_made("tf-variable"), Grows(("native_heap", "python_heap", "live_tensors"))),
         "Make variables once, outside the loop, and assign() to them.",
         unless=(_MODEL, _made("keras-metric", "keras-optimizer", "keras-layer"),
                 _registry("tf_kernel_cache"), _USERS_CONTAINER, _retrace()), share=0.5),
    Rule("layer-rebuilt", "medium",
         (_made("keras-layer"), Grows(("native_heap", "python_heap"))),
         "Make the layer once and call it again.", share=0.8, scenario=False,
         unless=(_MODEL, _registry("keras_custom_objects"))),
    Rule("add-loss", "medium", (_registry("keras_losses"),),
         "Clear the losses each step, or return the loss instead of add_loss()."),
    Rule("layer-keeps-activations", "high", (_ON_LAYER,),
         "Do not store tensors of a call on the layer; return them."),
)  # fmt: skip

_WITH_GRAPH = (
    "Keep loss.item() or loss.detach(), also when adding up: the tensor holds the whole graph of "
    "its step."
)
TENSORS = (
    Rule("exception-keeps-frames", "high", (Clue(("container",), {"holds": ("traceback",)}),),
         "Keep str(error), not the exception: its traceback holds every frame and all locals.",
         share=0.95),
    Rule("exception-keeps-frames", "medium", (_OBJECT_KEPT,),
         "Keep str(error), not the exception: its traceback holds every frame and all locals.",
         unless=(Clue(("container",), {"holds": ("traceback",)}), _retrace()), share=0.6),
    Rule("persistent-tape", "high",
         (Clue((), {"present": ("open-tape",)}), Clue(("object",), {"type": _TENSORS})),
         "Open the tape inside the step and let it go after gradient(); add up float(loss), not "
         "the tensor.",
         unless=(_container(heaviest=_TENSORS),), share=0.9),
    Rule("persistent-tape", "high",
         (Clue(("container", "cache"), {"registry": ("tf_gradient_tape",)}),),
         "Open the tape inside the step and let it go after gradient()."),
    Rule("history-with-gradients", "high",
         (_container(holds=("GradientTape",)),),
         "Keep float(loss), not what still refers to the tape.", share=0.9),
    Rule("hooks-pile-up", "high", (_registry("torch_hooks"),),
         "Register the hook once, outside the step; or keep the handle that register_…_hook() "
         "returns and call its remove().", share=0.9, scenario=False),
    Rule("torch-loss-with-graph", "high", (_container(has_graph=(True,)),),
         _WITH_GRAPH, share=0.95),
    Rule("torch-loss-with-graph", "high", (Grows(("torch_autograd_graphs",)),),
         _WITH_GRAPH, share=0.9, unless=(_container(has_graph=(True,)),)),
    Rule("cache-keyed-by-identity", "high",
         (_container(keyed_by_identity=(True,)),),
         "Key the table by value, or use a WeakKeyDictionary or a bound on its size: each new "
         "object is a new key.", share=0.9),
    Rule("lru-cache-on-method", "high", (_LRU_METHOD,),
         "Cache on the instance, or cache a function of plain values: the cache holds self and "
         "every argument.", share=0.9),
    Rule("unbounded-cache", "medium",
         (Clue((), {"path_kind": ("lru_cache",), "owner": ("user",)}),),
         "Give the cache a maxsize, or key it by fewer values.",
         unless=(_LRU_METHOD,), share=0.9, scenario=False),
    Rule("view-pins-base", "high", (_container(view=(True,)),),
         "Keep a copy (array[…].copy()): a view keeps its whole base alive.", share=0.95),
    Rule("concatenated-history", "high",
         (_container(replaced=(True,), container=_ARRAYS | {"list", "tuple"}),),
         "Collect the pieces in a list and concatenate once, or keep a running figure.",
         share=0.95),
    Rule("replay-buffer-unbounded", "high",
         (_container(container=("deque",), bound=(None,), length=_positive,
                     item=_other_than(*_AWAITED)),),
         "Give the deque a maxlen.",
         unless=(Clue(("container",), {"item": _TEXT | {"float"}}),
                 Clue((), {"path_types": _QUEUES}))),
    Rule("replay-buffer-unbounded", "medium",
         (_container(container=("list",), parts=lambda n: n >= 3, heaviest=_ARRAYS),),
         "Use a deque with maxlen, or overwrite the oldest entries of a preallocated array.",
         unless=(_container(holds=("GradientTape", "traceback")), _container(has_graph=(True,)))),
    Rule("growing-list-of-tensors", "high",
         (_container(container=("list", "dict", "set", "TrackedList", "ListWrapper"),
                     heaviest=_ARRAYS, view=(False,), has_graph=(False,),
                     keyed_by_identity=(False,), parts=lambda n: n < 3),),
         "Keep the number, not the tensor: history.append(float(loss)); or bound the list.",
         unless=(_container(holds=("traceback", "GradientTape")),
                 _container(item=_WRITERS | _POOLS), _ON_LAYER)),
)  # fmt: skip

LOGS = (
    Rule("uncapped-logs", "high",
         (_container(item=("LogRecord",)),),
         "Bound what is kept (deque(maxlen=…)), or write it to a rotated file.", share=0.9),
    Rule("uncapped-logs", "medium",
         (_container(item=("str",)),),
         "Bound what is kept (deque(maxlen=…)), or write it to a rotated file.",
         unless=(_container(keyed_by_identity=(True,)),)),
    Rule("uncapped-logs", "medium",
         (_container(replaced=(True,), container=("str", "bytes", "StringIO", "BytesIO",
                                                  "bytearray")),),
         "Bound the text that is kept, or write it to a rotated file."),
    Rule("handlers-pile-up", "high", (_registry("logging_handlers"),),
         "Add the handler once, or remove and close the old one first.", share=0.9),
    Rule("handlers-pile-up", "medium",
         (_made("log-handler"), Grows(("fds", "python_heap", "live_objects"))),
         "Add the handler once, or remove and close the old one first.",
         unless=(_registry("logging_handlers"),), share=0.5),
    Rule("tensorboard-callback-per-fit", "high", (_made("keras-tensorboard"),),
         "Make the TensorBoard callback once, or give fit() all epochs in one call.", share=0.6),
    Rule("summary-writer-not-closed", "high", (Clue(("container",), {"item": _WRITERS}),),
         "Make one writer and close() it at the end.", share=0.9),
    Rule("summary-writer-not-closed", "medium", (_file(name=_has("tfevents"),
                                                       files_per_step=_positive),),
         "Make one writer and close() it at the end.", share=0.6,
         unless=(_made("keras-tensorboard"), Clue(("container",), {"item": _WRITERS}))),
    Rule("profile-dumps", "high", (_file(name=_has("xplane.pb", "trace.json", ".prof",
                                                   "overview_page", "memory_profile")),),
         "Profile a few steps, once, and stop.", share=0.9),
    Rule("checkpoints-never-pruned", "high",
         (_file(files_per_step=_positive, temporary=(False,),
                siblings=_has(".index", ".data-", ".ckpt", ".h5", ".keras", ".weights",
                              ".pt", ".pth", ".safetensors", "saved_model.pb", "checkpoint",
                              ".orbax", ".msgpack")),),
         "Give the checkpoint manager a max_to_keep, or delete the oldest.", share=0.9),
    Rule("temp-files-kept", "high",
         (_file(files_per_step=_positive, temporary=(True,)),),
         "Use tempfile.TemporaryDirectory() as a context manager, or delete each file when it has "
         "served.", share=0.9, unless=(_file(siblings=_has("tfevents", "xplane")), _LISTING)),
    Rule("log-file-unrotated", "high",
         (_file(in_new_files=(False,), name=_has(".log", ".txt", ".csv", ".json",
                                                 ".out", ".tsv")),),
         "Rotate the log (RotatingFileHandler), or log less often.", share=0.9,
         unless=(_READING,)),
    Rule("log-file-unrotated", "medium",
         (_file(in_new_files=(False,)),),
         "Rotate the file, or write less often.", share=0.6,
         unless=(_file(name=_has(".log", ".txt", ".csv", ".json", ".out", ".tsv")),
                 _file(name=_has("tfevents")), _made("keras-tensorboard"))),
    Rule("files-kept", "medium", (_file(files_per_step=_positive),),
         "Delete the files that are no longer needed.", share=0.3, scenario=False,
         unless=(_file(siblings=_has(".index", ".ckpt", ".h5", ".keras", "tfevents", "xplane",
                                     ".pt", ".pth", ".safetensors")),
                 _file(temporary=(True,)))),
    Rule("figures-not-closed", "high", (_registry("matplotlib_figures"),),
         "Close each figure: plt.close(figure).", share=0.95),
    Rule("figures-not-closed", "medium", (_container(item=("Figure",)),),
         "Close each figure and keep none: plt.close(figure).", share=0.9),
)  # fmt: skip

_DATASET = Clue((), {"made": ("tf-dataset",), "inside": _without("keras")})
_PRIVATE_POOL = Clue((), {"present": ("private-pool",)})
_ITERATORS = ("OwnedIterator", "NumpyIterator", "_NumpyIterator", "IteratorBase", "tuple_iterator")
INPUT = (
    Rule("cache-of-endless-stream", "high",
         (Clue((), {"present": ("memory-cache",)}), Grows(("native_heap",)),
          _calls("gen_dataset_ops.*", "iterator_ops.*")),
         "Put cache() before what never ends (repeat, augmentation), or leave it out.",
         unless=(_made("tf-iterator", "tf-dataset"), _container(item=_ITERATORS)), share=0.9),
    Rule("cache-of-endless-stream", "medium",
         (Clue((), {"present": ("memory-cache",)}), Grows(("native_heap",))),
         "Put cache() before what never ends (repeat, augmentation), or leave it out.",
         unless=(_made("tf-iterator", "tf-dataset"), _container(heaviest=_ARRAYS),
                 _calls("gen_dataset_ops.*", "iterator_ops.*"), _retrace()), share=0.6),
    Rule("shuffle-buffer-too-large", "low",
         (Clue((), {"present": ("shuffle",)}), Grows(("native_heap",)),
          _calls("gen_dataset_ops.*", "iterator_ops.*")),
         "Shuffle smaller items (file names, indices), or take a smaller buffer.",
         unless=(Clue((), {"present": ("memory-cache",)}), _container(heaviest=_ARRAYS)),
         share=0.5),
    Rule("from-generator-rebuilt", "high", (_made("tf-generator"),
                                            Grows(("native_heap", "python_heap", "latency"))),
         "Build the dataset once and iterate it again.", share=0.6),
    Rule("py-function-per-step", "high", (_registry("tf_py_function_registry"),),
         "Build the py_function once, in a tf.function or Dataset.map that is made once, or "
         "write it in TensorFlow operations.", share=0.9, unless=(_made("tf-generator"),)),
    Rule("py-function-per-step", "medium",
         (_made("tf-py-function"), Grows(("native_heap", "python_heap"))),
         "Build the py_function once, in a tf.function or Dataset.map that is made once.",
         unless=(_registry("tf_py_function_registry"), _made("tf-generator")), share=0.6),
    Rule("dataset-rebuilt-each-step", "medium",
         (_DATASET, Grows(("native_heap", "python_heap", "latency", "traces"))),
         "Build the dataset once and iterate it again.", share=0.3,
         surer=(_retrace(inside=("data",)),),
         unless=(_MODEL, _made("tf-generator", "tf-skip", "keras-compile"))),
    Rule("dataset-distributed-each-step", "high", (_made("tf-distributed-dataset"),),
         "Distribute the dataset once and iterate the result.", share=0.6),
    Rule("skip-cost-grows", "high", (_made("tf-skip"), _SLOWER),
         "Keep one iterator, or shard by index: skip(n) reads and drops n elements each time.",
         share=0.9),
    Rule("framework-own-growth", "medium",
         (_made("tf-iterator"), Grows(("native_heap",))),
         "TensorFlow itself keeps about 1 KB for each iterator; nothing in the step is wrong. "
         "Iterate one dataset, or call the model directly, where it matters.", share=0.2,
         scenario=False,
         unless=(_MODEL, _DATASET, _made("keras-compile"), _container(item=_ITERATORS))),
    Rule("iterators-kept", "high", (_container(item=_ITERATORS),),
         "Drop each iterator, or use one: each holds buffers and threads of its own.",
         share=0.95, scenario=False, unless=(_PRIVATE_POOL,)),
)  # fmt: skip

_NEVER_DONE = _container(item=_AWAITED, waits=(True,))
THREADS = (
    Rule("private-thread-pools", "high", (Clue(("thread",)), _PRIVATE_POOL),
         "Share one pool: make the dataset once, or set no private_threadpool_size.", share=0.95),
    Rule("executor-not-shut-down", "high", (_container(item=_POOLS),),
         "Use the executor as a context manager, or make one and keep it.", share=0.95),
    Rule("executor-not-shut-down", "high", (_thread("threadpoolexecutor"),),
         "Use the executor as a context manager, or make one and keep it.", share=0.9,
         unless=(_container(item=_POOLS),)),
    Rule("queue-unconsumed", "high", (Clue((), {"path_types": _QUEUES}),),
         "Give the queue a maxsize and somebody who reads it.",
         unless=(_container(item=_POOLS), _thread("threadpoolexecutor"), _NEVER_DONE)),
    Rule("queue-unconsumed", "medium", (_container(container=("SimpleQueue",)),),
         "Give the queue a bound and somebody who reads it."),
    Rule("tasks-never-done", "high", (_NEVER_DONE,),
         "See that what each task waits for happens, or cancel the task: a task that waits "
         "for ever is kept with all that it holds.", share=0.9, scenario=False),
    Rule("worker-processes-left", "high", (Clue(("child",)),),
         "Terminate and join each worker, or make the workers once.", share=0.95),
    Rule("threads-left", "medium", (Clue(("thread",)),),
         "Join each thread, or make them once.", share=0.5, scenario=False,
         unless=(_thread("threadpoolexecutor", "private"), _container(item=_ITERATORS),
                 _container(item=_POOLS))),
    Rule("lock-contention-grows", "medium", (Clue(("thread",)), _SLOWER),
         "Use fewer threads, or hold the lock for less.", share=0.5,
         surer=(_container(item=_LOCKS), _WAITING)),
    Rule("unclosed-files", "high", (_DELETED_FILE,),
         "Close each file: one that is deleted while it is open keeps its bytes on the disk until "
         "its last handle is closed.", share=0.9, scenario=False),
    Rule("unclosed-files", "high", (_container(item=_HANDLES),),
         "Close each file: with open(…) as file.", share=0.9, scenario=False),
    Rule("unclosed-files", "medium", (Clue(("descriptor",), {"name": _has("/")}),),
         "Close each file: with open(…) as file.", share=0.4, scenario=False,
         unless=(_made("log-handler"), Clue(("container",), {"item": _WRITERS}),
                 _file(name=_has("tfevents")), _registry("logging_handlers"), Clue(("child",)))),
    Rule("sockets-left", "medium", (Clue(("descriptor",), {"name": _has("socket:", "pipe:")}),),
         "Close each socket or pipe.", share=0.3, scenario=False, unless=(Clue(("child",)),)),
)  # fmt: skip

TF1 = (
    Rule("tf1-session-not-closed", "high",
         (_container(item=("Session", "InteractiveSession")),),
         "Close each session (with tf.compat.v1.Session() as session), or make one.", share=0.9),
    Rule("tf1-session-not-closed", "high",
         (_made("tf-session"), Grows(("native_heap", "python_heap", "threads"))),
         "Close each session (with tf.compat.v1.Session() as session), or make one.", share=0.85,
         unless=(_container(item=("Session", "InteractiveSession")),)),
    Rule("tf1-ops-in-loop", "high", (_registry("tf_graph"),
                                     Clue(("object",), {"type": ("Operation",)})),
         "Build the graph once and call graph.finalize(); feed values through placeholders.",
         unless=(_retrace(), _made("tf-session"), _registry("tf_py_function_registry")),
         share=0.95),
)  # fmt: skip

DISTRIBUTION = (
    Rule("strategy-run-eager", "medium",
         (_made("tf-strategy-run"), Grows(("native_heap", "python_heap", "threads", "latency"))),
         "Call strategy.run inside one tf.function that is made once.", share=0.4,
         unless=(_retrace(),)),
)  # fmt: skip

_BUILT = _made("keras-model", "keras-layer", "keras-metric", "keras-optimizer", "keras-compile",
               "tf-variable", "tf-lookup-table", "tf-py-function")  # fmt: skip
_MONITORED = _calls("monitor_callback.*", "early_stopping.*", "reduce_lr_on_plateau.*")
REGISTRIES = (
    Rule("custom-gradient-registry", "high", (_USERS_GRADIENT,),
         "Build the tf.custom_gradient function and the tf.function around it once: each trace "
         "registers a gradient that TensorFlow never removes.",
         share=0.9, unless=(_MODEL, _made("keras-compile", "keras-optimizer"),
                            _retrace(cause=("python-value", "shape", "object", "method",
                                            "ragged")))),
    Rule("custom-gradient-registry", "medium", (_registry("tf_gradient_registry"),),
         "Trace once: each trace registers a gradient that TensorFlow never removes.",
         share=0.4, unless=(_USERS_GRADIENT,)),
    Rule("serializable-registered-in-loop", "high", (_registry("keras_custom_objects"),),
         "Register the class once, at module level.", share=0.7),
    Rule("name-counters", "medium", (_registry("keras_name_counters"),),
         "Give objects that are made again a fixed name.", share=0.3),
    Rule("lookup-table-per-step", "high", (_made("tf-lookup-table"),
                                           Grows(("native_heap", "python_heap"))),
         "Make the table once, outside the step.", share=0.9),
    Rule("eager-scalar-cache", "high", (_registry("tf_scalar_cache"),),
         "Pass NumPy scalars (np.float32(x)) or variables: TensorFlow remembers every Python "
         "number that it has converted.", unless=(_retrace(**_TF), _MONITORED)),
    Rule("eager-scalar-cache", "high", (_registry("tf_scalar_cache"), _MONITORED),
         "Nothing in the step is wrong: a Keras callback such as EarlyStopping compares the "
         "figures of each epoch, and TensorFlow remembers every number that it has converted. "
         "Accept some hundred bytes an epoch with a limit.", unless=(_retrace(**_TF),)),
    Rule("eager-scalar-cache", "medium",
         (_calls("constant_op.convert_to_eager_tensor"),),
         "Pass NumPy scalars (np.float32(x)) or variables: TensorFlow remembers every Python "
         "number that it has converted.",
         unless=(_retrace(**_TF), _registry("tf_scalar_cache"), _container(heaviest=_ARRAYS),
                 _MONITORED,
                 _BUILT, Clue(("object",), {"type": _TENSORS}))),
    Rule("eager-kernel-cache", "high", (_registry("tf_kernel_cache"),),
         "Call the operation with the same attributes each time: use tf.random.Generator or "
         "stateless random operations instead of seeded ones, and fixed names.",
         unless=(_BUILT, _retrace(**_TF))),
    Rule("re-cache", "low", (_registry("re_cache"),), "Compile patterns once.", scenario=False),
)  # fmt: skip

SLOWDOWNS = (
    Rule("file-per-step-listing", "high", (_LISTING, _SLOWER),
         "Keep the names instead of listing the folder each step, or use a folder an epoch.",
         share=0.8),
    Rule("file-per-step-listing", "medium", (_file(files_per_step=_positive), _SLOWER),
         "Keep the names instead of listing the folder each step, or use a folder an epoch.",
         share=0.3, unless=(_LISTING,)),
    Rule("log-parsing", "high", (_READING, _SLOWER, _file()),
         "Remember where reading stopped, or keep the figures in memory.", share=0.8,
         unless=(_LISTING,)),
    Rule("sorting-history", "high", (_SORTING, _SLOWER, _USERS_CONTAINER),
         "Keep the history sorted (bisect.insort) or use a heap; sort what is new only.",
         share=0.9),
    Rule("list-shifted", "high", (_SHIFTING, _SLOWER, _USERS_CONTAINER),
         "Use a collections.deque with appendleft() and popleft(): insert(0, …) and pop(0) move "
         "every item of a list.", share=0.9, scenario=False),
    Rule("growing-scan", "high", (_USERS_CONTAINER, _SLOWER),
         "Keep a running figure, or scan only what is new.", share=0.6,
         unless=(_SORTING, _SHIFTING, _LISTING, _WAITING, _retrace(),
                 Clue(("container",), {"replaced": (True,)}))),
)  # fmt: skip

# None: one that no rule knows by name.
_REMEMBERS = (None, "atexit", "sys_modules", "logging_loggers", "warnings_registry", "linecache")
GENERIC = (
    Rule("growing-container", "medium", (_USERS_CONTAINER,),
         "Bound it, or drop what is no longer needed.", scenario=False, fallback=True,
         unless=(_retrace(framework=("torch", "jax")),)),
    Rule("library-registry", "medium",
         (Clue(("cache",), {"registry": _REMEMBERS, "owner": ("library", "stdlib"),
                            "path_kind": ("module", "class"), "replaced": (False,)}),),
         "Register, define or build it once, outside the step: the library remembers each one.",
         scenario=False, alone=True, unless=(_retrace(), _BUILT)),
    Rule("reference-cycles", "high", (Clue(("cycle",)),),
         "Break the cycle (weakref, or None at the end), or leave the collector on.",
         share=0.9, scenario=False),
    Rule("reference-cycles", "medium", (Grows(("garbage",)),),
         "Break the cycle (weakref, or None at the end), or leave the collector on.",
         share=0.3, scenario=False),
    Rule("native-allocation", "medium",
         (Grows(("native_heap",)),),
         "No Python object that leakkit can follow was seen to hold this memory: a native library "
         "keeps it, or an object that cannot be looked into. See which line allocates, and free or "
         "close what it gets.", share=0.2, scenario=False,
         unless=(_retrace(), _USERS_CONTAINER, Clue(("cache",)), Clue((), {"made": lambda v: v}),
                 Clue((), {"present": ("open-tape", "memory-cache")}),
                 Clue(("object",), {"type": _TENSORS}))),
    Rule("mappings-kept", "medium", (_container(item=("mmap",)),),
         "Close each mapping.", share=0.9, scenario=False),
)  # fmt: skip

RULES: tuple[Rule, ...] = (
    *TRACING, *VARIABLES, *TENSORS, *LOGS, *INPUT, *THREADS, *TF1, *DISTRIBUTION, *REGISTRIES,
    *SLOWDOWNS, *GENERIC,
)  # fmt: skip

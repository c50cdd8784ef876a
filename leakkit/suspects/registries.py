"""Containers that a library keeps, in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from leakkit.suspects.paths import Path


@dataclass(frozen=True)
class Registry:
    """A container known by where it lives.

    Args:
        name: what diagnosis rules call it.
        words: what a report calls it.
        module: the module whose global leads to it, ``""`` for any.
        names: parts of the path that tell it, any of them.
        types: ``module.name`` of an object on the path, any of them.
        ends: what the path ends with, any of them: what lies further in is something else.
    """

    name: str
    words: str
    module: str = ""
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ends: tuple[str, ...] = ("",)


_HOOKS = ("_hooks", "_hooks_with_kwargs", "_hooks_always_called")
_TF = "tensorflow.python"
REGISTRIES: tuple[Registry, ...] = (
    Registry(
        "tf_gradient_registry",
        "TensorFlow's gradient registry (entries are never removed)",
        names=("gradient_registry", "_gradient_registry"),
    ),
    Registry(
        "tf_py_function_registry",
        "TensorFlow's registry of py_function callables",
        f"{_TF}.ops.script_ops",
        names=("_py_funcs", "tape_cache", "_internal_py_funcs"),
    ),
    Registry(
        "tf_function_cache",
        "TensorFlow's cache of traced graphs",
        types=(
            "tensorflow.core.function.polymorphism.function_cache.FunctionCache",
            "tensorflow.core.function.polymorphism.type_dispatch.TypeDispatchTable",
            f"{_TF}.eager.polymorphic_function.polymorphic_function.Function",
        ),
    ),
    Registry(
        "tf_gradient_tape",
        "the record of a GradientTape",
        types=(f"{_TF}.eager.backprop.GradientTape",),
    ),
    Registry(
        "tf_function_table", "TensorFlow's table of functions", names=("RUNTIME_FUNCTION_REFS",)
    ),
    Registry(
        "tf_tracing_detector",
        "TensorFlow's own count of retraces",
        names=("_frequent_tracing_detector_manager",),
    ),
    Registry("tf_autograph_cache", "AutoGraph's cache of converted functions", f"{_TF}.autograph"),
    Registry(
        "tf_graph",
        "the operations of one TensorFlow graph",
        types=(f"{_TF}.framework.ops.Graph", f"{_TF}.framework.func_graph.FuncGraph"),
    ),
    Registry(
        "tf_saver_registry",
        "TensorFlow's registry of Python functions kept by sessions",
        f"{_TF}.client.session",
    ),
    Registry(
        "keras_name_counters",
        "Keras' counters of automatic names",
        "keras.src.backend.common.global_state",
        names=("object_name_uids",),
    ),
    Registry("keras_global_state", "Keras' global state", "keras.src.backend.common.global_state"),
    Registry(
        "keras_custom_objects",
        "Keras' registry of serialisable classes",
        names=("GLOBAL_CUSTOM_OBJECTS", "GLOBAL_CUSTOM_NAMES", "global_custom_objects"),
    ),
    Registry(
        "keras_metrics", "the metrics of a Keras object", types=("keras.src.metrics.metric.Metric",)
    ),
    Registry(
        "keras_losses",
        "the losses that a Keras layer was given by add_loss",
        types=("keras.src.layers.layer.Layer",),
        names=("_losses", "_loss_ids"),
    ),
    Registry(
        "logging_handlers",
        "the handlers of a logger",
        types=("logging.Logger", "logging.RootLogger"),
        names=("handlers",),
    ),
    Registry(
        "logging_loggers",
        "the loggers that logging remembers",
        "logging",
        names=("loggerDict", "_handlers", "_handlerList"),
    ),
    Registry("atexit", "functions registered with atexit", "atexit"),
    Registry(
        "weakref_finalize",
        "finalizers that wait for their objects",
        "weakref",
        names=("_registry", "finalize._registry"),
    ),
    Registry("re_cache", "the pattern cache of re", "re", names=("_cache", "_cache2")),
    Registry("linecache", "the source cache of linecache", "linecache"),
    Registry(
        "warnings_registry",
        "the registry of warnings already shown",
        names=("__warningregistry__",),
    ),
    Registry("sys_modules", "sys.modules", "sys", names=("modules",)),
    Registry(
        "matplotlib_figures",
        "pyplot's list of open figures",
        "matplotlib._pylab_helpers",
        names=("Gcf.figs", "figs"),
    ),
    Registry(
        "executor_threads",
        "the threads that concurrent.futures joins at exit",
        "concurrent.futures.thread",
        names=("_threads_queues",),
    ),
    Registry(
        "threads",
        "the table of running threads",
        "threading",
        names=("_active", "_dangling", "_shutdown_locks"),
    ),
    Registry(
        "children",
        "the table of child processes",
        names=("multiprocessing.process._children", "_children"),
        module="multiprocessing",
    ),
    Registry("subprocesses", "unfinished child processes", "subprocess", names=("_active",)),
    Registry("jax_cache", "JAX' cache of compiled functions", "jax"),
    Registry(
        "torch_hooks",
        "the hooks of a PyTorch object",
        types=("torch.nn.modules.module.Module", "torch.optim.optimizer.Optimizer"),
        ends=_HOOKS,
    ),
    Registry(  # what only C++ gives a name to
        "torch_hooks",
        "the hooks of a PyTorch tensor",
        types=("torch.Tensor",),
        ends=(".<OrderedDict>", *_HOOKS),
    ),
    Registry("torch_hooks", "PyTorch's global hooks", "torch.nn.modules.module", ends=_HOOKS),
    Registry("torch_dynamo_cache", "PyTorch's cache of compiled graphs", "torch._dynamo"),
    Registry("torch_inductor_cache", "PyTorch's cache of compiled graphs", "torch._inductor"),
    Registry("optuna_trials", "Optuna's record of trials", "optuna"),
)


def registry(path: Path) -> Registry | None:
    """The library container that a path leads to, or ``None``."""
    return next((k for k in REGISTRIES if path.name.endswith(k.ends) and _matches(k, path)), None)


def _matches(known: Registry, path: Path) -> bool:
    if known.types and _any_in(known.types, {*path.types, *path.bases}):
        return not known.names or _named(known.names, path)
    if known.types:
        return False
    if known.names and _named(known.names, path):
        inside = not known.module or _inside(path.module, known.module)
        return inside and path.owner != "user"  # a user may call a list of his own `figs`
    return (
        bool(known.module)
        and not known.names
        and not known.types
        and (_inside(path.module, known.module) and path.owner in ("library", "stdlib"))
    )


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _named(names: Sequence[str], path: Path) -> bool:
    parts = {*path.name.replace("[", ".").replace("]", "").replace('"', "").split("."), path.name}
    return any(name in parts or path.name.endswith(name) for name in names)


def _any_in(wanted: Sequence[str], present: Collection[str]) -> bool:
    return any(name in present for name in wanted)

"""TensorFlow's traces with their signatures, and the calls for which XLA compiles."""

from __future__ import annotations

import contextlib
import re
import sys
import types
import weakref
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from leakkit.suspects.places import code_place, frame_place, library_parts, owner, user_frame
from leakkit.suspects.retraces import Part, Trace

if TYPE_CHECKING:
    from leakkit.suspects.tracers import Tracers

_MOST = 2000  # shapes remembered of one function


def listen(tracers: Tracers) -> None:
    """Read every trace as TensorFlow makes it, and what XLA compiles."""
    name = "tensorflow.python.eager.polymorphic_function.tracing_compilation"
    module: Any = sys.modules[name]
    original = module._create_concrete_function

    def create(function_type: Any, type_context: Any, func_graph: Any, options: Any) -> Any:
        try:
            tracers.add(_tf_trace(function_type, options, sys._getframe(1)))
        except Exception as error:
            tracers.failed.append(f"a trace of TensorFlow could not be read ({error})")
        return original(function_type, type_context, func_graph, options)

    module._create_concrete_function = create
    tracers.at_end(lambda: setattr(module, "_create_concrete_function", original))
    _tensorflow_xla(tracers)


def _tensorflow_xla(tracers: Tracers) -> None:
    """XLA compiles for each shape of its arguments, without a new trace where shapes are open."""
    module = sys.modules["tensorflow.python.eager.polymorphic_function.atomic_function"]
    kind: Any = module.AtomicFunction
    original, seen = kind.call_flat, _XlaCalls(tracers)

    def call_flat(self: Any, *args: Any) -> Any:
        seen.note(self, args, sys._getframe(1))
        return original(self, *args)

    kind.call_flat = call_flat
    tracers.at_end(lambda: setattr(kind, "call_flat", original))


class _XlaCalls:
    """Remembers the argument shapes of each function that is compiled with XLA."""

    def __init__(self, tracers: Tracers) -> None:
        self._tracers = tracers
        self._shapes: dict[bytes, set[tuple[str, ...]]] = {}
        self._xla: dict[bytes, bool] = {}

    def note(self, atomic: Any, args: Sequence[Any], frame: FrameType) -> None:
        """Add a trace when a compiled function is called with shapes never seen before."""
        try:
            if not self._compiled(atomic):
                return
            shapes = tuple(str(getattr(arg, "shape", "")) for arg in args)
            seen = self._shapes.setdefault(atomic.name, set())
            if shapes in seen or len(seen) >= _MOST:
                return
            seen.add(shapes)
            self._tracers.add(_xla_trace(atomic, args, frame))
        except Exception as error:
            self._tracers.failed.append(f"a compiled call could not be read ({error})")

    def _compiled(self, atomic: Any) -> bool:
        name = atomic.name
        if name not in self._xla:
            self._xla[name] = _must_compile(atomic, 3)
        return self._xla[name]


def _must_compile(atomic: Any, depth: int) -> bool:
    attribute = atomic.cached_definition.attr.get("_XlaMustCompile")
    if attribute is not None and attribute.b:
        return True
    return depth > 0 and any(_must_compile(child, depth - 1) for child in atomic.children)


def _xla_trace(atomic: Any, args: Sequence[Any], frame: FrameType) -> Trace:
    caller = user_frame(frame)
    name = re.sub(r"^__inference_|_\d+$", "", atomic.name.decode())
    named = atomic.cached_definition.signature.input_arg
    parts = {
        str(slot.name): Part("tensor", str(arg.dtype.name), str(arg.shape))
        for slot, arg in zip(named, args, strict=False)
    }
    called = frame_place(caller)
    defined = f"compiled with XLA as {atomic.name.decode()}"
    return Trace("xla", name, defined, called, parts, xla=True, inside=library_parts(frame, caller))


def _tf_trace(function_type: Any, options: Any, frame: FrameType) -> Trace:
    function = _innermost(options.python_function)
    code = getattr(function, "__code__", None)
    caller = user_frame(frame)
    cache = options.function_cache
    return Trace(
        "tensorflow",
        str(getattr(function, "__name__", options.name)),
        code_place(code) if code is not None else str(options.name),
        frame_place(caller),
        dict(_tf_signature(function_type)),
        id(cache) if cache is not None else id(options),
        id(code),
        _closure(function),
        "",
        bool((options.attributes or {}).get("_XlaMustCompile")),
        library_parts(frame, caller),
    )


def _innermost(function: Any) -> Any:
    """The person's own function under the wrappers of tf.function and AutoGraph."""
    for _ in range(8):
        code = getattr(function, "__code__", None)
        inner = getattr(function, "__wrapped__", None) or _autograph_source(function)
        if isinstance(inner, weakref.ref):
            inner = inner()
        if inner is None and code is not None and owner(code.co_filename) == "library":
            inner = _wrapped_in_closure(function)
        if inner is None:
            return function
        function = inner
    return function


def _autograph_source(function: Any) -> Any:
    decorator = getattr(function, "_tf_decorator", None)
    return getattr(decorator, "_decorated_target", None)


def _wrapped_in_closure(function: Any) -> Any:
    """What a library's wrapper calls: a user's function among its closure variables."""
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):
            inner = cell.cell_contents
            inner = inner() if isinstance(inner, weakref.ref) else inner
            inner = getattr(inner, "_python_function", inner)
            code = getattr(inner, "__code__", None)
            if code is not None and owner(code.co_filename) != "library":
                return inner
    return None


def _closure(function: Any) -> dict[str, str]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or not cells:
        return {}
    pairs = zip(code.co_freevars, cells, strict=False)
    return {name: _cell_text(cell) for name, cell in pairs}


def _cell_text(cell: Any) -> str:
    try:
        value = cell.cell_contents
    except ValueError:
        return "<empty>"
    return _literal(value)


def _literal(value: Any) -> str:
    if value is None or type(value) in (int, float, bool, str, bytes, complex):
        text = repr(value)
        return text if len(text) <= 60 else text[:57] + "…"
    return f"<{type(value).__name__} {id(value):x}>"


def _tf_signature(function_type: Any) -> Iterator[tuple[str, Part]]:
    for name, parameter in function_type.parameters.items():
        yield from _tf_parts(str(name), parameter.type_constraint, 0)
    for name, kind in function_type.captures.items():
        yield from _tf_parts(f"captured {name}", kind, 0)


def _tf_parts(name: str, kind: Any, depth: int) -> Iterator[tuple[str, Part]]:
    inner = _tf_components(kind) if depth < 5 else None
    if inner is None:
        yield name, _tf_part(kind)
        return
    for key, component in inner:
        yield from _tf_parts(f"{name}{key}", component, depth + 1)


def _tf_components(kind: Any) -> list[tuple[str, Any]] | None:
    label = type(kind).__name__
    if label == "Tuple":
        return [(f"[{n}]", c) for n, c in enumerate(kind.components)]
    if label == "List":
        return [(f"[{n}]", c) for n, c in enumerate(kind.components_tuple.components)]
    if label == "Dict":
        return [(f"[{key!r}]", c) for key, c in kind.mapping.items()]
    if label in ("NamedTuple", "Attrs"):
        parts = getattr(kind, "attributes", None) or kind.named_attributes.attributes
        components = getattr(parts, "components", parts)
        return [(f"[{n}]", c) for n, c in enumerate(components)]
    return None


def _tf_part(kind: Any) -> Part:
    label = type(kind).__name__
    if label == "Literal":
        return _value_part(kind.value)
    if label == "Weakref":
        return _object_part(kind._ref())
    if label == "RaggedTensorSpec":
        return Part("ragged", str(kind.dtype.name), str(kind.shape))
    if hasattr(kind, "shape") and hasattr(kind, "dtype"):
        return Part("tensor", getattr(kind.dtype, "name", str(kind.dtype)), str(kind.shape))
    return Part("other", label, repr(kind)[:120])


def _value_part(value: Any) -> Part:
    if value is None or type(value) in (int, float, bool, str, bytes, complex):
        return Part("value", type(value).__name__, _literal(value))
    return _object_part(value)


def _object_part(value: Any) -> Part:
    if isinstance(value, types.MethodType):
        return Part("method", value.__name__, f"{id(value):x}")
    if isinstance(value, types.FunctionType):
        return Part("function", value.__name__, f"{id(value):x}")
    return Part("object", type(value).__name__, f"{id(value):x}")

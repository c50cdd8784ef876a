"""Functions that a framework compiles again and again, and what differed each time."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leakkit.suspects import Suspect

_KEPT = 200  # traces remembered; a function that is traced more often has shown why


@dataclass(frozen=True)
class Part:
    """One leaf of a signature.

    Args:
        kind: ``tensor``, ``ragged``, ``value``, ``object``, ``method``, ``function`` or ``other``.
        type: the dtype of a tensor, the class of anything else.
        text: the shape of a tensor, the value of a literal, the identity of an object.
    """

    kind: str
    type: str
    text: str

    def words(self) -> str:
        """As a reader sees it."""
        if self.kind in ("tensor", "ragged"):
            return f"{self.type}{self.text}"
        return f"Python {self.type} {self.text}" if self.kind == "value" else f"{self.type} object"


@dataclass(frozen=True)
class Trace:
    """One compilation.

    Args:
        framework: ``tensorflow``, ``jax`` or ``torch``.
        function: the name of what was compiled.
        defined: where it is written.
        called: the user's line that asked for it.
        signature: leaves by argument path, outermost name first.
        instance: which compiled-function object; a new one each time means that it was made anew.
        code: identity of the source code; a new one each time means reloaded or generated code.
        closure: what the function closes over, by variable name.
        context: what else the cache is keyed by.
        xla: whether it is compiled with XLA.
        inside: library parts that asked for it: ``keras``, ``data``, ``custom_gradient`` …
        explained: the framework's own words for the reason, where it has some.
    """

    framework: str
    function: str
    defined: str
    called: str
    signature: Mapping[str, Part] = field(default_factory=dict)
    instance: int = 0
    code: int = 0
    closure: Mapping[str, str] = field(default_factory=dict)
    context: str = ""
    xla: bool = False
    inside: tuple[str, ...] = ()
    explained: tuple[str, str] | None = None  # (cause, words)


@dataclass(frozen=True)
class Difference:
    """Why one trace was not enough for the next call.

    Args:
        cause: ``python-value``, ``shape``, ``dtype``, ``ragged``, ``object``, ``method``,
            ``function``, ``structure``, ``new-function``, ``closure``, ``new-code``, ``context``
            or ``unknown``.
        words: ``argument `lr`: Python float 0.0998 → 0.0997``.
    """

    cause: str
    words: str


def difference(old: Trace, new: Trace) -> Difference:
    """The first thing that differs, in the order in which it decides."""
    if new.explained is not None:
        return Difference(*new.explained)
    if old.code != new.code:
        return Difference("new-code", "the source of the function was loaded or generated anew")
    if old.instance != new.instance:
        return _new_instance(old, new)
    parts = _parts(old.signature, new.signature)
    if parts is not None:
        return parts
    if old.context != new.context:
        return Difference("context", "called in another graph, device or strategy scope")
    return Difference("unknown", "the signatures do not differ")


def _new_instance(old: Trace, new: Trace) -> Difference:
    for name, value in new.closure.items():
        before = old.closure.get(name, value)
        if before != value and not value.startswith("<"):
            return Difference("closure", f"closure variable `{name}`: {before} → {value}")
    return Difference("new-function", "a new function object each time: it is made inside the step")


def _parts(old: Mapping[str, Part], new: Mapping[str, Part]) -> Difference | None:
    if set(old) != set(new):
        names = sorted(set(old) ^ set(new))
        return Difference("structure", f"the arguments differ in {', '.join(names[:4])}")
    changed = [(name, old[name], new[name]) for name in new if old[name] != new[name]]
    if not changed:
        return None
    found = [_part(position, *change) for position, change in enumerate(changed)]
    return min(found, key=lambda d: _CAUSES.index(d.cause))


# What a person should hear first when several arguments change at once.
_CAUSES = ["ragged", "method", "function", "object", "python-value", "dtype", "shape", "structure"]


def _part(position: int, name: str, old: Part, new: Part) -> Difference:
    del position
    where = f"argument `{name}`"
    if old.kind != new.kind:
        return Difference("structure", f"{where}: {old.words()} → {new.words()}")
    if new.kind == "ragged":
        return Difference("ragged", f"{where}: ragged {old.words()} → {new.words()}")
    if new.kind == "tensor":
        cause = "dtype" if old.type != new.type else "shape"
        return Difference(cause, f"{where}: {old.words()} → {new.words()}")
    if new.kind == "value":
        change = f"{where}: Python {new.type} {old.text} → {new.text}"
        return Difference("python-value", f"{change}; pass a tensor")
    if new.kind in ("method", "function"):
        return Difference(new.kind, f"{where}: a new {_NOUNS[new.kind]} object each time")
    return Difference("object", f"{where}: a new {new.type} object each time (its identity counts)")


_NOUNS = {"method": "bound method", "function": "function"}


@dataclass
class Retraced:
    """All traces of one function during the hunt."""

    traces: list[Trace]

    def causes(self) -> list[Difference]:
        """One difference for each consecutive pair."""
        pairs = zip(self.traces, self.traces[1:], strict=False)
        found = [difference(old, new) for old, new in pairs]
        alone = self.traces[0].explained
        return found or ([Difference(*alone)] if alone else [])


def group(traces: Iterable[Trace]) -> list[Retraced]:
    """Traces by where the function is written; one that is called once is dropped later."""
    groups: dict[tuple[str, str], list[Trace]] = collections.defaultdict(list)
    for trace in traces:
        same = groups[trace.framework, trace.defined]
        if len(same) < _KEPT:
            same.append(trace)
    return [Retraced(same) for same in groups.values()]


def suspects(traces: Sequence[Trace], steps: int) -> list[Suspect]:
    """Functions traced in at least a third of the steps of the hunt, most often first.

    Args:
        traces: in the order in which they happened.
        steps: steps of the hunt.
    """
    often = [g for g in group(traces) if len(g.traces) >= max(2, steps / 3)]
    often.sort(key=lambda g: (-_is_outer(g), -len(g.traces)))
    return [_suspect(g, steps) for g in often]


def _is_outer(retraced: Retraced) -> int:
    """A function that the user called directly says more than one that a library made."""
    return int(not retraced.traces[-1].inside)


def _suspect(retraced: Retraced, steps: int) -> Suspect:
    last, causes = retraced.traces[-1], retraced.causes()
    cause = collections.Counter(d.cause for d in causes).most_common(1)[0][0]
    example = [d for d in causes if d.cause == cause][-1]
    rate = len(retraced.traces) / max(1, steps)
    facts: dict[str, Any] = {
        "framework": last.framework,
        "function": last.function,
        "defined": last.defined,
        "called": last.called,
        "traces": len(retraced.traces),
        "cause": cause,
        "causes": sorted({d.cause for d in causes}),
        "difference": example.words,
        "xla": last.xla,
        "inside": list(last.inside),
    }
    where = f"{last.function} ({last.defined})"
    if last.called:
        where += f", called at {last.called}"
    what = f"traced {len(retraced.traces)} times in {steps} steps: {example.words}"
    return Suspect(
        "retrace", where, what, rate, "traces", ("traces", "native_heap", "python_heap"), facts
    )

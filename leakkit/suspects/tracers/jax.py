"""JAX' explanations of its cache misses."""

from __future__ import annotations

import logging
import re
import sys
from typing import TYPE_CHECKING

from leakkit.suspects.places import owner, place
from leakkit.suspects.retraces import Trace

if TYPE_CHECKING:
    from leakkit.suspects.tracers import Tracers

_MISS = re.compile(
    r"TRACING CACHE MISS at (?P<file>.+?):(?P<line>\d+)(?::\d+)? \((?P<function>.*?)\)"
)
_JAX_NAME = re.compile(
    r"^\s*(?:for )?(?P<name>\S+?)(?: id=(?P<id>\d+))? defined at (?P<place>.+:\d+)\s*$", re.M
)
_JAX_TYPES = re.compile(r"\* at (?P<name>.+?), now (?P<new>\S+) and before (?P<old>\S+)")
_JAX_STATIC = re.compile(r"Static\(val=(?P<new>.*?)\) and before .*Static\(val=(?P<old>.*?)\)")


class _Listener(logging.Handler):
    """Reads JAX' explanations of its cache misses, and shows them to nobody."""

    def __init__(self, tracers: Tracers) -> None:
        super().__init__(logging.WARNING)
        self._tracers = tracers

    def emit(self, record: logging.LogRecord) -> None:
        """Turn a message into a trace."""
        trace = jax_trace(record.getMessage())
        if trace is not None:
            self._tracers.add(trace)


def listen(tracers: Tracers) -> None:
    """Have JAX explain its cache misses to ``tracers``, and to nobody else."""
    config = sys.modules["jax"].config
    before = config.jax_explain_cache_misses
    logger = logging.getLogger("jax._src.interpreters.partial_eval")
    older = logging.getLogger("jax._src.pjit")  # where JAX wrote this before 0.6
    listener = _Listener(tracers)
    saved = [(log, log.propagate) for log in (logger, older)]
    for log, _ in saved:
        log.addHandler(listener)
        log.propagate = False
    config.update("jax_explain_cache_misses", True)

    def undo() -> None:
        config.update("jax_explain_cache_misses", before)
        for log, propagate in saved:
            log.removeHandler(listener)
            log.propagate = propagate

    tracers.at_end(undo)


def jax_trace(message: str) -> Trace | None:
    """A trace from JAX' explanation of one tracing-cache miss; ``None`` for another message."""
    miss, name = _MISS.search(message), _JAX_NAME.search(message)
    if miss is None:
        return None
    called = place(miss["file"], int(miss["line"]), miss["function"])
    function = name["name"] if name else "?"
    defined = name["place"] if name else called
    file, _, line = defined.rpartition(":")
    if line.isdigit():
        defined = place(file, int(line), function)
    inside = ("jax",) if owner(file) == "library" else ()
    return Trace("jax", function, defined, called, inside=inside, explained=_jax_reason(message))


def _jax_reason(message: str) -> tuple[str, str]:
    if "never seen function" in message:
        return "new-function", "a new function object each time: it is made inside the step"
    changed = _JAX_TYPES.search(message)
    if changed is not None:
        same = changed["new"].partition("[")[0] == changed["old"].partition("[")[0]
        words = f"argument `{changed['name']}`: {changed['old']} → {changed['new']}"
        return ("shape" if same else "dtype"), words
    static = _JAX_STATIC.search(message)
    if static is not None:
        return "python-value", (
            f"static argument: {static['old']} → {static['new']}; make it an ordinary argument"
        )
    reason = message.rpartition("\n")[2].strip(" *")
    return "structure", reason[:160]

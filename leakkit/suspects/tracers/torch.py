"""Dynamo's recompilations, as PyTorch counts them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from leakkit.suspects.places import place
from leakkit.suspects.retraces import Trace

if TYPE_CHECKING:
    from leakkit.suspects.tracers import Tracers


def listen(tracers: Tracers) -> None:
    """Read at the end which compilations are new; nothing where dynamo is not loaded."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return
    before = list(utils.get_compilation_metrics())  # kept, so that no id is used again

    def collect() -> list[Trace]:
        known = set(map(id, before))
        metrics = utils.get_compilation_metrics()
        return [_torch_trace(metric) for metric in metrics if id(metric) not in known]

    tracers.collect_at_end(collect)


def _torch_trace(metric: Any) -> Trace:
    name = str(getattr(metric, "co_name", "?"))
    file = str(getattr(metric, "co_filename", "") or "")
    line = int(getattr(metric, "co_firstlineno", 0) or 0)
    reason = getattr(metric, "recompile_reason", None)
    return Trace("torch", name, place(file, line, name), "", explained=_torch_reason(reason))


def _torch_reason(reason: str | None) -> tuple[str, str]:
    if not reason:
        return "new-function", "a new function object each time: it is made inside the step"
    words = reason.partition(": ")[2] or reason
    if "size mismatch" in words or "stride mismatch" in words:
        return "shape", words
    if "dtype mismatch" in words:
        return "dtype", words
    return ("python-value" if "==" in words else "structure"), words[:160]

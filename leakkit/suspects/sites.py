"""Allocation sites: which of the user's lines made what is still alive."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakkit.suspects import Suspect
from leakkit.suspects.places import is_user, owner, place, short

if TYPE_CHECKING:
    from leakkit.heap import Frame, Site

WINDOWS = 4  # a site must have grown in each of them
IN_THREADS = "in threads without Python code"
_SHOWN = 40  # a site below this many times less than the biggest is noise to a reader
_LIMIT = 20


@dataclass
class _Line:
    """All sites that share the user's innermost line."""

    where: str
    stack: tuple[Frame, ...]
    live: NDArray[np.float64]
    blocks: NDArray[np.float64]
    by_stack: dict[tuple[Frame, ...], float] = field(default_factory=dict)
    native_frames: tuple[str, ...] = ()  # of the native site that grows fastest
    fastest: float = 0.0
    native: float = 0.0
    python: float = 0.0


def rank_sites(sites: Sequence[Site], limit: int = _LIMIT) -> list[Suspect]:
    """The user's lines whose live bytes grew in every window, most bytes a step first.

    Args:
        sites: every allocation site of the trace pass, each ``live`` and ``blocks`` of shape
            ``(steps,)``.
        limit: lines to return at most.
    """
    found = list(_by_line(sites).values())
    lines = [line for line in found if grows_in_every_window(line.live)]
    # Rare bursts leave some of four windows empty; two halves are then the finest that tell.
    lines = lines or [line for line in found if _grows_in_bursts(line.live)]
    ranked = sorted(lines, key=lambda line: -slope(line.live))[:limit]
    top = slope(ranked[0].live) if ranked else 0.0
    return [_suspect(line) for line in ranked if slope(line.live) * _SHOWN >= top]


def slope(live: NDArray[np.float64]) -> float:
    """Growth per step from the first fence to the last."""
    return float(live[-1] - live[0]) / max(1, len(live) - 1)


def grows_in_every_window(live: NDArray[np.float64], windows: int = WINDOWS) -> bool:
    """Whether the least live bytes of each window exceed those of the window before.

    The floor of a window, not its end: what is freed again within a window is not kept.
    """
    if len(live) < windows:
        return bool(len(live) > 1 and live[-1] > live[0])
    floors = [float(part.min()) for part in np.array_split(live, windows)]
    return all(late > early for early, late in itertools.pairwise(floors))


def _grows_in_bursts(live: NDArray[np.float64]) -> bool:
    """Higher in the second half, and not by one single rise: that is a thing loaded once."""
    return grows_in_every_window(live, 2) and bool(np.count_nonzero(np.diff(live) > 0) > 1)


def user_line(stack: Iterable[Frame]) -> Frame | None:
    """The innermost frame that the user wrote."""
    return next((frame for frame in stack if is_user(frame.file)), None)


def _by_line(sites: Sequence[Site]) -> dict[str, _Line]:
    lines: dict[str, _Line] = {}
    for site in sites:
        where = _where(site.stack)
        if where is None:
            continue
        line = lines.get(where)
        if line is None:
            zero = np.zeros(len(site.live))
            line = lines[where] = _Line(where, site.stack, zero, zero.copy())
        _merge(line, site)
    return lines


def _merge(line: _Line, site: Site) -> None:
    line.live = line.live + site.live
    line.blocks = line.blocks + site.blocks
    rate = slope(site.live)
    line.by_stack[site.stack] = line.by_stack.get(site.stack, 0.0) + rate
    if site.allocator == "native":
        line.native += rate
        if rate > line.fastest:
            line.fastest, line.native_frames = rate, site.native
    else:
        line.python += rate


def _where(stack: tuple[Frame, ...]) -> str | None:
    """The key to merge by; ``None`` for leakkit's own allocations."""
    whose = (owner(frame.file) for frame in stack)
    if next((o for o in whose if o != "stdlib"), None) == "leakkit":
        # A block that leakkit made, let go and that the step then took from a free list.
        return None
    frame = user_line(stack)
    if frame is not None:
        return place(frame.file, frame.line, frame.function)
    if not stack:
        return IN_THREADS
    owners = {owner(frame.file) for frame in stack}
    if "leakkit" in owners or owners == {"stdlib"}:
        return None  # no line of the user's, and leakkit called it
    library = next(f for f in stack if owner(f.file) == "library")
    return place(library.file, library.line, library.function)


def _suspect(line: _Line) -> Suspect:
    rate, blocks = slope(line.live), slope(line.blocks)
    heaviest = max(line.by_stack, key=lambda stack: line.by_stack[stack])
    explains = tuple(
        name
        for name, share in (
            ("python_heap", line.python),
            ("python_blocks", line.python),
            ("native_heap", line.native),
        )
        if share > 0.05 * rate
    )
    return Suspect(
        "site",
        line.where,
        _what(rate, blocks, heaviest),
        rate,
        "B",
        explains,
        _facts(line, heaviest, rate, blocks),
    )


def _what(rate: float, blocks: float, stack: tuple[Frame, ...]) -> str:
    text = f"{rate:+,.0f} B and {blocks:+,.1f} blocks a step"
    inner = stack[0] if stack else None
    if inner is not None and not is_user(inner.file):
        text += f", allocated by {inner.function} ({short(inner.file)})"
    return text


def _facts(line: _Line, heaviest: tuple[Frame, ...], rate: float, blocks: float) -> dict[str, Any]:
    frame = user_line(heaviest)
    return {
        "bytes_per_step": rate,
        "blocks_per_step": blocks,
        "python_bytes": line.python,
        "native_bytes": line.native,
        "stack": [(f.function, f.file, f.line) for f in heaviest],
        "file": frame.file if frame else "",
        "line": frame.line if frame else 0,
        "function": frame.function if frame else "",
        "calls": _calls(line),
        "native": list(line.native_frames),
    }


def _calls(line: _Line) -> dict[str, float]:
    """Bytes a step by library function below the user's line (``module.function``)."""
    calls: dict[str, float] = {}
    for stack, rate in line.by_stack.items():
        if rate <= 0:
            continue
        for name in _below_user(stack):
            calls[name] = calls.get(name, 0.0) + rate
    return calls


def _below_user(stack: tuple[Frame, ...]) -> set[str]:
    names: set[str] = set()
    for frame in stack:
        if is_user(frame.file):
            break
        stem = frame.file.rpartition("/")[2].removesuffix(".py")
        names.add(f"{stem}.{frame.function}")
    return names

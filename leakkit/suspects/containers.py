"""Containers that grow by about a constant a step, named and weighed."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakkit.suspects import Suspect, items
from leakkit.suspects.census import Tracked, slot_value, steady_rate
from leakkit.suspects.paths import Path, Sought
from leakkit.suspects.registries import registry
from leakkit.suspects.sizes import Weight, isinstance_exact, type_module, type_name, weigh
from leakkit.units import bytes_text

_EXPLAINS = (
    "python_heap", "native_heap", "device_memory", "live_tensor_bytes", "live_objects",
    "live_tensors", "python_blocks", "latency",
)  # fmt: skip
_SLOT = 8  # bytes of the reference itself


@dataclass
class Grower:
    """One place that grew in both halves of the hunt.

    Args:
        tracked: what was followed.
        rate: items, or bytes for a value that is replaced, per step.
        path: its name, once it has one.
        weight: what the sampled items hold together.
        sampled: how many items that are.
    """

    tracked: Tracked
    rate: float
    path: Path | None = None
    weight: Weight | None = None
    sampled: int = 0

    @property
    def length(self) -> int:
        """Items, or bytes, at the last census."""
        return self.tracked.sizes[-1]

    @property
    def replaced(self) -> bool:
        """Whether it is a value that is replaced by bigger ones, not a container that fills."""
        return self.tracked.kind == "value"

    @property
    def bytes_per_step(self) -> float:
        """What it is estimated to gain a step."""
        if self.replaced:
            return self.rate
        if self.weight is None or not self.sampled:
            return 0.0
        return self.rate * (self.weight.bytes / self.sampled + _SLOT)


def growers(tracked: Sequence[Tracked], steps: Sequence[int]) -> list[Grower]:
    """Those that rose steadily; a value that is itself a growing container is not repeated."""
    found = [Grower(t, steady_rate(t.sizes, steps)) for t in tracked]
    found = [g for g in found if g.rate > 0]
    counted = {id(g.tracked.holder) for g in found if g.tracked.kind == "length"}
    return [g for g in found if not (g.replaced and id(target(g)) in counted)]


def target(grower: Grower) -> Any:
    """The object to look for when the grower is named."""
    tracked = grower.tracked
    return slot_value(tracked.holder, tracked.key) if grower.replaced else tracked.holder


def sought(grower: Grower) -> Sought:
    """The same, with what holds it where that is known."""
    tracked = grower.tracked
    known = {"value": tracked.holder, "lru": tracked.key}
    return Sought(target(grower), known.get(tracked.kind))


def weigh_grower(grower: Grower, fresh: set[int], others: set[int], since: int) -> None:
    """Estimate what one new item holds.

    Args:
        grower: gets its ``weight`` and ``sampled``.
        fresh: ids of the objects made since the last census but one.
        others: ids of the other growing containers, which are weighed on their own.
        since: steps since then; only items added in them can be weighed.
    """
    added = max(1, min(items.SAMPLE, int(grower.rate * since)))
    sample = _contents(grower, fresh)[:added]
    grower.sampled = len(sample)
    flat = [part for item in sample for part in item]
    grower.weight = weigh(flat, fresh - others, 400 * max(1, len(sample)))


def _contents(grower: Grower, fresh: set[int] | None = None) -> list[items.Item]:
    if grower.replaced:
        return [(target(grower),)]
    return items.newest(grower.tracked.holder, fresh)


def suspect(grower: Grower) -> Suspect | None:
    """The evidence, or ``None`` where nothing with a name holds it or it is leakkit's own."""
    path = grower.path
    if path is None or path.owner == "leakkit":
        return None
    known = registry(path)
    where = f"{known.words}: {_where(grower, path)}" if known else _where(grower, path)
    library = known or path.owner != "user" or path.kind == "lru_cache"
    facts = {
        **_size_facts(grower),
        **_item_facts(grower),
        **_path_facts(path),
        "registry": known.name if known else None,
    }
    unit = "B" if grower.replaced else "items"
    kind = "cache" if library else "container"
    return Suspect(kind, where, _what(grower), grower.rate, unit, _EXPLAINS, facts)


def _where(grower: Grower, path: Path) -> str:
    if path.kind == "lru_cache":
        return f"lru_cache of `{path.lru_wraps}`"
    return f"{type_name(type(target(grower)))} {path.text()}"


def _what(grower: Grower) -> str:
    if grower.replaced:
        now = bytes_text(grower.length)
        return f"+{bytes_text(grower.rate)} a step, now {now}: replaced by a bigger one each time"
    text = f"{grower.rate:+,.3g} {_held(grower)} a step, {grower.length:,} items"
    if not grower.sampled:
        return text
    total = grower.bytes_per_step / grower.rate * grower.length
    return f"{text}, about {bytes_text(total)}"


def _held(grower: Grower) -> str:
    """The type of what it holds, as a word: ``EagerTensor``, ``tuple of ndarray``."""
    item, heavy = items.commonest_value(_contents(grower)), items.heaviest(grower.weight)
    if item in ("tuple", "list", "dict") and heavy not in ("", item):
        return f"{item} of {heavy}"
    return item or "items"


def bound(grower: Grower) -> int | None:
    """The visible limit: a deque's ``maxlen``, an ``lru_cache``'s ``maxsize``."""
    holder = grower.tracked.holder
    if isinstance_exact(holder, (collections.deque,)):
        maxlen: int | None = vars(collections.deque)["maxlen"].__get__(holder)
        return maxlen
    if grower.tracked.kind == "lru":
        maxsize: int | None = grower.tracked.key.cache_info().maxsize
        return maxsize
    return None


def _size_facts(grower: Grower) -> dict[str, Any]:
    kind = type(target(grower))
    return {
        "bytes_per_step": grower.bytes_per_step,
        "items_per_step": 0.0 if grower.replaced else grower.rate,
        "length": grower.length,
        "bound": bound(grower),
        "replaced": grower.replaced,
        "container": type_name(kind),
        "container_module": type_module(kind),
    }


def _item_facts(grower: Grower) -> dict[str, Any]:
    newest, weight = _contents(grower), grower.weight or Weight()
    return {
        "item": items.commonest_value(newest),
        "key": items.commonest_key(newest),
        "holds": sorted(weight.counts),
        "heaviest": items.heaviest(weight),
        "opaque": items.opaque(weight),
        "parts": items.parts(newest),
        "keyed_by_identity": items.keyed_by_identity(newest),
        "view": items.is_view(newest),
        "has_graph": items.has_graph(newest),
        "waits": items.waits(newest),
    }


def _path_facts(path: Path) -> dict[str, Any]:
    return {
        "path_kind": path.kind,
        "path": path.name,
        "owner": path.owner,
        "module": path.module,
        "path_types": sorted({*path.types, *path.bases}),
        "on_method": path.kind == "lru_cache" and _is_method(path.lru_wraps),
    }


def _is_method(qualname: str) -> bool:
    """``Trainer.score`` and not ``make.<locals>.score``: written in a class body."""
    outer = qualname.rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>")

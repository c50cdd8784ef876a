"""Containers that grow by about a constant a step, named and weighed."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leakkit.suspects import Suspect
from leakkit.suspects.census import Tracked, slot_value, steady_rate
from leakkit.suspects.paths import Path, dict_of
from leakkit.suspects.registries import registry
from leakkit.suspects.sizes import Weight, isinstance_exact, type_module, type_name, weigh

_SAMPLE = 16  # items weighed of one container


@dataclass
class Grower:
    """One place that grew in both halves of the hunt.

    Args:
        tracked: what was followed.
        rate: items, or bytes for a value that is replaced, per step.
        path: its name, once it has one.
        weight: what the sampled items hold, per item.
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
    def bytes_per_step(self) -> float:
        """What it is estimated to gain a step."""
        if self.tracked.kind == "value":
            return self.rate
        if self.weight is None or not self.sampled:
            return 0.0
        return self.rate * (self.weight.bytes / self.sampled + 8)


def growers(tracked: Sequence[Tracked], steps: Sequence[int]) -> list[Grower]:
    """Those that rose steadily; a value that is itself a growing container is not repeated."""
    found = [Grower(t, steady_rate(t.sizes, steps)) for t in tracked]
    found = [g for g in found if g.rate > 0]
    counted = {id(g.tracked.holder) for g in found if g.tracked.kind == "length"}
    return [g for g in found if not (g.tracked.kind == "value" and id(_value(g)) in counted)]


def target(grower: Grower) -> Any:
    """The object to look for when the grower is named."""
    return grower.tracked.holder if grower.tracked.kind != "value" else _value(grower)


def _value(grower: Grower) -> Any:
    return slot_value(grower.tracked.holder, grower.tracked.key)


def weigh_grower(grower: Grower, fresh: set[int], others: set[int], since: int) -> None:
    """Estimate what one new item holds.

    Args:
        grower: gets its ``weight`` and ``sampled``.
        fresh: ids of the objects made since the last census but one.
        others: ids of the other growing containers, which are weighed on their own.
        since: steps since then; only items added in them can be weighed.
    """
    added = max(1, min(_SAMPLE, int(grower.rate * since)))
    items = _newest(grower, fresh)[:added]
    grower.sampled = len(items)
    parts = [part for item in items for part in item]
    grower.weight = weigh(parts, fresh - others, 400 * max(1, len(items)))


def _newest(grower: Grower, fresh: set[int]) -> list[tuple[Any, ...]]:
    holder, kind = grower.tracked.holder, grower.tracked.kind
    try:
        if kind == "value":
            return [(_value(grower),)]
        if kind == "lru":
            return []
        return _last_items(holder, fresh)
    except Exception:  # a container that changes meanwhile, or a hostile subclass
        return []


def _last_items(holder: Any, fresh: set[int]) -> list[tuple[Any, ...]]:
    if isinstance_exact(holder, (dict,)):
        latest = itertools.islice(reversed(list(dict.items(holder))), _SAMPLE)
        return [pair for pair in latest]
    if isinstance_exact(holder, (list,)):
        return [(item,) for item in reversed(list.__getitem__(holder, slice(-_SAMPLE, None)))]
    if isinstance_exact(holder, (collections.deque,)):
        return [(item,) for item in itertools.islice(collections.deque.__reversed__(holder), _SAMPLE)]
    members = [m for m in set.__iter__(holder) if id(m) in fresh] or list(set.__iter__(holder))
    return [(m,) for m in members[:_SAMPLE]]


def suspect(grower: Grower) -> Suspect | None:
    """The evidence, or ``None`` where nothing with a name holds it or it is leakkit's own."""
    path = grower.path
    if path is None or path.owner == "leakkit":
        return None
    known = registry(path)
    facts = {**_facts(grower, path), "registry": known.name if known else None}
    where = f"{known.words}: {_where(grower, path)}" if known else _where(grower, path)
    unit = "B" if grower.tracked.kind == "value" else "items"
    return Suspect(
        "cache" if known or path.owner != "user" or path.kind == "lru_cache" else "container",
        where, _what(grower, path), grower.rate, unit, ("python_heap", "native_heap"), facts,
    )


def _where(grower: Grower, path: Path) -> str:
    kind = type_name(type(target(grower)))
    if path.kind == "lru_cache":
        return f"lru_cache of `{path.lru_wraps}`"
    return f"{kind} {path.text()}"


def _what(grower: Grower, path: Path) -> str:
    if grower.tracked.kind == "value":
        return f"{grower.rate:+,.0f} B a step, now {grower.length:,} B: replaced by a bigger one"
    item = held(grower)
    text = f"{grower.rate:+,.3g} {item} a step, {grower.length:,} items"
    total = grower.bytes_per_step / grower.rate * grower.length if grower.rate else 0.0
    return f"{text}, about {_bytes(total)}" if grower.sampled else text


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def held(grower: Grower) -> str:
    """The type of what it holds, as a word: ``EagerTensor``, ``tuple of ndarray``."""
    item = item_type(grower)
    heavy = heaviest(grower.weight)
    if item in ("tuple", "list", "dict") and heavy not in ("", item):
        return f"{item} of {heavy}"
    return item or "items"


def item_type(grower: Grower) -> str:
    """The commonest type of its newest items; of a dict, of the values."""
    newest = _newest(grower, set())
    counts = collections.Counter(type_name(type(item[-1])) for item in newest)
    return counts.most_common(1)[0][0] if counts else ""


def key_type(grower: Grower) -> str:
    """The commonest type of a dict's newest keys."""
    newest = [item for item in _newest(grower, set()) if len(item) == 2]
    counts = collections.Counter(type_name(type(item[0])) for item in newest)
    return counts.most_common(1)[0][0] if counts else ""


def heaviest(weight: Weight | None) -> str:
    """The type with the most bytes among what was reached."""
    return weight.types.most_common(1)[0][0] if weight and weight.types else ""


def bound(grower: Grower) -> int | None:
    """The visible limit: a deque's ``maxlen``, an ``lru_cache``'s ``maxsize``."""
    holder = grower.tracked.holder
    if isinstance_exact(holder, (collections.deque,)):
        maxlen: int | None = collections.deque.maxlen.__get__(holder)  # type: ignore[attr-defined]
        return maxlen
    if grower.tracked.kind == "lru":
        maxsize: int | None = holder.cache_info().maxsize
        return maxsize
    return None


def _facts(grower: Grower, path: Path) -> dict[str, Any]:
    weight = grower.weight or Weight()
    value = target(grower)
    return {
        "bytes_per_step": grower.bytes_per_step,
        "items_per_step": grower.rate if grower.tracked.kind != "value" else 0.0,
        "length": grower.length,
        "bound": bound(grower),
        "replaced": grower.tracked.kind == "value",
        "container": type_name(type(value)),
        "container_module": type_module(type(value)),
        "item": item_type(grower),
        "key": key_type(grower),
        "holds": sorted(weight.counts),
        "heaviest": heaviest(weight),
        "parts": _parts(grower),
        "keyed_by_identity": keyed_by_identity(grower),
        "view": _is_view(grower),
        "has_graph": _has_graph(grower),
        "path_kind": path.kind,
        "path": path.name,
        "owner": path.owner,
        "module": path.module,
        "path_types": list(path.types),
        "on_method": path.kind == "lru_cache" and _is_method(path.lru_wraps),
    }


_IDENTITIES = {"Reference", "KeyedRef", "ReferenceType", "_ObjectIdentityWrapper", "weakref"}


def keyed_by_identity(grower: Grower) -> bool:
    """Whether a dict's keys stand for one object each: ``id()``, a reference, a plain object."""
    keys = [item[0] for item in _newest(grower, set()) if len(item) == 2]
    return bool(keys) and all(_is_identity(key) for key in keys)


def _is_identity(key: Any) -> bool:
    kind = type(key)
    if kind is int:
        return bool(key > 1 << 32)  # as big as an address: no counter gets there
    if kind is tuple:
        return any(_is_identity(part) for part in key)
    plain = kind.__hash__ is object.__hash__ and not isinstance_exact(key, (type,))
    return type_name(kind) in _IDENTITIES or plain


def _parts(grower: Grower) -> int:
    """Entries of its newest item, where that is a tuple, a list, a dict or a record."""
    newest = _newest(grower, set())
    item = newest[0][-1] if newest else None
    if isinstance_exact(item, (tuple, list, dict)):
        return len(item)
    return len(dict_of(item))


def _is_view(grower: Grower) -> bool:
    """Whether an item is a small array that keeps a much bigger one alive."""
    newest = _newest(grower, set())
    item = newest[0][-1] if newest else None
    if type_name(type(item)) != "ndarray" or item.base is None:
        return False
    return int(getattr(item.base, "nbytes", 0)) > 2 * item.nbytes


def _has_graph(grower: Grower) -> bool:
    """Whether an item is a PyTorch tensor that keeps the graph which computed it."""
    newest = _newest(grower, set())
    items = newest[0][-1] if newest else None
    items = items if isinstance_exact(items, (tuple, list)) else [items]
    return any(type_name(type(i)) == "Tensor" and _grad_fn(i) for i in items)


def _grad_fn(tensor: Any) -> bool:
    try:
        return tensor.grad_fn is not None
    except Exception:
        return False


def _is_method(qualname: str) -> bool:
    """``Trainer.score`` and not ``make.<locals>.score``: written in a class body."""
    outer = qualname.rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>")

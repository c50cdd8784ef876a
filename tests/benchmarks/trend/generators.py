"""Labelled series: what correct and leaking loops look like at the boundaries, as random draws.

Every generator takes a random generator and a number of steps and returns one series; a latency
generator returns step and control seconds. Time 0 is the first boundary after the warm-up.
The families follow a survey of public leak reports and of real traces; the parameters are drawn
anew for each series, so that no constant of the judgement can fit one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakkit.series import Kind

Floats = NDArray[np.float64]
Draw = np.random.Generator
Make = Callable[[Draw, int], Floats | tuple[Floats, Floats]]

KIB, MIB, PAGE = 1024, 1 << 20, 4096


@dataclass(frozen=True)
class Case:
    """One labelled family of series.

    Args:
        name: kebab-case.
        kind: how the quantity would be measured.
        grows: the truth.
        make: draws one series.
        apart: whether 480 steps can tell it from the other truth in principle.
        floor: least power within 480 steps that the benchmark accepts (growing cases).
        by: steps within which that power is needed.
    """

    name: str
    kind: Kind
    grows: bool
    make: Make
    apart: bool = True
    floor: float = 0.0
    by: int = 480


# ---- building blocks ------------------------------------------------------------------------


def clock(steps: int) -> Floats:
    return np.arange(steps, dtype=np.float64)


def leak(steps: int, size: float, every: int = 1) -> Floats:
    return size * (clock(steps) // every)


def rare_leak(rng: Draw, steps: int, size: float, chance: float) -> Floats:
    return size * np.cumsum(rng.random(steps) < chance).astype(np.float64)


def filling(steps: int, full: int, item: float = 1024.0) -> Floats:
    return item * np.minimum(clock(steps), full)


def sawtooth(rng: Draw, steps: int, top: float, shortest: float, longest: float) -> Floats:
    """Garbage that piles up to ``top`` and is dropped; what remains is part of one step's."""
    rise = top / rng.uniform(shortest, longest)
    level, out = rng.uniform(0, top), np.empty(steps)
    rises = rise * rng.uniform(0.9, 1.1, steps)
    rests = rise * rng.random(steps)
    for i in range(steps):
        level += rises[i]
        if level >= top:
            level = rests[i]
        out[i] = level
    return np.round(out / 16) * 16


def random_cache(rng: Draw, steps: int, keys: int, item: float) -> Floats:
    """Entries of a cache whose keys come uniformly at random."""
    wanted = rng.integers(0, keys, steps)
    new = np.zeros(steps)
    new[np.unique(wanted, return_index=True)[1]] = 1
    return item * np.cumsum(new)


def bumps(rng: Draw, steps: int, every: list[int], height: float, width: int = 1) -> Floats:
    gap = int(rng.choice(every))
    return height * ((clock(steps) + rng.integers(0, gap)) % gap < width)


def jumps(rng: Draw, steps: int, start: float, stop: float, most: int) -> Floats:
    out = np.zeros(steps)
    for _ in range(int(rng.integers(1, most + 1))):
        out[int(rng.uniform(start, stop) * steps) :] += float(1 << int(rng.integers(16, 23)))
    return out


def settling(rng: Draw, steps: int, item: float = 4096.0) -> Floats:
    """First touches that become rarer exponentially."""
    return item * np.cumsum(rng.random(steps) < np.exp(-clock(steps) / rng.uniform(5, 40)))


def walk(rng: Draw, steps: int, stride: float, top: float) -> Floats:
    """A random walk between two walls."""
    path = rng.uniform(0, top) + np.cumsum(stride * rng.integers(-1, 2, steps))
    return top - np.abs(np.mod(path, 2 * top) - top)


def lru_sizes(rng: Draw, steps: int, kept: int = 50) -> Floats:
    """Bytes of the last ``kept`` objects of log-normal size."""
    sizes = np.cumsum(rng.lognormal(np.log(8000), 0.5, steps + kept))
    return np.round((sizes[kept:] - sizes[:-kept]) / 16) * 16


def list_bytes(items: Floats) -> Floats:
    """Bytes of a CPython list that grew to so many items by append."""
    room, table = 0, np.zeros(int(items.max()) + 1)
    for n in range(1, len(table)):
        if n > room:
            room = (n + (n >> 3) + 6) & ~3
        table[n] = 8.0 * room
    return table[items.astype(int)]


def dict_bytes(items: Floats) -> Floats:
    room = 8 * 2 ** np.ceil(np.log2(np.maximum(items * 1.5 / 8, 1)))
    return np.asarray(28 * room + 32 * items)


def chunks(values: Floats, size: float = 131072.0) -> Floats:
    return np.ceil(values / size) * size


def wander(rng: Draw, steps: int, deviation: float, memory: float) -> Floats:
    """A stationary first-order autoregression; ``memory`` is its time constant in steps."""
    keep = float(np.exp(-1 / memory))
    shocks = rng.normal(0, deviation * np.sqrt(1 - keep * keep), steps)
    out, level = np.empty(steps), rng.normal(0, deviation)
    for i in range(steps):
        out[i] = level
        level = keep * level + shocks[i]
    return out


def thread_cache(rng: Draw, steps: int) -> Floats:
    """glibc's per-thread caches filling: classes of 7 chunks, some rarely used."""
    out = np.zeros(steps)
    for size in rng.choice(np.arange(32, 1041, 16), int(rng.integers(10, 60)), replace=False):
        gap = np.exp(rng.uniform(np.log(0.3), np.log(60)))
        times = np.cumsum(rng.exponential(gap, 7)).astype(int)
        for time in times[times < steps]:
            out[time:] += size
    return out


def malloc_noise(rng: Draw, steps: int) -> Floats:
    """In-use bytes of temporaries that other threads hold at a boundary."""
    return np.round(np.abs(wander(rng, steps, rng.uniform(100, 4000), rng.uniform(1, 5))) / 16) * 16


def pages(rng: Draw, steps: int) -> Floats:
    return PAGE * np.round(wander(rng, steps, 3.3, 4.5))


# ---- levels ---------------------------------------------------------------------------------

E, N, C, L = Kind.EXACT, Kind.NOISY, Kind.COUNTER, Kind.LATENCY


def U(rng: Draw, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


EXACT = (
    Case("flat", E, False, lambda r, n: np.zeros(n)),
    Case("batch-jitter-20k", E, False, lambda r, n: np.round(r.exponential(2e4, n) / 16) * 16),
    Case("cache-full-at-20-80", E, False, lambda r, n: filling(n, U(r, 20, 80))),
    Case("cache-full-at-100-250", E, False, lambda r, n: filling(n, U(r, 100, 250))),
    Case("cache-full-at-0.8-of-cap", E, False, lambda r, n: filling(n, U(r, 350, 384))),
    Case("cache-full-at-end", E, False, lambda r, n: filling(n, U(r, 460, 480)), apart=False),
    Case(
        "random-cache-32-128-keys", E, False, lambda r, n: random_cache(r, n, U(r, 32, 128), 2048)
    ),
    Case(
        "random-cache-256-keys", E, False, lambda r, n: random_cache(r, n, 256, 2048), apart=False
    ),
    Case("sawtooth-15-60", E, False, lambda r, n: sawtooth(r, n, 64e3, 15, 60)),
    Case(
        "two-sawtooths",
        E,
        False,
        lambda r, n: sawtooth(r, n, 32e3, 5, 10) + sawtooth(r, n, 64e3, 60, 80),
    ),
    Case("checkpoint-spikes", E, False, lambda r, n: bumps(r, n, [10, 25, 50], 5e6)),
    Case("settling", E, False, lambda r, n: settling(r, n)),
    Case("one-offs", E, False, lambda r, n: jumps(r, n, 0, 1, 3)),
    Case("late-one-off", E, False, lambda r, n: jumps(r, n, 0.75, 0.99, 1)),
    Case(
        "late-spike",
        E,
        False,
        lambda r, n: 1e7 * (np.abs(clock(n) - U(r, int(0.75 * n), n)) < U(r, 1, 3)),
    ),
    Case("lru-of-sizes", E, False, lambda r, n: lru_sizes(r, n)),
    Case(
        "buffer-flush-30-150",
        E,
        False,
        lambda r, n: 256 * ((clock(n) + U(r, 0, 150)) % U(r, 30, 150)),
    ),
    Case(
        "deque-50-200",
        E,
        False,
        lambda r, n: (lambda k: list_bytes(k) + 32 * k)(np.minimum(clock(n) + 1, U(r, 50, 200))),
    ),
    Case("walk-between-walls", E, False, lambda r, n: walk(r, n, 512, 64e3)),
    Case("evaluation-phase", E, False, lambda r, n: bumps(r, n, [50], 1e6, 10)),
    Case("shrinking", E, False, lambda r, n: -leak(n, 112)),
    Case(
        "sawtooth-cache-one-offs",
        E,
        False,
        lambda r, n: sawtooth(r, n, 64e3, 15, 60) + filling(n, U(r, 20, 80)) + jumps(r, n, 0, 1, 3),
    ),
    Case("leak-64", E, True, lambda r, n: leak(n, 64), floor=0.99, by=240),
    Case("leak-64-every-10", E, True, lambda r, n: leak(n, 64, 10), floor=0.99, by=240),
    Case("leak-64-one-in-10", E, True, lambda r, n: rare_leak(r, n, 64, 0.1), floor=0.85),
    Case(
        "leak-64-sawtooth-1000",
        E,
        True,
        lambda r, n: leak(n, 64) + sawtooth(r, n, 64e3, 15, 60),
        floor=0.99,
        by=240,
    ),
    Case("leak-16", E, True, lambda r, n: leak(n, 16), floor=0.99, by=240),
    Case("list-append", E, True, lambda r, n: list_bytes(clock(n) + 1), floor=0.99),
    Case("dict-entry", E, True, lambda r, n: dict_bytes(clock(n) + 1), floor=0.99),
    Case(
        "leak-1k-every-25-spikes",
        E,
        True,
        lambda r, n: leak(n, 1024, 25) + bumps(r, n, [25], 5e6),
        floor=0.99,
    ),
    Case(
        "leak-64-cache-20-80",
        E,
        True,
        lambda r, n: leak(n, 64) + filling(n, U(r, 20, 80)),
        floor=0.99,
    ),
    Case(
        "leak-64-jitter-20k",
        E,
        True,
        lambda r, n: leak(n, 64) + np.round(r.exponential(2e4, n) / 16) * 16,
    ),
    Case("leak-64-lru-of-sizes", E, True, lambda r, n: leak(n, 64) + lru_sizes(r, n), apart=False),
    Case("leak-1k-every-37", E, True, lambda r, n: leak(n, 1024, 37), floor=0.99),
    Case("leak-1k-every-50", E, True, lambda r, n: leak(n, 1024, 50)),
    Case(
        "leak-256-from-100", E, True, lambda r, n: 256 * np.maximum(clock(n) - 100, 0), floor=0.99
    ),
    Case("leak-quadratic", E, True, lambda r, n: 16 * (clock(n) ** 2 // 32), floor=0.99),
    Case(
        "leak-64-drop-at-60-200",
        E,
        True,
        lambda r, n: leak(n, 64) - 1e6 * (clock(n) >= U(r, 60, 200)),
    ),
    Case(
        "leak-512-two-sawtooths",
        E,
        True,
        lambda r, n: leak(n, 512) + sawtooth(r, n, 32e3, 5, 10) + sawtooth(r, n, 64e3, 60, 80),
    ),
    Case("leak-64-evaluation", E, True, lambda r, n: leak(n, 64) + bumps(r, n, [50], 1e6, 10)),
    Case("leak-64-one-offs", E, True, lambda r, n: leak(n, 64) + jumps(r, n, 0, 1, 3), floor=0.99),
)

NOISY = (
    Case("native-noise", N, False, lambda r, n: malloc_noise(r, n)),
    Case("thread-cache", N, False, lambda r, n: thread_cache(r, n)),
    Case("thread-cache-noise", N, False, lambda r, n: thread_cache(r, n) + malloc_noise(r, n)),
    Case(
        "native-random-cache",
        N,
        False,
        lambda r, n: random_cache(r, n, U(r, 32, 128), 1024) + malloc_noise(r, n),
    ),
    Case("native-one-offs", N, False, lambda r, n: jumps(r, n, 0, 1, 3) + malloc_noise(r, n)),
    Case("native-lru-of-sizes", N, False, lambda r, n: lru_sizes(r, n) + malloc_noise(r, n)),
    Case("pages", N, False, lambda r, n: pages(r, n)),
    Case("pages-settling", N, False, lambda r, n: settling(r, n, 262144) + pages(r, n)),
    Case(
        "pages-log-steps",
        N,
        False,
        lambda r, n: (
            262144 * np.cumsum(r.random(n) < np.minimum(1, 4 / (clock(n) + 5))) + pages(r, n)
        ),
        apart=False,
    ),
    Case(
        "pages-trimmed-4m",
        N,
        False,
        lambda r, n: np.ceil(sawtooth(r, n, 4e6, 15, 60) / PAGE) * PAGE + pages(r, n),
    ),
    Case("pages-walk-2m", N, False, lambda r, n: walk(r, n, 4 * PAGE, 2e6)),
    Case(
        "pages-saturating-8m",
        N,
        False,
        lambda r, n: chunks(8e6 * (1 - np.exp(-clock(n) / 60))) + pages(r, n),
    ),
    Case(
        "pages-one-offs",
        N,
        False,
        lambda r, n: jumps(r, n, 0, 1, 3) + jumps(r, n, 0.75, 0.99, 1) + pages(r, n),
    ),
    Case("pages-spikes", N, False, lambda r, n: bumps(r, n, [10, 25, 50], 5e7) + pages(r, n)),
    Case("native-leak-272", N, True, lambda r, n: leak(n, 272), floor=0.99, by=200),
    Case(
        "native-leak-272-noise",
        N,
        True,
        lambda r, n: leak(n, 272) + malloc_noise(r, n),
        floor=0.95,
        by=480,
    ),
    Case(
        "native-leak-272-thread-cache",
        N,
        True,
        lambda r, n: leak(n, 272) + thread_cache(r, n),
        floor=0.9,
    ),
    Case(
        "native-leak-1560-noise",
        N,
        True,
        lambda r, n: leak(n, 1560) + thread_cache(r, n) + malloc_noise(r, n),
        floor=0.99,
        by=240,
    ),
    Case(
        "native-burst-200k-every-37",
        N,
        True,
        lambda r, n: leak(n, 204800, 37) + malloc_noise(r, n),
        floor=0.95,
    ),
    Case(
        "pages-leak-4k",
        N,
        True,
        lambda r, n: chunks(leak(n, 4096) + r.uniform(0, 131072)) + pages(r, n),
    ),
    Case(
        "pages-leak-16k-walk",
        N,
        True,
        lambda r, n: leak(n, 16384) + walk(r, n, 4 * PAGE, 2e6),
        floor=0.9,
    ),
    Case("pages-leak-64k", N, True, lambda r, n: leak(n, 65536) + pages(r, n), floor=0.99),
)

COUNTERS = (
    Case("constant", C, False, lambda r, n: np.full(n, 40.0)),
    Case(
        "pool-fills",
        C,
        False,
        lambda r, n: 40 + np.floor(np.minimum(clock(n) / U(r, 10, 100), 1) * U(r, 8, 32)),
    ),
    Case("jitter-2", C, False, lambda r, n: 40.0 + r.integers(-2, 3, n)),
    Case("objects-sawtooth", C, False, lambda r, n: sawtooth(r, n, 16e3, 15, 60) // 16),
    Case("retraces-10-40-shapes", C, False, lambda r, n: random_cache(r, n, U(r, 10, 40), 1)),
    Case("late-plus-1", C, False, lambda r, n: (clock(n) >= U(r, int(0.75 * n), n - 1)) + 40.0),
    Case("descriptors-at-checkpoints", C, False, lambda r, n: 40 + bumps(r, n, [10, 25, 50], 3)),
    Case("pool-toggles", C, False, lambda r, n: 8.0 + 8 * (np.cumsum(r.random(n) < 0.02) % 2)),
    Case("plus-1", C, True, lambda r, n: leak(n, 1), floor=0.99, by=240),
    Case("plus-1-every-10", C, True, lambda r, n: leak(n, 1, 10), floor=0.99, by=240),
    Case("plus-1-one-in-10", C, True, lambda r, n: rare_leak(r, n, 1, 0.1), floor=0.85),
    Case("plus-1-every-25-jitter", C, True, lambda r, n: leak(n, 1, 25) + r.integers(-2, 3, n)),
    Case(
        "plus-1-sawtooth-1000",
        C,
        True,
        lambda r, n: leak(n, 1) + sawtooth(r, n, 16e3, 15, 60) // 16,
    ),
    Case("plus-1-every-50", C, True, lambda r, n: leak(n, 1, 50)),
    Case(
        "plus-1-pool-fills",
        C,
        True,
        lambda r, n: leak(n, 1) + np.floor(np.minimum(clock(n) / U(r, 10, 100), 1) * 16),
        floor=0.99,
    ),
)

# ---- latency --------------------------------------------------------------------------------


def timed(
    rng: Draw,
    steps: int,
    machine: Callable[[Draw, int], Floats] | None = None,
    own: Callable[[Draw, int], Floats] | None = None,
    noise: float = 0.08,
    sensitivity: tuple[float, float] = (0.8, 1.1),
) -> tuple[Floats, Floats]:
    """Step and control seconds: a shared machine, each with heavy-tailed noise of its own."""

    def tails(count: int) -> Floats:
        late = np.where(rng.random(count) < 0.03, np.log1p(rng.exponential(1, count)), 0)
        return np.asarray(rng.normal(0, noise, count) + late)

    shared = wander(rng, steps + 1, 0.05, 2)
    if machine is not None:
        shared = shared + machine(rng, steps + 1)
    step = shared[:steps] + tails(steps)
    if own is not None:
        step = step + own(rng, steps)
    control = np.exp(rng.uniform(*sensitivity) * shared + tails(steps + 1)) * 1e-3
    return np.exp(step) * 1e-2, (control[:-1] + control[1:]) / 2


def creep(rate: float, start: int = 0) -> Callable[[Draw, int], Floats]:
    return lambda rng, n: np.log1p(rate * np.maximum(clock(n) - start, 0))


def shift(height: float) -> Callable[[Draw, int], Floats]:
    return lambda rng, n: height * (clock(n) >= U(rng, 60, 300))


def ramp(total: float) -> Callable[[Draw, int], Floats]:
    return lambda rng, n: total / 480 * clock(n)


def bursts(rng: Draw, steps: int) -> Floats:
    """Neighbours that come for some 40 steps and slow everything by 30 %."""
    out, busy = np.empty(steps), rng.random() < 0.2
    chance = rng.random(steps)
    for i in range(steps):
        out[i] = 0.3 * busy
        busy = chance[i] > 1 / 40 if busy else chance[i] < 0.25 / 40
    return out


def sine(height: float, length: float) -> Callable[[Draw, int], Floats]:
    return lambda rng, n: height * np.sin(2 * np.pi * (clock(n) / length + rng.random()))


def noise_doubles(rng: Draw, steps: int) -> Floats:
    return (clock(steps) > steps / 2) * rng.normal(0, 0.14, steps)


def OU(deviation: float, memory: float) -> Callable[[Draw, int], Floats]:
    return lambda rng, n: wander(rng, n, deviation, memory)


LATENCY = (
    Case("noise", L, False, lambda r, n: timed(r, n)),
    Case("noise-2-percent", L, False, lambda r, n: timed(r, n, noise=0.02)),
    Case("noise-35-percent", L, False, lambda r, n: timed(r, n, noise=0.35)),
    Case("machine-drifts-20", L, False, lambda r, n: timed(r, n, ramp(0.2))),
    Case("machine-steps-15", L, False, lambda r, n: timed(r, n, shift(0.15))),
    Case("machine-wanders-8", L, False, lambda r, n: timed(r, n, OU(0.08, 150))),
    Case(
        "machine-walks",
        L,
        False,
        lambda r, n: timed(r, n, lambda g, m: np.cumsum(g.normal(0, 0.006, m))),
    ),
    Case("machine-sine-10", L, False, lambda r, n: timed(r, n, sine(0.1, 300))),
    Case(
        "warm-up-tail",
        L,
        False,
        lambda r, n: timed(r, n, None, lambda g, m: np.exp(-clock(m) / 10)),
    ),
    Case(
        "late-slow-step",
        L,
        False,
        lambda r, n: timed(r, n, None, lambda g, m: 3.0 * (clock(m) == U(g, int(0.75 * m), m))),
    ),
    Case(
        "checkpoint-times-3",
        L,
        False,
        lambda r, n: timed(r, n, None, lambda g, m: bumps(g, m, [25], 1.1)),
    ),
    Case("neighbour-bursts", L, False, lambda r, n: timed(r, n, bursts)),
    Case(
        "drift-poor-control", L, False, lambda r, n: timed(r, n, ramp(0.2), sensitivity=(0.6, 0.6))
    ),
    Case("own-step-20", L, False, lambda r, n: timed(r, n, None, shift(0.2))),
    Case("own-wander-3", L, False, lambda r, n: timed(r, n, None, OU(0.03, 50))),
    Case("noise-doubles", L, False, lambda r, n: timed(r, n, None, noise_doubles)),
    Case("creep-0.1", L, True, lambda r, n: timed(r, n, None, creep(0.001)), floor=0.9),
    Case(
        "creep-0.1-noise-2",
        L,
        True,
        lambda r, n: timed(r, n, None, creep(0.001), noise=0.02),
        floor=0.99,
    ),
    Case("creep-0.1-drift-up", L, True, lambda r, n: timed(r, n, ramp(0.2), creep(0.001))),
    Case("creep-0.1-drift-down", L, True, lambda r, n: timed(r, n, ramp(-0.2), creep(0.001))),
    Case("creep-0.1-wander-8", L, True, lambda r, n: timed(r, n, OU(0.08, 150), creep(0.001))),
    Case("creep-0.1-bursts", L, True, lambda r, n: timed(r, n, bursts, creep(0.001))),
    Case("creep-0.05", L, True, lambda r, n: timed(r, n, None, creep(0.0005))),
    Case("creep-0.3", L, True, lambda r, n: timed(r, n, None, creep(0.003)), floor=0.99),
    Case("creep-0.2-from-100", L, True, lambda r, n: timed(r, n, None, creep(0.002, 100))),
    Case(
        "creep-0.3-every-10",
        L,
        True,
        lambda r, n: timed(
            r, n, None, lambda g, m: np.log1p(0.003 * clock(m)) * (clock(m) % 10 == 0)
        ),
    ),
)

CASES = EXACT + NOISY + COUNTERS + LATENCY

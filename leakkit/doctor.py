"""``leakkit doctor``: what works on this machine, what each probe costs, and a leak of known size.

Each framework is examined in a process of its own, so that one that is broken, or that takes all
of a GPU's memory, says nothing about the next.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from leakkit.frameworks import Device, Framework, find_devices, imported
from leakkit.probes import Probe
from leakkit.result import Finding, Result

FRAMEWORKS = ("tensorflow", "jax", "torch")
PLANTED = 65_536  # bytes a step: a multiple of every allocator's rounding
# A tensor on the CPU is more than its bytes: the objects that describe it, and its alignment.
BOOKKEEPING = 4_096

_STEPS = 40
# One framework must not take the memory that the next, or a step, is to be measured in.
_SHARING = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}

Write = Callable[[str], None]


@dataclass(frozen=True)
class Planted:
    """A leak of known size on one device, and what was measured of it.

    Args:
        device: where.
        series: the series that should show it.
        asked: bytes a step that were kept.
        expected: the least and the most bytes a step that confirm it.
        found: the finding of that series, or ``None`` where there is none.
        control: the verdict of the same step without keeping anything.
        why: what ``expected`` allows for beyond ``asked``.
    """

    device: Device
    series: str
    asked: int
    expected: tuple[int, int]
    found: Finding | None
    control: str
    why: str

    @property
    def confirmed(self) -> bool:
        """Whether the leak was found at its size and its control was not found to grow."""
        if self.found is None or self.control == "grows":
            return False
        low, high = self.expected
        return self.found.trend.verdict.value == "grows" and low <= self.found.trend.slope <= high


def doctor(
    frameworks: Sequence[str] | None = None, *, plant: bool = True, device: str | None = None
) -> int:
    """Examine this machine and print what was found.

    Args:
        frameworks: import names; by default all of ``FRAMEWORKS`` that are installed.
        plant: plant leaks of known size.
        device: plant them on this device only, e.g. ``gpu``; by default on all.

    Returns:
        0 when everything that is there works, 1 when something does not.
    """
    chosen = FRAMEWORKS if frameworks is None else frameworks
    there = [name for name in chosen if find_spec(name) is not None]
    print("\n".join([*_machine(), "", *_probe_table(_own_probes()), "", *_missing(there)]))
    sys.stdout.flush()
    failed = [name for name in there if _examine_apart(name, plant, device)]
    absent = [name for name in frameworks or () if name not in there]
    for name in absent:
        print(f"\n{name} was asked for and is not installed")
    print(f"\n{_closing(there, failed, absent)}")
    return 1 if failed or absent else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of ``leakkit doctor``."""
    parser = argparse.ArgumentParser(prog="leakkit doctor", description=__doc__.splitlines()[0])
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help="default: all installed")
    parser.add_argument("--no-plant", action="store_true", help="plant no leaks")
    parser.add_argument("--device", help="plant on this device only, e.g. gpu")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.apart:
        return examine(chosen.frameworks[0], plant=not chosen.no_plant, device=chosen.device)
    return doctor(chosen.frameworks or None, plant=not chosen.no_plant, device=chosen.device)


def examine(name: str, *, plant: bool, device: str | None = None, write: Write = print) -> int:
    """Examine one framework in this process; 0 when all of it works.

    Raises:
        DeviceMissing: ``device`` names one that the framework does not see.
    """
    importlib.import_module(name)
    framework = next(f for f in imported() if f.module == name)
    devices = find_devices(device or "all", [framework])
    for spot in devices:  # starts the devices, so that their counts are there
        framework.allocate(spot, 1)
    versions = ", ".join(f"{key} {value}" for key, value in framework.versions().items())
    write(f"\n{framework.name} ({versions})")
    for line in [
        *_device_lines(devices),
        *_probe_table(framework.probes()),
        *_synchronize(framework),
    ]:
        write(f"  {line}")
    for note in [*framework.notes(), *framework.remarks()]:
        write(f"  note: {note}")
    if not plant:
        return 0
    planted = [plant_leak(framework, spot) for spot in devices]
    for one in planted:
        for line in _planted_lines(one):
            write(f"  {line}")
    return 0 if all(one.confirmed for one in planted) else 1


def plant_leak(framework: Framework, device: Device) -> Planted:
    """Keep ``PLANTED`` bytes a step on ``device``, and measure that; then keep none."""
    memory = framework.memory(device)
    kept: list[object] = []

    def keep() -> None:
        kept.append(framework.allocate(device, PLANTED))

    def drop() -> None:
        framework.allocate(device, PLANTED)

    series = f"device_memory:{device.name}" if memory is not None else "native_heap"
    leak, control = _measure(keep), _measure(drop)
    kept.clear()
    if memory is None:
        expected, why = (PLANTED, PLANTED + BOOKKEEPING), "the tensor's own objects and alignment"
    else:
        rounded = -(-PLANTED // memory.rounding) * memory.rounding
        expected, why = (rounded, rounded), f"the allocator's multiples of {memory.rounding} B"
    found = leak.findings.get(series)
    after = control.findings.get(series)
    verdict = after.trend.verdict.value if after is not None else "not measured"
    return Planted(device, series, PLANTED, expected, found, verdict, why)


def _measure(step: Callable[[], None]) -> Result:
    from leakkit.check import Check
    from leakkit.settings import Settings

    settings = Settings(steps=_STEPS, max_steps=3 * _STEPS, warmup=10, max_seconds=20.0)
    return Check(settings).run(step)


def _examine_apart(name: str, plant: bool, device: str | None) -> bool:
    """Whether examining a framework in a process of its own fails."""
    command = [sys.executable, "-m", "leakkit.doctor", "--apart", name]
    command += [] if plant else ["--no-plant"]
    command += ["--device", device] if device else []
    environment = {**_SHARING, **_QUIET, **os.environ}
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1) or (done.returncode and "Traceback" in done.stderr):
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"\n{name} cannot be examined: {last}")
    return done.returncode != 0


def _machine() -> list[str]:
    from leakkit.environment import describe

    found = describe()
    packages = ", ".join(f"{name} {number}" for name, number in found["packages"].items())
    return [
        f"leakkit doctor: Python {found['python']} on {found['os']}, {found['cores']} cores",
        packages,
    ]


def _own_probes() -> list[Probe]:
    from leakkit.probes.folders import FolderFinder
    from leakkit.probes.registry import make_probes

    with tempfile.TemporaryDirectory() as folder:
        probes, _ = make_probes(None, [], FolderFinder(), Path(folder))
    return probes


def _probe_table(probes: Sequence[Probe]) -> list[str]:
    gc.collect()
    gc.freeze()  # as in a run: what lived before is not looked at again
    try:
        rows = [row for probe in probes for row in _probe_rows(probe)]
    finally:
        gc.unfreeze()
    return [f"{'series':<26}{'reads now':>18}   {'cost a call':>12}", *rows]


def _probe_rows(probe: Probe) -> Iterator[str]:
    """One row a series; the cost is that of the whole probe and stands in its first row."""
    try:
        values = probe.read()
        cost = f"{_seconds(probe.read) * 1e6:,.1f} µs"
    finally:
        probe.close()
    for quantity, value in zip(probe.quantities, values, strict=True):
        reads = "not told" if value != value else f"{value:,.0f} {quantity.unit}"
        yield f"{quantity.name:<26}{reads:>18}   {cost:>12}".rstrip()
        cost = ""


def _seconds(call: Callable[[], object]) -> float:
    """Median time of a call, over at most a twentieth of a second."""
    times: list[float] = []
    end = time.perf_counter() + 0.05
    while not times or (len(times) < 200 and time.perf_counter() < end):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def _synchronize(framework: Framework) -> list[str]:
    cost = _seconds(lambda: framework.synchronize(None)) * 1e6
    return [f"waiting for idle devices costs {cost:,.1f} µs a step"]


def _device_lines(devices: Sequence[Device]) -> Iterator[str]:
    for device in devices:
        size = "" if device.total_bytes is None else f", {device.total_bytes / 2**30:.1f} GiB"
        yield f"{device.name}  {device.model or device.kind}{size}"


def _planted_lines(one: Planted) -> Iterator[str]:
    yield f"planted on {one.device.name}: {one.asked:,} B kept a step"
    if one.found is None:
        yield f"  NOT MEASURED: there is no series {one.series}"
        return
    trend = one.found.trend
    yield (
        f"  {one.series} ({one.found.measured} pass): {trend.slope:,.0f} B a step, "
        f"{trend.verdict.value}; nothing kept: {one.control}"
    )
    low, high = one.expected
    allowed = f"{low:,} B" if low == high else f"{low:,} to {high:,} B"
    yield f"  {'confirmed' if one.confirmed else 'NOT CONFIRMED'}: expected {allowed} ({one.why})"


def _missing(there: Sequence[str]) -> list[str]:
    wanted = {
        "memray": ("exact bytes by line", "pip install memray (Linux and macOS)"),
        "tensorflow": ("TensorFlow steps", "pip install 'leakkit[tensorflow]'"),
        "jax": ("JAX steps", "pip install 'leakkit[jax]'"),
        "torch": ("PyTorch steps", "pip install 'leakkit[torch]'"),
        "nvidia-ml-py": ("GPU memory as the driver sees it", "pip install 'leakkit[gpu]'"),
    }
    lines = [
        f"missing: {package:<14} for {what}; {how}"
        for package, (what, how) in wanted.items()
        if package not in there and not _installed(package)
    ]
    return lines + _driver_line()


def _driver_line() -> list[str]:
    """What NVIDIA's driver says; nothing where the package is missing, which has its line."""
    if not _installed("nvidia-ml-py"):
        return []
    from leakkit.probes import Unavailable
    from leakkit.probes.nvml import Nvml

    try:
        return ["", *_probe_table([Nvml()])]
    except Unavailable as error:
        return [f"missing: {error}"]


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _closing(there: Sequence[str], failed: Sequence[str], absent: Sequence[str]) -> str:
    if failed or absent:
        return f"not in order: {', '.join([*failed, *absent])}"
    if not there:
        return "in order; no framework is installed, so only the CPU's own series are read"
    return f"in order: {', '.join(there)}"


if __name__ == "__main__":
    sys.exit(main())

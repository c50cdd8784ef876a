"""Which device a test asked for, and how to put a step on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING

from leakkit.settings import match_device

if TYPE_CHECKING:
    from leakkit.frameworks import Device, Framework

#: The device that each framework is on by now, by the framework's name.
_PLACED: ContextVar[Mapping[str, str] | None] = ContextVar("leakkit_placed", default=None)


class DeviceMissing(Exception):
    """A device that was asked for is not there; the text is one line and says why."""


def find_devices(spec: str, frameworks: Sequence[Framework] | None = None) -> list[Device]:
    """The devices that ``spec`` names, each once.

    Args:
        spec: ``cpu``, ``gpu``, ``gpu:1``, ``tpu`` or ``all``; without a number, the first of its
            kind.
        frameworks: adapters to ask; by default those of the frameworks imported by now.

    Raises:
        SettingsError: ``spec`` is none of these.
        DeviceMissing: no framework sees such a device.
    """
    kind, number = match_device(spec).groups()
    name = f"{kind.upper()}:{int(number or 0)}" if kind else ""
    asked = _asked(name) if frameworks is None else frameworks
    seen = _seen(asked)
    if not kind:
        return seen
    found = [device for device in seen if device.name == name]
    if not found:
        raise DeviceMissing(_reason(name, seen, asked))
    return found


def present() -> list[str]:
    """Names of this machine's devices, the CPU first.

    NVIDIA's driver is asked for GPUs where it answers, for an idle framework may take a device's
    memory when it is asked; else the frameworks in use, or those imported where none is in use.
    """
    from leakkit.probes.nvml import gpus

    found = gpus()
    return ["CPU:0", *found] if found else [device.name for device in find_devices("all")]


def _asked(name: str) -> list[Framework]:
    """The frameworks in use; the idle ones only where none of these sees the device, or none is.

    An idle framework may take a device's memory when it is asked for it.
    """
    from leakkit.frameworks import active, imported

    used = active()
    if not name:
        return used or imported()
    known = {"CPU:0"}.union(d.name for framework in used for d in framework.devices())
    return used if name in known else imported()


def _seen(frameworks: Sequence[Framework]) -> list[Device]:
    from leakkit.frameworks import Device

    devices = {"CPU:0": Device("CPU:0", "cpu")}  # there without any framework
    for framework in frameworks:
        for device in framework.devices():
            known = devices.get(device.name)
            if known is None or (known.total_bytes is None and device.total_bytes is not None):
                devices[device.name] = device
    return list(devices.values())


def _reason(name: str, seen: Sequence[Device], frameworks: Sequence[Framework]) -> str:
    asked = [f.name for f in frameworks]
    who = " and ".join(asked) if asked else "no framework is imported yet, so only the CPU is seen;"
    verb = "see" if len(asked) > 1 else "sees"
    there = ", ".join(device.name for device in seen)
    return f"{name} is not there: {who} {verb} {there}" if asked else f"{name}: {who} seen: {there}"


def placed(spec: str | None) -> AbstractContextManager[None]:
    """``on`` the device that ``spec`` asks for; nowhere in particular where it is ``None``."""
    return nullcontext() if spec is None else on(find_devices(spec)[0])


@contextmanager
def on(device: Device, frameworks: Sequence[Framework] | None = None) -> Iterator[None]:
    """Place what every imported framework makes inside the ``with`` block on ``device``.

    A framework that does not see the device is left as it is, and so is one that is on it already:
    entered twice, PyTorch's placing would slow every call twice.
    """
    before = _PLACED.get() or {}
    with ExitStack() as stack:
        stack.callback(_PLACED.set, before)
        for framework in _placeable(device, frameworks):
            if before.get(framework.name) != device.name:
                stack.enter_context(framework.on(device))
                _PLACED.set({**(_PLACED.get() or {}), framework.name: device.name})
        yield


def _placeable(device: Device, frameworks: Sequence[Framework] | None) -> list[Framework]:
    """The frameworks that see ``device``; the idle are not asked, for each sees the first CPU."""
    from leakkit.frameworks import imported

    if frameworks is None and device.name == "CPU:0":
        return [f for f in imported() if not f.in_use() or _sees(f, device)]
    asked = _asked(device.name) if frameworks is None else frameworks
    return [f for f in asked if _sees(f, device)]


def _sees(framework: Framework, device: Device) -> bool:
    return any(seen.name == device.name for seen in framework.devices())

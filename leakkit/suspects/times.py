"""Which functions take the added time: steps early in the hunt against steps late in it."""

from __future__ import annotations

import cProfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from leakkit.suspects import Suspect
from leakkit.suspects.places import owner, place

_LEAST_SHARE = 0.15  # of the late step's time: less cannot be why steps get slower
_LEAST_RISE = 1.1
_MOST = 5
_TOGETHER = 3  # profiles: the least time of a few steps knows no interruption

Key = tuple[str, int, str]


@dataclass
class Profile:
    """Seconds of own time by function, of one step or the least of some."""

    step: int
    own: dict[Key, float] = field(default_factory=dict)
    callers: dict[Key, str] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Seconds of the step."""
        return sum(self.own.values())


class Times:
    """Profiles some steps, one at a time; where another profiler runs, none."""

    def __init__(self) -> None:
        self.profiles: list[Profile] = []
        self._running: cProfile.Profile | None = None

    def start(self) -> None:
        """Profile from here to the next boundary."""
        profile = self._running = cProfile.Profile()
        try:
            profile.enable()
        except ValueError:  # another profiler is active
            self._running = None

    def stop(self, step: int) -> None:
        """The profiled step is over; does nothing when none was."""
        running, self._running = self._running, None
        if running is not None:
            running.disable()
            self.profiles.append(_read(running, step))

    def cancel(self) -> None:
        """Forget a profile that was begun and had no step."""
        running, self._running = self._running, None
        if running is not None:
            running.disable()

    def suspects(self) -> list[Suspect]:
        """The functions with the most own time in late steps that took less in early ones."""
        together = min(_TOGETHER, len(self.profiles) // 2)
        if together == 0:
            return []
        early, late = _least(self.profiles[:together]), _least(self.profiles[-together:])
        if late.total <= 0:
            return []
        steps = max(1, late.step - early.step)
        top = sorted(late.own, key=lambda key: -late.own[key])[:_MOST]
        return [
            _suspect(key, early, late, steps)
            for key in top
            if late.own[key]
            >= max(_LEAST_SHARE * late.total, _LEAST_RISE * early.own.get(key, 0.0))
        ]


def _read(profile: cProfile.Profile, step: int) -> Profile:
    found = Profile(step)
    for entry in profile.getstats():
        key = _key(entry.code)
        if owner(key[0]) == "leakkit":
            continue
        found.own[key] = found.own.get(key, 0.0) + entry.inlinetime
        for called in entry.calls or ():
            found.callers.setdefault(_key(called.code), key[2])
    return found


def _least(profiles: Sequence[Profile]) -> Profile:
    """The least own time of each function that all the steps called."""
    keys = set.intersection(*(set(profile.own) for profile in profiles))
    merged = Profile(profiles[len(profiles) // 2].step)
    merged.own = {key: min(profile.own[key] for profile in profiles) for key in keys}
    merged.callers = profiles[-1].callers
    return merged


def _key(code: Any) -> Key:
    if isinstance(code, str):  # a builtin: "<method 'sort' of 'list' objects>"
        return ("<builtin>", 0, code.strip("<>"))
    return (code.co_filename, code.co_firstlineno, code.co_name)


def _suspect(key: Key, early: Profile, late: Profile, steps: int) -> Suspect:
    file, line, name = key
    was, now = early.own.get(key, 0.0), late.own[key]
    caller = late.callers.get(key, "")
    where = place(file, line, name) if line else f"{name}, called by {caller}".strip(", ")
    what = f"{was * 1e3:.3g} ms of step {early.step}, {now * 1e3:.3g} ms of step {late.step}"
    facts = {"function": name, "caller": caller, "seconds": now, "share": now / late.total}
    return Suspect("time", where, what, (now - was) / steps, "s", ("latency", "cpu_time"), facts)

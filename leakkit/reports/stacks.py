"""Stacks in one line each: what called what, innermost first."""

from __future__ import annotations

import re
from itertools import takewhile

from leakkit.suspects import Suspect
from leakkit.suspects.places import owner, short

_LONGEST = 6  # native frames: further out it is the interpreter, or the same for all
_PLUMBING = re.compile(r"std::|operator new|__invoke|\{lambda|pybind11|_?Py[A-Z]|_start$|__libc")
_INNERMOST = re.compile(r"<[^<>]*>|\([^()]*\)")


def python_stack(suspect: Suspect) -> str:
    """``forward (model.py:12) ← step (train.py:41)``, up to leakkit; empty where there is none."""
    stack = takewhile(lambda frame: owner(frame[1]) != "leakkit", suspect.facts.get("stack") or ())
    return " ← ".join(f"{function} ({short(file)}:{line})" for function, file, line in stack)


def native_stack(suspect: Suspect) -> str:
    """``CPUAllocator::AllocateRaw ← MatMulOp::Compute``; empty where there is none."""
    names = [f for f in suspect.facts.get("native") or () if not _PLUMBING.match(f)]
    return " ← ".join(dict.fromkeys(native_name(f) for f in names[:_LONGEST]))


def native_name(frame: str) -> str:
    """A C++ function by its class and name, without namespaces, templates and arguments."""
    name = frame.replace("(anonymous namespace)::", "")
    while name != (name := _INNERMOST.sub("", name)):
        pass
    return "::".join(name.removesuffix(" const").rpartition(" ")[2].split("::")[-2:])

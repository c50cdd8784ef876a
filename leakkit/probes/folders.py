"""Finds the folders that a step writes to, while it warms up and while it is watched."""

from __future__ import annotations

import builtins
import functools
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from leakkit.recording import RecordingError

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_MOST = 64  # folders; a step that makes one more each time must not make this list grow
_listeners: list[FolderFinder] = []  # the functions are replaced once, for all finders


class FolderFinder:
    """Notes the folders of files that Python code opens for writing, or of folders it makes.

    What native code writes goes unseen by Python, so temporary folders named in the environment
    are watched too.

    Args:
        given: folders that are watched in any case.
        own: leakkit's own folders, in which not the step writes.
    """

    def __init__(self, given: Iterable[Path] = (), own: Iterable[Path] = ()) -> None:
        self._given = [Path(folder) for folder in given]
        self._own = [os.path.abspath(folder) for folder in own]
        self._written: list[str] = []

    def start(self) -> None:
        """Begin to listen."""
        if not _listeners:
            _replace()
        _listeners.append(self)

    def stop(self) -> None:
        """Stop listening."""
        if self in _listeners:
            _listeners.remove(self)
            if not _listeners:
                _restore()

    @property
    def found(self) -> int:
        """How many folders were seen to be written to."""
        return len(self._written)

    def note(self, path: str) -> None:
        """A path was written or made."""
        folder = os.path.dirname(os.path.abspath(path))
        known = len(self._written) >= _MOST or _is_below(folder, [*self._own, *self._written])
        if not known and not _shared(folder):
            self._written.append(folder)

    def folders(self) -> list[Path]:
        """Every folder worth watching, outermost only."""
        written = map(Path, self._written)
        found = [p.resolve() for p in [*self._given, *_from_environment(), *written] if p.is_dir()]
        return [p for p in dict.fromkeys(found) if not any(q in p.parents for q in found)]


def _is_below(folder: str, roots: Iterable[str]) -> bool:
    return any(folder == root or folder.startswith(root + os.sep) for root in roots)


@contextmanager
def private_temp(folder: Path) -> Iterator[Path]:
    """Temporary files go to ``folder`` inside the ``with`` block, where they can be counted.

    The system's own temporary folder is shared: what grows there may be anybody's.

    Raises:
        RecordingError: the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise RecordingError(f"cannot record in {folder.parent}: {reason}") from error
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = os.fspath(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        if variable is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = variable


def _from_environment() -> Iterator[Path]:
    """Folders that the environment names as temporary: ``TMPDIR``, ``JOB_TMP`` and the like."""
    for name, value in os.environ.items():
        words = name.upper().split("_")
        named = {"TMP", "TMPDIR", "TEMP", "TEMPDIR"} & set(words)
        if named and os.path.isabs(value) and not _shared(value):
            yield Path(value)


def _shared(folder: str) -> bool:
    """Folders that other processes write to as well, or that hold code rather than results."""
    path = Path(folder).resolve()
    common = {Path(p).resolve() for p in ("/", "/tmp", "/var/tmp", "/dev/shm", Path.home())}
    code = [Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    system = [Path(p) for p in ("/dev", "/proc", "/sys", "/usr")]
    inside = any(path == root or root in path.parents for root in code + system)
    return path in common or inside or "__pycache__" in path.parts


# What makes a file or a folder, and how to see from its second argument that it does. An audit
# hook would see more, but it stays for ever, and where native threads run Python under memray
# (tf.data generators do) a hook written in Python ends in a segmentation fault.
_MAKERS: tuple[tuple[Any, str, Callable[[Any], bool]], ...] = (
    (builtins, "open", lambda mode: isinstance(mode, str) and bool(set(mode) & set("wax+"))),
    (io, "open", lambda mode: isinstance(mode, str) and bool(set(mode) & set("wax+"))),
    (os, "open", lambda flags: isinstance(flags, int) and bool(flags & _WRITES)),
    (os, "mkdir", lambda mode: True),
)
_originals: list[tuple[Any, str, Any]] = []


def _replace() -> None:
    for module, name, writes in _MAKERS:
        original = getattr(module, name)
        _originals.append((module, name, original))
        setattr(module, name, _noting(original, writes))


def _restore() -> None:
    while _originals:
        module, name, original = _originals.pop()
        setattr(module, name, original)


def _noting(original: Callable[..., Any], writes: Callable[[Any], bool]) -> Callable[..., Any]:
    @functools.wraps(original)
    def noting(*args: Any, **kwargs: Any) -> Any:
        path = args[0] if args else kwargs.get("file", kwargs.get("path"))
        second = args[1] if len(args) > 1 else kwargs.get("mode", kwargs.get("flags"))
        if isinstance(path, (str, os.PathLike)) and writes(second):
            for listener in _listeners:
                listener.note(os.fspath(path))
        return original(*args, **kwargs)

    return noting

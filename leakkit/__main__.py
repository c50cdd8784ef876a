"""``leakkit`` and ``python -m leakkit``."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress

from leakkit.cli import main


def start() -> None:
    """Run a command, and end without taking down what the measured step kept.

    A thousand iterators with threads of their own take minutes to end one by one, with the report
    long shown. What was registered for the exit still runs: this is the first, so it comes last.
    """
    ending = _Ending()
    atexit.register(ending)
    ending.code = main()
    sys.exit(ending.code)


class _Ending:
    """Ends the process at once, where the command came to its end."""

    code: int | None = None

    def __call__(self) -> None:
        if self.code is None:
            return
        with suppress(OSError, ValueError):  # nobody reads any more
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(self.code)


if __name__ == "__main__":
    start()

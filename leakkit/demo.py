"""``leakkit demo``: a real model that leaks, the report, and the corrected step that passes."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leakkit.target import load_step

if TYPE_CHECKING:
    from leakkit.result import Result

# Two measurements and the import of TensorFlow are to be over in 40 s.
SECONDS = 12.0
_SOURCE = Path(__file__).with_name("demo_training.py")
_MISSING = (
    "leakkit: the demo trains a Keras model and needs TensorFlow: "
    "pip install 'leakkit[tensorflow]', or pip install '.[tensorflow]' in a checkout"
)


def run(show: Callable[[Result], object]) -> int:
    """Measure both steps; ``show`` prints a report.

    Returns:
        0 when the leak was found and the corrected step is flat, 1 when not, 2 when it cannot
        run at all.
    """
    if find_spec("tensorflow") is None:
        print(_MISSING, file=sys.stderr)
        return 2
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # a demo is no place for start-up chatter
    with tempfile.TemporaryDirectory(prefix="leakkit-demo-") as folder:
        # A copy is the user's own code to leakkit, as a training script would be.
        script = shutil.copyfile(_SOURCE, Path(folder, "train.py"))
        print("Importing TensorFlow and building a small Keras model ...", flush=True)
        with _quiet():
            load_step(f"{script}:train_step")
        verdicts = [
            _measure(script, name, Path(folder, name), show)
            for name in ("train_step", "corrected_train_step")
        ]
    return _closing(verdicts)


@contextmanager
def _quiet() -> Iterator[None]:
    """TensorFlow's C++ writes what it found to standard error before anyone can ask it not to."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as said, ExitStack() as undo:
        real = os.dup(2)
        undo.callback(os.close, real)
        os.dup2(said.fileno(), 2)
        undo.callback(os.dup2, real, 2)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(real, said.read())
            raise


def _measure(script: Path, name: str, folder: Path, show: Callable[[Result], object]) -> str:
    from leakkit.check import Check
    from leakkit.settings import Settings

    step = load_step(f"{script}:{name}")
    print(f"\nThis step is measured (in {script.name}):\n\n{_code(step)}", flush=True)
    result = Check(Settings(max_seconds=SECONDS, directory=folder)).run(step)
    show(result)
    return result.verdict.value


def _code(step: Callable[..., Any]) -> str:
    return "".join(f"    {line}\n" for line in inspect.getsource(step).splitlines())


def _closing(verdicts: list[str]) -> int:
    if verdicts == ["grows", "flat"]:
        print("\nThe leak was found, and the corrected step passes.")
        print("Now yours: leakkit run train.py:train_step, or the fixture leak_check in a test.")
        return 0
    print(
        f"\nleakkit: expected that the first step grows and the second is flat, but they were "
        f"{' and '.join(verdicts)}; a machine this busy may need more time",
        file=sys.stderr,
    )
    return 1

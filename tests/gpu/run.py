"""Checks leakkit on a GPU machine, with whatever of PyTorch and JAX is installed there.

Run it from the repository: ``python tests/gpu/run.py``. It takes under four minutes, needs the
packages that leakkit itself needs, and neither TensorFlow nor a network. It exits 0 when
``leakkit doctor`` and the device tests pass. Every part has a time limit of its own; a part that
runs out of it fails.
"""

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 230.0  # seconds for everything

# What another program on the machine set for its own use would mislead both parts.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    "PYTHONUNBUFFERED": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def part(name: str, command: list[str], seconds: float) -> bool:
    """Whether a command ends well in its time."""
    print(f"\n=== {name}", flush=True)
    began = time.monotonic()
    try:
        code = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        print(f"=== {name}: not done after {seconds:.0f} s", flush=True)
        return False
    print(f"=== {name}: exit {code} after {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


def main() -> int:
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"]
    if shutil.which("nvidia-smi") is None or subprocess.run(query).returncode:
        print("there is no NVIDIA GPU here that answers: nothing was checked")
        return 1
    frameworks = [name for name in ("torch", "jax") if find_spec(name)]
    if not frameworks:
        print("neither PyTorch nor JAX is installed: there is nothing to check")
        return 1
    end = time.monotonic() + LIMIT
    tests = ["tests/gpu/test_gpu.py", "tests/test_nvml.py"]
    python = [sys.executable, "-m"]
    passed = [
        part("leakkit doctor", [*python, "leakkit", "doctor", *frameworks], 110.0),
        part("tests", [*python, "pytest", "-q", "-rs", *tests], max(1.0, end - time.monotonic())),
    ]
    print(f"\n{'passed' if all(passed) else 'FAILED'}: doctor and tests with {frameworks}")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

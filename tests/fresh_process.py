"""Runs code in a fresh Python process and hands back what it says, as JSON.

Frameworks stay imported, keep devices and fill caches: what is said about one must not depend on
the tests before it.
"""

import json
import os
import subprocess
import sys
import textwrap

PRELUDE = """
import json, sys
def say(**facts):
    print("\\n@@" + json.dumps(facts), flush=True)
def read(probes):
    import gc
    gc.collect()
    return {q.name: v for p in probes for q, v in zip(p.quantities, p.read())}
def check(step, **settings):
    from leakkit.check import Check
    from leakkit.settings import Settings
    settings = {"steps": 40, "max_steps": 240, "warmup": 10, "max_seconds": 60.0, **settings}
    return Check(Settings(**settings)).run(step)
def summary(result):
    return {"verdict": result.verdict.value, "notes": list(result.notes),
            "trends": {n: [f.trend.verdict.value, f.trend.slope]
                       for n, f in result.findings.items()}}
"""


def run(*code, timeout=300, **environment):
    """What the pieces of ``code``, one after the other, said last with ``say(...)``.

    Fails with the process' stderr where it raised.
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([PRELUDE, *map(textwrap.dedent, code)])],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", **environment},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said = [line for line in done.stdout.splitlines() if line.startswith("@@")]
    return json.loads(said[-1][2:])

"""``torch.compile`` recompiles for every new length, with the limit on recompilation lifted.

Out of the box PyTorch stops after eight recompilations and runs the function uncompiled, with a
warning. Raising the limit to silence the warning turns it into a leak.
"""

import torch
import torch._dynamo

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="torch-compile-recompile",
    family="tracing",
    needs=("torch",),
    grows=("traces", "python_heap"),
    rate="one compiled variant a step: some 26 KB and 360 objects",
    diagnosis="torch-compile-recompile",
    symptom="'recompile_limit reached' was silenced by a larger limit; now steps are slow and "
    "memory climbs.",
    cause="dynamic=False compiles for each shape, and each compiled variant is kept with its "
    "guards, which later calls check one by one.",
    remedy="torch.compile(dynamic=True), mark_dynamic() on the open dimension, or padding.",
    reports=("tensorflow/tensorflow#81896",),
    seen_on="PyTorch 2.13",
)


def leaky() -> Step:
    """Compile for each length, and never give up."""
    torch._dynamo.config.recompile_limit = 1_000_000
    torch._dynamo.config.accumulated_recompile_limit = 1_000_000
    return _scoring(torch.compile(_energy, backend="eager", dynamic=False))


def corrected() -> Step:
    """Compile once, for any length."""
    return _scoring(torch.compile(_energy, backend="eager", dynamic=True))


def _energy(signal: torch.Tensor) -> torch.Tensor:
    return (torch.tanh(signal) * signal).sum()


def _scoring(energy) -> Step:
    signal = torch.randn(2048, generator=torch.Generator().manual_seed(0))

    def step(i: int) -> float:
        length = 8 + i * 37 % 2039  # 2039 is prime: no length comes twice
        return float(energy(signal[:length]))

    return step


if __name__ == "__main__":
    raise SystemExit(main(__file__))

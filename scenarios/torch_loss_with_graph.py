"""Losses are kept as tensors, and each drags the graph of its step along.

A running total, ``total += loss``, does the same with a single tensor: its graph reaches back to
the first step.
"""

import collections

import torch

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="torch-loss-with-graph",
    family="tensors",
    needs=("torch",),
    grows=("native_heap",),
    rate="the graph and the saved tensors of a step: some 5 KB native here",
    diagnosis="torch-loss-with-graph",
    symptom="Memory climbs on every step, on a GPU by the activations; out of memory in the "
    "middle of the first epoch.",
    cause="losses.append(loss) and total += loss keep a tensor with a gradient function, which "
    "holds the graph of its step.",
    remedy="Keep loss.item(), or loss.detach() where a number would cost a transfer; and no more "
    "of them than are read.",
    reports=("google/brax#152", "BatsResearch/labelmodels#4"),
    seen_on="every PyTorch",
)

WINDOW = 8


def leaky() -> Step:
    """Keep the losses."""
    train = _training()
    losses: list[torch.Tensor] = []

    def step(i: int) -> float:
        losses.append(train())
        return sum(float(loss.detach()) for loss in losses[-WINDOW:])

    return step


def corrected() -> Step:
    """Keep the numbers of the last few."""
    train = _training()
    losses: collections.deque[float] = collections.deque(maxlen=WINDOW)

    def step(i: int) -> float:
        losses.append(train().item())
        return sum(losses)

    return step


def _training():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    features = torch.randn(32, 16)
    target = features.sum(dim=1, keepdim=True)

    def train() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(features), target)
        loss.backward()
        optimizer.step()
        return loss

    return train


if __name__ == "__main__":
    raise SystemExit(main(__file__))

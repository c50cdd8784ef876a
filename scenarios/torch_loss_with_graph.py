"""A running loss is added up as a tensor and drags the graph of every step along."""

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
    cause="total += loss keeps a tensor with a gradient function, which holds the graph of this "
    "step and, through the sum, of all steps before.",
    remedy="total += loss.item(), or loss.detach() where a number would cost a transfer.",
    reports=("google/brax#152", "BatsResearch/labelmodels#4"),
    seen_on="every PyTorch",
)


def leaky() -> Step:
    """Add up the losses."""
    train = _training()
    total = [torch.zeros(())]

    def step(i: int) -> float:
        total[0] = total[0] + train()
        return float(total[0].detach())

    return step


def corrected() -> Step:
    """Add up their numbers."""
    train = _training()
    total = [0.0]

    def step(i: int) -> float:
        total[0] += train().item()
        return total[0]

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

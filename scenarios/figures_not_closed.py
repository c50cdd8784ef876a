"""A pyplot figure is drawn for every epoch, and pyplot keeps each until it is closed."""

import io

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from leakkit.scenarios import Scenario, Step, main

SCENARIO = Scenario(
    name="figures-not-closed",
    family="logs and disk",
    needs=("matplotlib",),
    grows=("python_heap", "live_objects"),
    rate="one figure a step: some 260 KB and 1,420 objects",
    diagnosis="figures-not-closed",
    symptom="'More than 20 figures have been opened' in the log, and memory in megabytes per "
    "epoch.",
    cause="plt.subplots() registers the figure in a global table; losing the last reference of "
    "your own frees nothing.",
    remedy="plt.close(figure) after saving, or matplotlib.figure.Figure() without pyplot.",
    reports=("spallas/time-attention#2",),
    seen_on="every Matplotlib",
)


def leaky() -> Step:
    """Draw, save, forget."""
    plt.rcParams["figure.max_open_warning"] = 0
    curve = np.random.default_rng(0).standard_normal(16).cumsum()

    def step(i: int) -> float:
        figure, _ = _drawn(curve)
        return _saved(figure)

    return step


def corrected() -> Step:
    """Draw, save, close."""
    curve = np.random.default_rng(0).standard_normal(16).cumsum()

    def step(i: int) -> float:
        figure, _ = _drawn(curve)
        size = _saved(figure)
        plt.close(figure)
        return size

    return step


def _drawn(curve: np.ndarray):
    figure, axes = plt.subplots(figsize=(1, 1), dpi=40)
    axes.set_axis_off()
    axes.plot(curve)
    return figure, axes


def _saved(figure: plt.Figure) -> float:
    image = io.BytesIO()
    figure.savefig(image, format="raw")
    return float(len(image.getvalue()))


if __name__ == "__main__":
    raise SystemExit(main(__file__))

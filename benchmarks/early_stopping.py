"""Does stopping by refinement keep a better epoch than stopping by validation loss?

    python -m benchmarks.early_stopping [--repetitions 100]

A validation loss has two parts: the calibration error, which a temperature removes after training, and the rest, the
refinement. `torch.Refinement` is the loss after a temperature was fitted to the same validation rows. Berta,
Holzmüller, Jordan & Bach ([arXiv:2501.19195](https://arxiv.org/abs/2501.19195)) stop at its minimum and then calibrate.

The CNN of [docs/training.md](../docs/training.md) is trained with cross-entropy on 300 of scikit-learn's digits for 150
epochs. Each sample has its own split, initial weights and batches. It has 300 validation images, or the first 60 of
them. All rules choose among the same epochs. Measures are for 1,197 test images. *Calibrated* losses are after a
temperature was fitted to the validation images at the chosen epoch.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import sys
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .charts import dots
from .experiment import Experiment
from .markdown import estimate, table
from .provenance import ROOT, Kept

EPOCHS, TRAIN, VALIDATION = 150, 300, (300, 60)
REFINEMENT, LAST = "refinement", "last epoch"
RULES = ("log-loss", REFINEMENT, "errors", LAST)
#: Measures of the test images, with digits.
MEASURES = {"log-loss": 4, "calibrated": 4, "accuracy": 2, "epoch": 0}


@cache
def digits() -> Any:
    """The network of the documentation, and its data."""
    folder = str(ROOT / "docs" / "examples")
    sys.path.insert(0, folder)
    try:
        import train_digits
    finally:
        sys.path.remove(folder)
    return train_digits


def sample(train: int, seed: int) -> dict[str, float]:
    """Measures at the epoch that each rule chooses, and those of the last epoch."""
    import torch

    from calibrant.torch import Refinement

    torch.set_num_threads(1)
    (x, y), (x_val, y_val), (x_test, y_test) = digits().split(seed)
    x, y = x[:train], y[:train]
    torch.manual_seed(seed)
    model = digits().SmallCNN()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    found: dict[int, dict[str, list[float]]] = {n: {rule: [] for rule in RULES[:3]} for n in VALIDATION}
    states, outputs = [], []
    for _ in range(EPOCHS):
        digits().one_epoch(model, optimiser, torch.nn.CrossEntropyLoss(), x, y)
        with torch.no_grad():
            held = model(x_val)
        for n, values in found.items():
            metric = Refinement()
            metric.update(held[:n], y_val[:n])
            parts = metric.parts()
            values["log-loss"].append(parts.loss.item())
            values[REFINEMENT].append(parts.refinement.item())
            values["errors"].append((held[:n].argmax(dim=1) != y_val[:n]).float().mean().item())
        states.append(deepcopy(model.state_dict()))
        outputs.append(held)
    out: dict[str, float] = {}
    for n, values in found.items():
        for rule in RULES:
            at = EPOCHS - 1 if rule == LAST else int(np.argmin(values[rule]))
            model.load_state_dict(states[at])
            with torch.no_grad():
                new = model(x_test)
            measures = (*judge(outputs[at][:n], new, y_val[:n], y_test), at + 1)
            out |= {f"{n}, {rule}: {name}": float(v) for name, v in zip(MEASURES, measures, strict=True)}
    return out


def judge(held: Any, new: Any, y_val: Any, y_test: Any) -> tuple[float, float, float]:
    """Measures on the test images, the temperature fitted to the validation images."""
    import torch
    from torch.nn.functional import cross_entropy

    from calibrant.torch import TemperatureScaler

    with torch.no_grad():
        after = cross_entropy(TemperatureScaler().fit(held, y_val)(new), y_test).item()
    right = (new.argmax(dim=1) == y_test).float().mean().item()
    return cross_entropy(new, y_test).item(), after, 100 * right


def gap(kept: Kept, n: int, rule: str, measure: str) -> tuple[float, float]:
    """Refinement's measure minus that of another rule, sample by sample."""
    return estimate(kept[f"{n}, {REFINEMENT}: {measure}"] - kept[f"{n}, {rule}: {measure}"])


def _said(kept: Kept, rule: str, measure: str) -> str:
    digits = MEASURES[measure]
    pairs = ((n, *gap(kept, n, rule, measure)) for n in VALIDATION)
    return " and ".join(f"{value:+.{digits}f} ± {error:.{digits}f} with {n}" for n, value, error in pairs)


def answer(kept: Kept) -> str:
    lower = {rule: [n for n in VALIDATION if clearly(kept, n, rule, -1)] for rule in ("log-loss", LAST)}
    higher = [n for n in VALIDATION if clearly(kept, n, LAST, 1)]
    some = _numbers(lower["log-loss"], "neither number of")
    last, worse = (_numbers(one, "neither number") for one in (lower[LAST], higher))
    return (
        f"Stopping by refinement gives a lower calibrated log-loss than stopping by validation loss with {some} "
        f"validation images ({_said(kept, 'log-loss', 'calibrated')}). Compared with the last epoch, the loss is lower "
        f"with {last} and higher with {worse} ({_said(kept, LAST, 'calibrated')})."
    )


def clearly(kept: Kept, n: int, rule: str, sign: int) -> bool:
    """Whether the least refinement has a higher (1) or lower (-1) calibrated log-loss, by two standard errors."""
    value, error = gap(kept, n, rule, "calibrated")
    return sign * value > 2 * error


def _numbers(some: list[int], neither: str) -> str:
    return " and ".join(map(str, some)) or neither


def picture(kept: Kept) -> Figure:
    lines = [(n, rule) for n in VALIDATION for rule in RULES if rule != REFINEMENT]
    series = {
        name: [gap(kept, n, rule, measure) for n, rule in lines]
        for name, measure in (("as trained", "log-loss"), ("calibrated", "calibrated"))
    }
    names = [f"{n} images, {rule if rule == LAST else f'least {rule}'}" for n, rule in lines]
    return dots(names, series, "test log-loss at the least refinement minus that of the other rule", 0.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives measures at the epoch that each rule chooses, by the number of validation images. Losses"
    yield "have standard errors."
    yield ""
    yield from table(("images", "rule", "log-loss", "calibrated", "accuracy, %", "epoch"), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for n in VALIDATION:
        for rule in RULES:
            pairs = {name: estimate(kept[f"{n}, {rule}: {name}"]) for name in MEASURES}
            shown = [
                f"{v:.{d}f}" + f" ± {e:.{d}f}" * (d > 2)
                for (v, e), d in zip(pairs.values(), MEASURES.values(), strict=True)
            ]
            yield [str(n), rule, *shown]


EXPERIMENT = Experiment(
    __spec__.name,
    {"train": [TRAIN]},
    sample,
    answer,
    page,
    picture,
    repetitions=100,
    quick=0,
    needs=("torch", "torchmetrics"),
)

if __name__ == "__main__":
    EXPERIMENT.main()

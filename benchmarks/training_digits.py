"""Do calibration losses train better networks on digits than cross-entropy?

    python -m benchmarks.training_digits [--repetitions 10]

The CNN of [train_digits.py](../docs/examples/train_digits.py) is trained for 200 epochs on 300 of scikit-learn's
digits and measured on 1,197, before and after a temperature is fitted to 300 others. A split fixes rows, initial
weights and batches for all. Some differences exceed two standard errors by chance.

*KDE* adds λ times the canonical error by Dirichlet kernels (Popordanoska et al. 2022), with the default bandwidth
(0.8). *Narrow* has 0.001, found on other splits. *Debiased* adds λ times the debiased square. *MMCE* adds λ times that
penalty (Kumar et al. 2018). *Focal* is FL-53, *mixup* has α = 0.2, and *Laplace* is of the last layer.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from .charts import dots
from .experiment import Experiment, wrapped
from .markdown import estimate, mean, table
from .provenance import ROOT, Kept

EPOCHS, ALPHA = 200, 0.2
XE = "cross-entropy"
DEBIASED = {"norm": 2, "orientation": "query", "debias": "cross", "residual": True}
#: The class of a penalty, its options and weights, by name.
PENALTIES: dict[str, tuple[str, dict[str, Any], tuple[float, ...]]] = {
    "MMCE": ("MMCELoss", {}, (0.5, 2, 8)),
    "KDE": ("DirichletKernelLoss", {}, (0.01, 0.1, 0.2, 0.5, 2)),
    "narrow KDE": ("DirichletKernelLoss", {"bandwidth": 0.001}, (0.01, 0.05, 0.1, 0.2)),
    "debiased KDE": ("DirichletKernelLoss", DEBIASED, (0.1, 0.5, 2)),
}
LAPLACE, MIXUP, FOCAL = "Laplace", "mixup", "focal"
OTHERS = (LAPLACE, MIXUP, FOCAL, *(f"{name}, {w:g}" for name, (_, _, weights) in PENALTIES.items() for w in weights))
SCALED = ", scaled"
#: Where more is better.
RISES = ("accuracy",)
#: Columns of the table, with digits.
SHOWN = {"accuracy": 2, f"log-loss{SCALED}": 3, f"canonical L1{SCALED}": 3}


def of_documentation(name: str) -> Any:
    """A module of `docs/examples`, or a part of one."""
    import importlib

    folder = str(ROOT / "docs" / "examples")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def sample(loss: str, seed: int) -> dict[str, float]:
    """Measures of one network, before and after temperature scaling, and milliseconds of a step of training."""
    import torch

    torch.set_num_threads(1)
    digits = of_documentation("train_digits")
    seed += 1000  # other splits than those on which losses were tried
    (x, y), validation, test = digits.split(seed)
    began = time.process_time()
    model = mixed(digits, x, y, seed) if loss == MIXUP else digits.train(made(loss), x, y, seed, EPOCHS)
    step = 1000 * (time.process_time() - began) / (EPOCHS * (len(y) // digits.BATCH))
    if loss == LAPLACE:
        parts = of_documentation("training_parts.networks")
        posterior = parts.LastLayerLaplace(torch.nn.Sequential(*model), parts.Part(x, y))
        precision = posterior.fitted(parts.Part(*validation))
        model = lambda new: posterior.log_probs(new, precision)  # noqa: E731
    before, after = digits.before_and_after(model, validation, test)
    return before | {f"{name}{SCALED}": value for name, value in after.items()} | {"step": step}


def made(loss: str) -> Any:
    """A loss by its name."""
    from calibrant import torch as losses

    digits = of_documentation("train_digits")
    if loss == FOCAL:
        return losses.FocalLoss("fl-53")
    if loss in (XE, LAPLACE):
        return digits.LOSSES[XE]
    name, weight = loss.split(", ")
    kind, options, _ = PENALTIES[name]
    return digits.plus(getattr(losses, kind)(**options, weight=float(weight)))


def mixed(digits: Any, x: Any, y: Any, seed: int) -> Any:
    """A network trained with mixup: first weights and batches are those of the other losses."""
    import torch

    mixup = of_documentation("training_parts.networks").mixup
    torch.manual_seed(seed)
    model = digits.SmallCNN()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    orders = [torch.randperm(len(y)).split(digits.BATCH) for _ in range(EPOCHS)]
    for rows in (rows for order in orders for rows in order if len(rows) == digits.BATCH):
        optimiser.zero_grad()
        mixup(model, x[rows], y[rows], ALPHA).backward()
        optimiser.step()
    return model


def gaps(kept: Kept, loss: str, measure: str) -> np.ndarray:
    """Differences to cross-entropy, split by split."""
    return kept.where(loss=loss)[measure] - kept.where(loss=XE)[measure]


def told(kept: Kept, measure: str) -> tuple[list[str], list[str]]:
    """What is better and what is worse than cross-entropy, by more than two standard errors."""
    found: tuple[list[str], list[str]] = ([], [])
    for loss in OTHERS:
        value, error = estimate(gaps(kept, loss, measure))
        if abs(value) > 2 * error:
            found[(value > 0) != (measure in RISES)].append(loss)
    return found


def least(kept: Kept, measure: str) -> str:
    """What has the least mean."""
    return min((XE, *OTHERS), key=lambda loss: kept.where(loss=loss)[measure].mean())


def answer(kept: Kept) -> str:
    def counted(measure: str) -> str:
        better, worse = told(kept, measure)
        names = f" ({'; '.join(better)})" if 0 < len(better) < 6 else ""
        return f"better with {len(better)}{names} and worse with {len(worse)}"

    log_loss, scaled = (f"log-loss{end}" for end in ("", SCALED))
    first = least(kept, scaled)
    return (
        f"Among {len(OTHERS)} alternatives to cross-entropy, accuracy is {counted('accuracy')}, by more than two "
        f"standard errors of the paired difference. Log-loss is {counted(log_loss)}. With a temperature, it is "
        f"{counted(scaled)}. The temperature changes the log-loss of cross-entropy from {value(kept, XE, log_loss)} to "
        f"{value(kept, XE, scaled)}. The lowest with one is {value(kept, first, scaled)} ({first})."
    )


def value(kept: Kept, loss: str, measure: str) -> str:
    """A mean with its standard error."""
    return mean(kept.where(loss=loss)[measure], 1 if measure == "accuracy" else 3)


def step(kept: Kept) -> tuple[float, float]:
    """Median CPU milliseconds of a step with cross-entropy, and of what the penalty by kernels adds to it."""
    pair = (kept.where(loss=XE)["step"], gaps(kept, "KDE, 0.1", "step"))
    return float(np.median(pair[0])), float(np.median(pair[1]))


def drawn(kept: Kept) -> list[str]:
    """Without what is so much worse that no other difference could be seen."""
    return [loss for loss in OTHERS if estimate(gaps(kept, loss, "log-loss"))[0] < 0.5]


def picture(kept: Kept) -> Figure:
    names = {"as trained": "log-loss", "with a temperature": f"log-loss{SCALED}"}
    series = {name: [estimate(gaps(kept, loss, one)) for loss in drawn(kept)] for name, one in names.items()}
    return dots(drawn(kept), series, "log-loss minus that of cross-entropy on the same splits", 0.0)


def page(kept: Kept) -> Iterator[str]:
    of_xe, more = step(kept)
    missing = [f"{loss} ({mean(gaps(kept, loss, 'log-loss'), 3, '+')})" for loss in OTHERS if loss not in drawn(kept)]
    beyond = f" The picture omits {'; '.join(missing)}." if missing else ""
    yield wrapped(
        "The table gives means of cross-entropy, then differences for alternatives that differ in accuracy or "
        f"log-loss, with a temperature.{beyond} A step takes {of_xe:.1f} ms with cross-entropy, {more:.1f} ms more "
        "with KDE."
    )
    yield ""
    head = ("trained with", "accuracy", "log-loss", "canonical error")
    named = (kept.where(loss=XE)[name] for name in SHOWN)
    rows = [[XE, *(f"{values.mean():.{digits}f}" for values, digits in zip(named, SHOWN.values(), strict=True))]]
    off = {one for what in ("accuracy", f"log-loss{SCALED}") for some in told(kept, what) for one in some}
    rows += [[one, *_beside(kept, one)] for one in OTHERS if one in off]
    yield from table(head, rows)


def _beside(kept: Kept, loss: str) -> list[str]:
    """Differences to cross-entropy, of the last without an error."""
    *cells, last = (mean(gaps(kept, loss, name), digits, "+") for name, digits in SHOWN.items())
    return [*cells, last.split()[0]]


EXPERIMENT = Experiment(
    __spec__.name,
    {"loss": [XE, *OTHERS]},
    sample,
    answer,
    page,
    picture,
    repetitions=10,
    quick=0,
    timed=("step",),
    figures={
        "ways": lambda kept: str(len(OTHERS)),
        "splits": lambda kept: str(len(kept.where(loss=XE)["seed"])),
        "better": lambda kept, measure: str(len(told(kept, measure)[0])),
        "worse": lambda kept, measure: str(len(told(kept, measure)[1])),
        "value": value,
        "cost": lambda kept: f"{step(kept)[1]:.1f}",
    },
    needs=("torch", "torchmetrics"),
)

if __name__ == "__main__":
    EXPERIMENT.main()

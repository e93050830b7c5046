"""Train a small CNN on scikit-learn's digits with calibration losses, and measure it: `docs/training.md`.

    pip install torch torchmetrics calibrant
    python docs/examples/train_digits.py [--seeds 2] [--epochs 200]

Every loss sees the same splits, first weights and batches, so that differences are paired.
`python -m benchmarks.training_digits` has more losses and more seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

import calibrant as cal
from calibrant.torch import DirichletKernelLoss, FocalLoss, MMCELoss, TemperatureScaler

TRAIN, VALIDATION, BATCH = 300, 300, 64
Loss = Callable[[Tensor, Tensor], Tensor]
Part = tuple[Tensor, Tensor]


def plus(penalty: nn.Module) -> Loss:
    """Cross-entropy with a penalty."""
    return lambda logits, target: nn.functional.cross_entropy(logits, target) + penalty(logits, target)


LOSSES: dict[str, Loss] = {
    "cross-entropy": nn.CrossEntropyLoss(),
    "focal": FocalLoss("fl-53"),
    "MMCE": plus(MMCELoss(weight=2.0)),
    "KDE-XE": plus(DirichletKernelLoss(0.001, weight=0.1)),
}


class SmallCNN(nn.Sequential):
    """Two convolutions and two dense layers, 18 thousand weights."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(128, 96), nn.ReLU(), nn.Linear(96, 10),
        )  # fmt: skip


def split(seed: int) -> tuple[Part, ...]:
    """Training, validation and test images."""
    digits = load_digits()
    x, y = digits.images[:, None].astype(np.float32) / 16, digits.target
    x_train, x_rest, y_train, y_rest = train_test_split(x, y, train_size=TRAIN, stratify=y, random_state=seed)
    x_val, x_test, y_val, y_test = train_test_split(
        x_rest, y_rest, train_size=VALIDATION, stratify=y_rest, random_state=seed
    )
    pairs = ((x_train, y_train), (x_val, y_val), (x_test, y_test))
    return tuple((torch.tensor(a), torch.tensor(b)) for a, b in pairs)


def train(loss: Loss, x: Tensor, y: Tensor, seed: int, epochs: int) -> nn.Module:
    """A network; the seed fixes first weights and batches."""
    torch.manual_seed(seed)
    model = SmallCNN()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        one_epoch(model, optimiser, loss, x, y)
    return model


def one_epoch(model: nn.Module, optimiser: torch.optim.Optimizer, loss: Loss, x: Tensor, y: Tensor) -> None:
    """One pass over the training images; a last batch that is not full is left out."""
    for rows in torch.randperm(len(y)).split(BATCH):
        if len(rows) == BATCH:
            optimiser.zero_grad()
            loss(model(x[rows]), y[rows]).backward()
            optimiser.step()


@torch.no_grad()
def before_and_after(model: nn.Module, validation: Part, test: Part) -> list[dict[str, float]]:
    """Measures of the test images, before and after temperature scaling."""
    logits, (x_val, y_val) = model(test[0]).double(), validation
    scaler = TemperatureScaler().fit(model(x_val).double(), y_val)
    return [judge(one.numpy(), test[1].numpy()) for one in (logits, scaler(logits))]


def judge(logits: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy in percent, log-loss and calibration errors."""
    logs = log_softmax(logits, axis=1)
    p, given = np.exp(logs), {"labels": list(range(10))}
    return {
        "accuracy": 100 * float((p.argmax(axis=1) == y).mean()),
        "log-loss": -float(logs[np.arange(len(y)), y].mean()),
        "canonical L1": cal.calibration_error(y, p, notion="canonical", **given),
        "canonical square": cal.squared_calibration_error(y, p, notion="canonical", **given),
        "class-wise": cal.calibration_error(y, p, notion="classwise", **given),
        "confidence": cal.calibration_error(y, p, notion="confidence", **given),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    shown = {"accuracy": 1, "log-loss": 3, "canonical L1": 3}
    print(f"{'means over seeds':28}" + "".join(f"{measure:>14}" for measure in shown))
    for name, loss in LOSSES.items():
        found = []
        for seed in range(options.seeds):
            (x, y), validation, test = split(seed)
            found.append(before_and_after(train(loss, x, y, seed, options.epochs), validation, test))
        for i, row in enumerate((name, f"{name}, temperature")):
            means = {measure: np.mean([one[i][measure] for one in found]) for measure in shown}
            print(f"{row:28}" + "".join(f"{means[one]:14.{digits}f}" for one, digits in shown.items()), flush=True)


if __name__ == "__main__":
    main()

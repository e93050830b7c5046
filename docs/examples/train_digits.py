"""Train a small CNN on scikit-learn's digits for accuracy and calibration: `docs/training.md`.

    pip install torch torchmetrics "calibrant[torch,plot]"
    python docs/examples/train_digits.py --docs docs [--seeds 5] [--epochs 200]

Cross-entropy (XE), with the MMCE penalty, focal loss FL-53 and KDE-XE (Popordanoska et al. 2022) over grids of λ;
before and after temperature scaling. Every method sees the same splits, first weights and batches, so that differences
are paired.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from training_parts.forest import digits_gaps, draw_digits

import calibrant as cal
from calibrant.torch import DirichletKernelLoss, FocalLoss, MMCELoss

TRAIN, VALIDATION, BATCH = 300, 300, 64
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Method:
    """A loss by family and weight of its penalty (None where it has none)."""

    family: str
    weight: float | None
    loss: Loss

    def __str__(self) -> str:
        return self.family if self.weight is None else f"{self.family}, λ = {self.weight:g}"


def methods() -> list[Method]:
    """What is compared."""
    xe = nn.CrossEntropyLoss()

    def plus(penalty: nn.Module) -> Loss:
        return lambda logits, target: xe(logits, target) + penalty(logits, target)

    out = [Method("XE", None, xe), Method("FL-53", None, FocalLoss("fl-53"))]
    out += [Method("MMCE", w, plus(MMCELoss(weight=w))) for w in (0.5, 2.0, 8.0)]
    out += [Method("KDE-XE", w, plus(DirichletKernelLoss(weight=w))) for w in (0.01, 0.1, 0.2, 0.5, 2.0)]
    narrow = (0.01, 0.05, 0.1)
    out += [Method("KDE-XE, h = 0.001", w, plus(DirichletKernelLoss(0.001, weight=w))) for w in narrow]
    debiased = {"norm": 2, "orientation": "query", "debias": "cross", "residual": True}
    out += [Method("KDE-XE, debiased", w, plus(DirichletKernelLoss(weight=w, **debiased))) for w in (0.1, 0.5, 2.0)]
    return out


class SmallCNN(nn.Sequential):
    """Two convolutions and two dense layers, 18 thousand weights."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(128, 96), nn.ReLU(), nn.Linear(96, 10),
        )  # fmt: skip


def split(seed: int) -> tuple[tuple[Tensor, Tensor], ...]:
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


def temperature(logits: np.ndarray, y: np.ndarray) -> float:
    """The one that makes the log-loss of held-out rows least."""

    def log_loss(log_t: float) -> float:
        return -float(log_softmax(logits / np.exp(log_t), axis=1)[np.arange(len(y)), y].mean())

    return float(np.exp(minimize_scalar(log_loss, bounds=(-3, 3), method="bounded").x))


def judge(logits: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy in percent, log-loss and calibration errors of test rows."""
    p = softmax(logits.astype(np.float64), axis=1)
    arguments = {"labels": list(range(10))}
    return {
        "accuracy": 100 * float((p.argmax(axis=1) == y).mean()),
        "log-loss": -float(log_softmax(logits.astype(np.float64), axis=1)[np.arange(len(y)), y].mean()),
        "canonical L1": cal.calibration_error(y, p, notion="canonical", **arguments),
        "canonical square": cal.squared_calibration_error(y, p, notion="canonical", **arguments),
        "class-wise": cal.calibration_error(y, p, notion="classwise", **arguments),
        "confidence": cal.calibration_error(y, p, notion="confidence", **arguments),
    }


def experiment(seeds: int, epochs: int) -> tuple[list[Method], dict[str, np.ndarray]]:
    """Measures of every method, seed, and before and after temperature scaling: arrays (methods, seeds, 2)."""
    compared = methods()
    found: dict[str, np.ndarray] = {}
    for s in range(seeds):
        (x, y), (x_val, y_val), (x_test, y_test) = split(s)
        for m, method in enumerate(compared):
            model = train(method.loss, x, y, s, epochs)
            with torch.no_grad():
                val, test = model(x_val).numpy(), model(x_test).numpy()
            t = temperature(val, y_val.numpy())
            for after, logits in enumerate((test, test / t)):
                for name, value in judge(logits, y_test.numpy()).items():
                    found.setdefault(name, np.full((len(compared), seeds, 2), np.nan))[m, s, after] = value
        print(f"seed {s + 1} of {seeds}", flush=True)
    return compared, found


def step_times(epochs: int = 40) -> dict[str, float]:
    """Median CPU milliseconds of a training step with XE and with KDE-XE, epochs taking turns, for two networks.

    The penalty costs the same whatever the network, so its share falls as the network grows.
    """
    (x, y), *_ = split(0)
    xe, penalty = nn.CrossEntropyLoss(), DirichletKernelLoss(weight=0.1)
    wide = nn.Sequential(
        nn.Conv2d(1, 128, 3, padding=1), nn.ReLU(), nn.Conv2d(128, 256, 3, padding=1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4096, 10),
    )  # fmt: skip
    both: Loss = lambda logits, target: xe(logits, target) + penalty(logits, target)  # noqa: E731
    out: dict[str, list[float]] = {}
    for name, model, rounds in (("small", SmallCNN(), epochs), ("wide", wide, max(2, epochs // 4))):
        optimiser = torch.optim.Adam(model.parameters())
        for _ in range(rounds):
            for loss_name, loss in (("XE", xe), ("KDE-XE", both)):
                start = time.process_time()
                one_epoch(model, optimiser, loss, x, y)
                out.setdefault(f"{name} {loss_name}", []).append(
                    1000 * (time.process_time() - start) / (TRAIN // BATCH)
                )
    return {name: float(np.median(values)) for name, values in out.items()}


def cell(values: np.ndarray, digits: int) -> str:
    """Mean and standard error over seeds."""
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}".replace("-", "−")


def table(compared: list[Method], found: dict[str, np.ndarray], after: int) -> str:
    """One row a method."""
    digits = {name: 1 if name == "accuracy" else 4 if name == "canonical square" else 3 for name in found}
    lines = ["| loss | " + " | ".join(found) + " |", "|---" * (1 + len(found)) + "|"]
    for i, method in enumerate(compared):
        cells = (cell(values[i, :, after], digits[name]) for name, values in found.items())
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def verdict(difference: np.ndarray, *, lower_is_better: bool = True) -> str:
    """Mean paired difference to XE with its standard error, in words where it is beyond two of them."""
    mean, se = difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))
    words = "no clear difference"
    if abs(mean) > 2 * se:
        words = "better" if (mean < 0) == lower_is_better else "worse"
    return f"{mean:+.3f} ± {se:.3f}: {words}".replace("-", "−")


def claims(compared: list[Method], found: dict[str, np.ndarray]) -> str:
    """Every method against XE, seed by seed."""
    lines = [
        "| loss | accuracy (points) | canonical L1 | after temperature scaling | log-loss after |",
        "|---" * 5 + "|",
    ]
    for i, method in enumerate(compared[1:], start=1):
        d = {name: values[i] - values[0] for name, values in found.items()}
        cells = [
            verdict(d["accuracy"][:, 0], lower_is_better=False),
            verdict(d["canonical L1"][:, 0]),
            verdict(d["canonical L1"][:, 1]),
            verdict(d["log-loss"][:, 1]),
        ]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def held(compared: list[Method], found: dict[str, np.ndarray], shares: dict[str, float]) -> str:
    """What held of the paper's claims and what did not, counted."""

    def count(family: str, measure: str, after: int, *, lower_is_better: bool = True) -> str:
        words = [
            verdict(found[measure][i, :, after] - found[measure][0, :, after], lower_is_better=lower_is_better)
            for i, method in enumerate(compared)
            if method.family == family
        ]
        ends = [word.split(": ")[1] for word in words]
        return f"{ends.count('better')} better, {ends.count('worse')} worse, {len(ends)} in all"

    small, wide = (f"{shares[net]:.0f} %" for net in ("small", "wide"))
    lines = [
        f"- {family}: *the canonical error falls*: {count(family, 'canonical L1', 0)}; after temperature scaling "
        f"{count(family, 'canonical L1', 1)}. *The log-loss falls*: {count(family, 'log-loss', 0)}; after temperature "
        f"scaling {count(family, 'log-loss', 1)}. *Accuracy*: {count(family, 'accuracy', 0, lower_is_better=False)}."
        for family in ("KDE-XE", "KDE-XE, h = 0.001")
    ]
    lines.append(f"- *It costs at most 3 % of an epoch*: {small} for the small network, {wide} for the wide one.")
    return "\n".join(lines)


def page(compared: list[Method], found: dict[str, np.ndarray], times: dict[str, float], options: str) -> str:
    """Markdown."""
    shares = {net: 100 * (times[f"{net} KDE-XE"] / times[f"{net} XE"] - 1) for net in ("small", "wide")}
    cost = times["small KDE-XE"] - times["small XE"]
    notes = Path(__file__).with_name("train_digits.md").read_text(encoding="utf-8")
    return notes.format(
        options=options,
        train=TRAIN,
        validation=VALIDATION,
        test=1797 - TRAIN - VALIDATION,
        seeds=found["accuracy"].shape[1],
        before=table(compared, found, 0),
        after=table(compared, found, 1),
        claims=claims(compared, found),
        held=held(compared, found, shares),
        small=times["small XE"],
        wide=times["wide XE"],
        small_share=shares["small"],
        wide_share=shares["wide"],
        cost=cost,
        long=cost / 0.03,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(1)
    compared, found = experiment(options.seeds, options.epochs)
    (options.docs / "images").mkdir(parents=True, exist_ok=True)
    draw_digits(digits_gaps(claims(compared, found)), options.docs / "images" / "training.png")
    times = step_times()
    words = f"--seeds {options.seeds} --epochs {options.epochs}"
    path = options.docs / "training.md"
    # What mixup_laplace.py wrote is at the end, and stays.
    rest = "".join(path.read_text(encoding="utf-8").partition("## Mixup")[1:]) if path.exists() else ""
    path.write_text(f"{page(compared, found, times, words)}\n{rest}".rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

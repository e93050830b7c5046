"""Which epoch to keep: by validation loss, by its refinement, or by accuracy, on the digits network.

    python -m benchmarks.early_stopping [--seeds 12] [--epochs 150] [--write benchmarks/early_stopping.md]

The network, its split and its training are those of `docs/examples/train_digits.py`. All rules choose among the same
epochs of the same runs, so that differences are paired.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from calibrant.data.writing import write_text
from calibrant.torch import Refinement, TemperatureScaler

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "examples"))
import train_digits as digits

MEASURES = ("log-loss", "after temperature", "accuracy", "epoch")


def run(seed: int, epochs: int, n_train: int, n_validation: int) -> dict[str, list[float]]:
    """Measures at the epoch that each rule chooses, and those of the last epoch."""
    (x, y), (x_val, y_val), (x_test, y_test) = digits.split(seed)
    x, y, x_val, y_val = x[:n_train], y[:n_train], x_val[:n_validation], y_val[:n_validation]
    torch.manual_seed(seed)
    model = digits.SmallCNN()
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    rules: dict[str, list[float]] = {"log-loss": [], "refinement": [], "errors": []}
    outputs: list[tuple[torch.Tensor, torch.Tensor]] = []
    for _ in range(epochs):
        digits.one_epoch(model, optimiser, torch.nn.CrossEntropyLoss(), x, y)
        with torch.no_grad():
            held, new = model(x_val), model(x_test)
        metric = Refinement()
        metric.update(held, y_val)
        parts = metric.parts()
        rules["log-loss"].append(parts.loss.item())
        rules["refinement"].append(parts.refinement.item())
        rules["errors"].append((held.argmax(dim=1) != y_val).float().mean().item())
        outputs.append((held, new))
    chosen = {rule: int(np.argmin(values)) for rule, values in rules.items()} | {"last epoch": epochs - 1}
    return {rule: judge(*outputs[at], y_val, y_test, at + 1) for rule, at in chosen.items()}


def judge(held: torch.Tensor, new: torch.Tensor, y_val: torch.Tensor, y_test: torch.Tensor, epoch: int) -> list[float]:
    """Measures of one epoch on the test images, the temperature fitted to the validation images."""
    with torch.no_grad():
        after = cross_entropy(TemperatureScaler().fit(held, y_val)(new), y_test).item()
    right = (new.argmax(dim=1) == y_test).float().mean().item()
    return [cross_entropy(new, y_test).item(), after, 100 * right, epoch]


def cell(values: np.ndarray, digits_: int) -> str:
    """Mean and standard error over seeds."""
    return f"{values.mean():.{digits_}f} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits_}f}".replace("-", "−")


def table(found: dict[str, np.ndarray]) -> str:
    """One row per rule."""
    places = (4, 4, 2, 0)
    lines = [
        "| epoch of the least … | " + " | ".join(f"test {m}" for m in MEASURES[:3]) + " | epoch |",
        "|---" * 5 + "|",
    ]
    for rule, values in found.items():
        name = rule if rule == "last epoch" else f"validation {rule}"
        lines.append(f"| {name} | " + " | ".join(cell(values[:, i], places[i]) for i in range(4)) + " |")
    return "\n".join(lines)


def differences(found: dict[str, np.ndarray]) -> str:
    """Refinement against the others, seed by seed."""
    lines = ["| refinement minus … | " + " | ".join(MEASURES[:3]) + " |", "|---" * 4 + "|"]
    for rule in ("log-loss", "errors", "last epoch"):
        gap = found["refinement"] - found[rule]
        lines.append(f"| {rule} | " + " | ".join(cell(gap[:, i], (4, 4, 2)[i]) for i in range(3)) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    parts: list[str] = []
    for n_train, n_validation in ((300, 300), (300, 60)):
        runs: list[dict[str, Any]] = []
        for seed in range(options.seeds):
            runs.append(run(seed, options.epochs, n_train, n_validation))
            print(f"{n_train} to train on, {n_validation} to validate on: seed {seed + 1}", file=sys.stderr, flush=True)
        found = {rule: np.array([one[rule] for one in runs]) for rule in runs[0]}
        head = f"## {n_train} images to train on, {n_validation} to validate on"
        parts.append(f"{head}\n\n{table(found)}\n\nPaired differences:\n\n{differences(found)}")
    text = Path(__file__).with_name("early_stopping_intro.md").read_text(encoding="utf-8")
    page = text.format(seeds=options.seeds, epochs=options.epochs) + "\n" + "\n\n".join(parts) + "\n"
    if options.write:
        write_text(options.write, page)
    print(page)


if __name__ == "__main__":
    main()

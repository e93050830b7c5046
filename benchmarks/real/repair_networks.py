"""Repair of real image classifiers, written to docs/repair.md: fitted on one half of the test set, scored on the other.

    python -m benchmarks.real.repair_networks --data FOLDER [--splits 5] [--docs docs]

FOLDER holds `cifar10_wideresnet16x4.npz`, `cifar10_lenet5.npz` and `cifar100_densenet_bc100.npz`: `y_prob` (10 000, K)
and `y_true`, softmax outputs of public networks (EFS-OpenSource/calibration-framework, examples). Splits are the same
for all methods; a finished split of a network is kept beside the page's data and not computed again.
"""

import json
from pathlib import Path
from time import process_time

import numpy as np

import calibrant as cal
from calibrant import calibrators as c
from calibrant.data.writing import write_text

from .. import arguments

NETWORKS = {
    "cifar10_wideresnet16x4": "CIFAR-10, wide ResNet 16×4",
    "cifar10_lenet5": "CIFAR-10, LeNet-5",
    "cifar100_densenet_bc100": "CIFAR-100, DenseNet-BC 100",
}
METHODS = {
    "none": c.Identity(),
    "temperature": c.TemperatureScaling(),
    "ensemble temperature": c.EnsembleTemperatureScaling(),
    "vector, as published": c.VectorScaling(0),
    "vector": c.VectorScaling(),
    "matrix": c.MatrixScaling(),
    "Dirichlet, ODIR 1": c.DirichletCalibration("odir", 1.0),
    "isotonic, one against the rest": c.OneVsRest(c.IsotonicCalibrator()),
    "beta, one against the rest": c.OneVsRest(c.BetaCalibration()),
    "histogram, one against the rest": c.OneVsRest(c.HistogramBinning(15)),
    "auto": c.AutoCalibrator(),
    "auto, one choice": c.AutoCalibrator(rule="one-standard-error"),
}


def measures(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Scores of one half."""
    k = p.shape[1]
    own = p[np.arange(len(y)), y]
    given = {"labels": list(range(k))}
    return {
        "log-loss": -float(np.log(np.maximum(own, 1e-12)).mean()),
        "Brier": float(((p**2).sum(axis=1) - 2 * own + 1).mean()),
        "accuracy": float((p.argmax(axis=1) == y).mean()),
        "ECE, 15 bins": cal.expected_calibration_error(y, p, notion="confidence", **given),
        "ECE, default": cal.calibration_error(y, p, notion="confidence", **given),
        "class-wise, default": cal.calibration_error(y, p, notion="classwise", **given),
    }


def split(p: np.ndarray, y: np.ndarray, seed: int) -> dict[str, dict[str, float]]:
    """All methods on one split."""
    order = np.random.default_rng(seed).permutation(len(y))
    fit, test = order[: len(y) // 2], order[len(y) // 2 :]
    out = {}
    for name, one in METHODS.items():
        start = process_time()
        fitted = one.set_params(labels=list(range(p.shape[1]))).fit(p[fit], y[fit])
        seconds = process_time() - start
        out[name] = measures(fitted.predict_proba(p[test]), y[test]) | {"seconds": seconds}
        if name == "temperature":
            out[name]["temperature"] = fitted.temperature_
        if name.startswith("auto"):
            out[name]["chosen"] = fitted.chosen_
    return out


def table(found: list[dict]) -> str:
    """Means over splits, with the standard deviation over them."""
    columns = ["log-loss", "Brier", "accuracy", "ECE, 15 bins", "ECE, default", "class-wise, default", "seconds"]
    lines = ["| method | " + " | ".join(columns) + " |", "|---" + "|---:" * len(columns) + "|"]
    for name in METHODS:
        cells = []
        for column in columns:
            values = np.array([one[name][column] for one in found])
            digits = 2 if column == "seconds" else 4
            cells.append(f"{values.mean():.{digits}f}" + ("" if digits == 2 else f" ± {values.std():.4f}"))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--run", type=Path, default=Path("repair-run"), help="folder of finished splits")
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    parts = [(Path(__file__).parent / "repair_intro.md").read_text().format(splits=options.splits)]
    for file, title in NETWORKS.items():
        with np.load(options.data / f"{file}.npz") as data:
            p, y = data["y_prob"], data["y_true"].astype(int).ravel()
        p = p / p.sum(axis=1, keepdims=True)
        found = []
        for seed in range(options.splits):
            path = options.run / f"{file}-{seed}.json"
            if not path.exists():
                write_text(path, json.dumps(split(p, y, seed)))
                print(path, flush=True)
            found.append(json.loads(path.read_text()))
        t = np.array([one["temperature"]["temperature"] for one in found])
        chosen = ", ".join(sorted({one["auto, one choice"]["chosen"] for one in found}))
        auto, plain = (np.array([one[name]["log-loss"] for one in found]) for name in ("auto", "temperature"))
        gap = auto - plain
        parts.append(
            f"## {title}\n\nT = {t.mean():.3f} ± {t.std():.3f}. One choice: {chosen}. Log-loss of `auto` less that of "
            f"temperature scaling: {gap.mean():+.4f} ± {gap.std():.4f} (largest {gap.max():+.4f}).\n\n{table(found)}\n"
        )
    text = "\n".join(parts)
    print(text)
    if options.docs:
        write_text(options.docs / "repair.md", text)


if __name__ == "__main__":
    main()

r"""Estimates against the number of rows they come from, as in Appendix F of Popordanoska, Sayer & Blaschko (2022).

Run from the repository's root: ``python docs/examples/appendix_f.py``. It writes docs/images/appendix_f.png and prints
what it drew. A network fitted to 300 of scikit-learn's digits predicts 1497 others. From subsets of n of these, the
canonical, class-wise (marginal) and confidence (top-label) errors are estimated by the published kernel, by bins and
by the library's default. Lines are means over subsets; bands cover 95 % of the estimates.
"""

from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from pictures import COLORS as PALETTE
from pictures import OURS, look, name_ends, save, sizes_axis
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import calibrant as cal

IMAGES = Path(__file__).resolve().parents[1] / "images"
SIZES, SUBSETS, H = (50, 100, 200, 400, 800), 100, 0.05
NOTIONS = {"canonical": "Canonical", "class-wise": "Class-wise", "confidence": "Confidence"}
COLORS = {"published": PALETTE[1], "bins": "0.5", "default": OURS}


def scores() -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities of held-out digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=300, stratify=y, random_state=0)
    network = MLPClassifier((32,), solver="lbfgs", max_iter=2000, random_state=0).fit(X_train, y_train)
    return y_test, network.predict_proba(X_test)


def readers(notion: str) -> dict[str, cal.estimators.Estimator]:
    """Estimators: the published kernel with one bandwidth, bins as the literature has them, and the default."""
    if notion == "canonical":
        kernel, bins, default = cal.estimators.DirichletKernel(H), cal.estimators.SimplexBinned(2, center="row"), "auto"
    else:
        kernel, bins, default = cal.estimators.BetaKernel(H), cal.Binned(15), "auto"
    return {"published": kernel, "bins": bins, "default": default}


def readings(y: np.ndarray, q: np.ndarray, notion: str) -> dict[str, np.ndarray]:
    """Errors of subsets, (sizes, subsets); the same subsets for all."""
    found = {}
    for name, estimator in readers(notion).items():
        rng = np.random.default_rng(0)
        found[name] = np.empty((len(SIZES), SUBSETS))
        for i, n in enumerate(SIZES):
            for r in range(SUBSETS):
                rows = rng.choice(len(y), n, replace=False)
                about = {"notion": notion, "estimator": estimator, "labels": range(10)}
                found[name][i, r] = cal.calibration_error(y[rows], q[rows], **about)
    return found


def main() -> None:
    """Read, draw, print."""
    look()
    y, q = scores()
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8))
    figure.subplots_adjust(left=0.05, right=0.9, top=0.92, bottom=0.13, wspace=0.55)
    for ax, (notion, title) in zip(axes, NOTIONS.items(), strict=True):
        ends = []
        for name, values in readings(y, q, notion).items():
            low, high = np.quantile(values, [0.025, 0.975], axis=1)
            mean = values.mean(axis=1)
            ax.fill_between(SIZES, low, high, color=COLORS[name], alpha=0.15, lw=0)
            ax.plot(SIZES, mean, color=COLORS[name], marker="o", label=name)
            ends.append((SIZES[-1], mean[-1], name, COLORS[name]))
            cells = ", ".join(f"{m:.3f} ({a:.3f} to {b:.3f})" for m, a, b in zip(mean, low, high, strict=True))
            print(f"{title}, {name}: {cells}")
        ax.axhline(0, color="0.6", lw=0.8)
        ax.set(title=title, xlabel="rows n")
        sizes_axis(ax, SIZES)
        name_ends(ax, ends)
    axes[0].set_ylabel("estimated calibration error")
    save(figure, IMAGES / "appendix_f.png")


if __name__ == "__main__":
    main()

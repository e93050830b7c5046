r"""Figure 1 of Posocco & Bonnefoy (2021), on a random forest: how the density estimator sees calibration.

Run from the repository's root: ``python docs/examples/figure1.py``. It writes docs/images/figure1.png.

1. Two densities: ``f(s)`` of all scores and ``π f(s | o = 1)`` of the positives' scores. Their ratio is the curve.
2. The reliability curve ``rel(s) = π f(s | o = 1) / f(s)``: its bootstrapped median and 95 % band, the identity, and
   the binned diagram.
3. The local calibration error ``LCE(s) = rel(s) - s``, and ``f(s) |LCE(s)|``, whose area is ECE_d.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import calibrant as cal

IMAGES = Path(__file__).resolve().parents[1] / "images"
BLUE, RED, GREY = "#0b4a8f", "#d55e00", "0.45"


def scores() -> tuple[np.ndarray, np.ndarray]:
    """Held-out labels and probabilities of a random forest on a generated binary problem with 10 % wrong labels."""
    X, y = make_classification(
        8000, n_features=20, n_informative=8, n_redundant=6, flip_y=0.1, class_sep=0.8, random_state=7
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=2000, random_state=7)
    forest = RandomForestClassifier(200, min_samples_leaf=2, random_state=7).fit(X_train, y_train)
    return y_test, forest.predict_proba(X_test)[:, 1]


def draw_densities(ax: plt.Axes, curve: cal.results.ReliabilityCurve) -> None:
    """Panel 1: both densities."""
    ax.plot(curve.scores, curve.density, color=BLUE, lw=2, label="$f(s)$: all scores")
    positives = curve.density * curve.observed
    ax.plot(curve.scores, positives, color=RED, lw=2, ls=(0, (5, 1.6)), label=r"$\pi f(s\,|\,o=1)$: positives")
    ax.fill_between(curve.scores, positives, color=RED, alpha=0.15, lw=0)
    ax.set(xlabel="Predicted probability $s$", ylabel="Density", title="1  Two densities")
    ax.set(xlim=(0, 1), ylim=(0, 1.3 * float(curve.density.max())))
    ax.legend(fontsize=8, loc="upper left", frameon=False)


def draw_curve(ax: plt.Axes, curve: cal.results.ReliabilityCurve, bins: cal.results.ReliabilityCurve) -> None:
    """Panel 2: the curve, its band and the binned diagram."""
    ax.plot([0, 1], [0, 1], color=GREY, lw=1.1, label="perfect calibration")
    ax.stairs(bins.observed, bins.edges, color=GREY, fill=True, alpha=0.22, label="binned diagram", zorder=0.5)
    ax.fill_between(curve.scores, curve.lower, curve.upper, color=BLUE, alpha=0.25, lw=0, label="95 % band")
    ax.plot(curve.scores, curve.median, color=BLUE, lw=2, label="$rel(s)$, median")
    ax.set(xlabel="Predicted probability $s$", ylabel="Observed frequency", title="2  Reliability curve")
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(fontsize=8, loc="upper left", frameon=False)


def draw_error(ax: plt.Axes, curve: cal.results.ReliabilityCurve, estimate: cal.results.Estimate) -> None:
    """Panel 3: the local calibration error, and the area that is the calibration error."""
    ax.axhline(0, color=GREY, lw=1.1)
    ax.plot(curve.scores, curve.lce, color=BLUE, lw=2, label="$LCE(s) = rel(s) - s$")
    weighted = curve.density * np.abs(curve.lce)
    area = f"$f(s)\\,|LCE(s)|$, area: $ECE_d$ = {estimate.value:.3f}"
    ax.fill_between(curve.scores, weighted, color=RED, alpha=0.3, lw=0, label=area)
    ax.plot(curve.scores, weighted, color=RED, lw=1.2, ls=(0, (5, 1.6)))
    reach = 1.55 * float(np.nanmax([np.abs(curve.lce), weighted]))
    ax.set(xlabel="Predicted probability $s$", ylabel="Error", title="3  Local calibration error")
    ax.set(xlim=(0, 1), ylim=(-reach, reach))
    ax.legend(fontsize=8, loc="upper left", frameon=False)


def main() -> None:
    """Compute, draw the three panels and save."""
    y, p = scores()
    curve = cal.reliability_curve(y, p, estimator="density", level=0.95, random_state=0)
    bins = cal.reliability_curve(y, p, estimator=cal.Binned(10))
    estimate = cal.estimate(y, p, estimator=cal.estimators.Density(), random_state=0)
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.1), layout="constrained")
    draw_densities(axes[0], curve)
    draw_curve(axes[1], curve, bins)
    draw_error(axes[2], curve, estimate)
    for ax in axes:
        ax.set_box_aspect(1)
        ax.spines[["top", "right"]].set_visible(False)
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "figure1.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()

"""What do calibrators cost on new rows, above the log-loss of the truth?

    python -m benchmarks.coverage.calibrator_truths [--repetitions 100]

Scores s of two classes, with log-odds z, are Beta(0.8, 0.7) distributed. True log-odds are 0.5 z (*over-confident*) or
z + sin 2z (*wave*). True probabilities are s² (*asymmetric*), or 0.2 between 0.4 and 0.6 and s elsewhere (*a fall*).
Scores of five classes are softmaxes of normal logits with standard deviation 2. Here *over-confident* halves the
logits, *near the top only* flattens those within 1.5 of the largest, and *one class* adds 1 to one logit. The cost is
the mean Kullback-Leibler divergence from the truth over 4,000 fixed scores. Probabilities below 0.001 count as 0.001.
Binning uses 15 bins.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit, softmax, xlogy
from scipy.stats import beta
from sklearn.base import clone

from calibrant import calibrators as c
from calibrant.plot.style import style_of

from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept

LEAST = 1e-3
SIZES = (100, 1000)
GIVEN, CALIBRATED = "as they are", "calibrated"
TWO = {
    CALIBRATED: lambda s: s,
    "over-confident": lambda s: expit(0.5 * logit(s)),
    "asymmetric": lambda s: s**2,
    "wave": lambda s: expit(logit(s) + np.sin(2 * logit(s))),
    "a fall": lambda s: np.where((s > 0.4) & (s < 0.6), 0.2, s),
}
FIVE = {
    CALIBRATED: lambda z: z,
    "over-confident": lambda z: 0.5 * z,
    "near the top only": lambda z: _bent(z),
    "one class": lambda z: z + np.array([1.0, 0, 0, 0, 0]),
}
TRUTHS: dict[int, Mapping[str, Callable[[np.ndarray], np.ndarray]]] = {2: TWO, 5: FIVE}
SHARED = c.OneVsRest(c.IsotonicCalibrator(), shared=True)
CALIBRATORS: dict[int, dict[str, c.Calibrator]] = {
    2: {
        GIVEN: c.Identity(),
        "TemperatureScaling": c.TemperatureScaling(),
        "PlattScaling": c.PlattScaling(),
        "BetaCalibration": c.BetaCalibration(),
        "Spline": c.SplineCalibrator(),
        "GaussianProcess": c.GaussianProcessCalibrator(),
        "Isotonic": c.IsotonicCalibrator(),
        "NearIsotonic": c.NearIsotonic(),
        "NearIsotonic(10)": c.NearIsotonic(10.0),
        "HistogramBinning": c.HistogramBinning(15),
        "I-max bins": c.HistogramBinning(15, "i-max"),
    },
    5: {
        GIVEN: c.Identity(),
        "TemperatureScaling": c.TemperatureScaling(),
        "EnsembleTemperature": c.EnsembleTemperatureScaling(),
        "OrderPreserving": c.OrderPreserving(),
        "VectorScaling": c.VectorScaling(),
        "Isotonic, OneVsRest": c.OneVsRest(c.IsotonicCalibrator()),
        "Isotonic, shared": SHARED,
        "Composed": c.Composed([c.EnsembleTemperatureScaling(), SHARED]),
        "I-max bins, shared": c.OneVsRest(c.HistogramBinning(15, "i-max"), shared=True),
    },
}
#: Classes and map by the name of the truth.
CASES = {f"{k} classes, {name}": (k, name) for k, some in TRUTHS.items() for name in some}


def _bent(z: np.ndarray) -> np.ndarray:
    """Classes within 1.5 of the first are far less different than they seem; what lies further is as it seems."""
    behind = z.max(axis=1, keepdims=True) - z
    return -np.where(behind < 1.5, 0.3 * behind, behind - 1.05)


@cache
def new(truth: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores of new rows, and their true probabilities."""
    k, name = CASES[truth]
    if k == 2:
        at = beta.ppf((np.arange(4000) + 0.5) / 4000, 0.8, 0.7).clip(1e-9, 1 - 1e-9)
        p = TWO[name](at)
        return at, np.column_stack([1 - p, p])
    z = np.random.default_rng(0).normal(0, 2, (4000, 5))
    return softmax(z, axis=1), softmax(FIVE[name](z), axis=1)


def rows(truth: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and outcomes that calibrators are fitted to."""
    k, name = CASES[truth]
    rng = np.random.default_rng([seed, [*CASES].index(truth), n])
    if k == 2:
        s = rng.beta(0.8, 0.7, n).clip(1e-9, 1 - 1e-9)
        return s, (rng.random(n) < TWO[name](s)).astype(int)
    z = rng.normal(0, 2, (n, 5))
    y = (rng.random((n, 1)) > softmax(FIVE[name](z), axis=1).cumsum(axis=1)).sum(axis=1).clip(0, 4)
    return softmax(z, axis=1), y


def sample(truth: str, n: int, seed: int) -> dict[str, float]:
    """By how much log-loss and Brier score (over all classes) of new rows exceed those of the truth."""
    at, q = new(truth)
    s, y = rows(truth, n, seed)
    k, out = q.shape[1], {}
    for name, one in CALIBRATORS[k].items():
        p = clone(one).set_params(labels=list(range(k))).fit(s, y).predict_proba(at)
        some = np.maximum(p, LEAST)
        divergence = xlogy(q, q) - xlogy(q, some / some.sum(axis=1, keepdims=True))
        out[f"{name}: log-loss"] = float(divergence.sum(axis=1).mean())
        out[f"{name}: Brier"] = float(((p - q) ** 2).sum(axis=1).mean())
    return out


def cost(kept: Kept, truth: str, n: int, name: str, score: str = "log-loss") -> tuple[float, float]:
    """Thousandths above the truth's score, with the standard error."""
    return estimate(1000 * kept.where(truth=truth, n=n)[f"{name}: {score}"])


def least(kept: Kept, truth: str, n: int, score: str = "log-loss") -> str:
    """The calibrator with the lowest mean cost."""
    return min(CALIBRATORS[CASES[truth][0]], key=lambda name: cost(kept, truth, n, name, score)[0])


def answer(kept: Kept) -> str:
    fitted = [name for name in CALIBRATORS[2] if name != GIVEN]
    harms = {name: cost(kept, f"2 classes, {CALIBRATED}", 100, name)[0] for name in fitted}
    low, high = min(harms, key=harms.__getitem__), max(harms, key=harms.__getitem__)
    every = [(truth, n) for truth in CASES for n in SIZES]
    other = sum(least(kept, *case) != least(kept, *case, "Brier") for case in every)
    return (
        f"With two classes and calibrated scores, a fit to 100 rows costs from {harms[low]:.1f} ({low}) to "
        f"{harms[high]:.1f} ({high}) thousandths of log-loss. Where scores are miscalibrated, the cheapest calibrators "
        f"after a fit to 1,000 rows are, for two classes, {_best(kept, 2)}. For five they are {_best(kept, 5)}. By the "
        f"Brier score, another calibrator is cheapest in {other or 'none'} of {len(every)} cases."
    )


def _best(kept: Kept, k: int) -> str:
    """Calibrators with the lowest mean cost, each with the truths where it is."""
    found: dict[str, list[str]] = {}
    for truth in TRUTHS[k]:
        if truth != CALIBRATED:
            found.setdefault(least(kept, f"{k} classes, {truth}", 1000), []).append(truth)
    return ", ".join(f"{name} (*{', '.join(truths)}*)" for name, truths in found.items())


def picture(kept: Kept) -> Figure:
    with mpl.rc_context({"svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(7.2, 6.4), layout="constrained")
        for part, (k, truths) in zip(figure.subfigures(2, 1), TRUTHS.items(), strict=True):
            names = [name for name in CALIBRATORS[k] if name != GIVEN]
            part.suptitle(f"{k} classes", x=0.0, horizontalalignment="left", fontsize=9)
            panels = part.subplots(1, len(truths), sharey=True)
            for axes, name in zip(panels, truths, strict=True):
                _panel(axes, kept, f"{k} classes, {name}", names)
                axes.set_title(name, fontsize=8)
            panels[0].set_yticks(range(len(names)), names)
            panels[0].set_ylim(len(names) - 0.5, -0.5)
        part.supxlabel("thousandths of log-loss above the truth's. Dashed: the scores as they are", fontsize=8)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper right", ncols=2, frameon=False)
        return figure


def _panel(axes: mpl.axes.Axes, kept: Kept, truth: str, names: list[str]) -> None:
    for j, n in enumerate(SIZES):
        value, error = np.array([cost(kept, truth, n, name) for name in names]).T
        look, at = style_of(j), np.arange(len(names)) + 0.3 * (j - 0.5)
        about = {"fmt": look.marker, "color": look.color, "markersize": 3, "elinewidth": 1, "label": f"{n:,} rows"}
        axes.errorbar(value, at, xerr=2 * error, **about)
    given = cost(kept, truth, SIZES[0], GIVEN)[0]
    if given > 0.1:
        axes.axvline(given, color="0.4", linestyle="--", linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.set_xlim(0.2, 400)
    axes.grid(axis="x", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives thousandths of log-loss above the truth's after a fit to 100 or 1,000 rows, for calibrated"
    yield "scores and, averaged over truths, for miscalibrated ones. Names begin with the number of classes."
    yield ""
    yield from table(("calibrator", f"{CALIBRATED}, 100", "1,000", "miscalibrated, 100", "1,000"), _rows(kept))


#: Those of the table: the picture has all.
LISTED = (
    *(GIVEN, "TemperatureScaling", "BetaCalibration", "GaussianProcess", "Isotonic", "I-max bins"),
    *("OrderPreserving", "VectorScaling", "Isotonic, OneVsRest", "Isotonic, shared"),
)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for k, some in CALIBRATORS.items():
        for name in (name for name in some if name in LISTED):
            cells = []
            for truths in ([CALIBRATED], [truth for truth in TRUTHS[k] if truth != CALIBRATED]):
                for n in SIZES:
                    value = np.mean([cost(kept, f"{k} classes, {truth}", n, name)[0] for truth in truths])
                    cells.append(f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}")
            yield [f"{k}: {name}", *cells]


EXPERIMENT = Experiment(
    __spec__.name, {"truth": CASES, "n": SIZES}, sample, answer, page, picture, repetitions=100, quick=3
)

if __name__ == "__main__":
    EXPERIMENT.main()

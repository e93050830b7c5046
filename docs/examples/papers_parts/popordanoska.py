"""Popordanoska, Sayer & Blaschko (2022): the estimator, its debiasing, its experiments and its loss."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from evidence_parts.pages import kept
from scipy.stats import beta as beta_law
from scipy.stats import dirichlet as dirichlet_law

import calibrant as cal
from calibrant.torch import BrierSharpnessLoss, ConfidencePenaltyLoss, DCALoss, DirichletKernelLoss

from . import data
from .items import Paper, agrees, differs, fails, holds, number

PAPER = Paper(
    "A Consistent and Differentiable Lp Canonical Calibration Error Estimator",
    "T. Popordanoska, R. Sayer and M. B. Blaschko, NeurIPS 2022, arXiv:2210.07810",
)
RUNS = Path(__file__).resolve().parents[2] / "canonical"
H = 0.05


def _kernel(q: np.ndarray, h: float = H) -> np.ndarray:
    """`k(f_j, f_i)`: the density of Dirichlet(f_i / h + 1) at f_j, 0 on the diagonal; row j, column i."""
    k = np.array([[dirichlet_law.pdf(at, f / h + 1) for f in q] for at in q])
    np.fill_diagonal(k, 0)
    return k


def _conditional(y: np.ndarray, q: np.ndarray) -> np.ndarray:
    """`Ê[y | f_j]` of every row, from all others."""
    k = _kernel(q)
    return np.asarray(k @ data.onehot(y, q.shape[1]) / k.sum(axis=1, keepdims=True))


def _rows() -> tuple[np.ndarray, np.ndarray]:
    return data.vectors(120)


@PAPER.item("Equation 1, L_p canonical error", "`(E ‖E[y | f] - f‖_p^p)^(1/p)`", '`notion="canonical", norm=p`')
def definition() -> str:
    rng = np.random.default_rng(3)
    vectors = np.array([(0.7, 0.2, 0.1), (0.1, 0.1, 0.8), (0.3, 0.5, 0.2)])
    q = vectors[rng.integers(3, size=150)]
    y = rng.integers(3, size=150)
    gaps = [data.onehot(y[(q == f).all(axis=1)], 3).mean(axis=0) - f for f in q]
    theirs = [np.mean([np.abs(g) ** p for g in gaps] * np.array(3.0)) ** (1 / p) for p in (1, 2)]
    ours = [
        cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.SimplexBinned(20), norm=p)
        for p in (1, 2)
    ]
    return agrees(ours, theirs, "p = 1 and 2, by counting equal vectors")


@PAPER.item(
    "§4, binned estimator", "`mean_i ‖H(f_i) - f_i‖`, H the frequencies of the cell", '`SimplexBinned(center="row")`'
)
def binned() -> str:
    y, q = _rows()
    cells = [tuple(np.minimum(np.ceil(f * 5 - 1e-12).clip(1), 5)) for f in q]
    hot = data.onehot(y, 3)
    freq = np.array([hot[[c == own for c in cells]].mean(axis=0) for own in cells])
    ours = cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.SimplexBinned(5, center="row"))
    said = agrees(ours, np.abs(freq - q).sum(axis=1).mean(), "by counting cells")
    mean = cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.SimplexBinned(5))
    return f"{said}; the default compares cell means, {number(mean)}, which is never more"


@PAPER.item("Dirichlet kernel", "the density of Dirichlet(f_i / h + 1) at f_j", "`DirichletKernel(h)`")
def kernel() -> str:
    y, q = _rows()
    gaps = np.abs(_conditional(y, q) - q)
    theirs = [(gaps**p).sum(axis=1).mean() ** (1 / p) for p in (1, 2)]
    ours = [
        cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.DirichletKernel(H), norm=p)
        for p in (1, 2)
    ]
    return agrees(ours, theirs, "ratio of sums over all others, with SciPy's density", within=1e-10)


@PAPER.item("Published values", "500 rows, K = 4, h = .05: .2858 of their code", "`DirichletKernel(0.05)`")
def parity() -> str:
    stored = np.load(Path(__file__).resolve().parents[3] / "tests" / "reference" / "dirichlet_K4_N500.npz")
    f, y = stored["f"], stored["y"]
    ours = cal.calibration_error(y, f, notion="canonical", estimator=cal.estimators.DirichletKernel(H))
    return agrees(ours, 0.285811053039419, "with the value of the published code", within=1e-9)


@PAPER.item("Two classes", "the kernel becomes a Beta kernel", '`BetaKernel(h)`, `notion="confidence"`')
def two_classes() -> str:
    y, s = data.binary(150)
    total = 0.0
    for j in range(len(s)):
        w = np.delete(beta_law.pdf(s[j], s / H + 1, (1 - s) / H + 1), j)
        total += abs(w @ np.delete(y, j) / w.sum() - s[j])
    ours = cal.calibration_error(y, s, estimator=cal.estimators.BetaKernel(H))
    return agrees(ours, total / len(s), "by sums over pairs", within=1e-4)


@PAPER.item(
    "Marginal and top-label error", "the same with one-dimensional kernels", "`BetaKernel`, notions of one score"
)
def marginal() -> str:
    y, q = _rows()
    found = []
    for k in range(3):
        s, o = q[:, k], (y == k).astype(float)
        w = beta_law.pdf(s[:, None], s / H + 1, (1 - s) / H + 1)
        np.fill_diagonal(w, 0)
        found.append(np.abs(w @ o / w.sum(axis=1) - s).mean())
    ours = cal.calibration_error(y, q, notion="class-wise", estimator=cal.estimators.BetaKernel(H))
    said = agrees(ours, np.mean(found), "mean over classes; the paper adds them up", within=1e-4)
    return f"{said}, which is {number(float(np.sum(found)))}"


@PAPER.item(
    "Equation 7, debiased squares",
    "pairs of different rows in the numerator, `Σ_{i≠i'} k k' y y'`",
    '`DirichletKernel(debias="square")`',
)
def equation_7() -> str:
    y, q = _rows()
    k = _kernel(q)
    w = k / k.sum(axis=1, keepdims=True)
    hot, two = data.onehot(y, 3), w**2
    e, s2, s2y = w @ hot, two.sum(axis=1, keepdims=True), two @ hot
    square = (e**2 - s2y) / (1 - s2)
    theirs = (square - 2 * e * q + q**2).sum(axis=1).mean()
    ours = cal.squared_calibration_error(
        y, q, notion="canonical", estimator=cal.estimators.DirichletKernel(H, debias="square")
    )
    agrees(ours, theirs, "pairs of different rows in numerator and denominator", within=1e-10)
    printed = ((e**2 - s2y) / (1 - s2y) - 2 * e * q + q**2).sum(axis=1).mean()
    return differs(
        ours, printed, "as printed the denominator loses y's pairs too, which is biased for the ratio", by=1e-4
    )


@PAPER.item("Equation 6", "MSE + γ · sharpness as a loss", "`torch.BrierSharpnessLoss(gamma)`")
def equation_6() -> str:
    y, q = _rows()
    z, target = torch.tensor(np.log(q), dtype=torch.float64), torch.tensor(y)
    ours = float(BrierSharpnessLoss(0.5, H, debias=None)(z, target))
    score = ((data.onehot(y, 3) - q) ** 2).sum(axis=1).mean()
    theirs = score + 0.5 * (_conditional(y, q) ** 2).sum(axis=1).mean()
    said = agrees(ours, theirs, "Brier score + γ E‖E[y | f]‖², row by row", within=1e-10)
    return f"{said}; by default the sharpness is unbiased, {number(float(BrierSharpnessLoss(0.5, H)(z, target)))}"


@PAPER.item(
    "Rivals as losses",
    "confidence penalty (Pereyra et al.), DCA (Liang et al.)",
    "`torch.ConfidencePenaltyLoss`, `torch.DCALoss`",
)
def rivals() -> str:
    y, q = _rows()
    z, target = torch.tensor(np.log(q), dtype=torch.float64), torch.tensor(y)
    ours = [float(ConfidencePenaltyLoss(weight=1.0)(z, target)), float(DCALoss()(z, target))]
    theirs = [(q * np.log(q)).sum(axis=1).mean(), abs(q.max(axis=1).mean() - (q.argmax(axis=1) == y).mean())]
    return agrees(ours, theirs, "by their formulas", within=1e-10)


@PAPER.item("Ratio bias, p = 1", "second-order correction of the ratio", '`DirichletKernel(debias="ratio")`')
def ratio() -> str:
    y, q = _rows()
    k = _kernel(q)
    w = k / k.sum(axis=1, keepdims=True)
    hot, two, m = data.onehot(y, 3), w**2, len(y) - 1
    e = w @ hot
    corrected = e - m / (m - 1) * (e * two.sum(axis=1, keepdims=True) - two @ hot)
    ours = cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.DirichletKernel(H, debias="ratio"))
    return agrees(
        ours, np.abs(corrected - q).sum(axis=1).mean(), "`E - m/(m-1) (E s₂ - s₂y)`, row by row", within=1e-10
    )


@PAPER.item(
    "Bandwidth",
    "leave-one-out likelihood `Σ_j log[Σ_{i≠j} k_ji / (n-1)]`",
    '`DirichletKernel("loo")`, `"loo-as-published"`',
)
def bandwidth() -> str:
    y, q = data.vectors(400)
    ours, theirs = (
        cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.DirichletKernel(rule))
        for rule in ("loo", "loo-as-published")
    )
    return differs(
        ours, theirs, "the published code subtracts log h once more and takes far smaller bandwidths", by=1e-2
    )


@PAPER.item("Complexity", "O(n²) time and, in the published code, memory", "row tiles: O(n K) memory")
def memory() -> str:
    import tracemalloc

    peaks = []
    for n in (1000, 4000):
        y, q = data.vectors(n)
        tracemalloc.start()
        cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.DirichletKernel(H))
        peaks.append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()
    return holds(
        peaks[1] < 8 * 4000**2 / 4e6,
        f"{peaks[0]:.0f} and {peaks[1]:.0f} MB of 1000 and 4000 rows; one n × n matrix is 8 and 128",
    )


def _results(estimator: str, name: str, measure: str) -> dict[int, float]:
    rows = kept(RUNS / "results.csv").filter(estimator=estimator, distribution=name, measure=measure).to_dicts()
    return {r["size"]: r["mean"] - r["truth"] for r in rows}


@PAPER.item(
    "Figures 1b, 1c, 3",
    "histogram and kernel surfaces over the simplex",
    '`SimplexDisplay.from_predictions(…, kind="kernel")`',
)
def surfaces() -> str:
    y, q = data.vectors(400)
    cells = cal.plot.SimplexDisplay.from_predictions(y, q, kind="histogram", n_bins=5)
    inside = [
        np.flatnonzero((np.linalg.solve(corners.T, q.T) > 0).all(axis=0)) for corners in cells.cells
    ]  # rows in a triangle have positive coordinates in its corners
    theirs = np.array([len(rows) / len(q) * len(inside) for rows in inside])
    agrees(cells.density, theirs, "rows a cell", within=1e-9)
    surface = cal.plot.SimplexDisplay.from_predictions(y, q, kind="kernel", estimator=cal.estimators.DirichletKernel(H))
    centre = surface.cells.mean(axis=1)[::100]
    k = np.array([[dirichlet_law.pdf(at / at.sum(), f / H + 1) for f in q] for at in centre])
    frequency = k @ data.onehot(y, 3) / k.sum(axis=1, keepdims=True)
    for display in (cells, surface):
        plt.close(display.figure_)
    said = f"frequencies at {len(centre)} of 3600 points with SciPy's density"
    return agrees(surface.frequency[::100], frequency, said, within=1e-6)


@PAPER.item("Figure 2a", "the plug-in approaches the truth, K = 4 and 8", "[canonical.md](canonical.md)")
def figure_2a() -> str:
    plug, ours = (_results(name, "k4-sharpened", "l1") for name in ("published", "default"))
    sizes = sorted(plug)
    return fails(
        abs(plug[sizes[-1]]) < 0.05,
        f"with the published code's bandwidths it is off by {plug[sizes[0]]:+.3f} at N = {sizes[0]} and "
        f"{plug[sizes[-1]]:+.3f} at {sizes[-1]} (K = 4, truth .2336); our default by {ours[sizes[-1]]:+.3f}",
    )


@PAPER.item(
    "Rates of convergence", "bias of the plug-in falls as 1/n, an error as 1/√n", "[convergence.md](convergence.md)"
)
def rates() -> str:
    from calibrant.benchmark.convergence import rate

    rows = kept(RUNS / "convergence.csv").filter(distribution="k4-sharpened", estimator="plug-in", measure="l1")
    rows = rows.filter(rows["size"] >= 50)
    slope, error = rate(*(rows[name].to_numpy() for name in ("size", "bias", "se")))
    limit, truth = rows["limit"][0], rows["truth"][0]
    words = f"bias against its own limit at h = .5 falls with n to the power {slope:.2f} ± {error:.2f}"
    return holds(-1.2 < slope < -0.8, f"{words}; that limit, {limit:.3f}, is not the truth, {truth:.3f}")


@PAPER.item("Figure 2b, sharpness", "the debiased square of a frequency is less biased", "[canonical.md](canonical.md)")
def figure_2b() -> str:
    bias = {r["estimator"]: r["bias"] for r in kept(RUNS / "sharpness.csv").filter(size=300).to_dicts()}
    cells = ", ".join(f"{name} {value:+.4f}" for name, value in bias.items())
    return holds(abs(bias["square"]) < abs(bias["as printed"]) < abs(bias["plug-in"]), f"bias at N = 300: {cells}")


@PAPER.item(
    "Appendix F",
    "estimates of real predictions against the number of rows, with intervals",
    "`docs/examples/appendix_f.py`",
)
def appendix_f() -> str:
    import appendix_f as figure

    y, q = figure.scores()
    said = []
    for n in (100, 800):
        rng = np.random.default_rng(0)
        rows = [rng.choice(len(y), n, replace=False) for _ in range(40)]
        about = {"notion": "canonical", "estimator": cal.estimators.DirichletKernel(H), "labels": range(10)}
        low, mid, high = np.quantile([cal.calibration_error(y[r], q[r], **about) for r in rows], [0.025, 0.5, 0.975])
        said.append(f"{mid:.3f} ({low:.3f} to {high:.3f}) of {n} rows")
    return f"**measured**: canonical plug-in, median and 95 % of 40 subsets of digits: {'; '.join(said)}"


@PAPER.item("KDE-XE", "cross-entropy + λ · error, differentiable", "`torch.DirichletKernelLoss(weight=λ)`")
def loss() -> str:
    y, q = _rows()
    z = torch.tensor(np.log(q), dtype=torch.float64, requires_grad=True)
    value = DirichletKernelLoss(H)(z, torch.tensor(y))
    value.backward()
    step = torch.zeros_like(z)
    step[3, 1] = 1e-6
    with torch.no_grad():
        up, down = (DirichletKernelLoss(H)(z + d, torch.tensor(y)) for d in (step, -step))
    agrees(float(z.grad[3, 1]), float(up - down) / 2e-6, "gradient", within=1e-7)
    ours = cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.DirichletKernel(H))
    return agrees(float(value.detach()), ours, "loss and NumPy's value; the gradient beside a difference", within=1e-10)


TABLES = "[training_tables.md](training_tables.md): 4 data sets, 12 seeds"


@PAPER.item("Tables 2–4, errors", "networks trained with KDE-XE are better calibrated than with cross-entropy", TABLES)
def tables_errors() -> str:
    cells = {m: data.against_cross_entropy("KDE-XE", m) for m in ("canonical debiased", "class-wise", "top-label")}
    words = ", ".join(f"{m} {better} / {worse}" for m, (better, worse) in cells.items())
    return holds(all(b > w for b, w in cells.values()), f"settings better / worse than cross-entropy, of 9: {words}")


@PAPER.item("Tables 2–4, accuracy", "at no cost of accuracy", TABLES)
def tables_accuracy() -> str:
    better, worse = data.against_cross_entropy("KDE-XE", "accuracy")
    return fails(worse <= better, f"accuracy is better in {better} and worse in {worse} of 9 settings")


@PAPER.item(
    "Figure 4",
    "over λ, pairs of accuracy and error than which nothing is better in both",
    "`docs/examples/figure4.py`, [the plot](images/figure4.png)",
)
def figure_4() -> str:
    import figure4

    fronts = [figure4.on_the_front(rows) for rows in figure4.strengths().values()]
    ours = sum(any(row["strength"] > 0 for row in front) for front in fronts)
    plain = sum(any(row["strength"] == 0 for row in front) for front in fronts)
    return holds(
        ours > len(fronts) / 2,
        f"by means of 12 seeds a KDE-XE is there in {ours} of {len(fronts)} settings, cross-entropy in {plain}; most "
        "lie within a standard error of each other",
    )


@PAPER.item("Cost of training", "an epoch takes some 2 % longer", TABLES)
def cost() -> str:
    plain, ours = data.seconds_of("XE"), data.seconds_of("KDE-XE")
    return fails(
        ours <= 1.02 * plain,
        f"{plain:.1f} s with cross-entropy, {ours:.1f} s with KDE-XE: these networks are small, the kernels are not",
    )


@PAPER.item("§5.1, by the plug-in estimator", "temperature scaling does not lessen the canonical error", TABLES)
def temperature_plug_in() -> str:
    better, worse = data.against_cross_entropy("XE, temperature", "canonical plug-in")
    return holds(
        better <= worse,
        f"less in {better} of 9 settings, more in {worse}: by the estimator that the paper reads it with",
    )


@PAPER.item("§5.1, by the debiased estimator", "temperature scaling does not lessen the canonical error", TABLES)
def temperature_debiased() -> str:
    better, worse = data.against_cross_entropy("XE, temperature", "canonical debiased")
    return fails(
        better <= worse,
        f"less in {better} of 9 settings, more in {worse}: the plug-in takes noise for error",
    )


@PAPER.item("KDE-XE beside a temperature", "which of the two is better calibrated", TABLES)
def beside_temperature() -> str:
    better, worse = data.beside("XE, temperature", "canonical debiased")
    return f"**measured**: by the debiased canonical error KDE-XE is better in {better} of 9 settings, worse in {worse}"

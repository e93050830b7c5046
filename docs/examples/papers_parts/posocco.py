"""Posocco & Bonnefoy (2021): definitions, estimators and the experiment."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from evidence_parts.pages import kept
from scipy.stats import beta as beta_law

import calibrant as cal
from calibrant.benchmark import paper_curves

from . import data
from .items import Paper, agrees, differs, fails, holds, number

PAPER = Paper(
    "Estimating Expected Calibration Errors",
    "N. Posocco and A. Bonnefoy, ICANN 2021, arXiv:2109.03480",
)
SUMMARY = Path(__file__).resolve().parents[2] / "benchmark" / "summary.csv"


def _few_vectors() -> tuple[np.ndarray, np.ndarray]:
    """Two hundred rows of four vectors, so that P(Y | s) is known by counting."""
    rng = np.random.default_rng(4)
    rows = np.array([(0.7, 0.2, 0.1), (0.1, 0.1, 0.8), (0.3, 0.5, 0.2), (0.4, 0.3, 0.3)])
    which = rng.integers(4, size=200)
    return rng.integers(3, size=200), rows[which]


def _counted(y: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The gap P(Y = c | s) - s_c of every row and class, by counting rows with the same vector."""
    hot = data.onehot(y, q.shape[1])
    return np.array([hot[(q == row).all(axis=1)].mean(axis=0) - row for row in q])


@PAPER.item(
    "§3, multiclass calibration",
    "`P(Y = c | M(X) = s) = s_c` for all classes and vectors",
    '`notion="canonical"`',
)
def canonical() -> str:
    y, q = _few_vectors()
    ours = cal.calibration_error(y, q, notion="canonical", estimator=cal.estimators.SimplexBinned(20))
    return agrees(ours, np.abs(_counted(y, q)).sum(axis=1).mean(), "Σ_c of the gaps, by counting equal vectors")


@PAPER.item("§3, class-wise calibration", "the same for each class's score by itself", '`notion="class-wise"`')
def classwise() -> str:
    y, q = _few_vectors()
    ours = cal.calibration_error(y, q, notion="class-wise", estimator=cal.Binned(1000))
    by_class = [np.mean([abs(np.mean(y[q[:, k] == s] == k) - s) for s in q[:, k]]) for k in range(3)]
    return agrees(ours, np.mean(by_class), "mean over classes, by counting equal scores")


@PAPER.item("§3, confidence calibration", "the same for the largest score", '`notion="confidence"`')
def confidence() -> str:
    y, q = _few_vectors()
    top, right = q.max(axis=1), q.argmax(axis=1) == y
    ours = cal.calibration_error(y, q, notion="confidence", estimator=cal.Binned(1000))
    return agrees(ours, np.mean([abs(right[top == s].mean() - s) for s in top]), "by counting equal scores")


@PAPER.item(
    "Definition 3, ECE^mul",
    "`E |P(Y = c | s) - s_c|` at the observed class c = Y",
    '`notion="drawn-class"`',
)
def drawn_class() -> str:
    y, q = _few_vectors()
    gaps = np.abs(_counted(y, q))
    ours = cal.calibration_error(y, q, notion="drawn-class", estimator=cal.estimators.SimplexBinned(20))
    said = agrees(ours, gaps[np.arange(len(y)), y].mean(), "by counting equal vectors")
    return f"{said}; half of the canonical error bounds it: {number(gaps.sum(axis=1).mean() / 2)}"


def _weights(s: np.ndarray, edges: np.ndarray, mapping: str) -> np.ndarray:
    """The matrix W of §4.3, row by row."""
    centres, w = (edges[:-1] + edges[1:]) / 2, np.zeros((len(s), len(edges) - 1))
    for i, score in enumerate(s):
        if mapping == "hard":
            w[i, max(int(np.searchsorted(edges, score, side="left")) - 1, 0)] = 1
            continue
        j = int(np.searchsorted(centres, score))
        if j in (0, len(centres)):
            w[i, min(j, len(centres) - 1)] = 1
            continue
        near = (score - centres[j - 1]) / (centres[j] - centres[j - 1])
        w[i, j - 1 : j + 1] = (1 - near, near) if mapping == "linear" else (near, 1 - near)
    return w


def _binned(y: np.ndarray, s: np.ndarray, edges: np.ndarray, mapping: str) -> float:
    return float(np.abs(_weights(s, edges, mapping).T @ (y - s)).sum() / len(s))


@PAPER.item(
    "§4.3, estimators l and c",
    "`(1/N) Σ_j |Σ_i W_ij (o_i - s_i)|` with uniform edges, hard (l) or shared by the nearest two centres (c)",
    '`Binned(n)`, `Binned(n, mapping="linear")`',
)
def uniform_bins() -> str:
    y, s = data.binary()
    edges = np.linspace(0, 1, 11)
    ours = [
        cal.calibration_error(y, s, estimator=cal.Binned(10)),
        cal.calibration_error(y, s, estimator=cal.Binned(10, mapping="linear")),
    ]
    return agrees(ours, [_binned(y, s, edges, m) for m in ("hard", "linear")], "with W written out row by row")


@PAPER.item(
    "§4.3, estimators a and ac",
    "the same with edges between order statistics, ⌊N/B⌋ samples a bin and those left over in the last",
    '`Binned(n, "quantile-as-published")`, also with `mapping="linear"`',
)
def quantile_bins() -> str:
    y, s = data.binary(59)
    ordered, k = np.sort(s), 59 // 30
    inner = [(ordered[j * k - 1] + ordered[j * k]) / 2 for j in range(1, 30)]
    edges = np.array([0, *inner, 1])
    estimators = [cal.Binned(30, "quantile-as-published", mapping=m) for m in ("hard", "linear")]
    ours = [cal.calibration_error(y, s, estimator=e) for e in estimators]
    theirs = [_binned(y, s, edges, m) for m in ("hard", "linear")]
    return agrees(ours, theirs, "59 samples in 30 bins, the last of 30, with W written out")


@PAPER.item(
    "§4.3, quantile bins by default",
    "samples left over go to the last bin",
    '`Binned(n, "quantile")`',
)
def left_over() -> str:
    y, s = data.binary(59)
    ours, theirs = (
        cal.calibration_error(y, s, estimator=cal.Binned(30, how)) for how in ("quantile", "quantile-as-published")
    )
    return differs(ours, theirs, "ours spreads samples that are left over: bins differ by one sample at most")


@PAPER.item(
    "§4.3, convex weights as printed",
    "the share of a sample in a bin grows with its distance from the centre",
    '`Binned(n, mapping="linear-as-printed")`',
)
def printed_weights() -> str:
    y, s = data.binary()
    ours = cal.calibration_error(y, s, estimator=cal.Binned(10, mapping="linear"))
    printed = cal.calibration_error(y, s, estimator=cal.Binned(10, mapping="linear-as-printed"))
    agrees(printed, _binned(y, s, np.linspace(0, 1, 11), "as-printed"), "the printed formula")
    return differs(ours, printed, "as printed, a sample at a bin's centre has weight 0 there; kept for reproduction")


@PAPER.item("§4.3, number of bins", "⌊√N⌋", '`Binned("sqrt")`')
def root_bins() -> str:
    y, s = data.binary()
    ours = cal.calibration_error(y, s, estimator=cal.Binned("sqrt"))
    return agrees(ours, _binned(y, s, np.linspace(0, 1, math.isqrt(len(s)) + 1), "hard"), f"with {math.isqrt(len(s))}")


@PAPER.item("§4, maximum calibration error", "the largest gap in place of the mean", "`norm=inf`")
def largest() -> str:
    y, s = data.binary()
    ours = cal.calibration_error(y, s, estimator=cal.Binned(10), norm=np.inf)
    cell = np.clip(np.ceil(s * 10).astype(int) - 1, 0, 9)
    gaps = [abs((y - s)[cell == j].mean()) for j in range(10)]
    return agrees(ours, max(gaps), "over bins; the authors' code has none")


def _mirrored(points: np.ndarray, s: np.ndarray, h: float) -> np.ndarray:
    """Gaussian kernel density of samples and both their mirror images."""
    total = np.zeros(len(points))
    for copy in (s, -s, 2 - s):
        total += np.exp(-0.5 * ((points[:, None] - copy) / h) ** 2).sum(axis=1)
    return total / (len(s) * h * math.sqrt(2 * math.pi))


def _density_parts(h: float = 0.1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A fine grid, f(s) and the ratio π f(s | o = 1) / f(s)."""
    y, s = data.binary()
    points = np.linspace(0, 1, 4001)
    f = _mirrored(points, s, h)
    return points, f, y.mean() * _mirrored(points, s[y == 1], h) / f


@PAPER.item(
    "§4.4, ECE_d",
    "`∫ f(s) |π f(s|o=1)/f(s) - s| ds`, densities of one bandwidth, samples mirrored at both ends",
    "`Density(bandwidth)`",
)
def density() -> str:
    y, s = data.binary()
    points, f, rel = _density_parts()
    theirs = np.trapezoid(f * np.abs(rel - points), points)
    return agrees(
        cal.calibration_error(y, s, estimator=cal.estimators.Density(0.1)),
        theirs,
        "by sums over all samples",
        within=2e-4,
    )


@PAPER.item(
    "§4.4, bandwidth",
    "Silverman's rule: `min(sd, IQR / 1.34898) (3N/4)^(-1/5)`",
    '`Density("silverman")`',
)
def silverman() -> str:
    y, s = data.binary()
    q1, q3 = np.quantile(s, [0.25, 0.75])
    h = min(s.std(ddof=1), (q3 - q1) / 1.34898) * (0.75 * len(s)) ** -0.2
    ours, theirs = (cal.calibration_error(y, s, estimator=cal.estimators.Density(b)) for b in ("silverman", h))
    return agrees(
        ours, theirs, f"with h = {h:.4f} computed from the rows; quantiles are of the grid's counts", within=2e-4
    )


@PAPER.item(
    "§4.5, local calibration error and reliability curve",
    "`rel(s) = π f(s|o=1)/f(s)`, `LCE(s) = rel(s) - s`",
    '`reliability_curve(…, estimator="density")`, `.observed`, `.lce`',
)
def local_error() -> str:
    y, s = data.binary()
    points, _, rel = _density_parts()
    curve = cal.reliability_curve(y, s, estimator=cal.estimators.Density(0.1))
    at = np.interp(curve.scores, points, rel)
    agrees(curve.lce, curve.observed - curve.scores, "LCE")
    return agrees(curve.observed, at, f"at {len(at)} scores, by sums over all samples", within=2e-3)


@PAPER.item(
    "§4.5, uncertainty of the curve",
    "percentiles of curves of bootstrapped samples, score by score",
    '`reliability_curve(…, estimator="density", level=0.95)`',
)
def band() -> str:
    y, s = data.binary()
    curve = cal.reliability_curve(y, s, estimator=cal.estimators.Density(0.1), level=0.95, n_resamples=400)
    rng = np.random.default_rng(0)
    points = np.linspace(0.1, 0.8, 15)
    drawn = []
    for _ in range(400):
        rows = rng.integers(len(s), size=len(s))
        f = _mirrored(points, s[rows], 0.1)
        drawn.append(y[rows].mean() * _mirrored(points, s[rows][y[rows] == 1], 0.1) / f)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    ours = [np.interp(points, curve.scores, side) for side in (curve.lower, curve.upper)]
    return agrees(ours, [low, high], "of 400 resamples drawn row by row, to their own noise", within=0.03)


@PAPER.item("Figure 1", "densities, curve with its band, and LCE of a random forest", "`docs/examples/figure1.py`")
def figure_1() -> str:
    import figure1

    y, s = figure1.scores()
    curve = cal.reliability_curve(y, s, estimator="density", level=0.95, n_resamples=200)
    value = cal.calibration_error(y, s, estimator="density")
    area = np.trapezoid(curve.density * np.abs(curve.lce), curve.scores)
    said = agrees(value, area, "the third panel's area is ECE_d", within=2e-3)
    return said + "; our forest, their data are not published"


@PAPER.item(
    "§5, the experiment",
    "45 mixtures × 3 training draws × 4 models = 540 score distributions; 30 to 500 rows; 15 curves a panel",
    "`calibrant benchmark`, `benchmark.Config`; [benchmark.md](benchmark.md)",
)
def experiment() -> str:
    ran = [r for r in _summary() if r["estimator"] in paper_curves("corrected")]
    distributions = {int(r["distributions"]) for r in ran}
    sizes, curves = sorted({int(r["size"]) for r in ran}), len({r["estimator"] for r in ran})
    within = sum(size <= 500 for size in sizes)
    said = holds(
        distributions == {540} and curves == 15, f"{curves} curves of {distributions.pop()} distributions were read"
    )
    return (
        f"{said} at {len(sizes)} sizes from {sizes[0]} to {sizes[-1]}, {within} of them up to 500; the text and the "
        "figure end at 500, the authors' code goes on to 5000, and so do we; `--mode as-published` takes means in "
        "[-1, 1] as that code does, the text says [0, 1]"
    )


def _summary() -> list[dict[str, Any]]:
    return kept(SUMMARY).to_dicts()


def _column(notion: str, estimator: str, measure: str) -> np.ndarray:
    rows = [r for r in _summary() if (r["notion"], r["estimator"]) == (notion, estimator)]
    return np.array([float(r[measure]) for r in sorted(rows, key=lambda r: int(r["size"]))])


@PAPER.item(
    "Figure 2",
    "95th percentile of the relative error; curves start at .13 to .36 at N = 30",
    "[benchmark.md](benchmark.md)",
)
def figure_2() -> str:
    curves = paper_curves("corrected")
    relative, absolute = (
        np.array([_column("confidence", name, m)[0] for name in curves]) for m in ("rel_p95", "abs_p95")
    )
    return fails(
        bool(relative.min() < 0.36),
        f"relative errors at N = 30 are {relative.min():.2f} to {relative.max():.2f}; the *absolute* ones, "
        f"{absolute.min():.2f} to {absolute.max():.2f}, are what the figure shows",
    )


def _ratio(better: list[str], worse: list[str]) -> float:
    """Geometric mean over sizes, notions and pairs of one kind's median error over the other's."""
    logs = [
        np.log(_column(n, a, "rel_p95") / _column(n, b, "rel_p95")).mean()
        for n in ("confidence", "classwise")
        for a, b in zip(better, worse, strict=True)
    ]
    return float(np.exp(np.mean(logs)))


@PAPER.item("§5, conclusions", "the convex mapping is better than the hard one", "[benchmark.md](benchmark.md)")
def convex_is_better() -> str:
    bins = ("10", "30", "sqrt")
    ratio = _ratio([f"{a}{b}" for a in ("c", "ac") for b in bins], [f"{a}{b}" for a in ("l", "a") for b in bins])
    return holds(ratio < 0.95, f"its error is {ratio:.3f} times the other's (ratio of medians, all sizes)")


@PAPER.item("§5, conclusions", "quantile edges are better than uniform ones", "[benchmark.md](benchmark.md)")
def quantiles_are_better() -> str:
    bins = ("10", "30", "sqrt")
    ratio = _ratio([f"{a}{b}" for a in ("a", "ac") for b in bins], [f"{a}{b}" for a in ("l", "c") for b in bins])
    return fails(ratio < 1, f"their error is {ratio:.3f} times the other's")


@PAPER.item(
    "§5, conclusions",
    "which of the 15 to use at which N",
    "[benchmark.md](benchmark.md), [default.md](development/default.md)",
)
def which() -> str:
    said = []
    for notion in ("confidence", "classwise"):
        errors = {name: _column(notion, name, "rel_p95") for name in paper_curves("corrected")}
        best = [min(errors, key=lambda name: errors[name][at]) for at in (0, 10, -1)]
        ours = _column(notion, "empirical-bayes", "rel_p95")
        ratio = [ours[at] / errors[name][at] for at, name in zip((0, 10, -1), best, strict=True)]
        cells = ", ".join(f"{name} ({r:.2f})" for name, r in zip(best, ratio, strict=True))
        said.append(f"{notion}: {cells}")
    return "**measured**: best at N = 30, 443 and 5000 (our default's error over its): " + "; ".join(said)


@PAPER.item(
    "§5, class-wise bandwidths",
    "Silverman's rule underperforms class-wise",
    "`Density()`: each class its own",
)
def silverman_classwise() -> str:
    ratio = float(
        np.exp(
            np.log(_column("classwise", "d-silverman", "rel_p95") / _column("classwise", "d0.1", "rel_p95"))[:11].mean()
        )
    )
    why = "the published code gives every class the bandwidth of class 0"
    return fails(ratio > 1.05, f"with a bandwidth of its own a class errs {ratio:.3f} times as much as with .1; {why}")


@PAPER.item(
    "§5, ground truth",
    "labels of 2·10⁶ draws in 2000 bins",
    "the mixtures' own posterior, `Sample.truth`",
)
def ground_truth() -> str:
    rng = np.random.default_rng(0)
    p = rng.random(2_000_000)
    floor = cal.calibration_error((rng.random(len(p)) < p).astype(int), p, estimator=cal.Binned(2000))
    return differs(0.0, floor, "what labels in 2000 bins give for a calibrated model; a posterior gives 0", by=5e-3)


def _second_form(x: float, t: np.ndarray, b: float) -> np.ndarray:
    """Chen's second kernel at x, as a density in t."""

    def rho(z: float) -> float:
        return 2 * b**2 + 2.5 - math.sqrt(4 * b**4 + 6 * b**2 + 2.25 - z**2 - z / b)

    first = x / b if x >= 2 * b else rho(x)
    second = (1 - x) / b if x <= 1 - 2 * b else rho(1 - x)
    return np.asarray(beta_law.pdf(t, first, second))


@PAPER.item(
    "§6, Beta kernels",
    "Chen's second form would suit [0, 1], but is “computationally prohibitive for now”",
    '`BetaKernel(form="second")`, O(n + G²)',
)
def beta_kernels() -> str:
    y, s = data.binary(200)
    h, total = 0.05, 0.0
    kernels = np.array([_second_form(x, s, h) for x in s])  # row i: the kernel that sample i is the centre of
    for j in range(len(s)):
        w = np.delete(kernels[:, j], j)
        total += abs(w @ np.delete(y, j) / w.sum() - s[j])
    ours = cal.calibration_error(y, s, estimator=cal.estimators.BetaKernel(h, form="second"))
    return agrees(ours, total / len(s), "each sample from all others, by sums over pairs", within=1e-4)

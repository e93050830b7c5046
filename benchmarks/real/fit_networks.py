"""Fit the distributions of track "networks" to predictions of real networks; only the fitted numbers are kept.

    python -m benchmarks.real.fit_networks FOLDER [--out src/calibrant/benchmark/tracks/networks.json]

FOLDER holds cifar10_wideresnet16x4.npz, cifar10_lenet5.npz and cifar100_densenet_bc100.npz with `y_prob` (n, K),
softmax outputs on the CIFAR test sets, and `y_true` (n,); they are converted from EFS-OpenSource/calibration-framework
(Apache-2.0), examples/classification/records. Each network is fitted as it is and after temperature scaling, for three
problems: the confidence, the one-vs-rest scores of all classes together, and those of class 3 (ten classes only).
For each:

- the distribution: three logit-normal components of t = (score - low) / (1 - low), by maximum likelihood of counts in
  201 cells;
  what lies beyond the resolution of float32 (1 - t < 3e-7) or below t = 1.5e-8 counts as "in the last cell". (Beta
  mixtures were tried: with three components they miss the distribution function by up to 0.08, these by 0.013.)
- the map: a logistic regression on a natural cubic spline of logit(score), five knots, constant where scores cannot be
  told apart; a ridge of 1e-6 a sample on the cubics.

Prints the goodness of the fit (and stores it): distance of the distribution functions, and mean score, rate of
outcomes, and ECE with 15 uniform bins, each of the data and of 10⁶ draws from the fit.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, logit, logsumexp, ndtr

import calibrant as cal
from calibrant.benchmark.tracks.score_mixtures import LogitNormal, ScoreLaw
from calibrant.benchmark.tracks.true_maps import Spline, spline_basis
from calibrant.data.writing import write_text

from .. import arguments

NETWORKS = {
    "wideresnet": "cifar10_wideresnet16x4.npz",
    "lenet5": "cifar10_lenet5.npz",
    "densenet": "cifar100_densenet_bc100.npz",
}
LIMITS = (-18.0, 15.0)
COMPONENTS = 3
CELLS = 201
KNOTS = (0.02, 0.25, 0.5, 0.75, 0.98)
RIDGE = 1e-6


def temperature(log_prob: np.ndarray, y: np.ndarray) -> float:
    """Temperature of least log loss."""

    def loss(log_t: float) -> float:
        z = log_prob / np.exp(log_t)
        return float((logsumexp(z, axis=1) - z[np.arange(len(y)), y]).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-2, 2), method="bounded", options={"xatol": 1e-6}).x))


def cell_masses(theta: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Probabilities of the cells between edges, and of the two beyond them."""
    k = COMPONENTS
    weight = np.exp(log_softmax(np.concatenate([[0.0], theta[: k - 1]])))
    mean, sd = theta[k - 1 : 2 * k - 1], np.exp(theta[2 * k - 1 :])
    below = ndtr((edges - mean[:, None]) / sd[:, None])
    return weight @ np.diff(below, axis=1, prepend=0.0, append=1.0)


def fit_law(x: np.ndarray, low: float) -> tuple[ScoreLaw, float]:
    """Mixture of most likely counts, from six starts; and the largest gap between distribution functions."""
    rng = np.random.default_rng(0)
    inner = x[(x > LIMITS[0]) & (x < LIMITS[1])]
    levels = np.linspace(0, 1, CELLS - 1)[1:-1]
    edges = np.unique(np.concatenate([[LIMITS[0]], np.quantile(inner, levels), [LIMITS[1]]]))
    counts = np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1)

    def loss(theta: np.ndarray) -> float:
        return float(-(counts @ np.log(np.maximum(cell_masses(theta, edges), 1e-300))) / counts.sum())

    bounds = [(-6, 6)] * (COMPONENTS - 1) + [(-60, 40)] * COMPONENTS + [(-1.5, 4)] * COMPONENTS
    starts = [
        np.concatenate([np.zeros(2), rng.choice(np.clip(x, *LIMITS), COMPONENTS), np.full(COMPONENTS, 1.0)])
        for _ in range(6)
    ]
    fits = [minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}) for start in starts]
    theta = min(fits, key=lambda fit: fit.fun).x
    distance = np.abs(np.cumsum(cell_masses(theta, edges)) - np.cumsum(counts) / counts.sum()).max()
    weight = np.round(np.exp(log_softmax(np.concatenate([[0.0], theta[: COMPONENTS - 1]]))), 5)
    weight[0] += 1 - weight.sum()
    parts = zip(np.round(theta[2:5], 4).tolist(), np.round(np.exp(theta[5:]), 4).tolist(), strict=True)
    return ScoreLaw(tuple(LogitNormal(m, s) for m, s in parts), tuple(np.round(weight, 5).tolist()), (), low), distance


def fit_map(z: np.ndarray, outcomes: np.ndarray) -> Spline:
    """Spline logistic regression; knots at quantiles that weigh a score s by its spread sqrt(s (1 - s))."""
    z = np.clip(z, *LIMITS)
    spread = np.sqrt(expit(z) * expit(-z))
    order = np.argsort(z)
    share = np.cumsum(spread[order]) / spread.sum()
    knots = tuple(np.round(z[order][np.searchsorted(share, KNOTS)], 3).tolist())
    basis = spline_basis(z, knots)
    penalty = RIDGE * len(z) * np.array([0.0, 0.0] + [1.0] * (len(knots) - 2))

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        line = basis @ theta
        value = np.logaddexp(0, line).sum() - outcomes @ line + penalty @ theta**2 / 2
        return value / len(z), (basis.T @ (expit(line) - outcomes) + penalty * theta) / len(z)

    start = np.zeros(len(knots))
    start[1] = 1.0
    theta = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 2000}).x
    return Spline(knots, tuple(np.round(theta, 5).tolist()), LIMITS)


def problem(scores: np.ndarray, outcomes: np.ndarray, low: float) -> tuple[dict, dict]:
    """Fitted numbers and goodness of one problem."""
    with np.errstate(divide="ignore"):
        x = np.log(np.maximum(scores - low, 0)) - np.log(1 - scores)
        z = logit(scores)
    law, distance = fit_law(x, low)
    curve = fit_map(z, outcomes.astype(float))
    drawn, _ = law.draw(10**6, np.random.default_rng(1))
    sample = law.scores(drawn)
    hits = np.random.default_rng(2).random(10**6) < curve(law.logits(drawn))
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)

    def read(s: np.ndarray, o: np.ndarray) -> list[float]:
        ece = cal.expected_calibration_error(o.astype(int), s, n_bins=15, labels=[0, 1], pos_label=1)
        return [float(f"{value:.5g}") for value in (s.mean(), o.mean(), ece, *np.quantile(s, levels))]

    names = ("mean_score", "rate", "ece15", *(f"q{level:g}" for level in levels))
    both = {name: [a, b] for name, a, b in zip(names, read(scores, outcomes), read(sample, hits), strict=True)}
    fitted = {
        "low": low,
        "weights": law.weights,
        "means": [c.mean for c in law.components],
        "sds": [c.sd for c in law.components],
        "knots": curve.knots,
        "coefficients": curve.coefficients,
        "limits": LIMITS,
    }
    return fitted, {"distance": round(float(distance), 4), **both}


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("src/calibrant/benchmark/tracks/networks.json"))
    options = parser.parse_args()
    rows = []
    for network, file in NETWORKS.items():
        data = np.load(options.folder / file)
        log_prob, y = np.log(data["y_prob"].astype(float)), data["y_true"].ravel().astype(int)
        k = log_prob.shape[1]
        fitted_temperature = temperature(log_prob, y)
        for state, t in (("raw", 1.0), ("scaled", fitted_temperature)):
            p = np.exp(log_softmax(log_prob / t, axis=1))
            confidence, right = np.minimum(p.max(axis=1), 1.0), p.argmax(axis=1) == y
            hit = y[:, None] == np.arange(k)
            problems = {"confidence": (confidence, right, 1 / k), "one-vs-rest": (p.ravel(), hit.ravel(), 0.0)}
            if k == 10:
                problems["class-3"] = (p[:, 3], hit[:, 3], 0.0)
            for name, (scores, outcomes, low) in problems.items():
                fitted, fit = problem(scores, outcomes, low)
                rows.append(
                    {
                        "name": f"{network}-{state}-{name}",
                        "n_classes": k,
                        "temperature": round(t, 4),
                        **fitted,
                        "fit_data_vs_law": fit,
                    }
                )
                shown = "".join(
                    f"  {key} {fit[key][0]:.4g}/{fit[key][1]:.4g}" for key in ("mean_score", "rate", "ece15")
                )
                print(f"{network}-{state}-{name}".ljust(32), f"distance {fit['distance']:.4f}{shown}", flush=True)
    write_text(options.out, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

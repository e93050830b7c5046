"""Is the lower limit of `scores.grouping_loss` below the true grouping loss?

    python -m benchmarks.coverage.grouping [--repetitions 150]

Features determine the posterior. In *wavy* (calibration far from any logistic map) and *survey* (three classes that no
temperature corrects) the true grouping loss is 0. Otherwise a feature that scores lack moves log odds by one standard
deviation (*strong*), by 0.3 (*weak*), by the sign of a product of two features (*product*) or for one of three classes
(*classes*). Truths are means over 300,000 rows. The calibration loss is that of `decompose(..., calibrator=...)`, with
vector scaling for *survey*, temperature scaling for *classes* and beta calibration otherwise. With two classes, the
Brier score uses one column.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, softmax

import calibrant as cal
from calibrant.datasets import survey_distorted, survey_posterior, true_map

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept

NODES, SHARES = np.polynomial.hermite_e.hermegauss(60)
SHARES = SHARES / SHARES.sum()


@dataclass
class Rows:
    """Features, stated probabilities, frequencies given those, and posterior; two columns of two classes."""

    features: np.ndarray
    stated: np.ndarray
    given: np.ndarray
    posterior: np.ndarray


def two(p: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - p, p])


def wavy(rng: np.random.Generator, n: int) -> Rows:
    """Nothing is left to group by; calibration is far from any logistic map."""
    x = rng.normal(size=(n, 5))
    s = expit(x[:, 0])
    q = two(true_map(s, "wavy"))
    return Rows(x, two(s), q, q)


def survey(rng: np.random.Generator, n: int) -> Rows:
    """Nothing is left to group by, of three classes whose scores no temperature repairs."""
    x = np.where(rng.random((n, 1)) < 0.5, 64, -4) + 33 * rng.normal(size=(n, 1))
    q = survey_posterior(x[:, 0], 3)
    return Rows(x, survey_distorted(q), q, q)


def shift(size: float, rng: np.random.Generator, n: int) -> Rows:
    """A feature that scores lack moves the log odds."""
    x = rng.normal(size=(n, 5))
    given = expit(x[:, 0][:, None] + size * NODES) @ SHARES
    return Rows(x, two(expit(1.5 * x[:, 0])), two(given), two(expit(x[:, 0] + size * x[:, 1])))


def strong(rng: np.random.Generator, n: int) -> Rows:
    """By one standard deviation."""
    return shift(1.0, rng, n)


def weak(rng: np.random.Generator, n: int) -> Rows:
    """By 0.3."""
    return shift(0.3, rng, n)


def product(rng: np.random.Generator, n: int) -> Rows:
    """Two features matter by the sign of their product alone, which no tree sees at its first cut."""
    x = rng.normal(size=(n, 5))
    own = x[:, 0]
    q = expit(own + np.sign(x[:, 1] * x[:, 2]))
    return Rows(x, two(expit(own)), two((expit(own + 1) + expit(own - 1)) / 2), two(q))


def classes(rng: np.random.Generator, n: int) -> Rows:
    """Three classes, one of them moved by a feature that scores lack."""
    z, moved = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    lift = np.array([1.0, 0.0, 0.0])
    given = sum(w * softmax(z + h * lift, axis=1) for h, w in zip(NODES, SHARES, strict=True))
    return Rows(np.column_stack([z, moved]), softmax(1.5 * z, axis=1), given, softmax(z + moved * lift, axis=1))


CASES: dict[str, Callable[[np.random.Generator, int], Rows]] = {
    "wavy": wavy,
    "survey": survey,
    "strong": strong,
    "weak": weak,
    "product": product,
    "classes": classes,
}
CALIBRATOR = {"survey": "vector", "classes": "temperature"}
SCORES = {"brier": "Brier", "log-loss": "log"}
ALPHA, LEVEL = 5, 95


def divergence(p: np.ndarray, q: np.ndarray, score: str) -> float:
    """Mean divergence of p from q; Brier's score of two classes is that of one column."""
    if score == "brier":
        return float(((p - q) ** 2).sum(axis=1).mean()) / (2 if p.shape[1] == 2 else 1)
    return float((q * np.log(np.where(q > 0, q / np.maximum(p, 1e-300), 1.0))).sum(axis=1).mean())


@cache
def truths(rows: str) -> dict[str, tuple[float, float]]:
    """True grouping and calibration loss by score."""
    of = CASES[rows](np.random.default_rng(0), 300_000)
    both = (of.given, of.posterior), (of.stated, of.given)
    return {score: (divergence(*both[0], score), divergence(*both[1], score)) for score in SCORES}


def sample(rows: str, n: int, seed: int) -> dict[str, float]:
    """The bound with its limit, and the calibration loss, beside the truth."""
    rng = np.random.default_rng([seed, [*CASES].index(rows), n])
    drawn = CASES[rows](rng, n)
    k = drawn.posterior.shape[1]
    y = (rng.random((n, 1)) > drawn.posterior.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    out = {}
    for score, (grouping, calibration) in truths(rows).items():
        about = {"score": score, "labels": list(range(k)), "calibrator": CALIBRATOR.get(rows, "beta")}
        parts = cal.decompose(y, drawn.stated, **about)
        bound = cal.scores.grouping_loss(y, drawn.stated, drawn.features, **about)
        low, high = parts.intervals["calibration"]
        found = {
            "truth": grouping,
            "bound": bound.value,
            "standard error": (bound.interval.high - bound.value) / 1.96,
            "limit above truth": bound.lower > grouping,
            "limit above 0": bound.lower > 0,
            "calibration": calibration,
            "estimated": parts.calibration,
            "covers": low <= calibration <= high,
        }
        out |= {f"{score}: {name}": float(value) for name, value in found.items()}
    return out


def lines(kept: Kept) -> dict[tuple[str, int, str], dict[str, np.ndarray]]:
    """Numbers of cases and scores."""
    names = ("truth", "bound", "limit above truth", "limit above 0", "covers")
    out = {}
    for case in EXPERIMENT.every():
        part = kept.where(**case)
        for score in SCORES:
            out[case["rows"], case["n"], score] = {name: part[f"{score}: {name}"] for name in names}
    return out


def answer(kept: Kept) -> str:
    every = lines(kept)
    wrong = {key: percent(one["limit above truth"]) for key, one in every.items()}
    over = [key for key, (value, error) in wrong.items() if value - 2 * error > ALPHA]
    most, error = max(wrong.values())
    covers = {key: percent(one["covers"]) for key, one in every.items()}
    missed = [key for key, (value, error) in covers.items() if value + 2 * error < LEVEL]
    low = min(covers, key=lambda key: covers[key][0])
    high = max(value for value, _ in covers.values())
    return (
        f"The one-sided 95 % limit is above the true grouping loss in {most:.1f} ± {error:.1f} % of samples at "
        f"worst. The share is above {ALPHA} % by more than two standard errors in {_listed(over)}. Intervals of "
        f"the calibration loss cover it in {covers[low][0]:.1f} % ({low[0]}, {low[1]:,} rows, {low[2]}) to {high:.1f} "
        f"%. Coverage is below {LEVEL} % by more than two standard errors in {len(missed)} of "
        f"{len(covers)} cases."
    )


def _listed(keys: list[tuple[str, int, str]]) -> str:
    """Cases, with their scores together."""
    scores: dict[tuple[str, int], list[str]] = {}
    for rows, n, score in keys:
        scores.setdefault((rows, n), []).append(score)
    return "; ".join(f"{rows}, {n:,} rows ({', '.join(each)})" for (rows, n), each in scores.items()) or "no case"


def picture(kept: Kept) -> Figure:
    every = lines(kept)
    series = {}
    for score in SCORES:
        some = [one for key, one in every.items() if key[2] == score]
        series[f"{score}, truth"] = [(1000 * one["truth"][0], 0.0) for one in some]
        series[f"{score}, bound"] = [estimate(1000 * one["bound"]) for one in some]
    names = [f"{case['rows']}, {case['n']:,} rows" for case in EXPERIMENT.every()]
    return dots(names, series, "grouping loss, thousandths")


def page(kept: Kept) -> Iterator[str]:
    yield "For log-loss, the table gives the grouping loss and its mean bound in thousandths, and the per cent of"
    yield "samples where the 95 % limit is above the truth (*wrong*) or above 0 (*found*), and where the calibration"
    yield "loss is covered."
    yield ""
    yield from table(("rows", "truth", "bound", "wrong", "found", "covers"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for (rows, n, score), one in lines(kept).items():
        if score == "log-loss":
            losses = (f"{1000 * value:.1f}" for value in (abs(one["truth"][0]), one["bound"].mean()))
            hits = (f"{100 * np.mean(one[name]):.1f}" for name in ("limit above truth", "limit above 0", "covers"))
            yield [f"{rows}, {n:,}", *losses, *hits]


EXPERIMENT = Experiment(
    __spec__.name,
    {"rows": CASES, "n": [500, 2_000]},
    sample,
    answer,
    page,
    picture,
    repetitions=150,
    quick=2,
)

if __name__ == "__main__":
    EXPERIMENT.main()

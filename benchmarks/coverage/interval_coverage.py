"""Do 95 % intervals of estimators other than the default cover the true error?

    python -m benchmarks.coverage.interval_coverage [--repetitions 300]

`estimate(y, p, estimator=…)` gives intervals for the L1 error by test inversion. With two classes, scores are Beta(2,
3) and the truth comes from quadrature. With ten classes, the error is class-wise and scores are uniform on the simplex;
none (*10 calibrated*) or 60 % (*10 redrawn*) of labels are redrawn uniformly. The gap of class k is then 0.6 (1/10 -
p_k) and the truth is 0.6 E|1/10 - p_k| with p_k ~ Beta(1, 9).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import beta

import calibrant as cal
from calibrant.datasets import make_scores

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, table
from ..provenance import Kept
from .aims import shown, told

LEVEL, SIZES = 95, (100, 1000, 5000)
ESTIMATORS = {
    "residual": cal.estimators.ResidualKernel(),
    "15 bins": cal.Binned(),
    "debiased": cal.Binned(debias=True),
    "√n bins": cal.Binned("sqrt", "quantile"),
    "density": cal.estimators.Density(),
}
KINDS = ("calibrated", "overconfident", "shifted", "wavy")
#: Share of the labels of ten classes that are redrawn.
REDRAWN = {"10 calibrated": 0.0, "10 redrawn": 0.6}
TRUTHS = (*KINDS, *REDRAWN)
CLASSES, CLASSES_SIZE = 10, 1000


@cache
def classwise_truth(redrawn: float) -> float:
    # E|1/K - p| = 2 E max(1/K - p, 0) = 2 ∫ F over [0, 1/K]
    grid = np.linspace(0, 1 / CLASSES, 20_001)
    return redrawn * 2 * float(np.trapezoid(beta.cdf(grid, 1, CLASSES - 1), grid))


def rows(truth: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, float, dict[str, Any]]:
    """Labels, probabilities, true error, and what `estimate` is told beside them."""
    rng = np.random.default_rng([seed, TRUTHS.index(truth), n])
    if truth in KINDS:
        data = make_scores(n, truth, a=2, b=3, random_state=rng)
        return data.y_true, data.y_prob, data.truth, {}
    p = rng.dirichlet(np.ones(CLASSES), n)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, CLASSES - 1)
    y = np.where(rng.random(n) < REDRAWN[truth], rng.integers(0, CLASSES, n), y)
    return y, p, classwise_truth(REDRAWN[truth]), {"notion": "classwise", "labels": range(CLASSES)}


def sample(truth: str, n: int, seed: int) -> dict[str, float]:
    """Of each estimator, whether its interval covers the truth, and how wide it is."""
    y, p, true, about = rows(truth, n, seed)
    out = {}
    for name, estimator in ESTIMATORS.items():
        low, high = cal.estimate(y, p, estimator=estimator, level=LEVEL / 100, random_state=seed, **about).interval
        out |= {f"{name}: covered": float(low <= true <= high), f"{name}: width": high - low}
    return out


def _coverage(kept: Kept) -> dict[str, tuple[float, float]]:
    return {name: percent(kept[f"{name}: covered"]) for name in ESTIMATORS}


def answer(kept: Kept) -> str:
    cells = {
        f"{name}, {case['truth']}, {case['n']:,} rows": pair
        for case in EXPERIMENT.every()
        for name, pair in _coverage(kept.where(**case)).items()
    }
    *first, last = (f"{shown(pair)} % ({name})" for name, pair in _coverage(kept).items())
    return (
        f"Over all cases, intervals cover the true error in {', '.join(first)} and {last} of samples. "
        f"Coverage is below {LEVEL} % by more than two standard errors in {told(cells, LEVEL)}."
    )


def picture(kept: Kept) -> Figure:
    by_truth = [_coverage(kept.where(truth=truth)) for truth in TRUTHS]
    return dots(
        TRUTHS,
        {name: [one[name] for one in by_truth] for name in ESTIMATORS},
        "covered, % of samples",
        LEVEL,
        share=True,
    )


def page(kept: Kept) -> Iterator[str]:
    most = max(error for case in EXPERIMENT.every() for _, error in _coverage(kept.where(**case)).values())
    yield f"The table gives coverage in per cent (standard errors up to {most:.1f}), then mean widths for two classes."
    yield "*Residual* is `ResidualKernel()`, *debiased* `Binned(debias=True)`, *√n bins* `Binned('sqrt', 'quantile')`."
    yield ""
    yield from table(("truth", "rows", *ESTIMATORS), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        cells = _coverage(kept.where(**case)).values()
        yield [case["truth"], f"{case['n']:,}", *(f"{value:.1f}" for value, _ in cells)]
    for n in SIZES:
        two = [kept.where(truth=kind, n=n) for kind in KINDS]
        widths = (np.mean([some[f"{name}: width"].mean() for some in two]) for name in ESTIMATORS)
        yield ["*mean width*", f"{n:,}", *(f"{width:.3f}" for width in widths)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": TRUTHS, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=300,
    some=lambda truth, n: truth in KINDS or n == CLASSES_SIZE,
)

if __name__ == "__main__":
    EXPERIMENT.main()

"""How many products with the Hessian do matrix and Dirichlet scaling take?

    python -m benchmarks.products [--repetitions 20]

Logits are normal with standard deviation 2, and the true logits are 0.6 times these. *Constant* rows all have the same
scores. For n rows and K classes, a product costs about 4 n K² operations.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any
from unittest import mock

import numpy as np
from matplotlib.figure import Figure
from sklearn.base import clone

import calibrant as cal
from calibrant.calibrators import DirichletCalibration, MatrixScaling, linear, newton

from .charts import dots
from .experiment import Experiment
from .markdown import estimate, table
from .provenance import Kept

CLASSES = (40, 100)
#: Rows and scores, by what they are called.
ROWS = {"2,000 constant": (2_000, False), "2,000 spread": (2_000, True), "20,000 spread": (20_000, True)}
FITS = {"DirichletCalibration": DirichletCalibration(), "MatrixScaling": MatrixScaling()}
OWN, DIAGONAL = "own", "diagonal"
#: Share of the samples that a fit of 100 classes gets, where it takes seconds.
PORTIONS = {
    ("2,000 spread", "DirichletCalibration"): 0.2,
    ("20,000 spread", "DirichletCalibration"): 0.2,
    ("20,000 spread", "MatrixScaling"): 0.25,
}
#: Difference of log-losses that counts.
LESS = 1e-8


def drawn(classes: int, rows: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of an over-confident model."""
    n, spread = ROWS[rows]
    rng = np.random.default_rng([seed, classes, [*ROWS].index(rows)])
    z = rng.normal(size=(n, classes)) * 2
    y = (z * 0.6 + rng.gumbel(size=(n, classes))).argmax(axis=1)
    y[:classes] = np.arange(classes)
    p = np.exp(z if spread else np.tile(z[0], (n, 1)))
    return y, p / p.sum(axis=1, keepdims=True)


def products(calibrator: Any, y: np.ndarray, p: np.ndarray) -> tuple[int, float]:
    """How many products with the Hessian a fit takes, and its log-loss."""
    count, solve = 0, newton._conjugate_gradients

    def counted(times: Callable[[np.ndarray], np.ndarray], *rest: Any) -> Any:
        def one(v: np.ndarray) -> np.ndarray:
            nonlocal count
            count += 1
            return times(v)

        return solve(one, *rest)

    with mock.patch.object(newton, "_conjugate_gradients", counted), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a diagonal one may end before the optimum: losses are compared
        loss = cal.scores.log_loss(y, clone(calibrator).fit(p, y).predict_proba(p))
    return count, loss


def sample(classes: int, rows: str, calibrator: str, seed: int) -> dict[str, float]:
    """Products and log-loss of a fit, with either preconditioner."""
    y, p = drawn(classes, rows, seed)
    plain = mock.patch.object(linear.MatrixObjective, "_near_inverse", linear.SoftmaxObjective._near_inverse)
    out: dict[str, float] = {}
    for name, patched in ((OWN, nullcontext()), (DIAGONAL, plain)):
        with patched:
            count, loss = products(FITS[calibrator], y, p)
        out |= {f"{name}: products": float(count), f"{name}: log-loss": float(loss)}
    return out


def _every(kept: Kept) -> dict[str, Kept]:
    """Samples by the name of the case."""
    return {
        f"{name}, {k} classes, {rows} rows": kept.where(calibrator=name, classes=k, rows=rows)
        for name in FITS
        for k in CLASSES
        for rows in ROWS
    }


def answer(kept: Kept) -> str:
    means = {case: some[f"{OWN}: products"].mean() for case, some in _every(kept).items()}
    ratios = {case: some[f"{DIAGONAL}: products"].mean() / means[case] for case, some in _every(kept).items()}
    most = max(means, key=means.__getitem__)
    lower = int((kept[f"{DIAGONAL}: log-loss"] < kept[f"{OWN}: log-loss"] - LESS).sum())
    return (
        f"Matrix and Dirichlet scaling take {min(means.values()):,.0f} to {means[most]:,.0f} products on average "
        f"(most: {most}). With a diagonal preconditioner they take {min(ratios.values()):.1f} to "
        f"{max(ratios.values()):,.0f} times as many. The diagonal one reaches a log-loss that is lower by more than "
        f"{LESS:g} in {lower} of {len(kept)} fits."
    )


def picture(kept: Kept) -> Figure:
    every = _every(kept)
    series = {name: [estimate(some[f"{name}: products"]) for some in every.values()] for name in (OWN, DIAGONAL)}
    return dots([*every], series, "products with the Hessian", log=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives mean products per fit, with the calibrator's own preconditioner and a diagonal one."
    yield ""
    yield from table(("calibrator", "classes", "rows", "fits", OWN, DIAGONAL), _rows(kept), texts=3)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for k in CLASSES:
        for rows in ROWS:
            for name in FITS:
                some = kept.where(calibrator=name, classes=k, rows=rows)
                means = [some[f"{which}: products"].mean() for which in (OWN, DIAGONAL)]
                yield [name, str(k), rows, str(len(some)), *(f"{mean:,.0f}" for mean in means)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"classes": CLASSES, "rows": ROWS, "calibrator": FITS},
    sample,
    answer,
    page,
    picture,
    repetitions=20,
    quick=0,  # how many products a fit takes depends on rounding
    portion=lambda classes, rows, calibrator: PORTIONS.get((rows, calibrator), 1.0) if classes == CLASSES[1] else 1.0,
)

if __name__ == "__main__":
    EXPERIMENT.main()

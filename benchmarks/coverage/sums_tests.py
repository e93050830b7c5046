"""Do tests from sums find what tests from rows find, and no more?

    python -m benchmarks.coverage.sums_tests [--repetitions 200]

The same samples are tested by `Accumulator.calibration_test`, which draws outcomes in cells, and by `calibration_test`,
which draws a label for each row. Both use 99 draws. Scores are uniform, rare (Beta(0.5, 6)) or of three classes
(softmaxes of normal scores with standard deviation 1.2). Overconfident models have log-odds 1.25 times too large.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit, softmax

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

SHAPES = {"uniform": (1, 1), "rare": (0.5, 6)}
ESTIMATORS = {"auto": "auto", "15 bins": cal.Binned(), "density": cal.estimators.Density()}
#: Scores, rows, notion.
SCORES = {f"{shape}, {n:,} rows": (shape, n, "auto") for shape in SHAPES for n in (100, 1_000)}
SCORES |= {f"3 classes, {notion}": ("", 500, notion) for notion in ("confidence", "classwise")}
#: By what true log-odds are those of the scores multiplied.
FACTORS = {"calibrated": 1.0, "overconfident": 0.8}
ALPHA, DRAWS = 0.05, 99


def rows(scores: str, model: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities."""
    shape, n, _ = SCORES[scores]
    rng = np.random.default_rng([seed, [*SCORES].index(scores), [*FACTORS].index(model)])
    if shape:
        s = rng.beta(*SHAPES[shape], n).clip(1e-9, 1 - 1e-9)
        return (rng.random(n) < expit(FACTORS[model] * logit(s))).astype(int), s
    z = rng.normal(0, 1.2, (n, 3))
    drawn = softmax(FACTORS[model] * z, axis=1).cumsum(axis=1)
    return np.minimum((rng.random((n, 1)) > drawn).sum(axis=1), 2), softmax(z, axis=1)


def sample(scores: str, model: str, seed: int) -> dict[str, float]:
    """Which estimators reject, from sums and from rows."""
    y, p = rows(scores, model, seed)
    notion, labels = SCORES[scores][2], range(2 if p.ndim == 1 else 3)
    sums = cal.Accumulator(notion=notion, labels=labels).update(y, p)
    out = {}
    for name, estimator in ESTIMATORS.items():
        about = {"estimator": estimator, "n_resamples": DRAWS, "random_state": seed}
        of_rows = cal.calibration_test(y, p, notion=notion, labels=labels, **about)
        out[f"{name}: sums"] = float(sums.calibration_test(**about).pvalue <= ALPHA)
        out[f"{name}: rows"] = float(of_rows.pvalue <= ALPHA)
    return out


def _rejected(kept: Kept, model: str, what: str) -> np.ndarray:
    some = kept.where(model=model)
    return np.concatenate([some[f"{name}: {what}"] for name in ESTIMATORS])


def answer(kept: Kept) -> str:
    calm, over = ([share(_rejected(kept, model, what)) for what in ("sums", "rows")] for model in FACTORS)
    return (
        f"At the 5 % level, tests from sums reject calibrated models in {calm[0]} % of cases and tests from rows in "
        f"{calm[1]} %. They reject overconfident models in {over[0]} and {over[1]} %."
    )


def picture(kept: Kept) -> Figure:
    series = {
        f"{model}, {what}": [
            percent(np.concatenate([kept.where(scores=s, model=model)[f"{e}: {what}"] for e in ESTIMATORS]))
            for s in SCORES
        ]
        for model in FACTORS
        for what in ("sums", "rows")
    }
    return dots([*SCORES], series, "rejected, % of tests", 100 * ALPHA, share=True)


def page(kept: Kept) -> Iterator[str]:
    most = max(percent(held)[1] for _, parts in _cells(kept) for held in parts)
    yield f"The table gives rejections from sums and from rows, in per cent (standard errors up to {most:.1f}). Each"
    yield "line pools two sizes or notions."
    yield ""
    yield from table(("scores, estimator", "calibrated: sums", "rows", "overconfident: sums", "rows"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    return ([name, *(f"{percent(held)[0]:.1f}" for held in parts)] for name, parts in _cells(kept))


def _cells(kept: Kept) -> Iterator[tuple[str, list[np.ndarray]]]:
    """What was rejected of calibrated models, from sums and from rows, and of overconfident ones."""
    for kind in dict.fromkeys(scores.split(",")[0] for scores in SCORES):
        some = [scores for scores in SCORES if scores.startswith(kind)]
        for name in ESTIMATORS:
            parts = [[kept.where(scores=scores, model=model) for scores in some] for model in FACTORS]
            yield (
                f"{kind}, {name}",
                [np.concatenate([p[f"{name}: {what}"] for p in of]) for of in parts for what in ("sums", "rows")],
            )


EXPERIMENT = Experiment(
    __spec__.name, {"scores": SCORES, "model": FACTORS}, sample, answer, page, picture, repetitions=200
)

if __name__ == "__main__":
    EXPERIMENT.main()

"""PyCalib's functions beside ours on the same rows: which give the same number. Writes `pycalib.md`.

    python -m benchmarks.pycalib [--write FILE]

Needs `pip install --no-deps pycalib==0.1.0.dev6`. Every function that computes something is called on rows of two,
three and five classes, whose scores lie on no edge of a bin; those that only draw, or that no longer run with today's
scikit-learn, are listed with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import calibrant as cal
from calibrant import calibrators as c
from calibrant.data.writing import write_text

from . import arguments

#: The same number, and the same p-value of drawn labels: four standard errors of DRAWS draws.
EQUAL, DRAWS = 1e-9, 2000
BINS = 10
ROWS, SEED = 400, 0


@dataclass(frozen=True)
class Call:
    """A function of PyCalib, and what gives the same here: each of labels and probabilities."""

    name: str
    ours: str
    theirs: Callable[[Any, Any, Any], Any]
    here: Callable[[Any, Any, Any], Any]
    within: float = EQUAL
    #: Numbers of classes that it is for.
    classes: tuple[int, ...] = (2, 3, 5)


def rows(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and over-confident probabilities of k classes, and no score within 1e-6 of an edge of a bin."""
    rng = np.random.default_rng([SEED, k])
    truth = rng.dirichlet(np.ones(k), 2 * ROWS)
    p = truth ** (1 / 0.6)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((len(p), 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    off = np.abs(p * BINS - np.round(p * BINS)).min(axis=1) > 1e-5
    return y[off][:ROWS], p[off][:ROWS]


def one_hot(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.eye(p.shape[1])[y]


def binned(y: Any, p: Any, notion: Any, norm: float = 1) -> float:
    """Error by equally wide bins."""
    return cal.calibration_error(y, p, notion=notion, estimator=cal.Binned(BINS), norm=norm)


def of_bins(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Frequencies and mean scores of bins with rows."""
    curve = cal.reliability_curve(y, p[:, 1], estimator=cal.Binned(BINS))
    return np.concatenate([curve.observed, curve.scores])


def calls(m: Any, cals: Any, stats: Any, utils: Any) -> Iterator[Call]:
    """All of them."""
    mean = cal.notions.Classwise(average="mean")
    largest = cal.notions.Classwise(average="max")
    yield Call(
        "accuracy", "report().accuracy", lambda y, p, o: m.accuracy(o, p), lambda y, p, o: cal.report(y, p).accuracy
    )
    yield Call("cross_entropy", "log_loss", lambda y, p, o: m.cross_entropy(o, p), lambda y, p, o: cal.log_loss(y, p))
    yield Call(
        "brier_score",
        "brier_score / K",
        lambda y, p, o: m.brier_score(o, p),
        lambda y, p, o: (
            ((p - o) ** 2).sum(axis=1).mean() / p.shape[1] if p.shape[1] == 2 else cal.brier_score(y, p) / p.shape[1]
        ),
    )
    yield Call(
        "conf_ECE",
        'notion="confidence"',
        lambda y, p, o: m.conf_ECE(y, p, BINS),
        lambda y, p, o: binned(y, p, "confidence"),
    )
    yield Call(
        "ECE(ece_full=False)",
        'notion="confidence"',
        lambda y, p, o: m.ECE(y, p, bins=BINS, ece_full=False),
        lambda y, p, o: binned(y, p, "confidence"),
    )
    yield Call(
        "ECE",
        "all classes' scores as rows",
        lambda y, p, o: m.ECE(y, p, bins=BINS),
        lambda y, p, o: cal.expected_calibration_error(o.ravel(), p.ravel(), n_bins=BINS),
    )
    yield Call(
        "MCE",
        'notion="confidence", norm=inf',
        lambda y, p, o: m.MCE(y, p, bins=BINS),
        lambda y, p, o: binned(y, p, "confidence", np.inf),
    )
    yield Call(
        "MCE(mce_full=True)",
        "all classes' scores as rows, norm=inf",
        lambda y, p, o: m.MCE(y, p, bins=BINS, mce_full=True),
        lambda y, p, o: cal.expected_calibration_error(o.ravel(), p.ravel(), n_bins=BINS, norm=np.inf),
    )
    yield Call(
        "conf_MCE",
        'notion="confidence", norm=inf',
        lambda y, p, o: m.conf_MCE(y, p, BINS),
        lambda y, p, o: binned(y, p, "confidence", np.inf),
    )
    for k in range(2):
        yield Call(
            f"binary_ECE, class {k}",
            "ClassSpecific(k)",
            lambda y, p, o, k=k: m.binary_ECE(o[:, k], p[:, k], bins=BINS),
            lambda y, p, o, k=k: binned(y, p, cal.notions.ClassSpecific(k)),
        )
        yield Call(
            f"binary_ECE(power=2), class {k}",
            "norm=2, squared",
            lambda y, p, o, k=k: m.binary_ECE(o[:, k], p[:, k], power=2, bins=BINS),
            lambda y, p, o, k=k: binned(y, p, cal.notions.ClassSpecific(k), 2) ** 2,
        )
        yield Call(
            f"binary_MCE, class {k}",
            "norm=inf",
            lambda y, p, o, k=k: m.binary_MCE(o[:, k], p[:, k], bins=BINS),
            lambda y, p, o, k=k: binned(y, p, cal.notions.ClassSpecific(k), np.inf),
        )
    yield Call(
        "classwise_ECE",
        'notion="classwise"',
        lambda y, p, o: m.classwise_ECE(o, p, bins=BINS),
        lambda y, p, o: binned(y, p, mean),
    )
    yield Call(
        "classwise_ECE(power=2)",
        "norm=2, squared",
        lambda y, p, o: m.classwise_ECE(o, p, power=2, bins=BINS),
        lambda y, p, o: binned(y, p, "classwise", 2) ** 2,
    )
    yield Call(
        "classwise_MCE",
        'Classwise(average="max"), norm=inf',
        lambda y, p, o: m.classwise_MCE(o, p, bins=BINS),
        lambda y, p, o: binned(y, p, largest, np.inf),
    )
    yield Call(
        "full_ECE",
        'notion="canonical", SimplexBinned',
        lambda y, p, o: m.full_ECE(o, p, bins=BINS),
        lambda y, p, o: cal.calibration_error(y, p, notion="canonical", estimator=cal.estimators.SimplexBinned(BINS)),
    )
    yield Call(
        "simplex_binning",
        "cells of SimplexBinned: squared norm",
        lambda y, p, o: sum(n / len(y) * ((q - f) ** 2).sum() for n, q, f in m.simplex_binning(o, p, BINS)),
        lambda y, p, o: (
            cal.calibration_error(y, p, notion="canonical", estimator=cal.estimators.SimplexBinned(BINS), norm=2) ** 2
        ),
    )
    yield Call(
        "pECE (class-wise)",
        "calibration_test",
        lambda y, p, o: drawn(m, o, p),
        lambda y, p, o: (
            cal.calibration_test(y, p, notion="classwise", estimator=cal.Binned(BINS), n_resamples=DRAWS).pvalue
        ),
        within=4 * np.sqrt(0.5 / DRAWS),
    )
    yield Call(
        "get_binned_scores",
        "reliability_curve",
        lambda y, p, o: some(utils.get_binned_scores(o[:, 1], p[:, 1], BINS)[:2]),
        lambda y, p, o: of_bins(y, p),
        classes=(2,),
    )
    yield from maps(cals)
    yield Call(
        "compute_friedmanchisquare",
        "scores.rank_models",
        lambda y, p, o: list(stats.compute_friedmanchisquare(pd.DataFrame(p[:30]))),
        lambda y, p, o: friedman(p[:30]),
        classes=(3, 5),
    )


def friedman(table: np.ndarray) -> list[float]:
    found = cal.scores.rank_models(table)
    return [found.friedman, found.friedman_pvalue]


def some(pair: Any) -> np.ndarray:
    """Bins that have rows."""
    return np.concatenate([v[~np.isnan(v)] for v in pair])


def drawn(m: Any, o: np.ndarray, p: np.ndarray) -> float:
    """`pECE` without its pool of processes, and with its own random numbers."""
    np.random.seed(0)  # noqa: NPY002 - the generator that it draws from
    of = lambda labels, probs: m.classwise_ECE(labels, probs, bins=BINS)  # noqa: E731
    return float((m._score_sampling(p, DRAWS, of) >= of(o, p)).mean())


def maps(cals: Any) -> Iterator[Call]:
    """Calibrators of two classes, fitted to one half and read at the other."""

    def fitted(theirs: Any, ours: Any, name: str, what: str, column: bool = True) -> Call:
        def peer(y: Any, p: Any, o: Any) -> Any:
            half = len(y) // 2
            return theirs().fit(p[:half], y[:half]).predict_proba(p[half:])

        def here(y: Any, p: Any, o: Any) -> Any:
            half = len(y) // 2
            return (
                ours()
                .fit(p[:half, 1] if column else p[:half], y[:half])
                .predict_proba(p[half:, 1] if column else p[half:])
            )

        return Call(name, what, peer, here, classes=(2,), within=1e-6 if "Platt" in what else EQUAL)

    yield fitted(
        cals.IsotonicCalibration,
        lambda: c.IsotonicCalibrator(clip=None),
        "IsotonicCalibration",
        "IsotonicCalibrator(clip=None)",
    )
    yield fitted(
        cals.SigmoidCalibration,
        lambda: c.PlattScaling(input="margin", shrinkage=0),
        "SigmoidCalibration",
        'PlattScaling(input="margin", shrinkage=0)',
    )
    yield fitted(
        lambda: cals.BinningCalibration(BINS, alpha=1.0),
        lambda: c.HistogramBinning(BINS, "uniform", smoothing=1),
        "BinningCalibration",
        'HistogramBinning(n, "uniform", smoothing=1)',
    )


#: What is not compared, and why.
LEFT_OUT = {
    "LogisticCalibration": "its constructor passes `multi_class` on, which scikit-learn no longer knows",
    "models.multiclass.OneVsRestCalibrator": "imports `if_delegate_has_method`, which scikit-learn no longer has",
    "CalibratedModel, CalibratedClassifierCV": "fits around the calibrators above",
    "compute_ranksums, compute_mannwhitneyu": "SciPy's tests of every pair of columns",
    "visualisations": "pictures",
}
#: Why a function differs, and for how many classes.
WHY = {
    ("ECE", 2): "theirs pairs each row's n labels with 2 n scores: `label_binarize` gives one column for two classes",
    ("MCE(mce_full=True)", 2): "the same",
}


def compared(call: Call, k: int) -> tuple[str, float]:
    """Whether the numbers agree, and the largest difference."""
    y, p = rows(k)
    o = one_hot(y, p)
    theirs, ours = (np.asarray(f(y, p.copy(), o), dtype=float) for f in (call.theirs, call.here))
    gap = float(np.abs(theirs - ours).max())
    return ("agrees" if gap <= call.within else "**differs**"), gap


def page() -> str:
    from pycalib.models import calibrators

    from pycalib import metrics, stats, utils

    lines, counts = [], {"agrees": 0, "**differs**": 0}
    for call in calls(metrics, calibrators, stats, utils):
        for k in call.classes:
            verdict, gap = compared(call, k)
            counts[verdict] += 1
            why = f": {WHY[call.name, k]}" if (call.name, k) in WHY else ""
            lines.append(f"| {call.name} | {k} | {call.ours} | {verdict}{why} | {gap:.1e} |")
    head = (__doc__ or "").split("Writes")[0].strip()
    return "\n".join(
        [
            "# PyCalib, function by function",
            "",
            f"{head} Made by `python -m benchmarks.pycalib`: {ROWS} rows, {BINS} bins, seed {SEED}.",
            "",
            f"{counts['agrees']} of {sum(counts.values())} comparisons agree: to {EQUAL:g}; p-values of {DRAWS} drawn",
            "label sets to four standard errors of both; maps by an iterative fit to 1e-6.",
            "",
            "| PyCalib | classes | here | | largest difference |",
            "|---|---:|---|---|---:|",
            *lines,
            "",
            "Not compared:",
            "",
            *(f"- `{name}`: {why}" for name, why in LEFT_OUT.items()),
            "",
        ]
    )


def main() -> None:
    options = arguments.parser(__doc__, write=True).parse_args()
    warnings.simplefilter("ignore")
    text = page()
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()

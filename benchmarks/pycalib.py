"""Do PyCalib's functions give the same numbers as those of calibrant?

    python -m benchmarks.pycalib [--repetitions 20]

Needs `pip install --no-deps pycalib==0.1.0.dev6 betacal`. Every function that computes something is called on the same
400 rows of two, three or five classes, with 10 bins. No score lies on an edge of a bin. Numbers agree within 1e-9,
p-values from 2,000 drawn label sets within four standard errors of both, and maps from an iterative fit within 1e-6.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import calibrant as cal
from calibrant import calibrators as c

from .experiment import Experiment
from .markdown import table
from .provenance import Kept

#: The same number, and the same p-value of drawn labels: four standard errors of DRAWS draws.
EQUAL, DRAWS = 1e-9, 2000
BINS, ROWS, CLASSES = 10, 400, (2, 3, 5)


def module(name: str) -> Any:
    """A module of PyCalib, which is imported where it is used."""
    return importlib.import_module(f"pycalib.{name}")


def metrics() -> Any:
    return module("metrics")


@dataclass(frozen=True)
class Call:
    """A function of PyCalib, and what gives the same here: each of labels and probabilities."""

    name: str
    ours: str
    theirs: Callable[[Any, Any, Any], Any]
    here: Callable[[Any, Any, Any], Any]
    within: float = EQUAL
    #: Numbers of classes that it is for.
    classes: tuple[int, ...] = CLASSES


def rows(k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and over-confident probabilities of k classes, and no score within 1e-6 of an edge of a bin."""
    rng = np.random.default_rng([seed, k])
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


def calls() -> Iterator[Call]:
    """All of them."""
    mean = cal.notions.Classwise(average="mean")
    largest = cal.notions.Classwise(average="max")
    yield Call(
        "accuracy",
        "report().accuracy",
        lambda y, p, o: metrics().accuracy(o, p),
        lambda y, p, o: cal.report(y, p).accuracy,
    )
    yield Call(
        "cross_entropy", "log_loss", lambda y, p, o: metrics().cross_entropy(o, p), lambda y, p, o: cal.log_loss(y, p)
    )
    yield Call(
        "brier_score",
        "brier_score / K",
        lambda y, p, o: metrics().brier_score(o, p),
        lambda y, p, o: (
            ((p - o) ** 2).sum(axis=1).mean() / p.shape[1] if p.shape[1] == 2 else cal.brier_score(y, p) / p.shape[1]
        ),
    )
    yield Call(
        "conf_ECE",
        "confidence",
        lambda y, p, o: metrics().conf_ECE(y, p, BINS),
        lambda y, p, o: binned(y, p, "confidence"),
    )
    yield Call(
        "ECE(ece_full=False)",
        "confidence",
        lambda y, p, o: metrics().ECE(y, p, bins=BINS, ece_full=False),
        lambda y, p, o: binned(y, p, "confidence"),
    )
    yield Call(
        "ECE",
        "all scores as rows",
        lambda y, p, o: metrics().ECE(y, p, bins=BINS),
        lambda y, p, o: cal.expected_calibration_error(o.ravel(), p.ravel(), n_bins=BINS),
    )
    yield Call(
        "MCE",
        "confidence, norm=inf",
        lambda y, p, o: metrics().MCE(y, p, bins=BINS),
        lambda y, p, o: binned(y, p, "confidence", np.inf),
    )
    yield Call(
        "MCE(mce_full=True)",
        "all scores, norm=inf",
        lambda y, p, o: metrics().MCE(y, p, bins=BINS, mce_full=True),
        lambda y, p, o: cal.expected_calibration_error(o.ravel(), p.ravel(), n_bins=BINS, norm=np.inf),
    )
    yield Call(
        "conf_MCE",
        "confidence, norm=inf",
        lambda y, p, o: metrics().conf_MCE(y, p, BINS),
        lambda y, p, o: binned(y, p, "confidence", np.inf),
    )
    for k in range(2):
        yield Call(
            f"binary_ECE, class {k}",
            "ClassSpecific(k)",
            lambda y, p, o, k=k: metrics().binary_ECE(o[:, k], p[:, k], bins=BINS),
            lambda y, p, o, k=k: binned(y, p, cal.notions.ClassSpecific(k)),
        )
        yield Call(
            f"binary_ECE(power=2), class {k}",
            "norm=2, squared",
            lambda y, p, o, k=k: metrics().binary_ECE(o[:, k], p[:, k], power=2, bins=BINS),
            lambda y, p, o, k=k: binned(y, p, cal.notions.ClassSpecific(k), 2) ** 2,
        )
        yield Call(
            f"binary_MCE, class {k}",
            "norm=inf",
            lambda y, p, o, k=k: metrics().binary_MCE(o[:, k], p[:, k], bins=BINS),
            lambda y, p, o, k=k: binned(y, p, cal.notions.ClassSpecific(k), np.inf),
        )
    yield Call(
        "classwise_ECE",
        "classwise",
        lambda y, p, o: metrics().classwise_ECE(o, p, bins=BINS),
        lambda y, p, o: binned(y, p, mean),
    )
    yield Call(
        "classwise_ECE(power=2)",
        "norm=2, squared",
        lambda y, p, o: metrics().classwise_ECE(o, p, power=2, bins=BINS),
        lambda y, p, o: binned(y, p, "classwise", 2) ** 2,
    )
    yield Call(
        "classwise_MCE",
        "classwise max, norm=inf",
        lambda y, p, o: metrics().classwise_MCE(o, p, bins=BINS),
        lambda y, p, o: binned(y, p, largest, np.inf),
    )
    yield Call(
        "full_ECE",
        "SimplexBinned",
        lambda y, p, o: metrics().full_ECE(o, p, bins=BINS),
        lambda y, p, o: cal.calibration_error(y, p, notion="canonical", estimator=cal.estimators.SimplexBinned(BINS)),
    )
    yield Call(
        "simplex_binning",
        "SimplexBinned, squared",
        lambda y, p, o: sum(n / len(y) * ((q - f) ** 2).sum() for n, q, f in metrics().simplex_binning(o, p, BINS)),
        lambda y, p, o: (
            cal.calibration_error(y, p, notion="canonical", estimator=cal.estimators.SimplexBinned(BINS), norm=2) ** 2
        ),
    )
    yield Call(
        "pECE (class-wise)",
        "calibration_test",
        lambda y, p, o: drawn(o, p),
        lambda y, p, o: (
            cal.calibration_test(y, p, notion="classwise", estimator=cal.Binned(BINS), n_resamples=DRAWS).pvalue
        ),
        within=4 * np.sqrt(0.5 / DRAWS),
    )
    yield Call(
        "get_binned_scores",
        "reliability_curve",
        lambda y, p, o: with_rows(module("utils").get_binned_scores(o[:, 1], p[:, 1], BINS)[:2]),
        lambda y, p, o: of_bins(y, p),
        classes=(2,),
    )
    yield from maps()
    yield Call(
        "compute_friedmanchisquare",
        "scores.rank_models",
        lambda y, p, o: list(module("stats").compute_friedmanchisquare(pd.DataFrame(p[:30]))),
        lambda y, p, o: friedman(p[:30]),
        classes=(3, 5),
    )


def friedman(table: np.ndarray) -> list[float]:
    found = cal.scores.rank_models(table)
    return [found.friedman, found.friedman_pvalue]


def with_rows(pair: Any) -> np.ndarray:
    """Bins that have rows."""
    return np.concatenate([v[~np.isnan(v)] for v in pair])


def drawn(o: np.ndarray, p: np.ndarray) -> float:
    """`pECE` without its pool of processes, and with its own random numbers."""
    np.random.seed(0)  # noqa: NPY002 - the generator that it draws from
    of = lambda labels, probs: metrics().classwise_ECE(labels, probs, bins=BINS)  # noqa: E731
    return float((metrics()._score_sampling(p, DRAWS, of) >= of(o, p)).mean())


def maps() -> Iterator[Call]:
    """Calibrators of two classes, fitted to one half and used on the other; ours of scores scaled to [0, 1] there."""

    def fitted(theirs: Any, ours: Any, name: str, what: str, scaled: bool = False) -> Call:
        def peer(y: Any, p: Any, o: Any) -> Any:
            half = len(y) // 2
            return theirs().fit(p[:half], y[:half]).predict_proba(p[half:])

        def here(y: Any, p: Any, o: Any) -> Any:
            half, s = len(y) // 2, p[:, 1]
            if scaled:
                s = ((s - s[:half].min()) / np.ptp(s[:half])).clip(0, 1)
            return ours().fit(s[:half], y[:half]).predict_proba(s[half:])

        return Call(name, what, peer, here, classes=(2,), within=1e-6 if "Platt" in what else EQUAL)

    yield fitted(
        lambda: module("models.calibrators").IsotonicCalibration(),
        lambda: c.IsotonicCalibrator(clip=None),
        "IsotonicCalibration",
        "IsotonicCalibrator",
    )
    yield fitted(
        lambda: module("models.calibrators").SigmoidCalibration(),
        lambda: c.PlattScaling(input="margin", shrinkage=0),
        "SigmoidCalibration",
        "PlattScaling of margins",
    )
    yield fitted(
        lambda: module("models.calibrators").BinningCalibration(BINS, alpha=1.0),
        lambda: c.HistogramBinning(BINS, "uniform", smoothing=1),
        "BinningCalibration",
        "HistogramBinning, scaled",
        scaled=True,
    )


#: What is not compared, and why.
LEFT_OUT = {
    "LogisticCalibration": "its constructor passes on `multi_class`, which scikit-learn no longer accepts",
    "models.multiclass.OneVsRestCalibrator": "imports `if_delegate_has_method`, which scikit-learn no longer has",
    "CalibratedModel, CalibratedClassifierCV": "wrap the calibrators above",
    "compute_ranksums, compute_mannwhitneyu": "SciPy's tests for every pair of columns",
    "visualisations": "pictures",
}
#: Remarks on functions.
WHY = {
    ("ECE", "MCE(mce_full=True)"): "with two classes they pair n labels with 2 n scores, because "
    "`label_binarize` gives one column",
    ("BinningCalibration",): "its bins end at the lowest and the highest score of the fit, so for ours, scores are "
    "scaled to [0, 1] by these",
}
CALLS = {call.name: call for call in calls()}


def some(call: str, classes: int) -> bool:
    """Whether the function is for this number of classes."""
    return classes in CALLS[call].classes


def sample(call: str, classes: int, seed: int) -> dict[str, float]:
    """The largest difference, and whether the numbers agree."""
    y, p = rows(classes, seed)
    o, one = one_hot(y, p), CALLS[call]
    theirs, ours = (np.asarray(f(y, p.copy(), o), dtype=float) for f in (one.theirs, one.here))
    gap = float(np.abs(theirs - ours).max())
    return {"difference": gap, "agrees": float(gap <= one.within)}


def agreeing(kept: Kept) -> list[tuple[str, bool]]:
    """Function of each comparison, and whether it agrees in all samples."""
    return [(case["call"], bool(kept.where(**case)["agrees"].all())) for case in EXPERIMENT.every()]


def answer(kept: Kept) -> str:
    every = agreeing(kept)
    other = dict.fromkeys(name for name, agrees in every if not agrees)
    rest = f" Others differ: {', '.join(f'`{name}`' for name in other)}." if other else ""
    return (
        f"PyCalib's functions give the same numbers in {sum(agrees for _, agrees in every)} of {len(every)} "
        f"comparisons of a function and a number of classes, in {len(kept) // len(every)} samples each.{rest}"
    )


def page(kept: Kept) -> Iterator[str]:
    yield f"The table gives the numbers of classes compared ({_numbers(CLASSES)} if empty), those that differ in any"
    yield "sample, and the largest gap where both agree. Our arguments are in the script."
    yield ""
    yield from table(("PyCalib", "here", "classes", "differs", "gap"), _lines(kept), texts=4)
    yield ""
    yield from (f"- `{'`, `'.join(names)}`: {why}." for names, why in WHY.items())
    yield from (f"- Not compared: `{name}` ({why})." for name, why in LEFT_OUT.items())


def _lines(kept: Kept) -> Iterator[list[str]]:
    for name in dict.fromkeys(name.partition(", class ")[0] for name in CALLS):
        names = [one for one in CALLS if one.partition(", class ")[0] == name]
        classes = CALLS[names[0]].classes
        by = {k: [kept.where(call=one, classes=k) for one in names] for k in classes}
        differs = [k for k, parts in by.items() if not all(one["agrees"].all() for one in parts)]
        gaps = [one["difference"].max() for k, parts in by.items() if k not in differs for one in parts]
        shown = "" if not gaps else f"{max(gaps):.1e}" if max(gaps) else "0"
        told = "" if tuple(classes) == tuple(CLASSES) else _numbers(classes)
        yield [name, CALLS[names[0]].ours, told, _numbers(differs), shown]


def _numbers(classes: Iterable[int]) -> str:
    return ", ".join(map(str, classes))


EXPERIMENT = Experiment(
    __spec__.name,
    {"call": CALLS, "classes": CLASSES},
    sample,
    answer,
    page,
    repetitions=20,
    some=some,
    needs=("pycalib", "betacal"),
)

if __name__ == "__main__":
    EXPERIMENT.main()

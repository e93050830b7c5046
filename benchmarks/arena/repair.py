"""Calibrators on real models: who gains, who harms, and at what cost. Writes `repair.md`.

    python -m benchmarks.arena.repair [--cache FOLDER] [--half reporting] [--splits 10] [--only TEXT] [--write FILE]

An experiment is a data set × a model × a number of rows to fit; its losses are means over splits of the held-out rows,
judged on 300 to 2,000 rows that were not fitted. What is done is kept in the cache by calibrator, and not done again:
remove a calibrator's folder in `CACHE/repair` after its code has changed. `probmetrics` (with numba and venn-abers),
`betacal` and `venn-abers` join where they are installed. Truths need not be built (`build --predictions`). The choosing
half is for development; the reporting half is read once, with the code that ships.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import json
import os
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from calibrant import calibrators as c
from calibrant.calibrators.choosing import Choosing, mixture_of
from calibrant.calibrators.crossval import AVERAGE, losses_of
from calibrant.calibrators.multiclass import OneVsRest
from calibrant.calibrators.select import as_sample, candidates_for
from calibrant.data.writing import write_json, write_text

from .. import arguments
from .halves import HALVES, REPORTING
from .reading import Experiment, experiments
from .repair_page import page
from .store import CACHE

SIZES = (100, 300, 1000, 5000)
#: Least probability of a label where scores are exactly 0 or 1: in the log-loss elsewhere it is 1e-6.
CLIPPED = 1e-9
#: Rows that losses are means of.
FEWEST, MOST = 300, 2000
#: Makes a fitted map, (n, K) to (n, K), of probabilities, labels and K.
Fit = Callable[[np.ndarray, np.ndarray, int], Callable[[np.ndarray], np.ndarray]]


def ours(make: Callable[[], c.Calibrator]) -> Fit:
    """A calibrator of this library; of two classes, one against the rest."""

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
    """Beta calibration by its authors; of several classes, one against the rest."""
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
#: Those of which the best for an experiment, known afterwards, is the oracle: ours that choose nothing.
SINGLE = [name for name in CALIBRATORS if name not in ("auto", "fix", "end-smoothing") and " " not in name]


def read(one: Experiment, n: int, fit: Fit, splits: int) -> dict[str, Any]:
    """Losses of splits, seconds of a fit, and in how many splits it failed and left the scores alone.

    Losses are the log-loss, the Brier score, and the log-loss of probabilities of at least 1e-9.
    """
    p = one.y_prob.astype(np.float64)
    p /= p.sum(axis=1, keepdims=True)
    losses, seconds, failed = [], 0.0, 0
    for split in range(splits):
        order = np.random.default_rng([split, n]).permutation(len(p))
        used, judged = order[:n], order[n : n + MOST]
        start = process_time()
        try:
            q = fit(p[used], one.y_true[used], one.n_classes)(p[judged])
            if q.shape != p[judged].shape or not np.isfinite(q).all():
                raise ValueError("no probabilities of all classes")
        except ImportError:  # that says nothing about the calibrator
            raise
        except Exception:  # peers fail in ways of their own, as where a class has no rows
            q, failed = p[judged], failed + 1
        seconds += process_time() - start
        codes = one.y_true[judged]
        unlikely = np.maximum(q[np.arange(len(q)), codes], CLIPPED)
        each = [losses_of(q, codes, goal) for goal in ("log-loss", "brier")] + [-np.log(unlikely)]
        losses.append([float(np.mean(loss)) for loss in each])
    return {"splits": splits, "losses": np.mean(losses, axis=0).tolist(), "seconds": seconds / splits, "failed": failed}


def kept(cache: Path, name: str, one: Experiment, n: int, splits: int) -> tuple[Path, dict[str, Any] | None]:
    """Where a calibrator's losses are kept, and these, if they are of so many splits."""
    path = cache / "repair" / name.replace(", ", " ").replace(" ", "-") / f"{one.name}.{n}.json"
    found = json.loads(path.read_text()) if path.exists() else None
    return path, found if found is not None and found["splits"] == splits else None


def lines(one: Experiment, options: Any, names: list[str]) -> Iterator[dict[str, Any]]:
    """A line for each size that leaves rows to judge: losses of every calibrator."""
    for n in SIZES:
        if len(one.y_true) < n + FEWEST:
            continue
        found = {}
        for name in names:
            path, done = kept(options.cache, name, one, n, options.splits)
            if done is None and options.done:
                break
            if done is None:
                done = read(one, n, CALIBRATORS[name], options.splits)
                write_json(path, done)
            found[name] = done
        else:
            about = {"name": one.name, "kin": one.kin, "kind": one.kind, "classes": one.n_classes, "n": n}
            about["ends"] = bool((one.y_prob == 0).any())
            yield about | {"read": found}


def main() -> None:
    parser = arguments.parser(__doc__, only="data set × model (DATA.MODEL)", write=True)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    parser.add_argument("--half", choices=HALVES, default=REPORTING, help="default %(default)s")
    parser.add_argument("--splits", type=int, default=10, help="splits an experiment (default %(default)s)")
    parser.add_argument("--every", type=int, default=1, help="only every so-manieth experiment (default all)")
    parser.add_argument("--done", action="store_true", help="only what is in the cache already")
    parser.add_argument("--calibrators", help="names, with commas (default all)")
    options = parser.parse_args()
    os.nice(10)
    names = options.calibrators.split(",") if options.calibrators else list(CALIBRATORS)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores of 0 and 1, classes without rows, peers' own
        for i, one in enumerate(experiments(options.half, cache=options.cache, only=options.only, truths=False)):
            if i % options.every == 0:
                found += lines(one, options, names)
                print(one.name, flush=True)
    if not found:
        parser.error("no experiment of that name has rows enough")
    part = "some of its models and data sets" if options.done or options.every > 1 else "all its models and data sets"
    text = page(found, f"{options.half} half ({part})", options.splits, [name for name in names if name in SINGLE])
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()

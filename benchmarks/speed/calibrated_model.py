"""What does "auto" cost and gain within `CalibratedModel`?

    OMP_NUM_THREADS=1 python -m benchmarks.speed.calibrated_model [--repetitions 7] [--only TEXT]

`CalibratedModel(model, calibrator, cv=5).fit` runs in one thread, in turns, and times include the model's five
fits. Log-loss is on 20,000 new rows of `make_classification`. In the picture, *three* is `AutoCalibrator` of identity,
temperature and beta (two classes) or vector scaling (ten); *one choice per fold* cross-validates within each fold.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant import calibrators as c

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept

JUDGED = 20_000
#: The CPU time of "auto" aimed at, as a ratio to that of temperature scaling.
WANTED = 1.5
MODELS = {
    "naive Bayes": GaussianNB(),
    "logistic": LogisticRegression(max_iter=200),
    "boosting": HistGradientBoostingClassifier(max_iter=20, early_stopping=False),
}
CHOICES = {"auto": "auto", "three": "three", "a fold": "auto, one choice per fold"}
NAMES = ("model", "classes", "rows")
Case = tuple[str, str, str]


class Alone(c.AutoCalibrator):
    """Chooses for each fold by that fold's rows."""

    def _fit_each(self, samples: list[Any], more: list[Any]) -> list[Any]:
        return c.Calibrator._fit_each(self, samples, more)


def calibrator(name: str, k: int) -> c.Calibrator:
    """One of those that are compared."""
    one = "beta" if k == 2 else "vector"
    if name == "three":
        return c.AutoCalibrator({each: c.named_calibrator(each, k) for each in ("identity", "temperature", one)})
    made = {"none": c.Identity, "temperature": c.TemperatureScaling, "auto": c.AutoCalibrator, "a fold": Alone}
    return made[name]() if name in made else c.named_calibrator(one, k)


@lru_cache
def arrays(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels, those of the judging rows included."""
    made = {"n_informative": 12, "n_redundant": 4, "n_clusters_per_class": 2, "flip_y": 0.05}
    x, y = make_classification(n + JUDGED, 20, n_classes=k, random_state=0, **made)
    return x, y


def fitted(n: int, k: int, model: str, name: str) -> Any:
    x, y = arrays(n, k)
    return c.CalibratedModel(MODELS[model], calibrator(name, k), cv=5).fit(x[:n], y[:n])


@lru_cache
def warm(k: int, model: str, name: str) -> None:
    """What a first fit imports is not timed."""
    fitted(500, k, model, name)


def sample(model: str, classes: int, rows: int, calibrator: str, seed: int) -> dict[str, float]:
    """CPU seconds of a fit, and log-loss of new rows."""
    warm(classes, model, calibrator)
    x, y = arrays(rows, classes)
    start = process_time()
    whole = fitted(rows, classes, model, calibrator)
    seconds = process_time() - start
    return {"seconds": seconds, "loss": cal.scores.log_loss(y[rows:], whole.predict_proba(x[rows:]))}


def each(kept: Kept) -> Iterator[tuple[Case, Kept]]:
    """Models and data, and their rows."""
    for case in dict.fromkeys(zip(*(kept.columns[name] for name in NAMES), strict=True)):
        yield case, kept.where(**dict(zip(NAMES, case, strict=True)))


def ratio(some: Kept, name: str) -> float:
    """CPU time divided by that of temperature scaling, the median of turns."""
    one, base = (some.where(calibrator=each)["seconds"] for each in (name, "temperature"))
    return float(np.median(one / base))


def loss(some: Kept, name: str) -> float:
    return float(some.where(calibrator=name)["loss"][0])


def answer(kept: Kept) -> str:
    ratios = {case: ratio(some, "auto") for case, some in each(kept)}
    gains = [loss(some, "temperature") - loss(some, "auto") for _, some in each(kept)]
    parts = []
    for model in MODELS:
        some = [value for case, value in ratios.items() if case[0] == model]
        parts.append(f"{min(some):.1f} to {max(some):.1f} ({model})")
    missed = sum(value > WANTED for value in ratios.values())
    return (
        f'"auto" takes {", ".join(parts)} times as long as temperature scaling. The aim, {WANTED} or less, is missed '
        f'in {missed} of {len(ratios)} cases. "auto" changes the log-loss by {-max(gains):+.4f} to {-min(gains):+.4f}.'
    )


def page(kept: Kept) -> Iterator[str]:
    rows = []
    for (model, k, n), some in each(kept):
        losses = [f"{loss(some, name):.4f}" for name in ("temperature", "auto")]
        rows.append((model, k, f"{int(n):,}", f"{ratio(some, 'auto'):.2f}", *losses))
    yield from table(("model", "classes", "rows", "ratio", "loss", "auto"), rows)
    yield ""
    yield '*ratio* compares CPU times. *loss* is the log-loss with temperature scaling, and *auto* with "auto".'


def picture(kept: Kept) -> Figure:
    """CPU time divided by that of temperature scaling."""
    found = list(each(kept))
    series = {text: [(ratio(some, name), float("nan")) for _, some in found] for name, text in CHOICES.items()}
    names = [f"{model}, {k} classes, {int(n):,}" for (model, k, n), _ in found]
    return dots(names, series, "CPU time divided by that of temperature scaling", aim=WANTED, log=True)


def turns(model: str, rows: int) -> int:
    """Fewer, where a turn takes long."""
    return {1_000: 3, 10_000: 2}.get(rows, 1) if model == "boosting" else 7 if rows < 100_000 else 3


EXPERIMENT = Experiment(
    module=__spec__.name,
    cases={
        "model": [*MODELS],
        "classes": [2, 10],
        "rows": [1_000, 10_000, 100_000],
        "calibrator": ["none", "temperature", "beta or vector", "three", "auto", "a fold"],
    },
    sample=sample,
    answer=answer,
    page=page,
    picture=picture,
    repetitions=7,
    portion=lambda model, classes, rows, calibrator: turns(model, rows) / 7,
    here=lambda model, classes, rows, calibrator: rows == 1_000 and model == "naive Bayes",
    quick=2,
    timed=("seconds",),
    packages=("scikit-learn",),
)

if __name__ == "__main__":
    EXPERIMENT.main()

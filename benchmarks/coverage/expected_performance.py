"""How far `expected_performance` is from what labels then say, beside NannyML's CBPE, and how often intervals cover.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.expected_performance --store FILE [--repetitions 100] [--write FILE]

The peer is `nannyml` 0.13.1 from PyPI (it needs `statsmodels` beside it); without it only our figures are made. 2,000
labelled and 1,000 new rows. Four families have scores from a beta distribution and known chances: log-odds divided
by 1.7 (*overconfident*), right below 0.5 and too high by up to 0.2 above (*one-sided*), scores of one decimal whose
chances are those of the fourth power mean with ¼ (*grid*), and log-odds with a bump of 0.8 about 0.3 (*bump*). Four
are models of scikit-learn fitted to 1,000 other rows of eight features, two of which interact: logistic regression,
naive Bayes, a forest, boosting. One is naive Bayes of three classes. No choice was made on any of these families:
those that were looked at had other scores and other chances.

Shifts: none; *covariate*, where new rows are drawn in proportion to e^(2s) of the score s (of three classes that of the
first); *label*, where only three in ten of the positives are kept, of three classes of the first, and where we are
told `prior="estimate"`. CBPE has no such option. A sample's seed is its number.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.monitoring.performance_metrics import METRICS

from .. import arguments
from ..store import lines_of

N, M = 2_000, 1_000
OURS = ("accuracy", "precision", "recall", "f1", "roc-auc", "log-loss", "brier")
PEERS = OURS[:5]
SHIFTS = ("none", "covariate", "label")
CHANCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "overconfident": lambda p: expit(logit(p) / 1.7),
    "one-sided": lambda p: p - 0.4 * np.maximum(p - 0.5, 0),
    "grid": lambda p: ((p**4 + 0.25**4) / 2) ** 0.25,
    "bump": lambda p: expit(logit(p) + 0.8 * np.exp(-(((p - 0.3) / 0.08) ** 2))),
}
MODELS = ("logistic regression", "naive Bayes", "forest", "boosting")
FAMILIES = (*CHANCES, *MODELS, "three classes")


def _features(n: int, classes: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((n, 8))
    one = x[:, 0] - 0.7 * x[:, 1] + x[:, 2] * x[:, 3] - 0.5
    logits = np.column_stack([np.zeros(n), one, 0.8 * x[:, 4] + 0.6 * np.abs(x[:, 5])][:classes])
    return x, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


@lru_cache(maxsize=8)
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


def outcome(family: str, shift: str, seed: int) -> list[float]:
    """Errors, whether intervals cover, and their widths: ours of seven metrics, then the peer's of five."""
    y, p, labels, new = samples(family, shift, seed)
    prior = "estimate" if shift == "label" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.expected_performance(new, reference=(y, p), metric=list(OURS), prior=prior)
        true = cal.expected_performance(new[:50], reference=(labels, new), metric=list(OURS), n_resamples=2)
        said = [metric.reference for metric in true.metrics]
        peer = _peer(y, p, labels, new) if find_spec("nannyml") else []
    ours = [(m.value, *m.interval) for m in found.metrics]
    rows = [
        (value - s, low <= s <= high, high - low)
        for (value, low, high), s in zip([*ours, *peer], said + said, strict=False)
    ]
    return [float(v) for v in np.array(rows, dtype=float).T.reshape(-1)]


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


def main() -> None:
    options = arguments.parser(__doc__, repetitions=100, write=True, store=True).parse_args()
    with lines_of(options.store) as (done, add):
        known = {(row[0], row[1], row[2]) for row in done}
        for seed in range(options.repetitions):
            for family in FAMILIES:
                for shift in SHIFTS:
                    if (family, shift, seed) not in known:
                        done.append([family, shift, seed, *outcome(family, shift, seed)])
                        add(done[-1])
    if options.write is not None:
        write(options.write, done, options.repetitions)


def write(path: Path, done: list[Any], repetitions: int) -> None:
    """The page."""
    kept = [row for row in done if row[2] < repetitions]
    table = {
        cell: np.array([row[3:] for row in kept if tuple(row[:2]) == cell]) for cell in {(r[0], r[1]) for r in kept}
    }
    number = len(OURS) + len(PEERS)
    lines = [
        "# Expected performance: errors beside CBPE, and coverage",
        "",
        f"Written by `python -m benchmarks.coverage.expected_performance --store FILE --repetitions {repetitions}"
        " --write FILE`.",
        "",
        *(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(),
        "",
        "## Errors",
        "",
        "Mean absolute difference from what the labels of the same rows said, in thousandths: ours / CBPE's. In",
        "brackets the difference in standard errors of the paired difference; negative: ours is smaller.",
        "",
        "| scores | shift | " + " | ".join(METRICS[name].words for name in PEERS) + " |",
        "|---|---|" + "---:|" * len(PEERS),
    ]
    ordered = [(f, s) for f in FAMILIES for s in SHIFTS if (f, s) in table]
    for cell in ordered:
        errors = np.abs(table[cell][:, :number])
        texts = []
        for i in range(len(PEERS)):
            ours, peer = errors[:, i], errors[:, len(OURS) + i]
            z = (ours - peer).mean() / max(float((ours - peer).std()) / np.sqrt(len(ours)), 1e-12)
            texts.append(f"{1000 * ours.mean():.1f} / {1000 * peer.mean():.1f} ({z:+.1f})")
        lines.append(f"| {cell[0]} | {cell[1]} | " + " | ".join(texts) + " |")
    lines += [
        "",
        "## Coverage",
        "",
        "Share of samples, in per cent, in which our 95 % interval contains what labels said (standard error about 2),",
        "and in brackets that of CBPE's (three standard errors of sampling), whose map of scores has no uncertainty.",
        "",
        "| scores | shift | " + " | ".join(METRICS[name].words for name in OURS) + " |",
        "|---|---|" + "---:|" * len(OURS),
    ]
    for cell in ordered:
        cover = [f"{v:.0f}" for v in 100 * table[cell][:, number : 2 * number].mean(axis=0)]
        ours, peer = cover[: len(OURS)], cover[len(OURS) :]
        texts = [f"{a} ({b})" for a, b in zip(ours, peer, strict=False)] + ours[len(PEERS) :]
        lines.append(f"| {cell[0]} | {cell[1]} | " + " | ".join(texts) + " |")
    lines += ["", *_said(table, ordered, number)]
    arguments.finish(type("Options", (), {"write": path})(), lines)


def _said(table: dict[Any, np.ndarray], ordered: list[Any], number: int) -> list[str]:
    """Sentences made from the tables."""
    better = worse = 0
    for cell in ordered:
        errors = np.abs(table[cell][:, :number])
        difference = errors[:, : len(PEERS)] - errors[:, len(OURS) :]
        z = difference.mean(axis=0) / np.maximum(difference.std(axis=0) / np.sqrt(len(errors)), 1e-12)
        better, worse = better + int((z < -2).sum()), worse + int((z > 2).sum())
    out = []
    for shift in SHIFTS:
        some = [table[cell][:, number : number + len(OURS)] for cell in ordered if cell[1] == shift]
        cover = 100 * np.concatenate([one.mean(axis=0) for one in some])
        inside = int(((cover >= 90) & (cover <= 97)).sum())
        out.append(
            f"Shift *{shift}*: coverage is {cover.mean():.1f} % on average, from {cover.min():.0f} to "
            f"{cover.max():.0f}; {inside} of {len(cover)} cells are within 90 to 97 %, {int((cover < 90).sum())} below."
        )
    cells = len(ordered) * len(PEERS)
    return [f"Ours is smaller by more than two standard errors in {better} of {cells} cells, larger in {worse}.", *out]


if __name__ == "__main__":
    main()

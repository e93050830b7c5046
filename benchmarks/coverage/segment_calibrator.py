"""What does `SegmentCalibrator` risk where nothing needs repair, and what does it repair?

    python -m benchmarks.coverage.segment_calibrator [--repetitions 100]

Features and scores are those of `segments.md`. Models without a wrong segment are calibrated, miscalibrated equally
everywhere (*wrong alike*: log-odds are 0.6 times those of the scores, minus 0.3), or have rare outcomes (2 %). Each has
5 or 50 features. Log-losses are expected values under the true chances of 20,000 new rows. *Planted* segments have one
to three conditions among 10 features, 5 or 20 % of the rows, and log-odds that are higher by 0.8. Constants were chosen
on other truths and data, except that the gain required of trees, twice that of segments, was chosen on earlier samples
of these models, with other seeds.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

from calibrant.calibrators import SegmentCalibrator

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, mean, percent, share, table
from ..provenance import Kept
from .segments import features

LEARNERS = ("segments", "boosting")
#: Kind, rows and features of models, by what they are called.
MODELS = {
    f"{kind}, {n:,} rows, {number} features": (kind, n, number)
    for n in (300, 2_000, 10_000)
    for number in (5, 50)
    for kind in ("calibrated", "wrong alike", "rare")
}
#: Rows, share and conditions of planted segments.
PLANTED = {
    f"{n:,} rows, {of:.0%}, {terms} condition{'s' if terms > 1 else ''}": (n, of, terms)
    for n in (5_000, 20_000)
    for of in (0.05, 0.2)
    for terms in (1, 2, 3)
}
NEW = 20_000
#: Truths of a row of the table.
MODEL_ROWS = {
    f"{kind}, {n:,}": [name for name, one in MODELS.items() if one[:2] == (kind, n)] for kind, n, _ in MODELS.values()
}
PLANTED_ROWS = {
    f"planted, {100 * of:.0f} % of {n:,}": [name for name, one in PLANTED.items() if one[:2] == (n, of)]
    for n, of, _ in PLANTED.values()
}
#: Experiments that may have harm, in per cent.
MOST = 2


def model(kind: str, n: int, number: int, seed: int) -> tuple[Any, ...]:
    """Features, scores and chances."""
    rng = np.random.default_rng([seed, [*MODELS.values()].index((kind, n, number)), 142])
    X = features(n + NEW, number, rng)
    signal = 0.8 * X["x0"] + 0.6 * (X["x2"] == "north") - 0.5 * X["x4"]
    s = expit(signal - (4.4 if kind == "rare" else 0.0) + 0.3 * rng.normal(size=n + NEW))
    return X, s, expit(0.6 * logit(s) - 0.3) if kind == "wrong alike" else s, rng


def planted(n: int, of: float, terms: int, seed: int) -> tuple[Any, ...]:
    """The same, and which rows are in the segment."""
    rng = np.random.default_rng([seed, [*PLANTED.values()].index((n, of, terms)), 143])
    X = features(n + NEW, 10, rng)
    inside, each = np.ones(n + NEW, dtype=bool), of ** (1 / terms)
    for column in rng.permutation([0, 1, 5, 6, 8])[:terms]:
        v, start = X[f"x{column}"], rng.random() * (1 - each)
        inside &= (v >= np.quantile(v, start)) & (v <= np.quantile(v, start + each))
    s = expit(0.8 * X["x0"] + 0.6 * (X["x2"] == "north") - 0.5 * X["x4"] - 1 + 0.3 * rng.normal(size=n + NEW))
    return X, s, expit(logit(s) + 0.8 * inside), rng, inside


def sample(truth: str, learner: str, seed: int) -> dict[str, float]:
    """Log-loss of new rows as given, by the common map, repaired, and of the truth; gaps of planted segments."""
    shape = (MODELS | PLANTED)[truth]
    n = shape[1] if truth in MODELS else shape[0]
    X, s, chance, rng, *inside = (model if truth in MODELS else planted)(*shape, seed)
    y = (rng.random(n) < chance[:n]).astype(int)
    first, rest = ({name: v[rows] for name, v in X.items()} for rows in (slice(n), slice(n, None)))
    nan = float("nan")
    if y.min() == y.max():
        return {"given": nan}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = SegmentCalibrator(learner=learner).fit(s[:n], y, features=first)
        taken = time.process_time() - began
        p = fitted.predict_proba(s[n:], features=rest)[:, 1]
        common = fitted.common_.predict_proba(s[n:])[:, 1]
    q = chance[n:]
    every = (("given", s[n:]), ("common", common), ("repaired", p), ("truth's", q))
    out = {name: float(-(q * np.log(v) + (1 - q) * np.log1p(-v)).mean()) for name, v in every}
    out |= {"weight": float(fitted.weight_), "seconds": taken}
    for rows in inside:
        there = rows[n:]
        out |= {"gap": float((q - s[n:])[there].mean()), "left": float((q - p)[there].mean())}
    return out


def answer(kept: Kept) -> str:
    harms, beyond, saved, gaps = [], [], [], []
    for learner in LEARNERS:
        harm = _harms(_of(kept, MODELS, learner))
        harms.append(f"{share(harm)} % with `learner={learner!r}`")
        for name, some in MODEL_ROWS.items():
            one = _harms(_of(kept, some, learner))
            beyond += [f"*{name}* with {learner} ({share(one)})"] if percent(one)[0] > MOST else []
        planted = _of(kept, PLANTED, learner)
        every = [estimate(_saved(_of(kept, [name], learner)))[0] for name in PLANTED]
        left = 100 * planted["left"].mean() / planted["gap"].mean()
        saved.append(f"{mean(_saved(planted), 1)} % ({min(every):.0f} to {max(every):.0f} % by case)")
        gaps.append(f"{left:.0f}")
    missed = f"exceeded for {'; '.join(beyond)}" if beyond else "exceeded nowhere"
    return (
        f"Where no segment is wrong, the share of experiments whose log-loss rises by more than 0.1 % is "
        f"{' and '.join(harms)}. The limit of {MOST} % is {missed}. Where a segment is planted, the learners save "
        f"{' and '.join(saved)} of what the true chances would save, and leave {' and '.join(gaps)} % of the "
        f"segment's gap."
    )


def picture(kept: Kept) -> Figure:
    names = [*(name for name in MODELS if name.startswith("wrong")), *PLANTED]
    series = {learner: [estimate(_saved(_of(kept, [name], learner))) for name in names] for learner in LEARNERS}
    return dots(names, series, "log-loss saved, % of what the truth would save", 100.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the share of experiments whose log-loss rises by more than 0.1 % (*harm*), and the mean"
    yield "share *saved* of what the true chances would save, in per cent. Cases not listed have no harm."
    yield ""
    yield from table(("rows", "harm: segments", "boosting", "saved: segments", "boosting"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name, some in (MODEL_ROWS | PLANTED_ROWS).items():
        every = [_of(kept, some, learner) for learner in LEARNERS]
        cells = [_harms(one) * 100 for one in every] + [_saved(one) for one in every]
        if any(np.nansum(values) for values in cells):
            yield [name, *(f"{estimate(values)[0]:.1f}".replace("nan", "") for values in cells)]


def _of(kept: Kept, truths: Iterable[str], learner: str) -> dict[str, np.ndarray]:
    """Numbers of truths, but for samples with outcomes of one kind."""
    parts = [kept.where(truth=name, learner=learner) for name in truths]
    names = ("given", "common", "repaired", "truth's", "gap", "left")
    every = {name: np.concatenate([one[name] for one in parts]) for name in names}
    held = ~np.isnan(every["given"])
    return {name: np.abs(values[held]) for name, values in every.items()}


def _harms(every: dict[str, np.ndarray]) -> np.ndarray:
    """In which experiments the loss rises."""
    return np.asarray((every["repaired"] - every["given"]) / every["given"] > 0.001, dtype=float)


def _saved(every: dict[str, np.ndarray]) -> np.ndarray:
    """Share of what the truth would save, in per cent; NaN where that is nothing."""
    least = every["given"] - every["truth's"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(least > 1e-9, 100 * (every["given"] - every["repaired"]) / least, np.nan)


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": [*MODELS, *PLANTED], "learner": LEARNERS},
    sample,
    answer,
    page,
    picture,
    repetitions=100,
    quick=2,
    timed=("seconds",),
    portion=lambda truth, learner: 1.0 if truth in MODELS else 0.3,
    needs=("lightgbm",),
)

if __name__ == "__main__":
    EXPERIMENT.main()

"""What does `SegmentCalibrator` risk where nothing is to be repaired, and what does it repair?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.segment_calibrator [--repetitions 100] [--jobs 2]

Features and scores are those of `segments.md` (numbers, categories, truth values, missing values). *Models*: one that
is calibrated; one that is wrong alike everywhere (log-odds of outcomes are 0.6 times those of the scores, less 0.3);
and one of rare outcomes (2 %). Harm is a rise of the log-loss by more than 0.1 %, expected over the true chances of
20,000 new rows, against the scores as given; 2 % of experiments may have it. *Planted* segments have one to three
conditions on numbers among 10 features, 5 or 20 % of the rows, and log-odds of outcomes that are higher by 0.8.

The constants were chosen on other truths (normal, whole and categorical features, log-odds that are moved by 0.5 to 1)
and other data (KEEL's magic, and COMPAS); but that trees must gain twice as much as segments was chosen on earlier
samples of the models, whose seeds were others.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calibrant.calibrators import SegmentCalibrator

from ..experiment import Experiment, title
from ..markdown import mean, share, table
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


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    told = []
    for learner in LEARNERS:
        every = _join([kept.where(truth=name, learner=learner) for name in MODELS])
        harm, own = _harms(every)
        told.append(
            f"with {learner} in {share(harm)} % of {len(harm):,} experiments ({share(own)} % by the repair itself)"
        )
    yield "Of models without a segment that is wrong the log-loss rises by more than 0.1 %, against the scores as"
    yield f"given, {told[0]},"
    yield f"and {told[1]}."
    yield ""
    yield "## Harm"
    yield ""
    yield "*harm*: experiments in which the log-loss rises by more than 0.1 %, against the scores as given, in per cent"
    yield "with standard errors; *own*: against the map that all rows have in common. *gain*: mean decrease of the"
    yield "log-loss, and by the truth, in per cent."
    yield ""
    yield from table(("model", "learner", "harm", "own", "gain", "truth's", "seconds"), _models(kept), texts=2)
    yield ""
    yield "## Planted segments"
    yield ""
    yield "*gap*: mean difference of observed and mean predicted in the planted rows, and what is left of it. *saved*:"
    yield "share of the log-loss that the truth would save."
    yield ""
    yield from table(("planted", "learner", "gap", "left", "saved", "harm"), _planted(kept), texts=2)


def _join(parts: list[Kept]) -> dict[str, np.ndarray]:
    names = ("given", "common", "repaired", "truth's")
    every = {name: np.concatenate([one[name] for one in parts]) for name in names}
    held = ~np.isnan(every["given"])
    return {name: values[held] for name, values in every.items()}


def _harms(every: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """In which experiments the loss rises, and in which by the repair itself."""
    given = every["given"]
    return tuple(((every["repaired"] - every[of]) / given > 0.001).astype(float) for of in ("given", "common"))  # type: ignore[return-value]


def _models(kept: Kept) -> Iterator[list[str]]:
    for name in MODELS:
        for learner in LEARNERS:
            some = kept.where(truth=name, learner=learner)
            every = _join([some])
            gains = [f"{100 * np.mean(1 - every[of] / every['given']):+.2f}" for of in ("repaired", "truth's")]
            seconds = f"{np.nanmedian(some['seconds']):.1f}"
            yield [name, learner, *(share(one) for one in _harms(every)), *gains, seconds]


def _planted(kept: Kept) -> Iterator[list[str]]:
    for name in PLANTED:
        for learner in LEARNERS:
            some = kept.where(truth=name, learner=learner)
            saved = (some["given"] - some["repaired"]) / (some["given"] - some["truth's"])
            gaps = [f"{np.mean(np.abs(some[of])):.3f}" for of in ("gap", "left")]
            yield [name, learner, *gaps, mean(saved, 2), share(_harms(_join([some]))[0])]


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": [*MODELS, *PLANTED], "learner": LEARNERS},
    sample,
    page,
    repetitions=100,
    quick=2,
    timed=("seconds",),
    portion=lambda truth, learner: 1.0 if truth in MODELS else 0.3,
    needs=("lightgbm",),
)

if __name__ == "__main__":
    EXPERIMENT.main()

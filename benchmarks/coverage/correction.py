"""How much of what drawn maps miss of the outcomes should an interval of the default add?

    python -m benchmarks.coverage.correction [--repetitions 4]

The default's interval is made of draws of a posterior; to the error of each drawn map a share n / (n + c) of what it
misses of the outcomes is added ([estimators.md](../estimators.md)). c = 25 ships. *Spread* is the posterior alone,
spread about its median by fitted factors, as before. *Tracks* are those of the known-truth benchmark (beta, imbalance,
networks, dirichlet), on which c was chosen with other seeds; those that are calibrated are a group of their own.
*Mixtures* (64 models trained on 300 rows, truths of 100,000 labelled rows) and *hostile* truths (those of
[assumptions.md](../../benchmarks/coverage/assumptions.md) but the rule) played no part but for a look at them. Every
way reads the same draws; 25 samples are drawn side by side, and their means kept.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.benchmark.mixtures import ClassMixture, train, training_set
from calibrant.benchmark.tracks import ExactTruth, distributions
from calibrant.data.problem import Problem
from calibrant.estimators import laplace
from calibrant.estimators.base import ErrorDraws
from calibrant.estimators.empirical_bayes import WIDE, rank_cells
from calibrant.estimators.laplace_draws import DrawnMaps, draw_gaps
from calibrant.measure.posterior import credible
from calibrant.measure.question import Question

from ..arena.truth import of_pool
from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, mean, table
from ..provenance import Kept
from .assumptions import MACHINES, TRUTHS

DRAWS, LEVEL = 800, 0.95
#: The c of the share n / (n + c); None for the posterior alone, spread.
WAYS: dict[str, float | None] = {"spread": None, "c = 100": 100.0, "c = 50": 50.0, "c = 25": 25.0, "c = 0": 0.0}
SHIPPED = "c = 25"
NOTIONS = {"beta": "class-specific", "imbalance": "class-specific", "networks": "confidence", "dirichlet": "confidence"}
SIZES = (30, 100, 200, 1000, 5000, 20_000)
MODELS = ("logistic", "bayes", "svc", "forest")
#: Samples that are drawn side by side.
SIDE = 25
GROUPS = ("tracks", "calibrated", "mixtures", "hostile")


@dataclass(frozen=True)
class OfMixture:
    """A model of normal mixtures, by its confidences."""

    seed: int
    model: str
    track = "mixtures"

    @property
    def name(self) -> str:
        return f"{self.model} {self.seed}"

    @cached_property
    def pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and classes."""
        rng = np.random.default_rng([77, self.seed])
        classes, features = (2, 5, 2, 7)[self.seed % 4], (2, 5, 7, 2, 7)[self.seed % 5]
        mixture = ClassMixture.draw(features, classes, rng, low=(-1.0, 0.0)[self.seed % 2])
        predict = train(self.model, *training_set(mixture, 300, rng), random_state=self.seed)
        x, y = mixture.sample(100_000, rng)
        return np.asarray(predict(x)), y.astype(int)

    @cached_property
    def _truths(self) -> Any:
        return of_pool(*self.pool)

    def truth(self, notion: str, norm: float) -> Any:
        return self._truths[notion]

    def sample(self, n_sets: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.integers(len(self.pool[1]), size=(n_sets, n))
        return self.pool[0][rows], self.pool[1][rows]

    def problems(self, scores: np.ndarray, labels: np.ndarray, notion: str) -> tuple[Problem, ...]:
        right = scores.argmax(axis=-1) == labels
        return (Problem.samples(scores.max(axis=-1), right, domain=(1 / scores.shape[-1], 1.0)),)


@dataclass(frozen=True)
class Hostile:
    """A truth of `assumptions`."""

    told: Any
    track = "hostile"

    @property
    def name(self) -> str:
        return str(self.told.name)

    def truth(self, notion: str, norm: float) -> ExactTruth:
        return ExactTruth(self.told.error)

    def sample(self, n_sets: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        drawn = [self.told.sample(n, rng) for _ in range(n_sets)]
        return np.stack([s for _, s in drawn]), np.stack([y for y, _ in drawn])

    def problems(self, scores: np.ndarray, labels: np.ndarray, notion: str) -> tuple[Problem, ...]:
        if scores.ndim == 2:
            return (Problem.samples(scores, labels),)
        return (Problem.samples(scores.max(axis=-1), scores.argmax(axis=-1) == labels, domain=(0.5, 1.0)),)


def ends(drawn: DrawnMaps, n: int) -> list[tuple[float, float]]:
    """Intervals of one sample by every way."""
    question = Question("class-specific", 1.0, LEVEL, (1,), (1.0,), "power", False, n, float(n))
    plain = (drawn.share * np.abs(drawn.gap)).sum(axis=-1)
    added = (drawn.missed * np.sign(drawn.gap)).sum(axis=-1) * (n + WAYS[SHIPPED]) / n  # type: ignore[operator]
    out = []
    for c in WAYS.values():
        powers = plain if c is None else plain + n / (n + c) * added
        out.append(credible(ErrorDraws(powers, drawn.log_odds, c is not None), question).interval)
    return [(low, high) for low, high in out]


@cache
def truths() -> dict[str, tuple[Any, str]]:
    """Truths by name, with the notion they are read under."""
    found: list[tuple[Any, str]] = []
    for track, notion in NOTIONS.items():
        found += [(d, notion) for d in distributions(track) if notion in d.notions]
    found += [(OfMixture(seed, model), "confidence") for seed in range(16) for model in MODELS]
    found += [(Hostile(t), "confidence") for t in (*TRUTHS, *MACHINES) if not t.name.startswith("by a rule")]
    return {f"{d.track}: {d.name}": (d, notion) for d, notion in found}


def some(truth: str, rows: int) -> bool:
    """Whether a truth is read in so many rows."""
    if truth.startswith("hostile"):
        return rows != 200 and not (truth == "hostile: calibrated" and rows == 30)
    return rows != 30 and not (truth.startswith("mixtures") and rows == 20_000)


def sample(truth: str, rows: int, seed: int) -> dict[str, float]:
    """Of samples side by side, how many intervals lie above the error and below it, and their mean width, by way."""
    d, notion = truths()[truth]
    error, estimator = max(d.truth(notion, 1).value, 0.0), cal.EmpiricalBayes()
    rng = np.random.default_rng([seed, 23, [*truths()].index(truth), rows])
    (problem,) = d.problems(*d.sample(SIDE, rows, rng), notion)
    found = []
    for r in range(SIDE):
        for _, ranked in rank_cells(estimator.summarize(problem[r : r + 1]), 1):
            drawn = draw_gaps(ranked, WIDE, laplace.fit(ranked, WIDE), DRAWS, rng)
            found.append([(error < low - 1e-12, error > high + 1e-12, high - low) for low, high in ends(drawn, rows)])
    out = {"error": error}
    for way, (above, below, width) in zip(WAYS, np.mean(found, axis=0), strict=True):
        out |= {f"{way}: above": float(above), f"{way}: below": float(below), f"{way}: width": float(width)}
    return out


def answer(kept: Kept) -> str:
    wrong = [(g, n) for g, n in _cells(kept) if g != "calibrated"]
    shipped, before = (_span([_covered(kept, g, n, way).mean() for g, n in wrong], 1) for way in (SHIPPED, "spread"))
    every = [(one, g, n) for g, n in wrong for one in zip(_covered(kept, g, n, SHIPPED), _of(kept, g, n), strict=True)]
    (least, worst), _, size = min(every, key=lambda one: one[0][0])
    wider = _span([_wider(kept, g, n, SHIPPED, "c = 100")[0] for g, n in wrong if n <= 1000])
    noisy = _span([_wider(kept, g, n, "c = 0", SHIPPED)[0] for g, n in wrong if n == 100])
    late = _span([_wider(kept, g, n, "c = 0", "c = 100")[0] for g, n in wrong if n >= 5000])
    return (
        f"With {SHIPPED}, 95 % intervals cover the error of models that are wrong in {shipped} % of samples by group "
        f"and size (least, {least:.0f} %, of {worst.columns['truth'][0]}, {size:,} rows), and those of before in "
        f"{before} %. Up to 1,000 rows they are {wider} times as wide as with c = 100. With c = 0 they are {noisy} "
        f"times as wide again in 100 rows; from 5,000 rows on {late} times as wide as with c = 100."
    )


def _span(values: list[float], digits: int = 2) -> str:
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low} to {high}"


def picture(kept: Kept) -> Figure:
    cells = _cells(kept)
    series = {way: [_wider(kept, g, n, way, "spread") for g, n in cells] for way in WAYS if way != "spread"}
    return dots([f"{g}, {n:,} rows" for g, n in cells], series, "width, as a ratio to that of before", 1.0)


def page(kept: Kept) -> Iterator[str]:
    yield "Intervals that cover the error, in per cent with standard errors over truths; *wider*: with c = 25, width as"
    yield "a ratio to that of before (geometric mean over truths). In the picture: the same ratio of every way."
    yield ""
    ways = ("spread", "c = 100", SHIPPED, "c = 0")
    yield from table(("truths", "rows", *ways, "wider"), _rows(kept, ways))


def _rows(kept: Kept, ways: Sequence[str]) -> Iterator[list[str]]:
    for group, n in _cells(kept):
        covered = [mean(_covered(kept, group, n, way), 1) for way in ways]
        yield [group, f"{n:,}", *covered, f"{_wider(kept, group, n, SHIPPED, 'spread')[0]:.2f}"]


def _cells(kept: Kept) -> list[tuple[str, int]]:
    """Groups and sizes that there are."""
    return [(group, n) for group in GROUPS for n in SIZES if _of(kept, group, n)]


def _of(kept: Kept, group: str, n: int) -> list[Kept]:
    """What is kept of each truth of a group."""
    names = [name for name in kept.distinct("truth") if some(name, n) and _group(kept, name) == group]
    return [kept.where(truth=name, rows=n) for name in names]


def _group(kept: Kept, truth: str) -> str:
    if kept.where(truth=truth)["error"][0] < 1e-9:
        return "calibrated"
    track = truth.partition(":")[0]
    return track if track in GROUPS else "tracks"


def _covered(kept: Kept, group: str, n: int, way: str) -> np.ndarray:
    """Of each truth, how many intervals cover the error, in per cent."""
    return np.array([100 * (1 - one[f"{way}: above"] - one[f"{way}: below"]).mean() for one in _of(kept, group, n)])


def _wider(kept: Kept, group: str, n: int, way: str, beside: str) -> tuple[float, float]:
    """Ratio of mean widths, as the geometric mean over truths, and its standard error."""
    ratios = [one[f"{way}: width"].mean() / one[f"{beside}: width"].mean() for one in _of(kept, group, n)]
    middle, error = estimate(np.log(ratios))
    return float(np.exp(middle)), float(np.exp(middle)) * error


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": [*truths()], "rows": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=4,
    quick=1,
    some=some,
    portion=lambda truth, rows: 1.0 if truth.startswith("hostile") else 0.5,
    at="docs/development/correction.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()

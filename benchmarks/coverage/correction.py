"""How much of what drawn maps miss of the outcomes an interval of the default should add: coverage and width.

    python -m benchmarks.coverage.correction [--repetitions 12] [--jobs 2] [--write FILE]

A way is a share n / (n + c) of the correction, whose draws are taken as they are; "spread" is the posterior alone,
spread about its median by a factor that was fitted, as it shipped before. Tracks are those of the known-truth
benchmark, on which the choice was made with other seeds; mixtures (means in [-1, 1] or [0, 1], models trained on 300
rows, truths of 100,000 labelled rows) and the truths of `assumptions` played no part but for a look at them.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import calibrant as cal
from calibrant.benchmark.mixtures import ClassMixture, train, training_set
from calibrant.benchmark.tracks import ExactTruth, distributions
from calibrant.data.problem import Problem
from calibrant.data.writing import write_text
from calibrant.estimators import laplace
from calibrant.estimators.base import ErrorDraws
from calibrant.estimators.empirical_bayes import WIDE, rank_cells
from calibrant.estimators.laplace_draws import DrawnMaps, draw_gaps
from calibrant.measure.posterior import credible
from calibrant.measure.question import Question

from .. import arguments
from ..arena.truth import of_pool
from .assumptions import MACHINES, TRUTHS

DRAWS, LEVEL = 800, 0.95
#: The c of the share n / (n + c); None for the posterior alone, spread.
WAYS: dict[str, float | None] = {"spread": None, "c = 100": 100.0, "c = 50": 50.0, "c = 25": 25.0, "c = 0": 0.0}
SHIPPED = 25.0
NOTIONS = {"beta": "class-specific", "imbalance": "class-specific", "networks": "confidence", "dirichlet": "confidence"}
SIZES = (100, 200, 1000, 5000, 20_000)


@dataclass
class OfMixture:
    """A model of normal mixtures, by its confidences."""

    seed: int
    model: str
    found: tuple[np.ndarray, np.ndarray] | None = None
    track = "mixtures"
    calibrated = False

    @property
    def name(self) -> str:
        return f"{self.model} {self.seed}"

    @property
    def pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and classes, made once where they are first asked for: a worker's, all sizes of a model."""
        if self.found is None:
            rng = np.random.default_rng([77, self.seed])
            classes, features = (2, 5, 2, 7)[self.seed % 4], (2, 5, 7, 2, 7)[self.seed % 5]
            mixture = ClassMixture.draw(features, classes, rng, low=(-1.0, 0.0)[self.seed % 2])
            predict = train(self.model, *training_set(mixture, 300, rng), random_state=self.seed)
            x, y = mixture.sample(100_000, rng)
            self.found = np.asarray(predict(x)), y.astype(int)
        return self.found

    def truth(self, notion: str, norm: float) -> Any:
        return of_pool(*self.pool)[notion]

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

    @property
    def calibrated(self) -> bool:
        return self.name == "calibrated"

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
    added = (drawn.missed * np.sign(drawn.gap)).sum(axis=-1) * (n + SHIPPED) / n
    out = []
    for c in WAYS.values():
        powers = plain if c is None else plain + n / (n + c) * added
        out.append(credible(ErrorDraws(powers, drawn.log_odds, c is not None), question).interval)
    return [(low, high) for low, high in out]


def cells(d: Any, notion: str, sizes: tuple[int, ...], repetitions: int) -> list[tuple[str, str, int, np.ndarray]]:
    """Misses below, misses above and width, (ways, 3), means over the samples of a distribution and each size."""
    truth, estimator, out = max(d.truth(notion, 1).value, 0.0), cal.EmpiricalBayes(), []
    kind = "hostile: " + d.name if d.track == "hostile" else d.track + (", calibrated" if truth < 1e-9 else "")
    for n in sizes:
        rng, found = np.random.default_rng([23, zlib.crc32(f"{d.track} {d.name} {notion} {n}".encode())]), []
        (problem,) = d.problems(*d.sample(repetitions, n, rng), notion)
        for r in range(repetitions):
            for _, ranked in rank_cells(estimator.summarize(problem[r : r + 1]), 1):
                drawn = draw_gaps(ranked, WIDE, laplace.fit(ranked, WIDE), DRAWS, rng)
                found.append([(truth < low - 1e-12, truth > high + 1e-12, high - low) for low, high in ends(drawn, n)])
        out.append((kind, d.name, n, np.mean(found, axis=0)))
    return out


def table(read_cells: list[tuple[str, str, int, np.ndarray]]) -> str:
    """Coverage with its standard error over distributions (over samples of one), the lowest, and the mean width."""
    rows = ["| truths | n | how many |" + "".join(f" {way} |" for way in WAYS), "|---|---:|---:|" + "---:|" * len(WAYS)]
    grouped = defaultdict(list)
    for kind, _, n, read in read_cells:
        grouped[kind, n].append(read)
    for (kind, n), many in sorted(grouped.items(), key=lambda one: (one[0][0].startswith("hostile"), one[0])):
        read, line = np.array(many), f"| {kind.removeprefix('hostile: ')} | {n} | {len(many)} |"
        held = 1 - read[..., 0] - read[..., 1]
        for w in range(len(WAYS)):
            spread = (
                f" ± {held[:, w].std(ddof=1) / np.sqrt(len(many)):.3f}, {held[:, w].min():.2f}" if len(many) > 1 else ""
            )
            line += f" {held[:, w].mean():.3f}{spread}; {read[:, w, 2].mean():.4f} |"
        rows.append(line)
    return "\n".join(rows)


def main() -> None:
    options = arguments.parser(__doc__, repetitions=12, jobs=2, write=True).parse_args()
    often, work = options.repetitions, []
    for track, notion in NOTIONS.items():
        work += [(d, notion, SIZES, often) for d in distributions(track) if notion in d.notions]
    models = ("logistic", "bayes", "svc", "forest")
    work += [(OfMixture(seed, model), "confidence", SIZES[:4], often) for seed in range(16) for model in models]
    hostile = [Hostile(t) for t in (*TRUTHS, *MACHINES) if not t.name.startswith("by a rule")]
    work += [(d, "confidence", (30, 100, 1000, 5000, 20_000), 8 * often) for d in hostile]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        many = Parallel(n_jobs=options.jobs, verbose=1)(delayed(cells)(*one) for one in work)
    found = [one for each in many for one in each]
    intro = Path(__file__).with_name("correction_intro.md").read_text(encoding="utf-8")
    text = intro.format(repetitions=often, often=8 * often, table=table(found))
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()

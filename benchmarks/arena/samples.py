"""Samples of the arena and of mixtures, side by side: what candidates for the default are judged on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.benchmark import Config
from calibrant.benchmark.config import Distribution
from calibrant.benchmark.experiment import Store
from calibrant.benchmark.pool import NOTIONS, Pool, truth_of
from calibrant.data.problem import Problem

from .reading import Experiment, draw, experiments
from .truth import signs

SIZES = (30, 100, 300, 1000, 3000)
#: Classes above which fewer samples are drawn for class-wise errors.
MANY = 7


@dataclass(frozen=True, eq=False)
class Case:
    """Samples of one size of one source and notion.

    Attributes
    ----------
    group : str
        ``"mixtures"``, ``"tabular"`` or ``"networks"``.
    problems : list of (scores, outcomes), each (R, n)
        One for the confidence, one a class for the class-wise error.
    truth, doubt : float
        The calibration error, and its standard error.
    side : ndarray of shape (R,) or None
        What an oracle gives that knows on which side every score is wrong; None where it is not worth knowing.
    """

    group: str
    notion: str
    size: int
    domain: tuple[float, float]
    problems: list[tuple[np.ndarray, np.ndarray]]
    truth: float
    doubt: float
    side: np.ndarray | None = None

    def tables(self) -> Iterator[Problem]:
        """Problems that estimators read, one a class."""
        for scores, outcomes in self.problems:
            yield Problem.samples(scores, outcomes, domain=self.domain, eps=float(np.finfo(scores.dtype).eps))


@dataclass(frozen=True)
class Source:
    """What cases come from: its name, the kin it belongs to, and how to draw them."""

    name: str
    kin: str
    held: Any
    repetitions: int

    def cases(self) -> Iterator[Case]:
        """All notions and sizes."""
        if isinstance(self.held, Experiment):
            yield from of_experiment(self.held, range(self.repetitions), most=MANY, sides=True)
        else:
            store, one = self.held
            yield from of_mixture(store.config, one, store.load_pool(one), self.repetitions)


def mixtures_of(mode: str, seed: int, many: int) -> Config:
    """The mixtures of a seed, so many for each number of classes and dimensions."""
    sizes = (30, 120, 250, 500, 1000, 3000)
    return Config(mode, seed, mixtures=many, trainings=1, pool=400_000, rows=150_000, sizes=sizes, sets=50)


def arena(half: str, cache: Path, repetitions: int) -> Iterator[Source]:
    """Experiments of a half."""
    for one in experiments(half, cache=cache):
        yield Source(one.name, one.kin, one, repetitions)


def mixtures(folder: Path, repetitions: int) -> Iterator[Source]:
    """Score distributions of a run of the benchmark that kept its predictions."""
    store = Store.existing(folder)
    for one in store.config.distributions:
        if store.predictions(one).exists():
            kin = f"c{one.classes}-d{one.dimensions}-m{one.mixture}"
            yield Source(f"{folder.name}.{one.name}", kin, (store, one), repetitions)


def of_mixture(config: Config, one: Distribution, pool: Pool, repetitions: int) -> Iterator[Case]:
    """All notions and sizes of a score distribution."""
    winner = pool.scores.argmax(axis=1)
    top = pool.scores.max(axis=1)
    for size in config.sizes:
        rows = config.rows_of(size)[:repetitions]
        for notion in NOTIONS:
            truth = truth_of(pool.truth, notion, 1).truth
            if notion == "confidence":
                problems, low = [(top[rows], (winner == pool.labels)[rows])], 1 / one.classes
            else:
                problems = [(pool.scores[:, k][rows], (pool.labels == k)[rows]) for k in range(one.classes)]
                low = 0.0
            yield Case("mixtures", notion, size, (low, 1.0), problems, truth, 0.0)


def of_experiment(
    one: Experiment, seeds: Sequence[int], *, most: float = np.inf, sides: bool = False
) -> Iterator[Case]:
    """All notions and sizes; of more classes than ``most``, class-wise samples of a fifth of the seeds."""
    group = "networks" if one.kind == "network" else "tabular"
    known = None
    if sides and one.pool:
        winner = one.y_prob.argmax(axis=1)
        score, right = one.y_prob.max(axis=1), (winner == one.y_true).astype(float)
        known = signs(score, right, 0) * (right - score)
    for size in SIZES:
        if size > one.largest:
            continue
        for notion in ("confidence", "classwise"):
            if notion not in one.truths:
                continue
            many = notion == "classwise" and one.n_classes > most
            used = seeds[: max(2, len(seeds) // 5)] if many else seeds
            drawn = [draw(one, size, seed, notion) for seed in used]
            p, y = np.stack([s.y_prob for s in drawn]), np.stack([s.y_true for s in drawn])
            truth = one.truths[notion]
            side = None
            if notion == "confidence":
                problems, low = [(p.max(axis=-1), p.argmax(axis=-1) == y)], 1 / one.n_classes
                if known is not None:  # the rows that `draw` takes
                    rows = [
                        np.random.default_rng([seed, size]).choice(len(known), size, replace=False) for seed in used
                    ]
                    side = known[np.stack(rows)].mean(axis=1)
            else:
                classes = range(one.n_classes) if one.n_classes > 2 else (1,)
                problems, low = [(p[..., k], y == k) for k in classes], 0.0
            yield Case(group, notion, size, (low, 1.0), problems, truth.value, truth.standard_error, side)

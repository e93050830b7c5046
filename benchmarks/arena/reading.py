"""What the arena gives: experiments, and samples of them with known calibration errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .halves import FAMILY, HALVES
from .store import CACHE, Entry
from .truth import Truth

#: A sample of a pool is at most this part of it, of other rows at most that.
PART_OF_POOL, PART_OF_ROWS = 5, 2


@dataclass(frozen=True, eq=False)
class Experiment:
    """Held-out predictions of a model on a data set, and their calibration errors.

    Attributes
    ----------
    data, model : str
    kind : {"tabular", "network"}
        One of the ten models, or a network that is one whole model.
    half : {"choosing", "reporting"}
    kin : str
        What data sets that are related have in common: experiments of one kin are not independent.
    y_prob : ndarray of shape (n, K), float32
    y_true : ndarray of shape (n,)
        Real classes, 0 … K - 1.
    truths : mapping
        Of ``"confidence"``, ``"classwise"`` and ``"class-specific:k"`` (of two classes: 1). A pool's have standard
        errors; where labels are redrawn they are exact, and three classes and more have no class-wise one.
    maps : mapping
        By notion, the probability that labels are drawn from, at every row; empty for a pool.
    """

    data: str
    model: str
    kind: str
    half: str
    kin: str
    y_prob: np.ndarray
    y_true: np.ndarray
    truths: Mapping[str, Truth]
    maps: Mapping[str, np.ndarray]

    def __repr__(self) -> str:
        n, k = self.y_prob.shape
        return f"<{self.name}, {self.kind}, {self.half}: {n} rows, {k} classes, {'pool' if self.pool else 'redrawn'}>"

    @property
    def name(self) -> str:
        """Data set and model."""
        return f"{self.data}.{self.model}"

    @property
    def n_classes(self) -> int:
        """K."""
        return self.y_prob.shape[1]

    @property
    def pool(self) -> bool:
        """Whether samples have the rows' own labels."""
        return not self.maps

    @property
    def largest(self) -> int:
        """Most rows of a sample: a fifth of a pool, half of other rows."""
        return len(self.y_true) // (PART_OF_POOL if self.pool else PART_OF_ROWS)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of an experiment, (n,) and (n, K), all labels that there are, and the calibration error behind them."""

    y_true: np.ndarray
    y_prob: np.ndarray
    labels: list[int]
    truth: Truth


def experiments(
    half: str,
    *,
    kind: str | None = None,
    pools: bool | None = None,
    cache: Path = CACHE,
    only: str = "",
    truths: bool = True,
) -> Iterator[Experiment]:
    """All that is built of a half, in the order of names.

    ``kind``: ``"tabular"`` or ``"network"``; ``pools``: True for pools of at least 5,000 rows, False for what has
    labels redrawn; ``only``: a part of the name; without ``truths`` none are read, nor need they be built.
    """
    if half not in HALVES:
        raise ValueError(f"half must be one of {', '.join(map(repr, HALVES))}; got {half!r}")
    for path in sorted((cache / ("truths" if truths else "predictions")).glob("*.npz")):
        data, model = path.stem.split(".")
        if FAMILY[data].half != half or only not in path.stem:
            continue
        entry = Entry(cache, data, model)
        what = str(entry.about()["kind"])
        known, maps = entry.read_truths() if truths else ({}, {})
        if kind not in (None, what) or pools not in (None, not maps):
            continue
        p, y = entry.read_predictions()
        yield Experiment(data, model, what, half, FAMILY[data].kin, p, y, known, maps)


def draw(experiment: Experiment, n: int, seed: int, notion: str = "confidence") -> Sample:
    """n rows without replacement: with their own labels (a pool), or with labels drawn from the map of the notion.

    Labels drawn for one notion obey its map alone; the error of another notion is then not known.
    """
    if notion not in experiment.truths:
        known = ", ".join(map(repr, experiment.truths))
        raise ValueError(f"notion must be one of {known} for {experiment.name}; got {notion!r}")
    if not 1 <= n <= experiment.largest:
        raise ValueError(f"n must be between 1 and {experiment.largest} for {experiment.name}; got {n!r}")
    rng = np.random.default_rng([seed, n])
    rows = rng.choice(len(experiment.y_true), n, replace=False)
    p = experiment.y_prob[rows]
    y = experiment.y_true[rows] if experiment.pool else _redrawn(p, experiment.maps[notion][rows], notion, rng)
    return Sample(y, p, list(range(experiment.n_classes)), experiment.truths[notion])


def _redrawn(p: np.ndarray, chance: np.ndarray, notion: str, rng: np.random.Generator) -> np.ndarray:
    """The class that a notion asks about with its chance; else another, as likely as the predictions say."""
    n, n_classes = p.shape
    if notion == "confidence":
        asked = p.argmax(axis=1)
    else:
        _, _, label = notion.partition(":")
        asked = np.full(n, int(label or 1))
    others = p.astype(np.float64)
    others[np.arange(n), asked] = 0.0
    # Where nothing is left for the others they are equally likely.
    others += np.where(others.sum(axis=1, keepdims=True) > 0, 0.0, 1.0)
    others[np.arange(n), asked] = 0.0
    running = others.cumsum(axis=1)
    place = rng.random(n) * running[:, -1]
    other = np.minimum((running <= place[:, None]).sum(axis=1), n_classes - 1)
    return np.where(rng.random(n) < chance, asked, other)

"""Configuration of a run: mixtures, models, sizes and seeds. Runs with equal configurations are equal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from typing import Any

import numpy as np

from ..data.checks import check_choice, check_int, check_some, is_whole
from ..data.types import IntArray

MODES = ("corrected", "as-published")
MODELS = ("logistic", "bayes", "svc", "forest")
#: Version of the format: changes whenever the files of a run, or the numbers drawn for it, change their meaning.
FORMAT = 1
# Purposes of seeds: the third word after the mixture's own three.
_MIXTURE, _TRAINING, _MODEL, _POOL = range(4)


def check_sizes(name: str, sizes: Sequence[Any], least: int = 1) -> None:
    """Check sizes of evaluation sets: different whole numbers of rows."""
    if not sizes or not all(is_whole(n) and n >= least for n in sizes) or len(set(sizes)) != len(sizes):
        raise ValueError(f"{name} must be different numbers of rows, each at least {least}; got {sizes!r}")


def described(config: Any, *packages: str, **about: Any) -> dict[str, Any]:
    """A configuration and the versions of packages that its numbers depend on, for JSON."""
    versions = {name: version(name) for name in packages}
    plain: dict[str, Any] = json.loads(json.dumps({**about, **asdict(config), "versions": versions}, default=int))
    return plain


def paper_sizes(steps: int = 20) -> tuple[int, ...]:
    """Sizes of evaluation sets: ``steps`` steps of a logarithmic grid from 30 to 5000."""
    return tuple(int(n) for n in np.geomspace(30, 5000, steps).round())


@dataclass(frozen=True, order=True)
class Distribution:
    """One score distribution: a mixture, a training draw and a model.

    Parameters
    ----------
    classes : int
        Number C of classes.
    dimensions : int
        Number D of dimensions.
    mixture : int
        Number of the mixture among those with C classes in D dimensions.
    training : int
        Number of the training draw.
    model : str
        Name of the model.

    See Also
    --------
    calibrant.benchmark.Config : The experiment that it belongs to.

    Examples
    --------
    >>> from calibrant.benchmark import Distribution
    >>> Distribution(2, 5, 0, 1, "bayes").name
    'c2-d5-m0-t1-bayes'
    """

    classes: int
    dimensions: int
    mixture: int
    training: int
    model: str

    @property
    def name(self) -> str:
        """Stable identifier, used for file names."""
        return f"c{self.classes}-d{self.dimensions}-m{self.mixture}-t{self.training}-{self.model}"


@dataclass(frozen=True)
class Config:
    """The experiment of Posocco & Bonnefoy (2021, §5) by default: 45 mixtures × 3 training draws × 4 models.

    Parameters
    ----------
    mode : {"corrected", "as-published"}, default "corrected"
        Means of the mixtures are uniform on [0, 1] as in the paper's text, or on [-1, 1] as in its code. The curves of
        each mode are in :mod:`calibrant.benchmark.curves`.
    seed : int, default 0
        Root of all seeds.
    classes, dimensions : tuple of int, default (2, 5, 7)
        Numbers C of classes and D of dimensions.
    mixtures : int, default 5
        Number of mixtures for each pair of C and D.
    trainings : int, default 3
        Number of training draws for each mixture.
    models : tuple of str, default ("logistic", "bayes", "svc", "forest")
        Names of the models.
    train_size : int, default 300
        Number of points a model is trained on.
    pool : int, default 2_000_000
        Number of hold-out rows behind the truths.
    rows : int, default 1_000_000
        Number of first rows of the pool, from which evaluation sets are cut.
    sizes : tuple of int, optional
        Numbers of rows of an evaluation set; default 20 steps of a logarithmic grid from 30 to 5000.
    sets : int, default 200
        Number of evaluation sets per size; they are disjoint.

    See Also
    --------
    calibrant.benchmark.run : Runs the experiment.
    calibrant.benchmark.Distribution : One of its score distributions.

    Examples
    --------
    >>> from calibrant.benchmark import Config
    >>> len(Config().shuffled), len(Config.quick().shuffled)
    (540, 36)
    """

    mode: str = "corrected"
    seed: int = 0
    classes: tuple[int, ...] = (2, 5, 7)
    dimensions: tuple[int, ...] = (2, 5, 7)
    mixtures: int = 5
    trainings: int = 3
    models: tuple[str, ...] = MODELS
    train_size: int = 300
    pool: int = 2_000_000
    rows: int = 1_000_000
    sizes: tuple[int, ...] = paper_sizes()
    sets: int = 200

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, MODES)
        check_int("seed", self.seed, 0)
        check_some("models", self.models, MODELS)
        if min(self.classes, default=0) < 2 or min(self.dimensions, default=0) < 1:
            raise ValueError(
                f"classes must be numbers >= 2 and dimensions numbers >= 1; got {self.classes!r}, {self.dimensions!r}"
            )
        for field in ("mixtures", "trainings", "sets"):
            check_int(field, getattr(self, field), 1)
        check_sizes("sizes", self.sizes)
        if self.train_size < 10 * max(self.classes):
            raise ValueError(f"train_size must be at least ten times the classes; got {self.train_size}")
        if not max(self.sizes) * self.sets <= self.rows <= self.pool:
            raise ValueError(
                f"rows must hold {self.sets} sets of {max(self.sizes)} rows and lie within the pool; got "
                f"rows={self.rows}, pool={self.pool}"
            )

    @classmethod
    def quick(cls, mode: str = "corrected", seed: int = 0) -> Config:
        """A quick version that takes minutes: one mixture for each C and D, one training draw, 7 sizes, 60 sets.

        Parameters
        ----------
        mode : {"corrected", "as-published"}, default "corrected"
            The mode, as for the full experiment.
        seed : int, default 0
            Root of all seeds.
        """
        return cls(
            mode=mode,
            seed=seed,
            mixtures=1,
            trainings=1,
            pool=400_000,
            rows=180_000,
            sizes=(30, 60, 120, 250, 500, 1000, 3000),
            sets=60,
        )

    @property
    def distributions(self) -> tuple[Distribution, ...]:
        """Every score distribution, sorted."""
        every = (
            Distribution(c, d, m, t, model)
            for c in self.classes
            for d in self.dimensions
            for m in range(self.mixtures)
            for t in range(self.trainings)
            for model in self.models
        )
        return tuple(sorted(every))

    @property
    def shuffled(self) -> tuple[Distribution, ...]:
        """The same in the order of work: random, so that an unfinished run is a fair sample of the experiment."""
        every = self.distributions
        order = np.random.default_rng(np.random.SeedSequence([self.seed, 540])).permutation(len(every))
        return tuple(every[i] for i in order)

    def rng_of_mixture(self, d: Distribution) -> np.random.Generator:
        """Generator of the mixture's parameters: the same for its training draws and models."""
        return self._rng(d, _MIXTURE)

    def rng_of_training(self, d: Distribution) -> np.random.Generator:
        """Generator of the training draw: the same for all models."""
        return self._rng(d, _TRAINING, d.training)

    def model_seed(self, d: Distribution) -> int:
        """``random_state`` of the model."""
        return int(self._rng(d, _MODEL, d.training, MODELS.index(d.model)).integers(2**31))

    def rng_of_pool(self, d: Distribution) -> np.random.Generator:
        """Generator of the hold-out pool, its own for each distribution."""
        return self._rng(d, _POOL, d.training, MODELS.index(d.model))

    def _rng(self, d: Distribution, *words: int) -> np.random.Generator:
        key = [self.seed, MODES.index(self.mode), d.classes, d.dimensions, d.mixture, *words]
        return np.random.default_rng(np.random.SeedSequence(key))

    def rows_of(self, size: int) -> IntArray:
        """Rows of the evaluation sets of one size, shape (sets, size).

        They are consecutive and disjoint. Each size starts at another row (and wraps around at the end), so that
        sizes share as few rows as possible.
        """
        start = self.sizes.index(size) * self.rows // len(self.sizes)
        return (start + np.arange(self.sets * size).reshape(self.sets, size)) % self.rows

    def to_dict(self) -> dict[str, Any]:
        """The configuration and the versions that its numbers depend on, for JSON."""
        return described(self, "numpy", "scipy", "scikit-learn", format=FORMAT)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Config:
        """Inverse of :meth:`to_dict`, without the versions."""
        known: dict[str, Any] = {f.name: data[f.name] for f in fields(cls)}
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
        return cls(**values)

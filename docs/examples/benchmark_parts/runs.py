"""The data of a run of the mixtures, finished or not, as arrays of the distributions that hold everything needed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from calibrant.benchmark import OURS, Config, load, paper_curves
from calibrant.benchmark.experiment import Store
from calibrant.benchmark.runner import DISTRIBUTION, MIXTURE

from .stats import Number, Resampler, median

DEFAULT = "empirical-bayes"
NOTIONS = {"confidence": "Confidence", "classwise": "Class-wise"}


@dataclass(frozen=True)
class Run:
    """Results of the distributions that hold the paper's 15 curves and, where any holds it, the default.

    Estimators that some of these distributions lack are left out, and named in ``lacking``.
    """

    folder: Path
    config: Config
    versions: dict[str, str]
    definitions: dict[str, str]
    frame: pl.DataFrame
    estimators: tuple[str, ...]
    lacking: tuple[str, ...]

    @classmethod
    def read(cls, folder: str | Path, also: tuple[str, ...] = ()) -> Run:
        """Read the folder of a run; ValueError when no distribution in it is complete.

        Only of distributions that hold the estimators named in ``also``.
        """
        folder = Path(folder)
        store = Store.existing(folder)
        config = store.config
        versions = json.loads((folder / "config.json").read_text(encoding="utf-8"))["versions"]
        frame = load(folder)
        curves = tuple(paper_curves(config.mode))
        seen = frame["estimator"].unique().to_list()
        needed = [*curves, *([DEFAULT] if DEFAULT in seen else []), *also]
        cells = len(config.sizes) * len(NOTIONS)
        whole = frame.group_by(*DISTRIBUTION, "estimator").len().filter(pl.col("len") == cells)
        complete = (
            whole.filter(pl.col("estimator").is_in(needed))
            .group_by(DISTRIBUTION)
            .len()
            .filter(pl.col("len") == len(needed))
            .select(DISTRIBUTION)
        )
        if complete.height == 0:
            raise ValueError(f"{folder} holds no distribution that was read by all of {', '.join(needed)}")
        counts = dict(whole.join(complete, on=DISTRIBUTION).group_by("estimator").len().iter_rows())
        read = {name for name, n in counts.items() if n == complete.height}
        order = dict.fromkeys([*curves, DEFAULT, *OURS, *store.definitions()])
        kept = tuple(name for name in order if name in read)
        frame = frame.join(complete, on=DISTRIBUTION).filter(pl.col("estimator").is_in(kept))
        lacking = tuple(sorted(set(seen) - set(kept)))
        definitions = {name: meaning for name, meaning in store.definitions().items() if name in kept}
        return cls(folder, config, versions, definitions, frame, kept, lacking)

    @property
    def curves(self) -> tuple[str, ...]:
        """The paper's 15."""
        return tuple(paper_curves(self.config.mode))

    @property
    def has_default(self) -> bool:
        """Whether the default is among the estimators."""
        return DEFAULT in self.estimators

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes, ascending."""
        return tuple(sorted(self.config.sizes))

    @cached_property
    def distributions(self) -> pl.DataFrame:
        """The complete distributions, sorted: the order of every array's last axis but one."""
        return self.frame.select(DISTRIBUTION).unique().sort(DISTRIBUTION)

    @property
    def n_distributions(self) -> int:
        """Number of complete distributions."""
        return self.distributions.height

    def late(self) -> Run | None:
        """The distributions that also hold the estimators that were left out; None where there are none."""
        try:
            return Run.read(self.folder, self.lacking) if self.lacking else None
        except ValueError:
            return None

    @property
    def n_wanted(self) -> int:
        """Number of distributions of the finished run."""
        return len(self.config.distributions)

    @property
    def finished(self) -> bool:
        """Whether every distribution is complete."""
        return self.n_distributions == self.n_wanted

    @cached_property
    def clusters(self) -> np.ndarray:
        """Number of the mixture of every distribution."""
        ranks = self.distributions.select(pl.struct(MIXTURE).rank("dense")).to_series()
        return ranks.to_numpy().astype(np.int64) - 1

    @cached_property
    def resampler(self) -> Resampler:
        """Bootstrap over mixtures, the same draws for everything on the page."""
        return Resampler(self.clusters)

    @cached_property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {}

    def values(self, measure: str, notion: str) -> np.ndarray:
        """A column of the results as an array of shape (sizes, distributions, estimators)."""
        if measure not in self._arrays:
            place = pl.col("estimator").replace_strict({name: j for j, name in enumerate(self.estimators)})
            ordered = self.frame.with_columns(place.alias("place")).sort("notion", "size", *DISTRIBUTION, "place")
            shape = (len(NOTIONS), len(self.sizes), self.n_distributions, len(self.estimators))
            self._arrays[measure] = ordered[measure].to_numpy().astype(np.float64).reshape(shape)
        return self._arrays[measure][sorted(NOTIONS).index(notion)]

    def at(self, size: int) -> int:
        """Index of a size."""
        return self.sizes.index(size)

    def columns(self, names: tuple[str, ...] | list[str]) -> list[int]:
        """Indices of estimators."""
        return [self.estimators.index(name) for name in names]

    def of(self, measure: str, notion: str, name: str) -> np.ndarray:
        """A column for one estimator, shape (sizes, distributions)."""
        return self.values(measure, notion)[:, :, self.estimators.index(name)]

    def medians(self, measure: str, notion: str) -> np.ndarray:
        """Medians over distributions, shape (sizes, estimators)."""
        return np.stack([median(values) for values in self.values(measure, notion)])

    def relative_bias(self, notion: str) -> np.ndarray:
        """Bias as a share of the truth, shape (sizes, distributions, estimators)."""
        truth = self.values("truth", notion)
        return np.divide(self.values("bias", notion), truth, out=np.full(truth.shape, np.nan), where=truth > 0)

    def log_ratio(self, notion: str, name: str, other: str) -> np.ndarray:
        """Log of the ratio of two estimators' 95th percentiles of the error, shape (sizes, distributions).

        Relative or absolute is the same here: both estimators have the same truth.
        """
        values = self.values("abs_p95", notion)
        a, b = (values[:, :, self.estimators.index(n)] for n in (name, other))
        known = (a > 0) & (b > 0)
        return np.where(known, np.log(np.where(known, a, 1.0) / np.where(known, b, 1.0)), np.nan)

    def ratio(self, logs: np.ndarray) -> Number:
        """Geometric mean of a ratio over distributions, from its logs, shape (distributions,)."""
        return self.resampler.mean(logs).exp()


def logged(log: Path) -> tuple[float, int]:
    """Seconds of all calls that a run's log tells of, and their number; ValueError where it tells of none.

    It reads the lines of the logger ``calibrant.benchmark``. Each call counts from 1 anew; a call that was killed
    counts up to its last line.
    """
    lines = re.findall(r"benchmark: (\d+) of \d+ in (\d+) s", log.read_text(encoding="utf-8"))
    if not lines:
        raise ValueError(f"{log} holds no line 'benchmark: … of … in … s' of the logger calibrant.benchmark")
    ends = [float(s) for (_, s), (after, _) in zip(lines, [*lines[1:], ("1", "")], strict=True) if after == "1"]
    return sum(ends), len(ends)

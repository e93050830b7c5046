"""What the repository keeps of a run of the mixtures: medians over distributions, enough for the pictures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
from evidence_parts.pages import kept

from calibrant.benchmark import paper_curves

from .runs import DEFAULT


@dataclass(frozen=True)
class Summed:
    """The part of :class:`Run` that pictures ask for, from its small files."""

    frame: pl.DataFrame
    about: dict[str, Any]

    @classmethod
    def read(cls, summary: Path, config: Path) -> Summed:
        """Read a summary and the configuration of its run."""
        return cls(kept(summary), json.loads(config.read_text(encoding="utf-8")))

    @property
    def config(self) -> SimpleNamespace:
        """What was run."""
        return SimpleNamespace(**self.about["config"])

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

    @property
    def estimators(self) -> tuple[str, ...]:
        """All that read."""
        return tuple(self.about["estimators"])

    @property
    def n_distributions(self) -> int:
        """Distributions that are complete."""
        return int(self.about["distributions"])

    @property
    def n_wanted(self) -> int:
        """Distributions of the finished run."""
        return int(self.about["distributions_wanted"])

    @property
    def finished(self) -> bool:
        """Whether every distribution is complete."""
        return self.n_distributions == self.n_wanted

    def columns(self, names: tuple[str, ...] | list[str]) -> list[int]:
        """Indices of estimators."""
        return [self.estimators.index(name) for name in names]

    def medians(self, measure: str, notion: str) -> np.ndarray:
        """Medians over distributions, shape (sizes, estimators)."""
        one = self.frame.filter(pl.col("notion") == notion)
        wide = one.pivot(on="estimator", index="size", values=measure).sort("size")
        return np.asarray(wide.select(self.estimators).to_numpy())

"""From lines of runs to arrays over seeds: what validation chooses, and differences with intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from .settings import METHODS, SETTINGS

Line = dict[str, Any]
#: Points of validation accuracy that a choice may cost against XE.
ALLOWED = 1.0
#: Rows of a table: name, family, and whether a temperature is fitted on the validation rows afterwards.
ROWS = {
    "XE": ("XE", False),
    "XE, temperature": ("XE", True),
    "XE, stopped early": ("XE, stopped early", False),
    "XE, Laplace": ("XE, Laplace", False),
    "mixup": ("mixup", False),
    "FL-53": ("FL-53", False),
    "MMCE": ("MMCE", False),
    "KDE-XE": ("KDE-XE", False),
    "KDE-XE, temperature": ("KDE-XE", True),
}
#: Whether larger is better, and digits that are shown.
MEASURES = {
    "accuracy": (True, 1),
    "canonical plug-in": (False, 3),
    "canonical debiased": (False, 3),
    "class-wise": (False, 4),
    "top-label": (False, 3),
    "confidence": (False, 3),
    "log-loss": (False, 3),
    "Brier": (False, 3),
}


@dataclass(frozen=True, eq=False)
class Table:
    """A setting: measures of test rows, (seeds,), by row and measure; and the lines that validation chose."""

    setting: str
    seeds: list[int]
    values: dict[str, dict[str, np.ndarray]]
    chosen: dict[str, list[Line]]

    def difference(self, row: str, measure: str, to: str = "XE") -> Difference:
        """Of a row to another, seed by seed."""
        larger, digits = MEASURES[measure]
        return Difference(self.values[row][measure] - self.values[to][measure], larger, digits)


@dataclass(frozen=True, eq=False)
class Difference:
    """Paired differences (seeds,)."""

    values: np.ndarray
    larger_is_better: bool
    digits: int

    @property
    def interval(self) -> tuple[float, float]:
        """Of the mean, at 95 %, by Student's t."""
        n = len(self.values)
        half = student.ppf(0.975, n - 1) * self.values.std(ddof=1) / np.sqrt(n)
        return float(self.values.mean() - half), float(self.values.mean() + half)

    @property
    def better(self) -> int:
        """Seeds in which the row is better."""
        return int(((self.values > 0) if self.larger_is_better else (self.values < 0)).sum())

    @property
    def verdict(self) -> str:
        """``"better"``, ``"worse"``, or ``""`` where the interval holds 0."""
        low, high = self.interval
        if low <= 0 <= high:
            return ""
        return "better" if (low > 0) == self.larger_is_better else "worse"

    def __str__(self) -> str:
        low, high = self.interval
        d = self.digits
        text = f"{self.values.mean():+.{d}f} [{low:+.{d}f}, {high:+.{d}f}]".replace("-", "−")
        text += f", {self.better}/{len(self.values)}"
        return f"**{text}**" if self.verdict == "better" else f"*{text}*" if self.verdict == "worse" else text


def by_canonical(line: Line) -> float:
    """The canonical error of validation rows, debiased: what is small by noise is small for all methods alike."""
    return float(line["validation"]["canonical debiased"])


def by_log_loss(line: Line) -> float:
    """The log-loss of validation rows."""
    return float(line["validation"]["log-loss"])


def choose(lines: list[Line], reference: Line, rule: Callable[[Line], float]) -> Line:
    """The least by a rule among those that cost no more validation accuracy than is allowed (or all, if none)."""
    least = reference["validation"]["accuracy"] - ALLOWED
    allowed = [line for line in lines if line["validation"]["accuracy"] >= least]
    return min(allowed or lines, key=rule)


def tables(lines: list[Line], rule: Callable[[Line], float] = by_canonical) -> list[Table]:
    """All settings that have two seeds with every method."""
    found: dict[str, dict[int, dict[str, list[Line]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for line in lines:
        found[line["setting"]][line["seed"]][line["family"]].append(line)
    out = []
    for setting in map(str, SETTINGS):
        whole = {
            seed: families
            for seed, families in sorted(found[setting].items())
            if sum(map(len, families.values())) == len(METHODS)
        }
        if len(whole) > 1:
            out.append(_table(setting, whole, rule))
    return out


def _table(setting: str, whole: dict[int, dict[str, list[Line]]], rule: Callable[[Line], float]) -> Table:
    chosen = {
        family: [choose(families[family], families["XE"][0], rule) for families in whole.values()]
        for family, _ in ROWS.values()
    }
    values = {
        row: {
            measure: np.array([line["scaled" if scaled else "test"][measure] for line in chosen[family]])
            for measure in (*MEASURES, "plug-in if calibrated")
        }
        for row, (family, scaled) in ROWS.items()
    }
    return Table(setting, list(whole), values, chosen)

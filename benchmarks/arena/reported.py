"""Real models of the arena's reporting half, as cases of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from .build import make, tabular
from .halves import FAMILIES, GIVEN, REPORTING
from .models import MODELS as TRAINED
from .reading import Experiment, experiments
from .store import CACHE, Entry

DATA = tuple(name for family in FAMILIES if family.half == REPORTING for name in family.names)
#: Models that are trained on tables, and networks whose predictions are given.
MODELS = (*TRAINED, "given")
#: Data sets of fewer than 400 rows: with 100 to fit a calibrator they leave fewer than 300 to judge it.
SMALL = ("breast", "wine", "wine-sklearn", "heart", "ionosphere", "housevotes", "bands")


def some(data: str, model: str) -> bool:
    """Which combinations there are."""
    return (model == "given") == (data in GIVEN)


def large(data: str, model: str) -> bool:
    """Those of them that calibrators are judged on."""
    return some(data, model) and data not in SMALL


def here(data: str, model: str, *, truths: bool = True) -> bool:
    """Whether the arena has it."""
    entry = Entry(CACHE, data, model)
    return (entry.truths if truths else entry.predictions).exists()


@cache
def read(data: str, model: str, *, truths: bool = True) -> Experiment:
    """From the arena, where it is trained if need be; FileNotFoundError where given predictions are missing."""
    if model != "given" and not here(data, model, truths=truths):
        make(tabular(data, model), Entry(CACHE, data, model), truths=truths)
    for one in experiments(REPORTING, only=f"{data}.{model}", truths=truths):
        if one.name == f"{data}.{model}":
            return one
    raise FileNotFoundError(f"{data}.{model} is not in the arena: python -m benchmarks.arena.build --given FOLDER")


def over_families(values: np.ndarray, kin: Sequence[str]) -> tuple[float, float]:
    """A mean, and its standard error as that of a ratio of sums over families; NaN where there is only one."""
    each = np.array(kin)
    apart = np.array([(values[each == one] - values.mean()).sum() for one in np.unique(each)])
    n = len(apart)
    error = np.sqrt(n / (n - 1) * (apart**2).sum()) / values.size if n > 1 else np.nan
    return float(values.mean()), float(error)

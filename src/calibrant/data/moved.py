"""Modules that are importable under names of earlier versions: one table, and the importer that reads it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "calibrant"

#: Where a module, or what lies under it, is now.
MOVED = {
    "_checks": "data.checks",
    "_columns": "data.columns",
    "_convert": "data.convert",
    "_files": "data.writing",
    "_labels": "data.labels",
    "_logistic": "sums.logistic_fit",
    "_multiple": "judge.multiple",
    "_progress": "data.progress",
    "_rows": "data.weights",
    "_threads": "errors.threads",
    "_types": "data.types",
    "_validation": "data.validation",
    "belt": "judge.tests.belt",
    "belt.law": "judge.tests.belt.null",
    "benchmark.canonical.laws": "benchmark.canonical.vector_distributions",
    "benchmark.canonical.runner": "benchmark.canonical.canonical_runner",
    "benchmark.tracks.dirichlet": "benchmark.tracks.dirichlet_track",
    "benchmark.tracks.laws": "benchmark.tracks.score_mixtures",
    "benchmark.tracks.maps": "benchmark.tracks.true_maps",
    "binning": "sums",
    "binning.mapping": "sums.shares",
    "binning.moments": "sums.bins",
    "binning.quantile": "sums.quantiles",
    "calibrators.isotonic": "calibrators.monotone",
    "calibrators.reading": "calibrators.inputs",
    "calibrators.smooth": "calibrators.spline",
    "clinical": "judge.decisions.clinical",
    "comparing": "judge.models",
    "comparing.bins": "judge.models.residual_bins",
    "cost": "judge.decisions.cost",
    "curves": "measure.curves",
    "curves.bands": "measure.curves.band_kinds",
    "curves.build": "measure.curves.from_cells",
    "curves.isotonic": "measure.curves.corp",
    "datasets": "data.datasets",
    "decision_error": "judge.decisions.decision_error",
    "decisions": "judge.decisions.thresholds",
    "decomposition": "judge.decomposition",
    "density": "sums",
    "density.smooth": "sums.smoothing",
    "ece": "measure.ece",
    "errors.folds": "sums.folds",
    "estimation": "measure.estimation",
    "inference": "measure.inference",
    "inference.groups": "measure.inference.steps",
    "measure.decomposition": "judge.decomposition",
    "murphy": "measure.murphy",
    "notions": "data.notions",
    "plot.belt": "plot.belt_display",
    "plot.comparison": "plot.comparison_display",
    "plot.decisions": "plot.decision_display",
    "plot.display": "plot.reliability_display",
    "plot.grid": "plot.axes",
    "plot.maps": "plot.map_display",
    "plot.murphy": "plot.murphy_display",
    "plot.ranks": "plot.rank_display",
    "plot.simplex": "plot.simplex_display",
    "plot.subgroups": "plot.subgroup_display",
    "predictions": "data.predictions",
    "problem": "data.problem",
    "question": "measure.question",
    "reading": "data.tables",
    "reporting.build": "reporting.assemble",
    "reporting.compare": "reporting.comparing_calibrators",
    "reporting.frame": "data.frame",
    "results": "measure.result",
    "scores": "measure.scores",
    "significance": "judge.tests",
    "significance.adaptive": "judge.tests.adaptive_bins",
    "significance.cumulative": "judge.tests.cumulative_sums",
    "significance.kernel": "judge.tests.skce",
    "significance.sums": "judge.tests.from_sums",
    "squared": "measure.squared",
    "streaming": "measure.streaming",
    "subgroups": "judge.groups",
    "subgroups.groups": "judge.groups.membership",
    "subgroups.sums": "judge.groups.group_sums",
}


def _below() -> dict[str, str]:
    """Files that have another name in their new folder, by that folder: ``from calibrant.binning import moments``."""
    found = {}
    for old, now in MOVED.items():
        parent, _, leaf = old.rpartition(".")
        if parent in MOVED and f"{MOVED[parent]}.{leaf}" != now:
            found[f"{MOVED[parent]}.{leaf}"] = now
    return found


_BELOW = _below()


def place(name: str) -> str | None:
    """Full name of a module that is asked for by an earlier one; None where the name is as it was."""
    package, _, inner = name.partition(".")
    if package != PACKAGE:
        return None
    parts = inner.split(".")
    for n in range(len(parts), 0, -1):
        start = ".".join(parts[:n])
        now = MOVED.get(start, _BELOW.get(start))
        if now is not None:
            return ".".join([PACKAGE, now, *parts[n:]])
    return None


class Moved(MetaPathFinder, Loader):
    """Imports a moved module under its earlier name: the same object, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of an earlier name."""
        return None if place(name) is None else ModuleSpec(name, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module where it is now."""
        module = import_module(str(place(spec.name)))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run; its own specification goes back, which importing it by another name replaced."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Ask this importer first: a file that has a name of old in a package of new would be run a second time."""
    if not any(isinstance(finder, Moved) for finder in sys.meta_path):
        sys.meta_path.insert(0, Moved())

"""Tracks of one score per row: "beta", "imbalance", "consistency", and "networks", fitted to real image classifiers."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from scipy.optimize import brentq

from .distribution import BinaryDistribution, ConfidenceDistribution, TrackDistribution
from .score_mixtures import Atom, Beta, LogitNormal, ScoreLaw
from .true_maps import BetaMap, IdentityMap, Local, Logistic, Rippled, Spline, TrueMap, Wavy

#: Distributions of the score: uniform, both ends, mostly right, middle, sharply skewed, mostly low.
SHAPES = {
    "uniform": (1.0, 1.0),
    "u-shaped": (0.4, 0.4),
    "skewed": (4.0, 1.0),
    "bell": (5.0, 5.0),
    "sharp": (12.0, 0.6),
    "low": (0.6, 3.0),
}
#: The maps of :func:`calibrant.datasets.true_map`, one of beta calibration, and waves that reach the ends.
MAPS: dict[str, TrueMap] = {
    "calibrated": IdentityMap(),
    "overconfident": Logistic(0.5),
    "underconfident": Logistic(2.0),
    "shifted": Logistic(1.0, -0.7),
    "wavy": Wavy(0.1, 3.0),
    "beta-map": BetaMap(0.6, 1.4, 0.3),
    "rippled": Rippled(0.6, 2.0),
}
RARE = 0.01


@cache
def beta() -> tuple[TrackDistribution, ...]:
    """Beta scores × true maps, then distributions with atoms at 0 and 1."""
    plain = [
        BinaryDistribution(f"{shape}-{kind}", "beta", ScoreLaw((Beta(*ab),)), curve)
        for shape, ab in SHAPES.items()
        for kind, curve in MAPS.items()
    ]
    # name, components, atoms: (score, mass, frequency); the last is a model that says 0 or 1 and little else.
    middle, ends = (Beta(2.0, 2.0),), (Beta(0.5, 0.5),)
    right = (Atom(0.0, 0.15, 0.0), Atom(1.0, 0.15, 1.0))
    wrong = (Atom(0.0, 0.15, 0.04), Atom(1.0, 0.15, 0.93))
    most = (Atom(0.0, 0.5, 0.02), Atom(1.0, 0.35, 0.9))
    with_atoms = [
        BinaryDistribution("atoms-calibrated", "beta", ScoreLaw(middle, (1.0,), right), IdentityMap()),
        BinaryDistribution("atoms-only-wrong", "beta", ScoreLaw(middle, (1.0,), wrong), IdentityMap()),
        BinaryDistribution("atoms-overconfident", "beta", ScoreLaw(ends, (1.0,), wrong), Logistic(0.5)),
        BinaryDistribution("atoms-wavy", "beta", ScoreLaw(middle, (1.0,), right), Wavy(0.1, 3.0)),
        BinaryDistribution("mostly-atoms-overconfident", "beta", ScoreLaw(ends, (1.0,), most), Logistic(0.5)),
        BinaryDistribution(
            "mostly-atoms-calibrated",
            "beta",
            ScoreLaw(ends, (1.0,), (Atom(0.0, 0.5, 0.0), Atom(1.0, 0.35, 1.0))),
            IdentityMap(),
        ),
    ]
    return (*plain, *with_atoms)


@cache
def imbalance() -> tuple[TrackDistribution, ...]:
    """Scores of a class with one sample in a hundred; shifts are solved for a base rate of 1 %."""
    few = (RARE - 0.5 / 150.5) / (2 / 7 - 0.5 / 150.5)
    shapes = {
        "near-zero": ScoreLaw((Beta(0.5, 49.5),)),
        "spread": ScoreLaw((Beta(0.05, 4.95),)),
        "narrow": ScoreLaw((Beta(2.0, 198.0),)),
        "two-groups": ScoreLaw((Beta(0.5, 150.0), Beta(2.0, 5.0)), (1 - few, few)),
        "many-zeros": ScoreLaw((Beta(0.5, 19.5),), (1.0,), (Atom(0.0, 0.6, 0.0),)),
    }
    families: dict[str, Callable[[float], TrueMap]] = {
        "overconfident": lambda shift: Logistic(0.5, shift),
        "underconfident": lambda shift: Logistic(1.6, shift),
        "rippled": lambda shift: Rippled(0.6, 2.0, shift),
    }
    # Three times too high, and a model trained on classes that were balanced.
    inflated = {
        "tripled": ScoreLaw((Beta(0.5, 16.2),)),
        "rebalanced": ScoreLaw((Beta(0.8, 3.2),)),
    }
    rows: list[tuple[str, ScoreLaw, TrueMap]] = []
    for shape, scores in shapes.items():
        rows.append((f"{shape}-calibrated", scores, IdentityMap()))
        rows += [(f"{shape}-{kind}", scores, _at_base_rate(scores, family)) for kind, family in families.items()]
    rows += [
        (shape, scores, _at_base_rate(scores, lambda shift: Logistic(1.0, shift))) for shape, scores in inflated.items()
    ]
    return tuple(BinaryDistribution(name, "imbalance", scores, curve, folds=False) for name, scores, curve in rows)


@cache
def local() -> tuple[TrackDistribution, ...]:
    """Models that are miscalibrated only on some scores: dips, steps, changes of sign, heaps, grids."""
    maps = {
        "dip": Local(((0.70, 0.75, -0.3),)),
        "small-dip": Local(((0.30, 0.40, 0.1),)),
        "wide-dip": Local(((0.5, 0.7, -0.15),)),
        "step": Local(((0.5, 1.0, -0.08),)),
        "low-step": Local(((0.1, 0.4, 0.1),)),
        "sign": Local(((0.45, 0.5, 0.2), (0.5, 0.55, -0.2))),
        "two-dips": Local(((0.2, 0.25, 0.2), (0.8, 0.9, -0.2))),
        "top": Local(((0.9, 0.95, -0.2),)),
    }
    found = [
        BinaryDistribution(f"{shape}-{kind}", "local", ScoreLaw((Beta(*SHAPES[shape]),)), curve)
        for shape in ("uniform", "skewed", "u-shaped", "bell")
        for kind, curve in maps.items()
    ]
    uniform = (Beta(1.0, 1.0),)
    heaps = {
        "heap": (Atom(0.5, 0.15, 0.62),),
        "two-heaps": (Atom(0.5, 0.1, 0.4), Atom(0.9, 0.1, 0.75)),
        "calibrated-heap": (Atom(0.5, 0.15, 0.5),),
        "end": (Atom(1.0, 0.1, 0.8),),
    }
    found += [
        BinaryDistribution(name, "local", ScoreLaw(uniform, (1.0,), atoms), IdentityMap(), folds=False)
        for name, atoms in heaps.items()
    ]
    # A model that says 5, 15, …, 95 %, as grids do; the last component carries next to nothing.
    wrong = {"grid-dip": {0.75: -0.25}, "grid-two": {0.25: 0.15, 0.95: -0.1}, "grid-calibrated": {}}
    for name, gaps in wrong.items():
        at = [round(0.05 + 0.1 * i, 2) for i in range(10)]
        atoms = tuple(Atom(s, 0.0999, s + gaps.get(s, 0.0)) for s in at)
        found.append(BinaryDistribution(name, "local", ScoreLaw(uniform, (1.0,), atoms), IdentityMap(), folds=False))
    return tuple(found)


@cache
def consistency() -> tuple[TrackDistribution, ...]:
    """One smooth, one wavy, one with atoms, one calibrated; estimates must approach the truth as n grows."""
    chosen = {
        "smooth": "u-shaped-overconfident",
        "rippled": "sharp-rippled",
        "atoms": "atoms-overconfident",
        "calibrated": "skewed-calibrated",
    }
    by_name = {d.name: d for d in beta() if isinstance(d, BinaryDistribution)}
    return tuple(
        BinaryDistribution(name, "consistency", by_name[source].law, by_name[source].curve)
        for name, source in chosen.items()
    )


def _at_base_rate(scores: ScoreLaw, family: Callable[[float], TrueMap], rate: float = RARE) -> TrueMap:
    """The map of a family indexed by a shift under which the base rate is ``rate``."""

    def excess(shift: float) -> float:
        return BinaryDistribution("", "", scores, family(shift)).base_rate - rate

    return family(float(brentq(excess, -20.0, 20.0, xtol=1e-12)))


def fitted() -> list[dict[str, Any]]:
    """Fitted parameters, one row per problem, with ``fit_data_vs_law``: estimates from data and distributions."""
    rows: list[dict[str, Any]] = json.loads(files(__package__).joinpath("networks.json").read_text())
    return rows


@cache
def networks() -> tuple[TrackDistribution, ...]:
    """Confidence and one-vs-rest scores: ``raw`` from the network, and ``scaled`` by its best temperature.

    ``ideal`` has the scaled scores with perfectly calibrated outcomes. Scores are rounded to float32, so a quarter
    of the confidences of the sharper networks are exactly 1.
    """
    out: list[TrackDistribution] = []
    for row in fitted():
        parts = zip(row["means"], row["sds"], strict=True)
        scores = ScoreLaw(tuple(LogitNormal(m, s) for m, s in parts), tuple(row["weights"]), (), row["low"])
        spline = Spline(tuple(row["knots"]), tuple(row["coefficients"]), tuple(row["limits"]))
        curves: dict[str, TrueMap] = {row["name"]: spline}
        if "-scaled-" in row["name"]:
            curves[row["name"].replace("-scaled-", "-ideal-")] = IdentityMap()
        for name, curve in curves.items():
            if name.endswith("-confidence"):
                out.append(ConfidenceDistribution(name, "networks", scores, curve, row["n_classes"], digits32=True))
            else:
                out.append(
                    BinaryDistribution(name, "networks", scores, curve, row["n_classes"], digits32=True, folds=False)
                )
    return tuple(out)

"""Track "networks": distributions fitted to real image classifiers; see ``benchmarks/real/fit_networks.py``."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from .distribution import BinaryDistribution, ConfidenceDistribution, TrackDistribution
from .score_mixtures import LogitNormal, ScoreLaw
from .true_maps import IdentityMap, Spline, TrueMap


def fitted() -> list[dict[str, Any]]:
    """Fitted numbers, a problem a row, with ``fit_data_vs_law``: estimates from data and distribution, side by side."""
    rows: list[dict[str, Any]] = json.loads(files(__package__).joinpath("networks.json").read_text())
    return rows


@cache
def networks() -> tuple[TrackDistribution, ...]:
    """Confidence and one-vs-rest scores: ``raw`` as the network gives them, ``scaled`` by its best temperature.

    And ``ideal``: the scaled scores with outcomes that agree with them exactly. Scores are rounded to float32, so
    that those of the sharper networks have a quarter of their confidences at exactly 1.
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

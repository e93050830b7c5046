"""The page's interactive diagram by itself, as a part of any other page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..measure.result import Estimate, ReliabilityCurve
from .html import axes_of, page_of, still_of, view_of
from .report import known_interval
from .report_curves import Curves

if TYPE_CHECKING:
    from ..plot.diagram import Diagram


@dataclass(frozen=True)
class DiagramView:
    """What stands above a diagram."""

    title: str
    said: str


def render_diagram(diagrams: Sequence[Diagram], estimate: Estimate | None, name: str | None) -> str:
    """HTML of a display's panels, a view each; rules and script hold inside of it alone."""
    curves = [_curves(d) for d in diagrams]
    views = [view_of(_name(d), one, *axes_of(d.notion, d.label)) for d, one in zip(diagrams, curves, strict=True)]
    level = diagrams[0].level
    said = "" if estimate is None else f"Calibration error {_told(estimate)}, {100 * estimate.level:g} % interval"
    return page_of(
        "diagram.html",
        DiagramView("Reliability diagram" if name is None else name, said),
        np.nan if level is None else level,
        [{"views": views}],
        "ReliabilityDisplay",
        figure=still_of(curves[0]),
    )


def _told(e: Estimate) -> str:
    value, low, high = known_interval(e)
    return value if np.isnan(e.interval.low) else f"{value} ({low} to {high})"


def _name(d: Diagram) -> str:
    """A panel in the menu."""
    name = "Confidence (all classes)" if d.label is None else f"Class {d.label}"
    return name if d.estimate is None else f"{name} (ECE {known_interval(d.estimate)[0]})"


def _curves(d: Diagram) -> Curves:
    """Curve and bins under the name of their band; without bins the rows alone."""
    band = d.curve.band or "confidence"
    bins = {band: _rows(d.histogram) if d.bins is None else d.bins}
    curve = {band: d.curve}
    return Curves({}, bins, curve) if d.curve.isotonic else Curves(curve, bins)


def _rows(histogram: ReliabilityCurve) -> ReliabilityCurve:
    """Numbers of rows without frequencies."""
    edges, count = np.asarray(histogram.edges), histogram.count
    unknown = np.full(count.size, np.nan)
    middle = (edges[1:] + edges[:-1]) / 2
    return replace(histogram, scores=middle, observed=unknown, lower=unknown, upper=unknown)

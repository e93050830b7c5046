"""The report as one self-contained HTML page: no network request, all text escaped, data as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.result import plain
from ..data.types import FloatArray, Label
from ..measure.result import ReliabilityCurve
from .text import adjusted_of, class_note, decimals, footnote, in_groups, repair, seconds_of

if TYPE_CHECKING:
    from .comparison import CalibratorComparison
    from .report import Curves, Report

#: Points of a smooth curve that the page keeps; the screen shows no more.
_POINTS = 257
#: Samples that must speak at a score for the smooth curve to be drawn there.
_DRAWN_FROM = 3.0


def render(report: Report) -> str:
    """HTML text of a report; raises ImportError, naming the extra, where jinja2 is missing."""
    return _page(
        "report.html",
        report,
        report.headline.level,
        [{"views": _views(report)}],
        "Report",
        infinite=np.isinf(report.log_loss),
        footnote=footnote(report),
        in_groups=in_groups(report),
        class_note=class_note(report),
        adjusted_of=adjusted_of,
        decimals=decimals,
        repair=repair(report),
    )


def render_comparison(comparison: CalibratorComparison) -> str:
    """HTML text of a comparison, with the diagrams of what is shown before and after."""
    c = comparison
    after = f"after {c.shown}" + ("" if c.shown == c.chosen else " (not chosen)")
    pairs = ([] if c.before is None else [("before", c.before)]) + [(after, c.after)]
    order = [row.label for row in pairs[0][1].per_class]
    charts = [{"caption": caption, "views": _views(report, order, short=True)} for caption, report in pairs]
    return _page("comparison.html", c, c.level, charts, "CalibratorComparison", seconds_of=seconds_of)


def _page(template: str, result: Any, level: float, charts: list[dict[str, Any]], owner: str, **more: Any) -> str:
    try:
        from jinja2 import Environment, FunctionLoader
    except ImportError as error:
        raise ImportError(f'{owner}.to_html() needs jinja2: pip install "calibrant[cli]"') from error
    folder = files("calibrant.reporting") / "assets"

    def read(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    environment = Environment(loader=FunctionLoader(read), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page: str = environment.get_template(template).render(
        r=result,
        level=f"{100 * level:g} %",
        css=read("report.css"),
        script=read("report.js"),
        data=safe_json({"level": level, "charts": charts}),
        charts=charts,
        **more,
    )
    return page


def safe_json(value: Any) -> str:
    """JSON that cannot end a script element, whatever strings it holds."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _views(report: Report, order: Sequence[Label] = (), *, short: bool = False) -> list[dict[str, Any]]:
    """What a diagram can show: the notion's curves, and those of classes, worst first or in a given order."""
    views = []
    if report.curves is not None:
        confidence = report.notion in ("confidence", "top-label")
        label = report.curves.bins["confidence"].label
        name = "Confidence (all classes)" if confidence else f"Class {label if label is not None else report.positive}"
        x = "Confidence (probability of the predicted class)" if confidence else _axis(label)
        y = "Accuracy (share of right predictions)" if confidence else "Observed frequency"
        views.append(_view(name, report.curves, x, y))
    errors = {row.label: row.ece for row in report.per_class}
    for label in order or errors:
        name = f"Class {label}" if short else f"Class {label} (ECE {errors[label]:.4f})"
        views.append(_view(name, report.class_curves[label], _axis(label), "Observed frequency"))
    return views


def _axis(label: Label) -> str:
    return f"Predicted probability of {label}"


def _view(name: str, curves: Curves, x: str, y: str) -> dict[str, Any]:
    view: dict[str, Any] = {"name": name, "x": x, "y": y, "smooth": _smooth(curves.smooth)}
    if curves.isotonic:
        view["isotonic"] = _isotonic(curves.isotonic)
    bins = curves.bins["confidence"]
    edges = bins.edges if bins.edges is not None else np.array([])
    view["bins"] = [
        {
            "a": plain(round(float(edges[i]), 6)),
            "b": plain(round(float(edges[i + 1]), 6)),
            "s": _number(bins.scores[i]),
            "o": _number(bins.observed[i]),
            "n": _number(bins.count[i]),
            "bands": {band: [_number(one.lower[i]), _number(one.upper[i])] for band, one in curves.bins.items()},
        }
        for i in range(len(bins.scores))
        if bins.count[i] > 0
    ]
    return view


def _smooth(curves: Mapping[str, ReliabilityCurve]) -> dict[str, Any]:
    """A smooth curve, thinned, where enough samples speak: single ones show as bins already."""
    curve = curves["confidence"]
    every = max(1, (curve.scores.size - 1) // (_POINTS - 1))
    enough = np.where(curve.count >= _DRAWN_FROM, 1.0, np.nan)

    def thinned(values: FloatArray) -> list[Any]:
        return _list((values * enough)[::every])

    observed = thinned(curve.observed)
    return {
        "s": _list(curve.scores[::every]),
        "o": observed,
        "line": [_list(curve.scores[::every]), observed],
        "bands": {
            band: [thinned(one.lower), thinned(one.upper)]
            for band, one in curves.items()
            if not np.isnan(one.lower).all()
        },
    }


def _isotonic(curves: Mapping[str, ReliabilityCurve]) -> dict[str, Any]:
    """A step function by its corners, and its bands at some of its scores."""
    curve = curves["confidence"]
    at = np.unique(np.linspace(0, curve.scores.size - 1, _POINTS).astype(np.intp))
    corners = curve.corners()
    bands = {band: [_list(one.lower[at]), _list(one.upper[at])] for band, one in curves.items()}
    drawn = {}
    for band, one in curves.items():  # at fewer scores a band of steps still holds: each end is that of a neighbour
        few = replace(one, scores=one.scores[at], lower=one.lower[at], upper=one.upper[at])
        drawn[band] = [_list(v) for v in few.band_corners()]
    return {
        "s": _list(curve.scores[at]),
        "o": _list(curve.observed[at]),
        "line": [_list(v) for v in corners],
        "bands": bands,
        "drawn": drawn,
    }


def _number(value: Any) -> Any:
    return plain(round(float(value), 5))


def _list(values: FloatArray) -> list[Any]:
    return [_number(v) for v in values]

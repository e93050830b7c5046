"""The report as one self-contained HTML page: no network request, all text escaped, data as JSON."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np

from .._types import FloatArray, Label
from ..results import ReliabilityCurve, plain
from .report import Report

#: Points of a smooth curve that the page keeps; the screen shows no more.
_POINTS = 257
#: Samples that must speak at a score for the smooth curve to be drawn there.
_DRAWN_FROM = 3.0


def render(report: Report) -> str:
    """HTML text; raises ImportError, naming the extra, where jinja2 is missing."""
    try:
        from jinja2 import Environment
    except ImportError as error:
        raise ImportError('Report.to_html() needs jinja2: pip install "calibrant[cli]"') from error
    folder = files("calibrant.reporting") / "assets"
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((folder / "report.html").read_text(encoding="utf-8"))
    page: str = template.render(
        r=report,
        level=f"{100 * report.headline.level:g} %",
        css=(folder / "report.css").read_text(encoding="utf-8"),
        script=(folder / "report.js").read_text(encoding="utf-8"),
        data=safe_json(_views(report)),
        infinite=np.isinf(report.log_loss),
    )
    return page


def safe_json(value: Any) -> str:
    """JSON that cannot end a script element, whatever strings it holds."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _views(report: Report) -> dict[str, Any]:
    views = []
    if report.curve is not None and report.bins is not None:
        confidence = report.notion in ("confidence", "top-label")
        name = (
            "Confidence (all classes)"
            if confidence
            else f"Class {report.positive if report.positive is not None else report.curve.label}"
        )
        views.append(
            _view(
                name,
                report.curve,
                report.bins,
                "Confidence (probability of the predicted class)" if confidence else _axis(report.curve.label),
                "Accuracy (share of right predictions)" if confidence else "Observed frequency",
            )
        )
    for row in report.per_class:
        curve, bins = report.class_curves[row.label]
        views.append(
            _view(f"Class {row.label} (ECE {row.ece:.4f})", curve, bins, _axis(row.label), "Observed frequency")
        )
    return {"level": report.headline.level, "views": views}


def _axis(label: Label) -> str:
    return f"Predicted probability of {label}"


def _view(name: str, curve: ReliabilityCurve, bins: ReliabilityCurve, x: str, y: str) -> dict[str, Any]:
    every = max(1, (curve.scores.size - 1) // (_POINTS - 1))
    enough = np.where(curve.count >= _DRAWN_FROM, 1.0, np.nan)  # single samples show as bins already
    edges = bins.edges if bins.edges is not None else np.array([])
    return {
        "name": name,
        "x": x,
        "y": y,
        "curve": {
            "s": _list(curve.scores[::every]),
            "o": _list((curve.observed * enough)[::every]),
            "l": _list((curve.lower * enough)[::every]),
            "u": _list((curve.upper * enough)[::every]),
            "d": _list(curve.density[::every]),
        },
        "bins": [
            {
                "a": plain(round(float(edges[i]), 6)),
                "b": plain(round(float(edges[i + 1]), 6)),
                "s": _number(bins.scores[i]),
                "o": _number(bins.observed[i]),
                "l": _number(bins.lower[i]),
                "u": _number(bins.upper[i]),
                "n": _number(bins.count[i]),
            }
            for i in range(len(bins.scores))
            if bins.count[i] > 0
        ],
    }


def _number(value: Any) -> Any:
    return plain(round(float(value), 5))


def _list(values: FloatArray) -> list[Any]:
    return [_number(v) for v in values]

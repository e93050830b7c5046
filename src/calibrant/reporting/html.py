"""The report as one self-contained HTML page: no network request, all text escaped, data as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np

from ..data.notebook import made, strips
from ..data.printing import capital, nouns, nouns_of, printable, printable_spaced, pvalue_text
from ..data.types import FloatArray, Label
from ..measure.result import Estimate, ReliabilityCurve
from .class_table import ClassRow
from .report import (
    Report,
    accuracy_words,
    class_digits,
    class_note,
    error_rows,
    footnote,
    in_groups,
    known_interval,
    repair,
    score_of,
    zero_probability_text,
)
from .report_curves import Curves

#: Points of a curve that the page keeps, with bands and without; the screen shows no more.
_POINTS, _FEW = 129, 33
#: Numbers of curves are rounded to multiples of this, which halves the page.
_UNIT = 1e-4
#: Number of classes that a page lists before it folds the others, as many as have bands.
_LISTED = 12
#: Colour, words and sign of the light, by status and whether the error matters.
_LIGHTS = {
    ("miscalibrated", True): ("red", "Repair it", "!"),
    ("miscalibrated", None): ("amber", "Look closer", "?"),
    ("miscalibrated", False): ("green", "Good enough", "✓"),
    ("undecided", None): ("amber", "Too few rows", "?"),
    ("undecided", False): ("amber", "Too few rows", "?"),
    ("no evidence", False): ("green", "Looks calibrated", "✓"),
}
_UNKNOWN = ("amber", "Look closer", "?")
#: Number of rows needed at a score for the smooth curve to be drawn there.
_DRAWN_FROM = 3.0


def render(report: Report, name: str = "") -> str:
    """HTML text of a report; raises ImportError, naming the extra, if jinja2 is missing."""
    shown = replace(report, audience=report.audience.for_page)
    charts = [{"views": views_of(report)}]
    return page_of("report.html", shown, report.headline.level, charts, "Report", name=name, **_about(shown))


def render_inline(report: Report) -> str:
    """The report as part of another page: a static picture, without a script, and styles that apply inside it only."""
    about = {**_about(report), "base": "inline.html", "figure": report._figure_html(), "name": report._data_name}
    return page_of("report.html", report, report.headline.level, [], "Report", **about)


def _about(report: Report) -> dict[str, Any]:
    return {
        "light": _LIGHTS.get((report.evidence.status, report.evidence.matters), _UNKNOWN),
        "infinite": zero_probability_text(report) if np.isinf(report.log_loss) else "",
        "footnote": footnote(report),
        "in_groups": in_groups(report),
        # Two classes mirror each other: the rows as a whole say everything already.
        "by_class": report.per_class if len(report.classes) > 2 or report.several else (),
        "listed": _LISTED,
        "class_note": class_note(report),
        "errors": error_rows(report),
        **TABLES,
        "accuracy_words": accuracy_words(report.several),
        "words": nouns(several=report.several),
        "score": score_of(report.n_samples),
        "repair": repair(report),
    }


def _strips_of(rows: Iterable[Estimate | ClassRow]) -> list[str]:
    """Drawings of errors with their intervals."""
    errors = [(row.value if isinstance(row, Estimate) else row.ece, *row.interval) for row in rows]
    return strips(*zip(*errors, strict=True)) if errors else []


#: Functions that tables of a page use.
TABLES = {
    "pvalue_text": pvalue_text,
    "known_interval": known_interval,
    "class_digits": class_digits,
    "strips": _strips_of,
}


def _first(bands: Mapping[str, ReliabilityCurve]) -> ReliabilityCurve:
    """The curve of the first band: curves do not depend on the band."""
    return next(iter(bands.values()))


def axes_of(notion: str, label: Label) -> tuple[str, str]:
    """Words on both axes."""
    if notion in ("confidence", "top-label"):
        what = "probability of the predicted class" if label is None else f"where {label} is predicted"
        return f"Confidence ({what})", "Accuracy (share of correct predictions)"
    return f"Predicted probability of {nouns_of(notion).named(label)}", "Observed frequency"


def view_name(notion: str, label: Label) -> str:
    """Name of a curve in the menu: its class or label, or all of them."""
    confidence = label is None and notion in ("confidence", "top-label")
    return "Confidence (all classes)" if confidence else capital(nouns_of(notion).of(label))


def page_of_result(result: Any, name: str = "") -> str:
    """Page of a report, or of a result that has a summary and tables."""
    if isinstance(result, Report):
        return render(result, name)
    return page_of(
        "result.html",
        result,
        0.0,
        [],
        type(result).__name__,
        name=name,
        figure=result._figure_html(),
        inside=result._words_html(2),
    )


def page_of(
    template: str, result: Any, level: float, charts: list[dict[str, Any]], owner: str, *, name: str = "", **more: Any
) -> str:
    """Fill in a template; the page's own script and styles are available in each."""
    try:
        from jinja2 import Environment, FunctionLoader
    except ImportError as error:
        raise ImportError(f'{owner}.to_html() needs jinja2: pip install "calibrant[html]"') from error
    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "finalize": _spelled}
    environment = Environment(loader=FunctionLoader(asset), **options)
    more = {"base": "page.html", "about": made(name), **more}
    page: str = environment.get_template(template).render(
        r=result,
        theme=asset("theme.css"),
        level=f"{100 * level:g} %",
        css=asset("report.css"),
        script=asset("report.js"),
        data=safe_json({"level": level, "unit": _UNIT, "charts": charts}),
        charts=charts,
        **more,
    )
    return page


def _spelled(value: Any) -> Any:
    """Value of an expression in a template, spelled out; HTML stays as it is."""
    return printable_spaced(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def asset(name: str) -> str:
    """Text of a template, style sheet or script."""
    return (files("calibrant.reporting") / "assets" / name).read_text(encoding="utf-8")


def safe_json(value: Any) -> str:
    """JSON that cannot end a script element, whatever strings it contains."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def views_of(report: Report, order: Sequence[Label] = (), *, short: bool = False) -> list[dict[str, Any]]:
    """Views of a diagram: the notion's curves, and those of classes, worst first or in a given order."""
    views = []
    if report.curves is not None:
        label = report.curves.bins["confidence"].label
        about = report.notion, label
        views.append(view_of(view_name(*about), report.curves, *axes_of(*about)))
    errors = {row.label: class_digits(row)[0] for row in report.per_class}
    off = () if order else report._off
    for label in order or sorted(errors, key=lambda label: label not in off):
        notion = report.notion if report.several else "classwise"
        name = view_name(notion, label) + ("" if short else f" (ECE {errors[label]})")
        views.append(view_of(name, report.class_curves[label], *axes_of(notion, label)))
    return [*views[1:2], *views[:1], *views[2:]] if off and report.curves is not None else views


def view_of(name: str, curves: Curves, x: str, y: str) -> dict[str, Any]:
    """Data of one problem for the script."""
    view: dict[str, Any] = {key: printable(text) for key, text in (("name", name), ("x", x), ("y", y))}
    if curves.smooth:
        view["smooth"] = _smooth({band: one.line for band, one in curves.smooth.items()})
        view["values"] = _points({band: one.values for band, one in curves.smooth.items()})
    if curves.isotonic:
        view["isotonic"] = _isotonic(curves.isotonic)
    bins = _first(curves.bins)
    edges = bins.edges if bins.edges is not None else np.array([])
    filled = np.flatnonzero(bins.count > 0)
    view["bins"] = {
        "a": _list(edges[filled]),
        "b": _list(edges[filled + 1]),
        "s": _list(bins.scores[filled]),
        "o": _list(bins.observed[filled]),
        "n": [float(f"{n:.6g}") for n in bins.count[filled]],
        "bands": {band: [_list(one.lower[filled]), _list(one.upper[filled])] for band, one in curves.bins.items()},
    }
    return view


def _smooth(curves: Mapping[str, ReliabilityCurve]) -> dict[str, Any]:
    """A smooth curve, thinned, where there are enough rows: single ones already show as bins."""
    curve = _first(curves)
    bands = {name: one for name, one in curves.items() if not np.isnan(one.lower).all()}
    every = max(1, (curve.scores.size - 1) // ((_POINTS if bands else _FEW) - 1))
    enough = np.where(curve.count >= _DRAWN_FROM, 1.0, np.nan)

    def thinned(values: FloatArray) -> list[Any]:
        return _list((values * enough)[::every])

    return {
        "s": _list(curve.scores[::every]),
        "o": thinned(curve.observed),
        "bands": {name: [thinned(one.lower), thinned(one.upper)] for name, one in bands.items()},
    }


def _points(curves: Mapping[str, ReliabilityCurve]) -> dict[str, Any]:
    """Values shared by many rows."""
    first = _first(curves)
    bands = {name: [_list(one.lower), _list(one.upper)] for name, one in curves.items()}
    return {"s": _list(first.scores), "o": _list(first.observed), "bands": bands}


def _isotonic(curves: Mapping[str, ReliabilityCurve]) -> dict[str, Any]:
    """A step function by its corners, and its bands at some of its scores."""
    curve = _first(curves)
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


def _list(values: FloatArray) -> list[Any]:
    """Numbers in units; None for NaN."""
    return [None if v != v else round(float(v) / _UNIT) for v in values]

"""Content of a display, computed before anything is drawn: curves, bins, counts and estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.checks import check_random_state, check_type, is_whole, received
from ..data.notebook import is_for_page
from ..data.predictions import Predictions
from ..data.printing import nouns_of
from ..data.problem import Problem, VectorProblem
from ..data.types import FloatArray, Interval, Label, RandomState
from ..estimators import Binned, CellEstimator, Estimator, Isotonic
from ..estimators.names import estimator_named
from ..measure.bands import BANDS, check_band
from ..measure.curve_from_sums import CurveSpec
from ..measure.estimation import estimate, estimate_from_fits
from ..measure.question import Question, resolve_estimator
from ..measure.reliability import curve_estimator, is_isotonic
from ..measure.result import Estimate, ReliabilityCurve
from ..notions import Notion, as_notion
from ..reporting.html import axes_of, page_of, view_name, view_of
from ..reporting.report import known_interval
from ..reporting.report_curves import Curves
from .scale import PAPERS, SCALES

#: Maximum number of panels of a figure.
MAX_PANELS, MOST_ON_PAGE = 9, 4
#: Number of bars of the histogram of scores over the whole domain.
HISTOGRAM_BARS = 40
_UNKNOWN = Interval(float("nan"), float("nan"))


@dataclass(frozen=True, eq=False)
class Diagram:
    """Everything that one panel shows.

    Attributes
    ----------
    curve : ReliabilityCurve
        The curve, with its band at the display's level.
    bins : ReliabilityCurve or None
        Bins with intervals; None if none were requested.
    histogram : ReliabilityCurve
        Histogram of scores, as ``.count`` and ``.edges``.
    papers : mapping of str to ReliabilityCurve
        The same per scale, with bars of equal width on it; empty if nothing finer than bins is available.
    estimate : Estimate or None
        Calibration error of this panel's problem; None if only a curve is available.
    label : object
        The class whose probabilities are the scores; None for a confidence.
    notion : str
        The notion of calibration.
    domain : tuple of float
        Range of possible scores.
    weighted : bool
        Whether counts are effective sample sizes of weighted samples.

    See Also
    --------
    calibrant.ReliabilityDisplay : The display, with one panel per diagram.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> panel = cal.ReliabilityDisplay.from_predictions(y, p).diagrams[0]
    >>> panel.label, panel.notion
    (1, 'class-specific')
    """

    curve: ReliabilityCurve
    bins: ReliabilityCurve | None
    histogram: ReliabilityCurve
    estimate: Estimate | None
    label: Label
    notion: str
    domain: tuple[float, float]
    weighted: bool
    papers: Mapping[str, ReliabilityCurve] = field(default_factory=dict)

    @property
    def level(self) -> float | None:
        """Level of its interval and band."""
        return self.curve.level if self.estimate is None else self.estimate.level

    @property
    def lowest(self) -> float:
        """Lowest value that is drawn: the domain's lower end, or less if an interval reaches below it."""
        drawn = [self.domain[0]]
        for curve in (self.curve, self.bins):
            if curve is not None:
                drawn += [float(v[~np.isnan(v)].min(initial=1.0)) for v in (curve.observed, curve.lower)]
        return max(min(drawn), 0.0)


def diagrams_at_hand(result: Any, classes: Sequence[Label] | None = None) -> tuple[list[Diagram], Estimate | None]:
    """Panels of an existing curve, estimate with a curve, or report (of some ``classes``), and its estimate."""
    if isinstance(result, ReliabilityCurve):
        return [_diagram_at_hand(result, None, None)], None
    if isinstance(result, Estimate):
        if result.curve is None:
            raise ValueError(
                f"this estimate of notion {result.notion!r} has no curve of its own: draw the predictions with "
                "ReliabilityDisplay.from_predictions"
            )
        return [_diagram_at_hand(result.curve, None, result)], result
    if not hasattr(result, "class_curves"):
        raise TypeError(
            f"a reliability diagram needs a ReliabilityCurve, an Estimate or a Report; got {type(result).__name__}"
        )
    total = result.headline
    whole = not result._off if classes is None else not set(classes) <= result.class_curves.keys()
    if result.curves is not None and whole:
        return [_diagram_at_hand(result.curve, result.bins, total)], total
    if not result.class_curves:
        raise ValueError(f"a report of notion {result.notion!r} has nothing to draw without curves of its classes")
    off = classes or result._off or result.class_curves
    most = MOST_ON_PAGE if is_for_page() else MAX_PANELS
    shown = [c for label, c in result.class_curves.items() if label in off and "confidence" in c.smooth][:most]
    errors = {row.label: row.ece for row in result.per_class} | dict(total.per_class)
    out = []
    for curves in shown:
        curve = curves.smooth["confidence"]
        curve = curve if result.several else replace(curve, notion="classwise")
        one = replace(total, value=errors[curve.label], interval=_UNKNOWN, per_class={}, drawn=None)
        out.append(_diagram_at_hand(curve, curves.bins.get("confidence"), one))
    return out, total


def _diagram_at_hand(curve: ReliabilityCurve, bins: ReliabilityCurve | None, estimate: Estimate | None) -> Diagram:
    ends = curve.scores if curve.edges is None else curve.edges
    domain = float(ends[0]), float(ends[-1])
    about = estimate, curve.label, curve.notion, domain, False
    if curve.edges is not None and not curve.isotonic:  # bins are bars as they are
        return Diagram(curve, curve if bins is None and curve.level is not None else bins, curve, *about)
    histogram, papers = _by_scale(_counted(curve, _fine_edges(domain)), domain)
    return Diagram(curve, bins, histogram, *about, papers)


def _fine_edges(domain: tuple[float, float]) -> FloatArray:
    """Edges of the histograms of every scale together."""
    return np.unique(np.concatenate([_bar_edges(domain), *(SCALES[name].cuts(domain) for name in PAPERS)]))


def _bar_edges(domain: tuple[float, float]) -> FloatArray:
    return np.linspace(*domain, HISTOGRAM_BARS + 1)


def _by_scale(
    fine: ReliabilityCurve, domain: tuple[float, float]
) -> tuple[ReliabilityCurve, dict[str, ReliabilityCurve]]:
    """The linear histogram and those on paper, from the counts between all their edges."""
    below = np.append(0.0, np.cumsum(fine.count))

    def coarser(edges: FloatArray) -> ReliabilityCurve:
        return replace(fine, count=np.diff(below[np.searchsorted(_fine_edges(domain), edges)]), edges=edges)

    return coarser(_bar_edges(domain)), {name: coarser(SCALES[name].cuts(domain)) for name in PAPERS}


def _counted(curve: ReliabilityCurve, edges: FloatArray) -> ReliabilityCurve:
    """Number of samples between edges, from the density of a curve, or its scores."""
    if curve.isotonic:
        return replace(curve, count=np.histogram(curve.scores, edges, weights=curve.count)[0], edges=edges)
    middle = (curve.density[1:] + curve.density[:-1]) / 2 * np.diff(curve.scores)
    below = np.interp(edges, curve.scores, np.append(0.0, np.cumsum(middle)))
    return replace(curve, count=np.diff(below) * curve.n_samples, edges=edges)


def diagrams_of(
    predictions: Predictions,
    *,
    notion: str | Notion,
    estimator: str | Estimator,
    curve: str | CellEstimator | Isotonic,
    band: str,
    bins: Any,
    classes: Sequence[Label] | None,
    level: float,
    n_resamples: int,
    random_state: RandomState,
    paper: bool,
) -> tuple[list[Diagram], Estimate]:
    """Panels of predictions, and their estimate; ValueError for a notion without curves."""
    drawn = None if is_isotonic(curve) else curve_estimator(curve, "curve")
    own_bins = drawn if isinstance(drawn, Binned) else None
    check_band(band, binned=True)
    bins = _check_bins(bins, own_bins or "auto")
    chosen = as_notion(notion, predictions)
    problems = chosen.reduce(predictions)
    if isinstance(problems, VectorProblem):
        raise ValueError(
            f"notion {chosen.name!r} has no reliability diagram: its score is a vector. "
            "Use 'confidence', 'classwise', 'top-label' or ClassSpecific(label)"
        )
    if isinstance(estimator, str) and estimator == "auto" and drawn is not None and (own_bins or drawn is curve):
        estimator = drawn
    wanted = "one with an interval (Binned, Density, …)"
    reader = check_type("estimator", resolve_estimator(estimator, problems, chosen.name), CellEstimator, wanted)
    rng = check_random_state(random_state)
    total = estimate(
        predictions, None, notion=notion, estimator=reader, level=level, n_resamples=n_resamples, random_state=rng
    )

    def curve_of(problem: Problem, by: CellEstimator | None, at: float | None, band: str) -> ReliabilityCurve:
        return CurveSpec(by, chosen.name, at, rng, n_resamples, band).of_rows(problem)

    def estimate_of(problem: Problem) -> Estimate:
        question = Question.of_one(problem, chosen.name, level)
        whole = replace(problem, label=(problem.label,), share=(1.0,), starts=problem.bounds)
        return estimate_from_fits([reader.fit(reader.summarize(whole))], question, n_resamples, rng)[0]

    def diagram_of(problem: Problem) -> Diagram:
        domain, size = problem.domain, problem.effective_size
        error = total if len(problems) == 1 else estimate_of(problem)
        fine = Binned([0.0, *_fine_edges(domain)[1:].tolist()])
        histogram, papers = _by_scale(curve_of(problem, fine, None, band), domain)
        # Both intervals of bins go with a confidence band.
        line = curve_of(problem, drawn, level, band if own_bins or band in BANDS[:3] else "confidence")
        beside = _automatic_bins(size, paper) if isinstance(bins, str) else bins
        dots = None if beside is None else curve_of(problem, beside, level, band)
        weighted = problem.weights is not None
        return Diagram(line, dots, histogram, error, problem.label, chosen.name, domain, weighted, papers)

    order = [0] if len(problems) == 1 else _panel_order(total, classes)
    return [diagram_of(problems[i]) for i in order], total


def _check_bins(bins: Any, automatic: Binned | str) -> Binned | str | None:
    """Check the ``bins`` argument; return the bins to draw, ``"auto"``, or None for none."""
    if bins is None or bins is False:
        return None
    if isinstance(bins, str) and bins == "auto":
        return automatic
    if isinstance(bins, str) and bins.partition(":")[0] == "binned":
        bins = estimator_named(bins)
    if isinstance(bins, Binned):
        return bins
    if is_whole(bins):
        return Binned(int(bins), span="domain")
    raise ValueError(f"bins must be 'auto', an int, Binned(...) or None; got {received(bins)}")


def _automatic_bins(n: float, paper: bool) -> Binned:
    """Ten bins of equal width over the domain (on paper: of equal mass), fewer for fewer than 100 samples."""
    return Binned(int(np.clip(np.sqrt(n), 3, 10)), "quantile" if paper else "uniform", span="domain")


def _panel_order(total: Estimate, classes: Sequence[Label] | None) -> list[int]:
    """Positions of the classes to draw: those named, else those with the largest errors, unknown errors last."""
    present = list(total.per_class)
    if classes is None:
        errors = np.array(list(total.per_class.values()), dtype=np.float64)
        worst = np.argsort(np.where(np.isnan(errors), np.inf, -errors), kind="stable")
        return [int(i) for i in worst[:MAX_PANELS]]
    if not len(classes) or any(c not in present for c in classes):
        raise ValueError(
            f"classes must be some of {present[:6]!r}{'…' if len(present) > 6 else ''}; got {received(classes)}"
        )
    if len(classes) > MAX_PANELS:
        raise ValueError(f"classes must name at most {MAX_PANELS} classes; got {len(classes)}")
    return [present.index(c) for c in classes]


def rest_in_words(estimate: Estimate, shown: Sequence[Label]) -> str:
    """One sentence on the classes that have no panel; empty when every class has one."""
    rest = [value for label, value in estimate.per_class.items() if label not in shown]
    if not rest:
        return ""
    start = f"Shown: {len(shown)} of {len(estimate.per_class)} {nouns_of(estimate.notion).many}, worst first."
    known = np.array([value for value in rest if value == value])
    if not known.size:
        return start
    digits = 3 if known.max() >= 0.01 else 4
    if known.size == 1:
        return f"{start} The ECE of the other one is {known[0]:.{digits}f}."
    low, middle, high = (f"{v:.{digits}f}" for v in (known.min(), np.median(known), known.max()))
    return f"{start} The ECEs of the other {len(rest)} lie between {low} and {high} (median {middle})."


def page_of_diagrams(diagrams: Sequence[Diagram], estimate: Estimate | None, name: str | None, figure: str) -> str:
    """HTML of panels, one view each, and a static figure, with styles and script confined to it; needs jinja2."""
    text = ""
    if estimate is not None:
        value, low, high = known_interval(estimate)
        interval = "" if np.isnan(estimate.interval.low) else f" ({low} to {high})"
        text = f"Calibration error {value}{interval}, {100 * estimate.level:g} % interval"
    views = []
    for d in diagrams:
        error = "" if d.estimate is None else f" (ECE {known_interval(d.estimate)[0]})"
        views.append(view_of(f"{view_name(d.notion, d.label)}{error}", _curves_of(d), *axes_of(d.notion, d.label)))
    title = "Reliability diagram" if name is None else name
    level = np.nan if diagrams[0].level is None else diagrams[0].level
    owner = "ReliabilityDisplay"
    return page_of("diagram.html", {"title": title, "text": text}, level, [{"views": views}], owner, figure=figure)


def _curves_of(d: Diagram) -> Curves:
    """Curve and bins under the name of their band; without bins, only the numbers of rows."""
    band = d.curve.band or "confidence"
    bins = d.bins
    if bins is None:
        edges = np.asarray(d.histogram.edges)
        unknown = np.full(d.histogram.count.size, np.nan)
        middle = (edges[1:] + edges[:-1]) / 2
        bins = replace(d.histogram, scores=middle, observed=unknown, lower=unknown, upper=unknown)
    curve = {band: d.curve}
    return Curves({}, {band: bins}, curve) if d.curve.isotonic else Curves(curve, {band: bins})

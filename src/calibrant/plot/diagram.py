"""What a display shows, computed before anything is drawn: curves, bins, counts and estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.checks import is_whole
from ..data.predictions import Predictions
from ..data.problem import OneVsRestProblems, Problem, VectorProblem
from ..data.types import FloatArray, Interval, Label
from ..estimators import Binned, CellEstimator, Isotonic
from ..estimators.names import estimator_named
from ..measure.bands import BANDS, check_band
from ..measure.curve_from_sums import curve_from, is_isotonic, isotonic_curve
from ..measure.estimation import estimate_from_fits
from ..measure.question import Question
from ..measure.reliability import curve_estimator
from ..measure.result import Estimate, ReliabilityCurve
from ..measure.tied_scores import TiedScores
from ..notions import Notion, as_notion
from .scale import PAPERS, SCALES

#: Panels a figure has at most.
MAX_PANELS = 9
#: Bars of the histogram of scores over the whole domain.
HISTOGRAM_BARS = 40


@dataclass(frozen=True, eq=False)
class Diagram:
    """Everything one panel shows.

    Attributes
    ----------
    curve : ReliabilityCurve
        The curve, with its band at the display's level.
    bins : ReliabilityCurve or None
        Bins with intervals; None when none were asked for.
    histogram : ReliabilityCurve
        ``.count`` and ``.edges`` are the histogram of scores.
    papers : mapping of str to ReliabilityCurve
        The same by scale, with bars of equal width on it; empty where nothing finer than bins is at hand.
    estimate : Estimate or None
        Calibration error of this panel's problem; None where only a curve is at hand.
    label : object
        The class whose probability the scores are; None for a confidence.
    notion : str
    domain : tuple of float
        Where scores can lie.
    weighted : bool
        Whether counts are effective sample sizes of weighted samples.
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
        """Lowest value that is drawn: the domain's lower end, or less where an interval reaches below it."""
        drawn = [self.domain[0]]
        for curve in (self.curve, self.bins):
            if curve is not None:
                drawn += [float(v[~np.isnan(v)].min(initial=1.0)) for v in (curve.observed, curve.lower)]
        return max(min(drawn), 0.0)


def held_diagrams(result: Any) -> tuple[list[Diagram], Estimate | None]:
    """Panels of a result that is at hand, and its estimate: of a curve, an estimate with a curve, or a report."""
    if isinstance(result, ReliabilityCurve):
        return [_held(result, None, None)], None
    if isinstance(result, Estimate):
        if result.curve is None:
            raise ValueError(
                f"this estimate of notion {result.notion!r} has no curve of its own: draw the predictions with "
                "ReliabilityDisplay.from_predictions"
            )
        return [_held(result.curve, None, result)], result
    if not hasattr(result, "class_curves"):
        raise TypeError(
            "a reliability diagram is drawn of a ReliabilityCurve, an Estimate or a Report; got "
            f"{type(result).__name__}"
        )
    total = result.headline
    if result.curves is not None:
        return [_held(result.curve, result.bins, total)], total
    if not result.class_curves:
        raise ValueError(f"a report of notion {result.notion!r} without curves of classes has nothing to draw")
    shown = [c for c in result.class_curves.values() if "confidence" in c.smooth][:MAX_PANELS]
    errors = {row.label: row.ece for row in result.per_class} | dict(total.per_class)
    unknown = Interval(float("nan"), float("nan"))
    out = []
    for curves in shown:
        curve = curves.smooth["confidence"]
        one = replace(total, value=errors[curve.label], interval=unknown, per_class={}, drawn=None)
        out.append(_held(curve, curves.bins.get("confidence"), one))
    return out, total


def _held(curve: ReliabilityCurve, bins: ReliabilityCurve | None, estimate: Estimate | None) -> Diagram:
    ends = curve.scores if curve.edges is None else curve.edges
    domain = float(ends[0]), float(ends[-1])
    if bins is None and curve.edges is not None and not curve.isotonic and curve.level is not None:
        bins = curve
    if curve.edges is not None and not curve.isotonic:  # bins are bars as they are
        return Diagram(curve, bins, curve, estimate, curve.label, curve.notion, domain, False)
    histogram, papers = _by_scale(_counted(curve, _fine_edges(domain)), domain)
    return Diagram(curve, bins, histogram, estimate, curve.label, curve.notion, domain, False, papers)


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
    """How many samples lie between edges, from the density of a curve, or its scores."""
    if curve.isotonic:
        return replace(curve, count=np.histogram(curve.scores, edges, weights=curve.count)[0], edges=edges)
    middle = (curve.density[1:] + curve.density[:-1]) / 2 * np.diff(curve.scores)
    below = np.interp(edges, curve.scores, np.append(0.0, np.cumsum(middle)))
    return replace(curve, count=np.diff(below) * curve.n_samples, edges=edges)


def problems_of(predictions: Predictions, notion: str | Notion) -> tuple[Problem | OneVsRestProblems, str]:
    """Problems to draw and the notion's name; raises ValueError for a notion without curves."""
    chosen = as_notion(notion, predictions)
    reduction = chosen.reduce(predictions)
    if isinstance(reduction, VectorProblem):
        raise ValueError(
            f"notion {chosen.name!r} has no reliability diagram: its score is a vector. "
            "Use 'confidence', 'classwise', 'top-label' or ClassSpecific(label)"
        )
    return reduction, chosen.name


def check_curve(curve: Any, band: str) -> tuple[CellEstimator | Isotonic, str]:
    """Judge how the curve is made, and the name of its band; both intervals of bins go with a confidence band."""
    drawn = Isotonic() if is_isotonic(curve) else curve_estimator(curve, "curve")
    check_band(band, binned=True)
    return drawn, band if isinstance(drawn, Binned) or band in BANDS[:3] else "confidence"


def check_bins(bins: Any, drawn: CellEstimator | Isotonic) -> Binned | str | None:
    """Judge the ``bins`` argument: the bins to draw, ``"auto"``, or None for none."""
    if bins is None or bins is False:
        return None
    if isinstance(bins, str) and bins == "auto":
        return drawn if isinstance(drawn, Binned) else "auto"
    if isinstance(bins, str) and bins.partition(":")[0] == "binned":
        bins = estimator_named(bins)
    if isinstance(bins, Binned):
        return bins
    if is_whole(bins):
        return Binned(int(bins), span="domain")
    raise ValueError(f"bins must be 'auto', an int, Binned(...) or None; got {bins!r}")


def automatic_bins(n: float, *, paper: bool = False) -> Binned:
    """Ten bins of equal width over the domain (on paper: of equal mass), fewer for fewer than 100 samples."""
    return Binned(int(np.clip(np.sqrt(n), 3, 10)), "quantile" if paper else "uniform", span="domain")


def worst_first(estimate: Estimate, labels: Sequence[Label]) -> list[int]:
    """Positions of the classes, largest error first; classes without a number last."""
    errors = np.array([estimate.per_class.get(label, np.nan) for label in labels], dtype=np.float64)
    return [int(i) for i in np.argsort(np.where(np.isnan(errors), np.inf, -errors), kind="stable")]


def diagram_of(
    problem: Problem,
    *,
    notion: str,
    drawn: CellEstimator | Isotonic,
    estimator: CellEstimator,
    bins: Binned | str | None,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
    estimate: Estimate | None = None,
    band: str = "confidence",
    paper: bool = False,
) -> Diagram:
    """Diagram of one problem; its estimate is computed unless it is at hand."""
    options: dict[str, Any] = {"notion": notion, "n_resamples": n_resamples, "rng": rng}

    def curve(of: CellEstimator | Isotonic, at: float | None, band: str) -> ReliabilityCurve:
        if isinstance(of, Isotonic):
            return isotonic_curve(problem, level=at, band=band, **options)
        ties = TiedScores.of(problem) if band == "simultaneous" and not isinstance(of, Binned) else None
        return curve_from(of, of.summarize(problem), label=problem.label, level=at, band=band, ties=ties, **options)

    size = problem.effective_size
    if estimate is None:
        question = Question.of_one(problem, notion, level)
        whole = replace(problem, label=(problem.label,), share=(1.0,), starts=problem.bounds)
        estimate = estimate_from_fits([estimator.fit(estimator.summarize(whole))], question, n_resamples, rng)[0]
    chosen = automatic_bins(size, paper=paper) if isinstance(bins, str) else bins
    fine = curve(Binned([0.0, *_fine_edges(problem.domain)[1:].tolist()]), None, band)
    histogram, papers = _by_scale(fine, problem.domain)
    return Diagram(
        curve=curve(drawn, level, check_curve(drawn, band)[1]),
        bins=None if chosen is None else curve(chosen, level, band),
        histogram=histogram,
        estimate=estimate,
        label=problem.label,
        notion=notion,
        domain=problem.domain,
        weighted=problem.weights is not None,
        papers=papers,
    )


def panel_order(estimate: Estimate, present: list[Label], wanted: Sequence[Label] | None, single: bool) -> list[int]:
    """Positions of the problems to draw."""
    if single:
        return [0]
    if wanted is None:
        return worst_first(estimate, present)[:MAX_PANELS]
    unknown = [c for c in wanted if c not in present]
    if unknown or not len(wanted):
        raise ValueError(f"classes must be some of {present[:6]!r}{'…' if len(present) > 6 else ''}; got {wanted!r}")
    if len(wanted) > MAX_PANELS:
        raise ValueError(f"classes must name at most {MAX_PANELS} classes; got {len(wanted)}")
    return [present.index(c) for c in wanted]


def rest_in_words(estimate: Estimate, shown: Sequence[Label]) -> str:
    """One sentence on the classes that have no panel; empty when every class has one."""
    rest = [value for label, value in estimate.per_class.items() if label not in shown]
    if not rest:
        return ""
    start = f"{len(shown)} of {len(estimate.per_class)} classes are shown, worst first."
    known = np.array([value for value in rest if value == value])
    if not known.size:
        return start
    digits = 3 if known.max() >= 0.01 else 4
    if known.size == 1:
        return f"{start} The ECE of the other one is {known[0]:.{digits}f}."
    low, middle, high = (f"{v:.{digits}f}" for v in (known.min(), np.median(known), known.max()))
    return f"{start} The ECE of the other {len(rest)} lies between {low} and {high} (median {middle})."

"""`Report`: a frozen result with readers (text, dict, frame, HTML)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from ..data.libraries import to_frame
from ..data.printing import Audience
from ..data.result import Picture, Result, Table, plain
from ..data.types import Interval, Label
from ..data.writing import check_free, write_text
from ..measure.result import Estimate, ReliabilityCurve
from .evidence import Evidence
from .gain import RepairGain

_NO_INTERVAL = Interval(float("nan"), float("nan"))


@dataclass(frozen=True, repr=False)
class ClassRow(Result):
    """One class of the per-class table, against the rest.

    Attributes
    ----------
    label : label
    count : float
        Weight of the rows of this class.
    base_rate, mean_prob : float
        Its share, and the mean of the probability stated for it.
    ece : float
        Its expected calibration error, over 15 bins of equal width (or those of the :class:`Accumulator`).
    interval : Interval
        Of that error, at the report's level, widened to hold ``ece``; for each class by itself.
    pvalue : float
        Of the class being calibrated: whether it comes as often as stated, on the whole and in ranges of scores; see
        :func:`calibrant.significance.score_ranges.range_pvalues`. NaN where nothing could be seen.
    adjusted : float
        P-value corrected for the number of classes, by Holm's rule: a calibrated model has any class marked in at most
        ``1 - level`` of all samples, however the classes depend on each other.
    significant : bool
        Whether the class is off: ``adjusted`` is at most ``1 - level``.
    """

    label: Label
    count: float
    base_rate: float
    mean_prob: float
    ece: float
    interval: Interval = _NO_INTERVAL
    pvalue: float = float("nan")
    adjusted: float = float("nan")
    significant: bool = False

    @property
    def direction(self) -> str:
        """Whether the class is predicted too often or too rarely, on the whole."""
        gap = self.mean_prob - self.base_rate
        return "even" if abs(gap) < 1e-9 else "too high" if gap > 0 else "too low"


@dataclass(frozen=True, eq=False, repr=False)
class Curves(Result):
    """Reliability curves of one problem, by the name of their band: "confidence", "consistency", "simultaneous".

    Attributes
    ----------
    smooth, bins, isotonic : mapping of band to ReliabilityCurve
        Each is computed when it is first asked for. A band that there is not is absent; ``isotonic`` is empty where
        neither rows nor a fine histogram were kept.
    """

    smooth: Mapping[str, ReliabilityCurve]
    bins: Mapping[str, ReliabilityCurve]
    isotonic: Mapping[str, ReliabilityCurve] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Report(Picture, Table):
    """Calibration of a set of predictions: scores, errors, tests, classes and curves.

    Attributes
    ----------
    n_samples : int
    classes : tuple of labels
    base_rates : mapping of label to float
    accuracy : float
        Share of rows whose most probable class was right (a score above ½ for a 1-D ``y_prob``).
    brier : float
        Mean Brier score: ``(p - o)²`` of the second of two classes (0 to 1), ``Σ_k (p_k - o_k)²`` of more (0 to 2).
    log_loss : float
        Mean negative log of the probability given to the observed class; infinite if that was 0 for any row.
    notion : str
    headline : Estimate
        Calibration error by the chosen estimator.
    estimates : mapping of name to Estimate
        The main estimators side by side, and the maximum calibration error. Each is computed when it is first read.
    values : mapping of name to float
        The same without intervals, which of many classes take longer than all else.
    per_class : tuple of ClassRow
        Class-wise table, worst first, with an interval and a test of each class; empty for a 1-D ``y_prob``. As a data
        frame: :meth:`classes_frame`.
    curves : Curves or None
        Curves of the notion with their bands; None when it has several problems.
    class_curves : mapping of label to Curves
        Of every class; bands of the worst ones only.
    evidence : Evidence
        Test of calibration, whether the error matters, and what the test could have seen. It decides where the
        intervals of ``headline`` and ``estimates`` start: above 0 exactly where the test finds evidence. So that lower
        end can be another one than :func:`calibrant.estimate` gives.
    gain : RepairGain
        What a perfect repair would gain in log-loss and Brier score, and the share of decisions that it changes.
    summary : str
        The verdict in one sentence of everyday words.
    findings : tuple of str
        Steps of the verdict but the last: is it real and where, how large and does it matter, what would repair gain.
    streamed : bool
        Whether rows came in pieces (quantile edges are then rounded to 1/``n_cells``).
    n_cells : int
        Cells of scores from which bins of equal mass and isotonic curves of such rows are found.
    title : str
    n_groups : int or None
        Groups that rows belong to; None where they were taken as independent.
    zero_probability_rows : tuple of int
        Rows (from 0) whose label had a probability of 0, which make ``log_loss`` infinite; empty of streamed rows.
    asked : Asked
        From Python or by the command: what :attr:`advice` names is what can be typed there.
    """

    display: ClassVar[str] = "ReliabilityDisplay"

    n_samples: int
    classes: tuple[Label, ...]
    base_rates: Mapping[Label, float]
    accuracy: float
    brier: float
    log_loss: float
    notion: str
    headline: Estimate
    estimates: Mapping[str, Estimate]
    evidence: Evidence
    gain: RepairGain
    summary: str
    findings: tuple[str, ...]
    per_class: Sequence[ClassRow] = ()
    curves: Curves | None = None
    class_curves: Mapping[Label, Curves] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    positive: Label = None
    weighted: bool = False
    streamed: bool = False
    title: str = "Calibration report"
    n_groups: int | None = None
    n_cells: int = 65536
    zero_probability_rows: tuple[int, ...] = ()
    asked: Audience = Audience.PYTHON

    @property
    def advice(self) -> str:
        """What to do next; "" where nothing can be said."""
        from .verdict import advice_of

        return advice_of(self)

    @property
    def verdict_parts(self) -> tuple[str, ...]:
        """Steps of the verdict: what was found (:attr:`findings`), and what to do next (:attr:`advice`)."""
        return (*self.findings, *filter(None, [self.advice]))

    @property
    def verdict(self) -> str:
        """In plain words: is it real, how large is it and where, does it matter, and what to do next."""
        return " ".join(self.verdict_parts)

    @property
    def curve(self) -> ReliabilityCurve | None:
        """Smooth curve of the notion with its confidence band; None when the notion has several problems."""
        return None if self.curves is None else self.curves.smooth["confidence"]

    @property
    def bins(self) -> ReliabilityCurve | None:
        """Bins of the notion with Wilson intervals; None when the notion has several problems."""
        return None if self.curves is None else self.curves.bins["confidence"]

    def __str__(self) -> str:
        from .text import render

        return render(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON (NaN and infinities as None)."""
        return {
            "title": self.title,
            "n_samples": self.n_samples,
            "n_groups": self.n_groups,
            "classes": [plain(c) for c in self.classes],
            "positive": plain(self.positive),
            "base_rates": {str(k): plain(v) for k, v in self.base_rates.items()},
            "accuracy": plain(self.accuracy),
            "brier": plain(self.brier),
            "log_loss": plain(self.log_loss),
            "notion": self.notion,
            "weighted": self.weighted,
            "streamed": self.streamed,
            "headline": self.headline.to_dict() | {"curve": None},
            "estimates": {k: v.to_dict() | {"curve": None} for k, v in self.estimates.items()},
            "evidence": self.evidence.to_dict(),
            "gain": self.gain.to_dict(),
            "summary": self.summary,
            "verdict": self.verdict,
            "per_class": [
                {
                    "label": plain(r.label),
                    "count": plain(r.count),
                    "base_rate": plain(r.base_rate),
                    "mean_prob": plain(r.mean_prob),
                    "ece": plain(r.ece),
                    "interval": [plain(r.interval.low), plain(r.interval.high)],
                    "pvalue": plain(r.pvalue),
                    "adjusted": plain(r.adjusted),
                    "significant": r.significant,
                    "direction": r.direction,
                }
                for r in self.per_class
            ],
            "curve": None if self.curve is None else self.curve.to_dict(),
            "bins": None if self.bins is None else self.bins.to_dict(),
        }

    def _columns(self) -> dict[str, Any]:
        found = self.estimates.values()
        return {
            "estimator": self.estimates,
            "value": [e.value for e in found],
            "low": [e.interval.low for e in found],
            "high": [e.interval.high for e in found],
            "corrected": [e.corrected for e in found],
        }

    def classes_frame(self, backend: str | None = None) -> Any:
        """The class-wise table as a data frame, worst first; ``backend`` as in :meth:`to_frame`.

        Columns ``label``, ``count``, ``base_rate``, ``mean_prob``, ``ece``, ``low``, ``high``, ``pvalue``,
        ``adjusted``, ``significant`` and ``direction``; no rows for a 1-D ``y_prob``.
        """
        names = ("count", "base_rate", "mean_prob", "ece", "pvalue", "adjusted", "significant", "direction")
        columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in self.per_class] for name in names}
        labels = {"label": [str(row.label) for row in self.per_class]}
        ends = {end: [getattr(row.interval, end) for row in self.per_class] for end in ("low", "high")}
        return to_frame(labels | columns | ends, backend or self._library, "Report.classes_frame()")

    def _shown(self) -> Iterable[tuple[str, Any]]:
        names = ("n_samples", "headline", "notion", "brier", "log_loss", "accuracy", "classes", "verdict")
        return ((name, getattr(self, name)) for name in names)

    def _repr_html_(self) -> str:
        """What a notebook shows: the page with a still picture; text where jinja2 is missing."""
        from .html import render_inline

        try:
            return render_inline(self)
        except ImportError:
            return super()._repr_html_()

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """One self-contained HTML page, as text; also written to ``path`` if given. Needs the extra ``cli``."""
        from .html import render

        return write_page(render(self), path)


def write_page(page: str, path: str | PathLike[str] | None) -> str:
    """The page; first written to a path, if there is one, where it appears whole or not at all."""
    if path is not None:
        check_free(Path(path), force=True)
        write_text(Path(path), page)
    return page

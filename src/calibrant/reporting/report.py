"""`Report`: a frozen result, available as text, dict, data frame and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..data import rooms_below
from ..data.libraries import to_frame
from ..data.printing import (
    Audience,
    fitted,
    half_width,
    known,
    nouns,
    printable,
    pvalue_text,
    shorten,
    text_table,
    text_width,
)
from ..data.result import Picture, Table, WithPage, jsonable
from ..data.types import Label
from ..measure.question import MANY
from ..measure.result import Estimate, ReliabilityCurve
from ..measure.scoring_rules import brier_words
from ..significance.result import few_groups
from .class_table import ClassRow
from .evidence import Evidence, RepairGain
from .report_curves import Curves
from .verdict import Verdict, advice_of, gain_digits

_WORST = 10


@dataclass(frozen=True, eq=False, repr=False)
class Report(WithPage, Picture, Table):
    """Calibration of a set of predictions: scores, errors, tests, classes and curves.

    Attributes
    ----------
    base_rates : mapping of label to float
        Share of each class.
    accuracy : float
        Share of rows whose most probable class is correct (a score above ½ for a 1-D ``y_prob``). With several
        labels, the share of the n L entries that a score above ½ predicts correctly: 1 minus the Hamming loss.
    brier : float
        Mean Brier score: ``(p - o)²`` for the second of two classes (0 to 1), ``Σ_k (p_k - o_k)²`` for more classes
        (0 to 2), the mean of ``(p_k - o_k)²`` over several labels (0 to 1).
    log_loss : float
        Mean negative log of the probability given to the observed class; infinite if it is 0 for any row.
    headline : Estimate
        Calibration error by the chosen estimator.
    estimates : mapping of name to Estimate
        Estimates by the main estimators, and the maximum calibration error, each computed on first access.
    values : mapping of name to float
        The same values without intervals, which take longer than everything else with many classes.
    per_class : tuple of ClassRow
        Class-wise table, worst first, with an interval and a test for each class; empty for a 1-D ``y_prob``. As a data
        frame: :meth:`classes_frame`.
    curves : Curves or None
        Curves of the notion with their bands; None if the notion has several problems.
    class_curves : mapping of label to Curves
        Curves of each class, with bands for the worst ones only.
    evidence : Evidence
        Test of calibration, whether the error matters, and which error the test can detect. The test decides where the
        intervals of ``headline`` and ``estimates`` start: above 0 exactly where it finds evidence. Their lower ends can
        therefore differ from those of :func:`calibrant.estimate`.
    gain : RepairGain
        Gain of a perfect recalibration in log-loss and Brier score, and the share of decisions that it changes.
    summary : str
        The verdict in one plain sentence.
    findings : tuple of str
        Steps of the verdict without the advice: evidence, place, size and importance of miscalibration, and the gain.
    streamed : bool
        Whether rows were streamed (quantile edges are then rounded to 1/``n_cells``).
    n_cells : int
        Number of cells of scores from which equal-mass bins and isotonic curves of streamed rows are computed.
    n_groups : int or None
        Number of groups of rows; None if rows were treated as independent.
    zero_probability_rows : tuple of int
        Rows (numbered from 0) whose label had probability 0, which makes ``log_loss`` infinite; empty if streamed.
    audience : Audience
        Python or the command line: :attr:`advice` names functions or commands accordingly.
    positive : label
        The class whose probability a 1-D ``y_prob`` gives; None for a matrix.
    several : bool
        Whether ``classes`` are labels of which a row may have any number: ``accuracy``, ``brier`` and ``log_loss`` are
        means over labels, each a two-class problem.
    weighted : bool
        Whether rows have weights.
    left_out : str
        Sentence on rows of the source that could not be used, such as answers of a log; "" if there are none.

    See Also
    --------
    calibrant.report : Computes it.
    calibrant.ReliabilityDisplay : Draws it.
    calibrant.results.Evidence : Its test, and the error that the test can detect.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.report(rng.random(2000) < p**2, p)
    >>> found.n_samples, found.evidence.status, sorted(found.base_rates)
    (2000, 'miscalibrated', [False, True])
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
    _gain: Mapping[str, RepairGain]
    _verdict: Mapping[str, Verdict]
    per_class: Sequence[ClassRow] = ()
    curves: Curves | None = None
    class_curves: Mapping[Label, Curves] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    positive: Label = None
    several: bool = False
    weighted: bool = False
    streamed: bool = False
    title: str = "Calibration report"
    n_groups: int | None = None
    n_cells: int = 65536
    zero_probability_rows: tuple[int, ...] = ()
    audience: Audience = Audience.PYTHON
    left_out: str = ""

    @property
    def gain(self) -> RepairGain:
        """Gain of a perfect recalibration, computed on first access; slower than everything else with many classes."""
        return self._gain["gain"]

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        return self._verdict["verdict"].summary

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings, step by step, and what was left out."""
        return (*self._verdict["verdict"].findings, *filter(None, [self.left_out]))

    @property
    def advice(self) -> str:
        """Next step; "" if there is none."""
        return advice_of(self.evidence, self.headline, self.audience, several=self.several, log_loss=self.log_loss)

    @property
    def verdict_parts(self) -> tuple[str, ...]:
        """Steps of the verdict: the :attr:`findings`, then the :attr:`advice`."""
        return (*self.findings, *filter(None, [self.advice]))

    @property
    def verdict(self) -> str:
        """The verdict in plain words: is the error real, where, how large, does it matter, and what to do next."""
        return " ".join(self.verdict_parts)

    @property
    def _off(self) -> tuple[Label, ...]:
        """Miscalibrated classes, which pages and pictures show first; empty where all rows are miscalibrated."""
        of_rows = self.headline.interval.low > 0 and self.curves is not None
        return () if of_rows else tuple(row.label for row in self.per_class if row.significant)

    @property
    def curve(self) -> ReliabilityCurve | None:
        """Smooth curve of the notion with its confidence band; None if the notion has several problems."""
        return None if self.curves is None else self.curves.smooth["confidence"]

    @property
    def bins(self) -> ReliabilityCurve | None:
        """Bins of the notion with Wilson intervals; None if the notion has several problems."""
        return None if self.curves is None else self.curves.bins["confidence"]

    def __str__(self) -> str:
        return _text_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON (NaN and infinities as None)."""
        rows = ("title", "n_samples", "n_groups", "classes", "positive", "base_rates")
        scores = ("accuracy", "brier", "log_loss", "notion", "weighted", "streamed")
        return {name: jsonable(getattr(self, name)) for name in (*rows, *scores)} | {
            "headline": replace(self.headline, drawn=None).to_dict(),
            "estimates": {name: replace(one, drawn=None).to_dict() for name, one in self.estimates.items()},
            "evidence": self.evidence.to_dict(),
            "gain": self.gain.to_dict(),
            "summary": self.summary,
            "verdict": self.verdict,
            "per_class": [row.to_dict() | {"direction": row.direction} for row in self.per_class],
            "curve": jsonable(self.curve),
            "bins": jsonable(self.bins),
        }

    def scalars(self) -> dict[str, float]:
        """Numbers under flat names, for metric stores: ``mlflow.log_metrics(report.scalars())``.

        Returns
        -------
        dict of str to float
            ``n_samples``, ``accuracy``, ``brier``, ``log_loss``, ``calibration_error`` with ``_low`` and ``_high``,
            ``pvalue``, each estimator as ``estimates/…``, and for each class ``class/…/calibration_error``,
            ``class/…/base_rate`` and ``class/…/mean_prob``. Names contain only letters, digits, ``_``, ``-``, ``.`` and
            ``/``; other characters become ``_``. If two labels give the same name, a number is appended to the later
            one. Non-finite numbers are omitted.
        """
        low, high = self.headline.interval
        found = {
            "n_samples": self.n_samples,
            "accuracy": self.accuracy,
            "brier": self.brier,
            "log_loss": self.log_loss,
            "calibration_error": self.headline.value,
            "calibration_error_low": low,
            "calibration_error_high": high,
            "pvalue": self.evidence.pvalue,
        } | {f"estimates/{_flat(name)}": one.value for name, one in self.estimates.items()}
        taken: set[str] = set()
        for number, row in enumerate(self.per_class):
            name = _flat(str(row.label))
            name = f"{name}_{number}" if name in taken else name
            taken.add(name)
            for what, value in (
                ("calibration_error", row.ece),
                ("base_rate", row.base_rate),
                ("mean_prob", row.mean_prob),
            ):
                found[f"class/{name}/{what}"] = value
        return {name: float(value) for name, value in found.items() if np.isfinite(value)}

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
        """The class-wise table as a data frame, worst first.

        Columns ``label``, ``count``, ``base_rate``, ``mean_prob``, ``ece``, ``low``, ``high``, ``pvalue``,
        ``adjusted``, ``significant`` and ``direction``; empty for a 1-D ``y_prob``.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Library of the data frame; by default as in :meth:`to_frame`.
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
        """HTML for notebooks: the page with a static picture; text if jinja2 is missing."""
        try:
            return rooms_below.inline(self)
        except ImportError:
            return super()._repr_html_()


def _text_of(report: Report) -> str:
    """Text as wide as a terminal."""
    r = report
    title = printable(r.title)
    lines = [title, "=" * min(len(title), 100), ""]
    lines += [
        *map(printable, r.verdict_parts),
        "",
        f"rows       {r.n_samples:,}" + (" (weighted)" if r.weighted else "") + in_groups(r),
        f"{nouns(several=r.several).many:<11}{len(r.classes)}  {_classes(r)}",
        f"accuracy   {r.accuracy:.4f}" + (f"  ({accuracy_words(several=True)})" if r.several else ""),
        f"Brier      {r.brier:.4f}  ({brier_words(len(r.classes), several=r.several)})",
        f"log-loss   {r.log_loss:.4f}" + (f"  ({zero_probability_text(r)})" if np.isinf(r.log_loss) else ""),
        f"evidence   {_evidence(r)}",
        f"repair     {_repair(r)}",
        "",
        *_error_table(r),
    ]
    if r.bins is not None:
        lines += ["", *_diagram(r.bins, "entries" if r.several else "rows" if r.n_groups is None else "as rows")]
    if r.per_class:
        lines += ["", *_class_table(r)]
    return fitted("\n".join([*lines, "", footnote(r)]))


def accuracy_words(several: bool) -> str:
    """Description of the accuracy; with several labels, each counts as one decision, as in the Hamming loss."""
    return "share of labels decided correctly at 1/2: 1 − Hamming loss" if several else "share of correct predictions"


def in_groups(r: Report) -> str:
    """`` in 40 groups``; "" where rows are treated as independent."""
    return "" if r.n_groups is None else f" in {r.n_groups:,} groups"


def _error_table(r: Report) -> list[str]:
    """Estimators side by side."""
    rows = error_rows(r)
    names = ("value", "interval", "corrected")
    columns = {name: [getattr(row, name) for row in rows] for name in names}
    return text_table({f"calibration error ({r.notion})": [row.name for row in rows]} | columns)


def _diagram(bins: ReliabilityCurve, rows: str) -> list[str]:
    """Reliability diagram in text: stated (|), observed (o) and its interval (-) for each non-empty bin."""
    width = int(np.clip(text_width() - 47, 21, 61))
    lines = [f"{'bin':<13}{rows:>12}{'stated':>8}{'observed':>10}   0{'observed frequency':^{width - 2}}1"]
    edges = bins.edges if bins.edges is not None else np.empty(0)
    for i in np.flatnonzero((bins.count > 0) & ~np.isnan(bins.observed)):
        strip = [" "] * width
        low, high, stated, observed = (
            round(float(v[i]) * (width - 1)) for v in (bins.lower, bins.upper, bins.scores, bins.observed)
        )
        strip[low : high + 1] = "-" * (high + 1 - low)
        strip[stated] = "|"
        strip[observed] = "o"
        name = f"{edges[i]:.3f}-{edges[i + 1]:.3f}"
        numbers = f"{bins.count[i]:>12,.0f}{bins.scores[i]:>8.3f}{bins.observed[i]:>10.3f}"
        lines.append(f"{name:<13}{numbers}   {''.join(strip)}".rstrip())
    return [*lines, "o observed, --- its interval, | mean prediction: o and | meet where the model is calibrated"]


def _class_table(r: Report) -> list[str]:
    """The worst classes, with miscalibrated ones marked."""
    score, rows = score_of(r.n_samples), list(r.per_class)[:_WORST]
    errors = [class_digits(c) for c in rows]
    columns = {
        nouns(several=r.several).one: [str(c.label) for c in rows],
        "rows": [f"{c.count:,.0f}" for c in rows],
        "ECE": [ece for ece, _, _ in errors],
        "interval": [f"{low} – {high}" for _, low, high in errors],
        "p adj.": [pvalue_text(c.adjusted, r.evidence._least) for c in rows],
        "base rate": [score(c.base_rate) for c in rows],
        "mean prob.": [score(c.mean_prob) for c in rows],
        "direction": [c.direction for c in rows],
    }
    lines = text_table(columns, ("direction", "rows"), ["*" if c.significant else " " for c in rows])
    if len(r.per_class) > _WORST:
        off = sum(c.significant for c in r.per_class[_WORST:])
        more = f"… and {len(r.per_class) - _WORST} more, with no larger ECE"
        lines.append(more + (f", {off} of them miscalibrated" if off else ""))
    return [*lines, class_note(r)]


def class_digits(row: ClassRow) -> tuple[str, str, str]:
    """Error of a class and the ends of its interval, with as many decimals as the interval allows."""
    spread = half_width(*row.interval)
    return known(row.ece, spread), known(row.interval.low, spread), known(row.interval.high, spread)


def class_note(r: Report) -> str:
    """Explanation of the mark of miscalibrated classes."""
    level = r.headline.level
    one, all_, _ = nouns(several=r.several)
    mark, alone = f"* miscalibrated at level {level:g}", f"{100 * level:g} % for each {one} separately"
    if len(r.classes) == 2 and r.notion not in ("confidence", "top-label") and not r.several:
        return f"{mark}: two classes make one test, and p is that of the report. Intervals are {alone}."
    each = one if r.several else f"{one} against the rest"
    number = f"{len(r.per_class):,} {all_}"
    return (
        f"{mark}: each {each}, by counts of outcomes in ranges of scores; p is adjusted for {number} "
        f"(Holm) and for the test of all rows beside them. Intervals of marked {all_} are adjusted for all {all_} too "
        f"(Bonferroni). The others are {alone}, without that adjustment: one can start above 0 where p is not "
        "significant."
    )


class ErrorRow(NamedTuple):
    """A line of the table of estimators; without an interval, only its name and value."""

    name: str
    value: str
    interval: str = ""
    corrected: str = ""
    estimate: Estimate | None = None

    @classmethod
    def of(cls, name: str, e: Estimate) -> ErrorRow:
        """Row with as many digits as the interval allows."""
        value, low, high = known_interval(e)
        return cls(name, value, f"{low} – {high}", known(e.corrected, half_width(*e.interval)), e)


def error_rows(r: Report) -> list[ErrorRow]:
    """Estimators, the headline's first; with many classes, the others have no intervals, which are slow to compute."""
    if len(r.headline.per_class) < MANY:
        return [ErrorRow.of(name, e) for name, e in r.estimates.items()]
    (first, _), *others = r.values.items()
    spread = half_width(*r.headline.interval)
    return [ErrorRow.of(first, r.headline), *(ErrorRow(name, known(value, spread)) for name, value in others)]


def known_interval(e: Estimate) -> tuple[str, str, str]:
    """Value and ends of an estimate, with as many decimals as the interval allows."""
    spread = half_width(*e.interval)
    return known(e.value, spread), known(e.interval.low, spread), known(e.interval.high, spread)


def zero_probability_text(r: Report, most: int = 3) -> str:
    """Why the log-loss is infinite, and the rows responsible if they are known."""
    what = "an observed outcome" if r.several else "observed class"
    if not r.zero_probability_rows:
        return f"{what} had probability 0"
    named, more = ", ".join(map(str, r.zero_probability_rows[:most])), len(r.zero_probability_rows) - most
    rows = f"rows {named} and {more:,} more" if more > 0 else f"row{'s' * (len(r.zero_probability_rows) > 1)} {named}"
    return f"{what} had probability 0 in {rows} (numbered from 0)"


def _evidence(r: Report) -> str:
    """The test behind the verdict."""
    test = r.evidence.test
    by = test.name
    if np.isinf(r.log_loss):
        by = f"{zero_probability_text(r)}; {test.name}: {pvalue_text(test.pvalue, test.least_pvalue)}"
    elif r.evidence.pvalue != test.pvalue:
        least = min((row.adjusted for row in r.per_class if row.adjusted == row.adjusted), default=float("nan"))
        many = nouns(several=r.several).many
        by = f"rows: {pvalue_text(test.pvalue, test.least_pvalue)}, {many}: {pvalue_text(least)}"
    return f"{r.evidence.status}: p {r.evidence.pvalue_text} ({by})"


def repair(r: Report) -> str:
    """Gain in log-loss of a perfect recalibration."""
    low, high = map(gain_digits, r.gain.log_loss_interval)
    return f"{gain_digits(r.gain.log_loss)} ({low} to {high})"


def _repair(r: Report) -> str:
    g = r.gain
    low, high = map(gain_digits, g.brier_interval)
    brier = f"Brier by {gain_digits(g.brier)} ({low} to {high})"
    if np.isinf(r.log_loss):
        return f"would make the log-loss finite and lower {brier}"
    return f"would lower log-loss by {repair(r)}, {brier}"


def _classes(r: Report) -> str:
    names = shorten(r.classes, 20)
    shown = [f"{name} {100 * r.base_rates[c]:.1f} %" for c, name in zip(r.classes[:5], names, strict=False)]
    return ", ".join(shown) + (", …" if len(r.classes) > 5 else "")


def footnote(r: Report) -> str:
    """Explanation of the numbers."""
    note = (
        f"Intervals of the calibration error are {100 * r.headline.level:g} % and account for the estimator's own "
        "bias, so an interval may lie mostly below its value; they start at 0 unless the test of all rows rejects. "
        "'corrected' is the median-unbiased value. "
        "The gain of a perfect repair is that of replacing each score by its true frequency."
    )
    if r.gain.by_class:
        note = f"{note[:-1]}, class by class: a calibrator of all classes together may gain more."
    if len(r.headline.per_class) >= MANY:
        note += (
            f" With this many {nouns(several=r.several).many}, only the first estimator has an interval here; the "
            "table of estimators has all."
        )
    if r.streamed:
        note += (
            " Rows were streamed: edges of equal-mass bins and the verdict's ranges of scores are rounded to "
            f"1/{r.n_cells}."
        )
    if r.n_groups is None:
        return f"{note} Rows are treated as independent: if some belong together, pass {r.audience.option('groups')}."
    note += (
        f" Rows within each of {r.n_groups:,} groups may depend on each other; groups are treated as independent, and "
        "the rows of a bin count as an equivalent number of independent rows."
    )
    return " ".join([note, *(f"{text[0].upper()}{text[1:]}." for text in few_groups(r.n_groups))])


def _flat(name: str) -> str:
    """Name that metric stores accept."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_") or "_"


def score_of(n_samples: int) -> Callable[[float], str]:
    """Formatter of shares and scores with as many digits as the number of rows allows."""
    return partial(known, spread=0.5 / np.sqrt(n_samples))

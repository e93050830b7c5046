"""`CalibratorComparison`: a frozen result, available as text, dict, data frame and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..calibrators import Calibrator
from ..calibrators.choosing import ALONE, SCORE_WORDS, SURE, choice_sentence, mixture_of
from ..calibrators.crossval import SCORES
from ..data import rooms_below
from ..data.checks import check_choice
from ..data.printing import Audience, fitted, half_width, known, printable, signed, text_table, with_ends
from ..data.result import Picture, Result, Table, WithPage, jsonable
from ..data.types import Interval, Label
from ..measure.result import Estimate
from ..measure.scoring_rules import brier_words
from .html import TABLES, page_of, views_of
from .report import Report, known_interval, score_of

#: Half-width of an interval above which the verdict states the uncertainty.
_WIDE = 0.02


def verdict_of(c: CalibratorComparison) -> tuple[str, ...]:
    """Sentences of :attr:`CalibratorComparison.verdict`."""
    row = c.row(c.chosen)
    parts = (_choice(c), _change(c, row), _gain(c, row), _trade(c, row), _open(c), _rows(c))
    return tuple(part for part in parts if part)


def _choice(c: CalibratorComparison) -> str:
    heaviest = max(c.weights, key=lambda name: c.weights[name])
    table = [
        {
            "name": row.name,
            "difference": row.difference,
            "se": row.se,
            "weight": c.weights.get(row.name) if len(c.weights) > 1 else None,
            "chosen": row.name == heaviest,
        }
        for row in c.rows
    ]
    return choice_sentence(table, c.goal, c.rule)


def _open(c: CalibratorComparison) -> str:
    """Whether another sample might lead to another kind of map."""
    if c.leading is None or c.leading[1] >= SURE:
        return ""
    family, share = c.leading
    if family == ALONE:
        change = "a change" if _alone(c) else "a further change"
        return f"Whether {change} helps is open: {100 * (1 - share):.0f} % of resamples of these rows support one."
    return (
        f"Which kind of calibrator is best is open: {family} leads in {100 * share:.0f} % of resamples of these rows."
    )


def _alone(c: CalibratorComparison) -> bool:
    return c.chosen == "identity"


def _change(c: CalibratorComparison, row: ComparedCalibrator) -> str:
    """Error before and after, as in the reports on these probabilities."""
    before, after = None if c.before is None else c.before.headline, _after(c, row)
    if _alone(c):
        status = "evidence of miscalibration" if after.interval.low > 0 else "no evidence of miscalibration"
        return f"Their calibration error is {_with_interval(after)}: {status}."
    came = "" if before is None else f"from {known(before.value, _spread(before))} "
    end = "still miscalibrated" if after.interval.low > 0 else "no evidence of miscalibration remains"
    return f"On held-out rows the calibration error goes {came}to {_with_interval(after)}: {end}."


def _after(c: CalibratorComparison, row: ComparedCalibrator) -> Estimate:
    """Estimate of the choice, with the interval of its report where there is one, whose test decides."""
    if _alone(c) and c.before is not None:
        return c.before.headline
    return c.after.headline if c.shown == c.chosen else row.error


def _gain(c: CalibratorComparison, row: ComparedCalibrator) -> str:
    """Gain in the proper score, and whether it exceeds noise; that in the other one where the conclusion differs."""
    if _alone(c) or row.gain != row.gain:
        return ""
    score, other = (SCORE_WORDS[name] for name in (SCORES[::-1] if c.goal == "brier" else SCORES))
    said = _gained(score, row.gain, row.gain_interval, f"{100 * c.level:g} % interval ")
    if _sign(row.gain_interval) == _sign(row.other_gain_interval):
        return f"The {said}."
    return f"The {said}, but the {_gained(other, row.other_gain, row.other_gain_interval)}."


def _gained(score: str, gain: float, interval: Interval, level: str = "") -> str:
    """``log-loss falls by 0.071 (95 % interval 0.059 to 0.083)``."""
    low, high = interval
    if _sign(interval) == 0:
        change = with_ends(-gain, (-high, -low), signed).replace("-", "−").replace("(", f"({level}")
        return f"change of the {score}, {change}, is within sampling noise"
    ends = (low, high) if gain > 0 else (-high, -low)
    said = with_ends(abs(gain), ends).replace("(", f"({level}")
    return f"{score} {'falls' if gain > 0 else 'rises'} by {said}"


def _sign(interval: Interval) -> int:
    """1 for a gain, -1 for a loss, 0 within noise."""
    return int(interval.low > 0) - int(interval.high < 0)


def _trade(c: CalibratorComparison, row: ComparedCalibrator) -> str:
    """The candidate that is significantly better calibrated than the choice, if any, and its price."""
    after = _after(c, row)
    better = [one for one in c.rows if one is not row and _beats(one.error, after)]
    if not better:
        again = "recalibrating" if _alone(c) else "recalibrating again"
        return (
            f"No other calibrator is significantly better calibrated: {again} gains nothing."
            if after.interval.low > 0
            else ""
        )
    one = min(better, key=lambda other: other.error.value)
    noise = " (within sampling noise)" if _sign(one.cost_interval) == 0 else ""
    price = f"for {'+' if one.cost >= 0 else '−'}{_with_error(one.cost, one.cost_se)} {_score(c)}{noise}"
    how = "" if c.goal == "calibration" else f": the goal calibration ({c.audience.option('goal')}) weighs that"
    return f"{one.name} reaches {_with_interval(one.error)} {price}{how}."


def _beats(one: Estimate, other: Estimate) -> bool:
    """Whether values lie outside each other's intervals; or ``one`` is at most half, and only ``other`` is above 0."""
    apart = one.interval.high < other.value and one.value < other.interval.low
    clear = other.interval.low > 0 and not one.interval.low > 0
    return apart or (clear and one.value <= other.value / 2)


def _rows(c: CalibratorComparison) -> str:
    """Uncertainty with few rows."""
    half = _spread(c.after.headline)
    if not half > _WIDE:
        return ""
    return (
        f"With {c.n_samples:,} rows the calibration error is uncertain by ± {half:.2g}; smaller gains need more rows."
    )


def _score(c: CalibratorComparison) -> str:
    return SCORE_WORDS["log-loss" if c.goal == "calibration" else c.goal]


def _with_interval(one: Estimate) -> str:
    low, high = (known(end, _spread(one)) for end in one.interval)
    return f"{known(one.value, _spread(one))} ({low} to {high})"


def _spread(one: Estimate) -> float:
    return half_width(*one.interval)


def _with_error(value: float, se: float) -> str:
    return f"{known(abs(value), se)} (standard error {known(se, se)})"


#: Format of a saved comparison.
FORMAT = "calibrant-comparison"


@dataclass(frozen=True, repr=False)
class ComparedCalibrator(Result):
    """One calibrator of a comparison, evaluated on rows that it was not fitted to.

    Attributes
    ----------
    name : str
        Name of the calibrator.
    log_loss, brier : float
        Means over the rows: the log-loss with probabilities below 1e-6 counted as 1e-6, the Brier score ``(p - o)²``
        for the second of two classes (0 to 1), ``Σ_k (p_k - o_k)²`` for more classes (0 to 2).
    difference, se : float
        The deciding loss minus the least one, and its standard error (paired by rows; that of the error itself if the
        loss is a calibration error).
    accuracy : float
        Share of rows whose most probable class is correct.
    accuracy_change, accuracy_change_se : float
        Change of the accuracy from that of the unchanged scores, and its standard error; NaN for margins.
    error : Estimate
        Calibration error with its interval.
    seconds : float
        Mean time of a fit.
    gain, gain_se, gain_interval : float, float, Interval
        Decrease of the log-loss (of the Brier score if that is the goal) from that of the unchanged scores, its
        standard error and interval; negative if the calibrator does harm. NaN for margins.
    other_gain, other_gain_interval : float, Interval
        The same for the other of the two scores.
    cost, cost_se, cost_interval : float, float, Interval
        Log-loss (Brier score if that is the goal) minus that of the choice, its standard error and interval.

    See Also
    --------
    calibrant.compare_calibrators : Computes it.
    calibrant.results.CalibratorComparison : The whole comparison.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> found = cal.compare_calibrators(rng.random(1000) < p**2, p, candidates=["identity", "beta"])
    >>> found.row("beta").gain > 0
    True
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the comparison draws it."

    name: str
    log_loss: float
    brier: float
    difference: float
    se: float
    accuracy: float
    accuracy_change: float
    accuracy_change_se: float
    error: Estimate
    seconds: float
    gain: float
    gain_se: float
    gain_interval: Interval
    other_gain: float
    other_gain_interval: Interval
    cost: float
    cost_se: float
    cost_interval: Interval

    @property
    def summary(self) -> str:
        """Log-loss and calibration error on held-out rows."""
        after = f"After {printable(self.name)} the log-loss on held-out rows is {self.log_loss:.4f}"
        return f"{after}, and the calibration error {with_ends(self.error.value, self.error.interval)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON; without the curve, which is in the report."""
        return super().to_dict() | {"error": self.error.to_dict() | {"curve": None}}


@dataclass(frozen=True, eq=False, repr=False)
class CalibratorComparison(WithPage, Picture, Table):
    """Result of :func:`calibrant.compare_calibrators`.

    Attributes
    ----------
    n_folds : int
        Number of folds.
    goal, rule : str
        The deciding loss, and the rule of choice.
    level : float
        Level of intervals and bands.
    chosen : str
        Name of the calibrator that the rule chooses, or ``"average"`` where several have weight.
    rows : tuple of ComparedCalibrator
        One row per calibrator, the simplest first; their average comes last, if it is chosen.
    weights : mapping of str to float
        Weights of the chosen candidates, which sum to 1: those of :class:`calibrant.AutoCalibrator`, which uses at most
        10,000 rows per class, where this comparison uses all.
    leading : (str, float) or None
        With the rule ``"average"``: the family of calibrators with the largest weight (logistic maps, such as
        temperature, Platt, beta and matrix scaling; splines; isotonic regression; the identity), and the share of 20
        resamples of the held-out rows in which it leads. Below 0.9 the verdict states that the family is open.
    n_groups : int or None
        Number of groups of rows that may depend on each other.
    before : Report or None
        Report on the unchanged scores; None for margins, which are not probabilities.
    after : Report
        Report on the held-out probabilities of the calibrator ``shown``.
    shown : str
        The chosen calibrator, or the best of the others if the choice is to leave the scores unchanged.
    candidates : mapping of str to Calibrator
        The candidates, unfitted.
    digest : str
        Digest that identifies the rows.
    audience : Audience
        Python or the command line: the verdict names arguments or options accordingly.

    See Also
    --------
    calibrant.compare_calibrators : Computes it.
    calibrant.results.ComparedCalibrator : One of its rows.
    calibrant.results.Selection : The choice without the comparison.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> found = cal.compare_calibrators(rng.random(1000) < p, p, candidates=["identity", "temperature"])
    >>> found.chosen, [row.name for row in found.rows]
    ('identity', ['identity', 'temperature'])
    """

    display: ClassVar[str] = "ReliabilityDisplay"

    n_samples: int
    n_folds: int
    classes: tuple[Label, ...]
    goal: str
    rule: str
    level: float
    chosen: str
    shown: str
    rows: tuple[ComparedCalibrator, ...]
    weights: Mapping[str, float]
    n_groups: int | None
    before: Report | None
    after: Report
    leading: tuple[str, float] | None = None
    title: str = "Comparison of calibrators"
    candidates: Mapping[str, Calibrator] = field(default_factory=dict)
    digest: str = ""
    audience: Audience = Audience.PYTHON

    @property
    def within_noise(self) -> bool:
        """Whether the choice changes scores that could be left unchanged, with a gain within sampling noise."""
        row, alone = self.row(self.chosen), next((row for row in self.rows if row.name == "identity"), None)
        if alone is None or row is alone:
            return False
        return not _beats(row.error, alone.error) if self.goal == "calibration" else not row.gain_interval.low > 0

    def calibrator(self, name: str | None = None) -> Calibrator:
        """Return the choice, an average with its weights, or a named candidate, ready to be fitted.

        The comparison is not repeated.

        Fit it with ``comparison.calibrator().fit(y_prob, y_true)``; its labels and ``input`` are those compared.

        Parameters
        ----------
        name : str, optional
            Name of a candidate, or ``"average"``; by default the choice.
        """
        wanted = self.row(self.chosen if name is None else name).name
        parts = self.candidates if wanted == self.chosen else {wanted: self.candidates[wanted]}
        fresh: Calibrator = clone(mixture_of(parts, self.weights if wanted == self.chosen else {wanted: 1.0}))
        return fresh

    def row(self, name: str) -> ComparedCalibrator:
        """Return the row of a calibrator; raise ValueError if there is none.

        Parameters
        ----------
        name : str
            Name of the calibrator.
        """
        rows = {row.name: row for row in self.rows}
        return rows[check_choice("name", name, rows)]

    @property
    def verdict(self) -> str:
        """Advice and its reason, the change on held-out rows, the remaining error, and the uncertainty."""
        return " ".join(self.verdict_parts)

    @property
    def verdict_parts(self) -> tuple[str, ...]:
        """Steps of the verdict: choice, before and after, gain, price, open questions, and uncertainty."""
        return verdict_of(self)

    def __str__(self) -> str:
        title = printable(self.title)
        lines = [
            title,
            "=" * min(len(title), 100),
            "",
            printable(self.verdict),
            "",
        ]
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        lines.append(f"rows       {self.n_samples:,}{groups}, {self.n_folds} folds")
        lines.append(f"classes    {len(self.classes)}")
        lines += ["", *self._table()]
        note = (
            "> the choice. All numbers are from rows that the calibrator was not fitted to. Log-loss counts "
            f"probabilities below 1e-6 as 1e-6; Brier scores are {brier_words(len(self.classes))}. Intervals are "
            f"{100 * self.level:g} %; 'error' is the calibration error ({self.rows[0].error.notion})."
        )
        return fitted("\n".join([*lines, "", note]))

    def _table(self) -> list[str]:
        """Table of calibrators, one line each."""
        rows, errors = self.rows, [known_interval(row.error) for row in self.rows]
        changes = (row.accuracy_change for row in rows)
        columns = {
            "calibrator": [row.name for row in rows],
            "log-loss": [f"{row.log_loss:.4f}" for row in rows],
            "Brier": [f"{row.brier:.4f}" for row in rows],
            "accuracy": [f"{row.accuracy:.4f}" for row in rows],
            "change": ["" if np.isnan(change) else f"{change:+.4f}" for change in changes],
            "error": [value for value, _, _ in errors],
            "interval": [f"{low} – {high}" for _, low, high in errors],
            "fit": [seconds_of(row.seconds) for row in rows],
        }
        return text_table(columns, ("fit", "change"), [">" if row.name == self.chosen else " " for row in rows])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON (NaN and infinities as None)."""
        rows = ("title", "n_samples", "n_groups", "n_folds", "classes")
        rule = ("digest", "goal", "rule", "level", "chosen", "weights", "leading", "within_noise", "verdict", "shown")
        return (
            {"format": FORMAT, "version": 1}
            | {name: jsonable(getattr(self, name)) for name in (*rows, *rule)}
            | {
                "input": next((one.input for one in self.candidates.values()), "probability"),
                "calibrators": [row.to_dict() for row in self.rows],
                "before": jsonable(self.before),
                "after": self.after.to_dict(),
            }
        )

    def _seen(self) -> dict[str, Any]:
        rows, score = self.rows, score_of(self.n_samples)
        return {
            "calibrator": [row.name for row in rows],
            "log-loss": [score(row.log_loss) for row in rows],
            "Brier": [score(row.brier) for row in rows],
            "accuracy": [score(row.accuracy) for row in rows],
            "change": [change_of(row) for row in rows],
            "error": [row.error.value for row in rows],
            "error_low": [row.error.interval.low for row in rows],
            "error_high": [row.error.interval.high for row in rows],
            "fit": [seconds_of(row.seconds) for row in rows],
        }

    @property
    def summary(self) -> str:
        """The verdict."""
        return self.verdict

    @property
    def _pairs(self) -> list[tuple[str, Report]]:
        """Reports before, if scores are probabilities, and after, by their names."""
        after = f"after {self.shown}" + ("" if self.shown == self.chosen else " (not chosen)")
        return ([] if self.before is None else [("before", self.before)]) + [(after, self.after)]

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the diagrams before and after on the same axes, and return the display. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        **options
            Options of :meth:`.ReliabilityDisplay.plot`.
        """
        drawn, display = None, rooms_below.display("ReliabilityDisplay")
        for name, each in self._pairs:
            new = display.of(each, None if drawn is None else drawn.classes)
            drawn = new.plot(ax if drawn is None else drawn.axes_, name=name, **options)
        return drawn

    def _page(self, name: str) -> str:
        return _page_of(self, name)

    def _marked(self) -> list[bool]:
        return [row.name == self.chosen for row in self.rows]

    def _columns(self) -> dict[str, Any]:
        scores = ("log_loss", "brier", "difference", "se", "accuracy", "accuracy_change", "accuracy_change_se")
        names = ("name", *scores, "gain", "gain_se", "other_gain", "cost", "cost_se")
        columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in self.rows] for name in names}
        columns["gain_low"] = [row.gain_interval.low for row in self.rows]
        columns["gain_high"] = [row.gain_interval.high for row in self.rows]
        columns["error"] = [row.error.value for row in self.rows]
        columns["error_low"] = [row.error.interval.low for row in self.rows]
        columns["error_high"] = [row.error.interval.high for row in self.rows]
        columns["seconds"] = [row.seconds for row in self.rows]
        columns["chosen"] = [row.name == self.chosen for row in self.rows]
        return columns


def _page_of(comparison: CalibratorComparison, name: str) -> str:
    """HTML text of a comparison, with the diagrams before and after."""
    c = replace(comparison, audience=comparison.audience.for_page)
    order = [row.label for row in c._pairs[0][1].per_class]
    charts = [{"caption": caption, "views": views_of(report, order, short=True)} for caption, report in c._pairs]
    about = {"seconds_of": seconds_of, "brier_words": brier_words, "score": score_of(c.n_samples), "change": change_of}
    return page_of("comparison.html", c, c.level, charts, "CalibratorComparison", name=name, **TABLES, **about)


def change_of(row: ComparedCalibrator) -> str:
    """Change of the accuracy, with as many digits as its standard error allows."""
    change = row.accuracy_change
    return "–" if np.isnan(change) else signed(change, row.accuracy_change_se).replace("-", "−")


def seconds_of(seconds: float) -> str:
    """``3.2 ms``, ``0.41 s``, ``12 s``."""
    if seconds < 0.0995:
        return f"{1e3 * seconds:.2g} ms"
    return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"

"""Evidence of a report: whether the error is real and matters, and the gain of recalibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_fraction
from ..data.printing import equals, with_ends
from ..data.result import LazyMapping, Result
from ..data.types import AnyArray, FloatArray, Interval
from ..estimators.base import ErrorDraws, Functional
from ..estimators.laplace import CELLS_A_TERM, RankCells, n_terms
from ..estimators.laplace_draws import DrawnMaps
from ..measure.posterior import credible
from ..measure.question import Question
from ..measure.result import Estimate
from ..significance.report_test import SumsTest
from ..significance.result import TestResult
from ..sums import GridMoments
from .class_table import ClassRow

#: Error that matters at a base rate of one half, as a share of the outcome's standard deviation.
MATERIAL = 0.1
#: Share of ``1 - level`` for the test where classes are tested too. It is large: the p-value of a class decreases
#: exponentially with its rows, so that a fifth costs the classes few rows, and a half would cost the test many.
JOINT = 0.8
#: Drawn probabilities are clipped to at least this distance from 0 and 1 for logits.
_EDGE = 1e-12
#: Number of parts of a cell's scores, each assigned to one side of a threshold.
_PARTS = 16


@dataclass(frozen=True, repr=False)
class Evidence(Result):
    """Test of calibration, whether the error matters, and the error that a test of these rows can detect.

    The test of all rows and the tests of classes share ``1 - level`` (4 : 1), so that together they call a calibrated
    sample miscalibrated in at most ``1 - level`` of cases:

    ================  ==============  =============================================================================
    status            p-value         matters
    ================  ==============  =============================================================================
    "miscalibrated"   ≤ 1 - level     True: the interval of the error, or of a significant class, starts at
                                      ``tolerance`` or above; False: those of the error and of all classes end
                                      below ``tolerance``; None: otherwise
    "no evidence"     above           False: the intervals of the error and of all classes end below ``tolerance``
    "undecided"       above           None: one of them does not
    ================  ==============  =============================================================================

    The interval of :attr:`.Report.headline` starts above 0 exactly where the test of all rows rejects. An outcome whose
    probability was 0 rules out that its class is calibrated, whatever the notion and the tests: the p-value is 0.

    Attributes
    ----------
    status : {"miscalibrated", "no evidence", "undecided"}
        ``"miscalibrated"``: the p-value of all rows or of a class is at most ``1 - level`` (or the smallest that the
        draws can give). ``"no evidence"``: it is not, and the intervals rule out errors that matter. ``"undecided"``:
        it is not, and the intervals do not rule them out; or there are no data.
    matters : bool or None
        Whether the calibration error, or that of a class, is ``tolerance`` or more; None if the data are inconclusive.
    test : TestResult
        Test of residuals smoothed over ranks, against labels drawn from the probabilities.
    pvalue : float
        The smaller of the p-value of the test and the smallest Holm-adjusted p-value of a class, each divided by its
        share of ``1 - level``. That of the test if classes are not tested separately: with two of them, or one column.
        0 if an observed outcome had probability 0.
    detectable : float
        Calibration error that the test detects in four of five samples like this one, if scores are too high, too low,
        over- or under-confident throughout; infinite if none is detected. Errors that alternate from score to score are
        harder to detect. It is known before the outcomes; the interval is known after them and may exclude it.
    tolerance : float
        Smallest calibration error that matters: the argument, or by default 0.1 standard deviations of the outcome
        times the square root of the entropy of its base rate in bits.
    rows_needed : float
        Approximate number of rows like these needed to detect an error of that size in four of five samples, and to
        rule it out; more than the present number while undecided.

    See Also
    --------
    calibrant.report : Computes it, in ``evidence``.
    calibrant.results.RepairGain : The gain of a perfect recalibration.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> evidence = cal.report(rng.random(2000) < p**2, p).evidence
    >>> evidence.status, evidence.matters
    ('miscalibrated', True)
    """

    _unpictured: ClassVar[str] = "No picture: plot() of its test shows the statistic."

    status: str
    matters: bool | None
    test: TestResult
    pvalue: float
    tolerance: float
    _least: float = field(repr=False, compare=False)
    _power: Mapping[str, tuple[float, float]] = field(repr=False, compare=False)

    @property
    def summary(self) -> str:
        """Result of the test, and whether the error matters."""
        p, least = f"(p {self.pvalue_text})", f"errors of {self.tolerance:.2g} or more"
        if self.status == "no evidence":
            return f"There is no evidence of miscalibration {p}, and {least} are ruled out."
        if self.status == "undecided":
            return f"There are too few rows to tell {p}: {least} are not ruled out."
        how = {True: "it matters", False: "it is too small to matter", None: "it may matter"}[self.matters]
        return f"There is evidence of miscalibration {p}, and {how}."

    @property
    def detectable(self) -> float:
        """Detectable calibration error, computed on first access."""
        return self._power["power"][0]

    @property
    def rows_needed(self) -> float:
        """Number of rows needed, computed on first access."""
        return self._power["power"][1]

    @property
    def pvalue_text(self) -> str:
        """The p-value with its relation sign: ``= 0.012``, ``≤ 0.001``."""
        return equals(self.pvalue, self._least)

    def _shown(self) -> Iterable[tuple[str, Any]]:
        names = ("status", "matters", "test", "pvalue", "detectable", "tolerance", "rows_needed")
        return ((name, getattr(self, name)) for name in names)

    @classmethod
    def of(
        cls,
        found: SumsTest,
        estimate: Estimate,
        classes: Sequence[ClassRow],
        tolerance: float,
        drawn_again: Callable[[], SumsTest],
        impossible: bool,
    ) -> Evidence:
        """Evaluate the test, at the level of an estimate's :func:`settled` interval, and of classes if they count.

        The many draws of the test are not kept: if its power is read later, they are ``drawn_again``.

        Parameters
        ----------
        found : SumsTest
            The test of all rows.
        estimate : Estimate
            The headline, at whose level evidence is evaluated.
        classes : sequence of ClassRow
            Classes with their p-values; empty if they do not count.
        tolerance : float
            Smallest calibration error that matters.
        drawn_again : callable
            Repeats the draws of the test, for its power.
        impossible : bool
            Whether an observed outcome had probability 0.
        """
        test, joint = found.result, share_of_test(classes)
        off = [row.interval.low for row in classes if row.significant]
        low = max([estimate.interval.low, *off])
        high = max([estimate.interval.high, *(end for _, end in (row.interval for row in classes) if end == end)])
        unknown = np.isnan(test.pvalue) or np.isnan(estimate.interval.high)
        matters = None if unknown else True if low >= tolerance else False if high < tolerance else None
        wrong = found.rejects or bool(off) or impossible
        status = "miscalibrated" if wrong else "undecided" if matters is None else "no evidence"
        pvalues = [p for p in (test.pvalue / joint, *(row.adjusted for row in classes)) if p == p]
        pvalue = 0.0 if impossible else min(1.0, *pvalues) if pvalues else float("nan")
        power: Mapping[str, tuple[float, float]]
        if status == "undecided":  # the verdict tells it
            power = {"power": _power_of(found, tolerance, status, high)}
        else:
            power = LazyMapping({"power": lambda: _power_of(drawn_again(), tolerance, status, high)})
        return cls(status, matters, test, pvalue, tolerance, test.least_pvalue / joint, power)


def share_of_test(classes: Sequence[ClassRow]) -> float:
    """Share of ``1 - level`` for the test of all rows, the rest being for those of classes."""
    return JOINT if classes else 1.0


def _power_of(test: SumsTest, bar: float, status: str, high: float) -> tuple[float, float]:
    """The error that a test detects, and the number of rows needed for an error as large as the bar."""
    power = test.power
    needed = power.rows_for(bar)
    if status == "undecided" and high > bar:
        # The interval must shrink as well, with the root of n.
        needed = max(needed, replace(power, detectable=high).rows_for(bar))
    elif status == "no evidence":
        needed = min(needed, power.n_samples)
    return power.detectable, needed


def usual_tolerance(grids: Sequence[GridMoments], question: Question) -> float:
    """Default tolerance ``0.1 sd √H``: standard deviation of the outcome, entropy of its base rate in bits.

    At the base rate, an error of that size costs 0.7 % of the log-loss of always predicting it, whatever it is
    (``e² / 2v`` of ``H log 2``), and at most 1 % of the Brier score (``e²`` of v). With several classes, each against
    the rest, it is ``2 / K`` of that: such an error moves probability from one class to another, the variance is
    ``Σ_k π_k (1 - π_k) / 2``, and the entropy is half the sum over the classes, at most 1.
    """
    mass = np.array([g.total for g in grids])
    rates = np.array([float(g.positive.sum()) for g in grids])[mass > 0] / mass[mass > 0]
    if not rates.size:
        return float("nan")
    # Where nothing or everything happened, as if half a row more had been otherwise.
    least = min(0.5 / max(question.n_samples, 1.0), 0.5)
    rates = np.clip(rates, least, 1 - least)
    share = np.full(rates.size, 0.5) if question.exclusive else mass[mass > 0] / mass.sum()
    variance = float(share @ (rates * (1 - rates)))
    bits = float(-share @ (rates * np.log2(rates) + (1 - rates) * np.log2(1 - rates)))
    return MATERIAL * question.largest * float(np.sqrt(variance * min(bits, 1.0)))


def check_tolerance(tolerance: float | None) -> float | None:
    """Check the ``tolerance`` argument."""
    return None if tolerance is None else check_fraction("tolerance", tolerance)


def settled(estimate: Estimate, excess: float) -> Estimate:
    """An estimate whose interval starts above 0 exactly where the test rejects, by its :attr:`.SumsTest.excess`.

    The test decides because its size is exact whatever the prior and the estimator. Where it does not reject, the
    interval starts at 0, and so covers the true value more often. Where it does and the interval started at 0, it
    starts at the excess of the statistic over its threshold, itself a lower limit, or at the value if lower (above 0).
    """
    low, high = estimate.interval
    if not excess > 0:
        low = 0.0 if low > 0 else low
    elif not low > 0:
        low = min(excess, estimate.value) if estimate.value > 0 else excess
        high = max(high, low) if high == high else 1.0
    corrected = min(max(estimate.corrected, low), high) if estimate.corrected == estimate.corrected else low
    return replace(estimate, interval=Interval(low, high), corrected=corrected)


@dataclass(frozen=True, repr=False)
class RepairGain(Result):
    """Gain of a perfect recalibration, which replaces each probability by the true frequency at it.

    Medians and intervals of a posterior. With three or more classes, the gain is that of one map per class, whatever
    the notion; one of the whole vector, such as temperature scaling, can gain more. A calibrator fitted to n rows gains
    less, by about its number of parameters divided by 2n in log-loss.

    Attributes
    ----------
    log_loss, brier : float
        Two classes: means over the rows of ``g log(g / s) + (1 - g) log((1 - g) / (1 - s))`` and of ``(g - s)²``, where
        g is the frequency at a score s. More: means of ``Σ_k g_k log(g_k / s_k) - g_k + s_k`` and of
        ``Σ_k (g_k - s_k)²``, lower bounds on the gain of vectors if the ``g_k`` are scaled to sum to 1. Scores of 0 and
        1 are moved inwards by ``1 / (2n + 4)``.
    log_loss_interval, brier_interval : Interval
        Intervals at the report's level; they start above 0 exactly where the test of all rows or of a class rejects.
    threshold : float or None
        Decision threshold: the lowest score at which one acts.
    changed : float or None
        Share of decisions that recalibration changes: s is at least the threshold and g is not, or vice versa. None
        without a threshold, and where only a few rows lie on one side of it before repair and after: fewer than the
        map can resolve.
    changed_interval : Interval or None
        Interval of this share.
    by_class : bool
        Whether the gain is that of repairing each of three or more classes by itself: a map of all of them together may
        gain more.

    See Also
    --------
    calibrant.report : Computes it, in ``gain``.
    calibrant.compare_calibrators : Gains of calibrators on held-out rows.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> gain = cal.report(rng.random(2000) < p**2, p, threshold=0.5).gain  # the truth: 1/30
    >>> gain.brier_interval.low < 1 / 30 < gain.brier_interval.high, gain.threshold
    (True, 0.5)
    """

    _unpictured: ClassVar[str] = "No picture: a gain is one number."

    log_loss: float
    log_loss_interval: Interval
    brier: float
    brier_interval: Interval
    threshold: float | None = None
    changed: float | None = None
    changed_interval: Interval | None = None
    by_class: bool = False

    @property
    def summary(self) -> str:
        """Gain of a perfect recalibration."""
        log_loss, brier = with_ends(self.log_loss, self.log_loss_interval), with_ends(self.brier, self.brier_interval)
        return f"{self.repair} would lower the log-loss by {log_loss} and the Brier score by {brier}."

    @property
    def repair(self) -> str:
        """The repair whose gain it is, in words."""
        return f"A perfect repair{' of each class by itself' if self.by_class else ''}"

    @classmethod
    def of(
        cls,
        gains: tuple[ErrorDraws, Question],
        low: float,
        threshold: float | None,
        decisions: tuple[ErrorDraws, Question],
        grids: Sequence[GridMoments],
    ) -> RepairGain:
        """Gain from the :func:`gain_functionals` of draws; ``low`` is the least error of a problem, 0 for none.

        An error e costs at least e² of the Brier score (Jensen) and 2 e² of the log-loss (Pinsker). Decisions are those
        of the notion, whose draws may differ.

        Parameters
        ----------
        gains : (ErrorDraws, Question)
            Draws of the gains of recalibration.
        low : float
            Least error of a problem; 0 for none.
        threshold : float or None
            Decision threshold.
        decisions : (ErrorDraws, Question)
            Draws for the notion whose decisions change.
        grids : sequence of GridMoments
            Rows of the notion's problems.
        """
        brier, log_loss = (_read(gains, i, low, least) for i, least in enumerate((low**2, 2 * low**2)))
        told = threshold is not None and tells(grids, threshold, np.median(decisions[0].functionals[3], axis=-1))
        changed, ends = _read(decisions, 2, low, 0.0) if told else (None, None)
        return cls(*log_loss, *brier, threshold, changed, ends, gains[1].exclusive and len(gains[1]) > 2)


def gain_functionals(question: Question, threshold: float | None = None, every: int = 1) -> list[Functional]:
    """Gains in Brier score and in log-loss by one in ``every`` drawn maps; decisions that change, and are then made."""
    log_loss = _log_loss if len(question.informative) == 1 else _log_loss_of_one
    gains: list[Functional] = [_brier, log_loss]
    if threshold is not None:
        gains += [partial(_changed, threshold=threshold), partial(_acted, threshold=threshold)]
    return [partial(_thinned, gain, every) for gain in gains]


def tells(grids: Iterable[GridMoments], threshold: float, acted: Iterable[float]) -> bool:
    """Whether every problem has enough rows on either side of a threshold for the map to resolve, or none there.

    The sides are those of the scores, or those after repair: ``acted`` is the share at or above the threshold then.
    """
    shares = chain(acted, repeat(np.nan))
    for g, share in zip(grids, shares, strict=False):
        mass = np.array([g.count[side].sum() for side in (g.nodes < threshold, g.nodes >= threshold)])
        least = 1 / (CELLS_A_TERM * n_terms(float(g.effective_size)))
        if 0 < mass.min() < mass.sum() * least and not least <= share <= 1 - least:
            return False
    return True


def check_threshold(threshold: float | None) -> float | None:
    """Check the ``threshold`` argument."""
    return None if threshold is None else check_fraction("threshold", threshold)


def _thinned(gain: Functional, every: int, cells: RankCells, drawn: DrawnMaps) -> FloatArray:
    """Draws of a gain from some of the maps only, as they cost more than those of an error."""
    return gain(cells, drawn.every(every))


def _brier(cells: RankCells, drawn: DrawnMaps) -> FloatArray:
    return drawn.mean_power(2)


def _log_loss(cells: RankCells, drawn: DrawnMaps) -> FloatArray:
    from scipy.special import expit, logit, rel_entr

    stated = expit(cells.logit)[..., None, :]
    right = np.clip(stated + drawn.gap, 0.0, 1.0)
    divergence = rel_entr(right, stated) + rel_entr(1 - right, 1 - stated)
    return drawn.mean(divergence, logit(np.clip(right, _EDGE, 1 - _EDGE)) - logit(stated))


def _log_loss_of_one(cells: RankCells, drawn: DrawnMaps) -> FloatArray:
    """Contribution of one of several classes to the gain of the whole vector."""
    from scipy.special import expit, kl_div

    stated = expit(cells.logit)[..., None, :]
    right = np.clip(stated + drawn.gap, 0.0, 1.0)
    return drawn.mean(kl_div(right, stated), np.log(np.maximum(right, _EDGE) / stated))


def _changed(cells: RankCells, drawn: DrawnMaps, threshold: float) -> FloatArray:
    """Shares of rows on different sides of a threshold before and after, (…, D).

    Rows of a cell lie evenly between the middles of it and its neighbours, and the true frequency is linear there;
    next to an empty cell (equal scores fill several) they all have its score.
    """
    from scipy.special import expit, logit

    stated = np.broadcast_to(cells.score[..., None, :], drawn.gap.shape)
    right, filled = stated + drawn.gap, (cells.count > 0)[..., None, :]
    # Outcomes that the map missed near the threshold move it there, in log odds: a step of a logistic fit.
    right = np.clip(right, _EDGE, 1 - _EDGE)
    near = drawn.beside(right, np.full(right[..., :1].shape, threshold))
    information = (near * drawn.share * right * (1 - right)).sum(axis=-1, keepdims=True)
    right = expit(logit(right) + (near * drawn.missed).sum(axis=-1, keepdims=True) / information)
    out = np.zeros(drawn.gap.shape)
    for at in (np.arange(_PARTS) + 0.5) / _PARTS - 0.5:
        before, after = (_moved(v, filled, at) >= threshold for v in (stated, right))
        out += before != after
    return np.asarray((drawn.share * out).sum(axis=-1) / _PARTS)


def _acted(cells: RankCells, drawn: DrawnMaps, threshold: float) -> FloatArray:
    """Share of rows at or above a threshold after repair, (…, D)."""
    return np.asarray((drawn.share * (cells.score[..., None, :] + drawn.gap >= threshold)).sum(axis=-1))


def _moved(values: FloatArray, filled: AnyArray, at: float) -> FloatArray:
    """Values (…, m) moved part of the way, -½ to ½, to those of the previous or next cells, if these are filled."""
    step, end = (1, 0) if at < 0 else (-1, -1)
    there = np.roll(filled, step, axis=-1)
    there[..., end] = False
    return np.asarray(values + abs(at) * np.where(there, np.roll(values, step, axis=-1) - values, 0.0))


def _read(of: tuple[ErrorDraws, Question], i: int, low: float, least: float) -> tuple[float, Interval]:
    """Median and interval of a gain, by the rules for the calibration error; it starts at 0 if that error may be 0."""
    (draws, asked), corrected = of, i < 2
    question = asked.informative
    values = draws.functionals[i]
    # The rules know errors, which have a largest. Gains of classes add up, where errors are averaged.
    scale = max(1.0, float(np.nanmax(values, initial=0.0)) / question.largest)
    found = credible(ErrorDraws(values / scale, draws.log_odds, corrected), question)
    scale *= len(question) if question.exclusive and corrected else 1
    bottom, top = (scale * end for end in found.interval)
    bottom = 0.0 if not low > 0 else bottom if bottom > 0 else least
    top = max(top, bottom)
    return min(max(scale * found.median, bottom), top), Interval(bottom, top)

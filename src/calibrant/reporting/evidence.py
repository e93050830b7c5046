"""What a report's rows are evidence of: whether the error is real and matters, and what a repair would gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..data.checks import check_fraction
from ..data.result import LazyMapping, Result
from ..data.types import AnyArray, FloatArray, Interval
from ..estimators.base import ErrorDraws, Functional
from ..estimators.laplace import RankCells
from ..estimators.laplace_draws import DrawnMaps
from ..measure.estimation import POSTERIOR
from ..measure.posterior import credible
from ..measure.question import Question
from ..measure.result import Estimate
from ..significance.report_test import SumsTest
from ..significance.result import TestResult
from ..sums import GridMoments

#: What matters at a base rate of one half, as a share of the outcome's standard deviation.
MATERIAL = 0.1
#: A drawn chance is taken for so far from 0 and 1 at least where logits are.
_EDGE = 1e-12
#: Parts that a cell's scores are cut into, to tell which side of a threshold they are on.
_PARTS = 16


@dataclass(frozen=True, repr=False)
class Evidence(Result):
    """Test of calibration, whether what it found matters, and what a test of so many rows can see.

    Everything here and the interval of :attr:`.Report.headline` come from one decision, that of the test:

    ================  ==============  ========================  ==========================================
    status            p-value         interval                  matters
    ================  ==============  ========================  ==========================================
    "miscalibrated"   ≤ 1 - level     starts above 0            True: it starts at ``tolerance`` or above;
                                                                False: it ends at ``tolerance`` or below;
                                                                None: ``tolerance`` lies within
    "no evidence"     above           0 to at most              False
                                      ``tolerance``
    "undecided"       above           0 to above ``tolerance``  None
    ================  ==============  ========================  ==========================================

    Attributes
    ----------
    status : {"miscalibrated", "no evidence", "undecided"}
        ``"miscalibrated"``: the p-value is at most ``1 - level`` (or the smallest that so many draws can give).
        ``"no evidence"``: it is not, and the interval rules out errors that matter. ``"undecided"``: it is not, and
        they may be there; or there are no data.
    matters : bool or None
        Whether the calibration error is ``tolerance`` or more, by its interval; None where the data cannot say.
    test : TestResult
        Smoothed residuals over ranks against labels drawn from the probabilities.
    detectable : float
        Calibration error that the test finds in four of five samples like this one, if it is too high, too low, over-
        or under-confident throughout; infinite where none is. Errors that alternate from score to score are harder to
        see. It is known before the outcomes are; the interval says what they leave possible, which may be less.
    tolerance : float
        Calibration error from which on it matters: what was asked for, or 0.1 standard deviations of the outcome times
        the root of the entropy of its base rate in bits.
    rows_needed : float
        About how many rows like these it takes to find an error of that size in four of five samples, and to rule it
        out; more than there are while undecided.
    """

    status: str
    matters: bool | None
    test: TestResult
    tolerance: float
    _power: Mapping[str, tuple[float, float]] = field(repr=False, compare=False)

    @property
    def detectable(self) -> float:
        """Computed when it is first read."""
        return self._power["power"][0]

    @property
    def rows_needed(self) -> float:
        """Computed when it is first read."""
        return self._power["power"][1]

    def _shown(self) -> Iterable[tuple[str, Any]]:
        names = ("status", "matters", "test", "detectable", "tolerance", "rows_needed")
        return ((name, getattr(self, name)) for name in names)

    @classmethod
    def of(
        cls,
        found: SumsTest,
        estimate: Estimate,
        grids: Sequence[GridMoments],
        tolerance: float | None,
        drawn_again: Callable[[], SumsTest],
    ) -> Evidence:
        """Judge what was found, at the level of an estimate's :func:`settled` interval.

        The draws of the test are many: if its power is read later, they are ``drawn_again``.
        """
        test = found.result
        bar = usual_tolerance(grids, found.question, found.n_samples) if tolerance is None else tolerance
        low, high = estimate.interval
        matters = None if np.isnan(test.pvalue) else True if low >= bar else False if high <= bar else None
        status = "miscalibrated" if found.rejects else "undecided" if matters is None else "no evidence"
        power: Mapping[str, tuple[float, float]]
        if status == "undecided":  # the verdict tells it
            power = {"power": _power_of(found, bar, status, high)}
        else:
            power = LazyMapping({"power": lambda: _power_of(drawn_again(), bar, status, high)})
        return cls(status, matters, test, bar, power)


def _power_of(test: SumsTest, bar: float, status: str, high: float) -> tuple[float, float]:
    """The error that a test detects, and the rows that one as large as the bar needs."""
    power = test.power
    needed = power.rows_for(bar)
    if status == "undecided" and high > bar:
        # The interval must shrink as well, with the root of n.
        needed = max(needed, power.n_samples * (high / bar) ** 2)
    elif status == "no evidence":
        needed = min(needed, power.n_samples)
    return power.detectable, needed


def usual_tolerance(grids: Sequence[GridMoments], question: Question, n_samples: float) -> float:
    """``0.1 sd √H``, of the standard deviation of the outcome and the entropy of its base rate in bits.

    An error of that size where the base rate is said costs 0.7 % of the log-loss of saying it every time, whatever it
    is (``e² / 2v`` of ``H log 2``), and 1 % of the Brier score at most (``e²`` of v). Of several classes, each against
    the rest, it is ``2 / K`` of that: such an error is taken from one class and given to another, the variance is
    ``Σ_k π_k (1 - π_k) / 2``, and the entropy half the sum of the classes', 1 at most.
    """
    mass = np.array([g.total for g in grids])
    rates = np.array([float(g.positive.sum()) for g in grids])[mass > 0] / mass[mass > 0]
    if not rates.size:
        return float("nan")
    # Where nothing or everything happened, as if half a row more had been otherwise.
    least = min(0.5 / max(n_samples, 1.0), 0.5)
    rates = np.clip(rates, least, 1 - least)
    share = np.full(rates.size, 0.5) if question.dependent else mass[mass > 0] / mass.sum()
    variance = float(share @ (rates * (1 - rates)))
    bits = float(-share @ (rates * np.log2(rates) + (1 - rates) * np.log2(1 - rates)))
    return MATERIAL * question.largest * float(np.sqrt(variance * min(bits, 1.0)))


def check_tolerance(tolerance: float | None) -> float | None:
    """Judge the ``tolerance`` argument."""
    return None if tolerance is None else check_fraction("tolerance", tolerance)


def settled(estimate: Estimate, excess: float) -> Estimate:
    """An estimate whose interval starts above 0 exactly where the test rejects, by its :attr:`.SumsTest.excess`.

    The test decides, for its size is exact whatever the prior and the estimator. Where it does not reject, the interval
    starts at 0, and so holds the truth more often. Where it does and the interval started at 0, it starts at what the
    statistic exceeds its threshold by, a lower limit of its own, or at the value if that is less (but above 0).
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
    """Gain of a perfect repair, which replaces each score by the true frequency at it.

    Medians and intervals of a posterior, of the notion's problem, or of the mean over its problems (classes, each
    against the rest). Of a confidence the gain in log-loss is that of the whole probability vector, if the others keep
    their proportions, and the Brier score is that of right and wrong. A calibrator that is fitted to n rows gains less,
    by about its number of parameters over 2n in log-loss.

    Attributes
    ----------
    log_loss, brier : float
        Mean of ``g log(g / s) + (1 - g) log((1 - g) / (1 - s))`` and of ``(g - s)²`` over the rows, g the frequency at
        a score s. Scores of 0 and 1 are taken for ``1 / (2n + 4)`` from there.
    log_loss_interval, brier_interval : Interval
        At the report's level; they start above 0 exactly where the status is ``"miscalibrated"``.
    threshold : float or None
        Decision threshold: the score from which on one acts.
    changed : float or None
        Share of decisions that a repair changes: s is at least the threshold and g is not, or the other way round.
    changed_interval : Interval or None
    """

    log_loss: float
    log_loss_interval: Interval
    brier: float
    brier_interval: Interval
    threshold: float | None = None
    changed: float | None = None
    changed_interval: Interval | None = None

    @classmethod
    def of(cls, draws: ErrorDraws, question: Question, low: float, threshold: float | None) -> RepairGain:
        """Read the :func:`gain_functionals` of draws; ``low`` is the least calibration error, 0 for none.

        An error e costs e² of Brier's score at least (Jensen), and 2 e² of log-loss (Pinsker).
        """
        own = question.informative
        each = [ErrorDraws(values, draws.log_odds, corrected=i < 2) for i, values in enumerate(draws.functionals)]
        found = [_read(one, own, low, least) for one, least in zip(each, (low**2, 2 * low**2, 0.0), strict=False)]
        (brier, log_loss), changed = found[:2], found[2] if threshold is not None else (None, None)
        return cls(*log_loss, *brier, threshold, *changed)


def gain_functionals(threshold: float | None) -> list[Functional]:
    """What drawn maps say of gains in Brier's score and in log-loss, and of decisions if there is a threshold."""
    gains = [_brier, _log_loss] + ([] if threshold is None else [partial(_changed, threshold=threshold)])
    return [partial(_thinned, gain) for gain in gains]


def check_threshold(threshold: float | None) -> float | None:
    """Judge the ``threshold`` argument."""
    return None if threshold is None else check_fraction("threshold", threshold)


def _thinned(gain: Functional, cells: RankCells, drawn: DrawnMaps) -> FloatArray:
    """As many draws of a gain as other intervals take: they cost more than those of an error."""
    return gain(cells, drawn.every(POSTERIOR))


def _brier(cells: RankCells, drawn: DrawnMaps) -> FloatArray:
    return drawn.mean_power(2)


def _log_loss(cells: RankCells, drawn: DrawnMaps) -> FloatArray:
    from scipy.special import expit, logit, rel_entr

    stated = expit(cells.logit)[..., None, :]
    right = np.clip(stated + drawn.gap, 0.0, 1.0)
    divergence = rel_entr(right, stated) + rel_entr(1 - right, 1 - stated)
    return drawn.mean(divergence, logit(np.clip(right, _EDGE, 1 - _EDGE)) - logit(stated))


def _changed(cells: RankCells, drawn: DrawnMaps, threshold: float) -> FloatArray:
    """Shares of rows on another side of a threshold before and after, (…, D).

    Rows of a cell lie evenly between the middles of it and its neighbours, and what is right is linear there; beside
    an empty cell (equal scores fill several) they all have its score.
    """
    stated = np.broadcast_to(cells.score[..., None, :], drawn.gap.shape)
    right, filled = stated + drawn.gap, (cells.count > 0)[..., None, :]
    out = np.zeros(drawn.gap.shape)
    for at in (np.arange(_PARTS) + 0.5) / _PARTS - 0.5:
        before, after = (_moved(v, filled, at) >= threshold for v in (stated, right))
        out += before != after
    return np.asarray((drawn.share * out).sum(axis=-1) / _PARTS)


def _moved(values: FloatArray, filled: AnyArray, at: float) -> FloatArray:
    """Values (…, m) a part of the way, -½ to ½, to those of the cells before or behind, if these are filled."""
    step, end = (1, 0) if at < 0 else (-1, -1)
    there = np.roll(filled, step, axis=-1)
    there[..., end] = False
    return np.asarray(values + abs(at) * np.where(there, np.roll(values, step, axis=-1) - values, 0.0))


def _read(draws: ErrorDraws, question: Question, low: float, least: float) -> tuple[float, Interval]:
    """Median and interval of a gain, by the rules of the calibration error's; from 0 on where that may be 0."""
    # The rules know errors, which have a largest.
    scale = max(1.0, float(np.nanmax(draws.powers, initial=0.0)) / question.largest)
    found = credible(replace(draws, powers=draws.powers / scale), question)
    bottom, top = (scale * end for end in found.interval)
    bottom = 0.0 if not low > 0 else bottom if bottom > 0 else least
    top = max(top, bottom)
    return min(max(scale * found.median, bottom), top), Interval(bottom, top)

"""`RepairGain`: what a perfect repair would gain, by the maps that the default estimator draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.checks import check_fraction
from ..data.result import Result
from ..data.types import AnyArray, FloatArray, Interval
from ..estimators.base import ErrorDraws, Functional
from ..estimators.laplace import RankCells
from ..estimators.laplace_draws import DrawnMaps
from ..measure.estimation import POSTERIOR
from ..measure.posterior import credible
from ..measure.question import Question

#: A drawn chance is taken for so far from 0 and 1 at least where logits are.
_EDGE = 1e-12
#: Parts that a cell's scores are cut into, to tell which side of a threshold they are on.
_PARTS = 16


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
        asked = question.informative
        each = [ErrorDraws(values, draws.log_odds, corrected=i < 2) for i, values in enumerate(draws.functionals)]
        found = [_read(one, asked, low, least) for one, least in zip(each, (low**2, 2 * low**2, 0.0), strict=False)]
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

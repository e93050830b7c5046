"""`RepairGain`: what a perfect repair would gain, by the posterior that the default estimator has of the gaps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from ..data.checks import check_fraction
from ..data.result import Result
from ..data.types import AnyArray, FloatArray, Interval
from ..estimators import laplace
from ..estimators.base import ErrorDraws
from ..estimators.empirical_bayes import WIDE, rank_cells
from ..estimators.laplace import RankCells
from ..estimators.laplace_draws import DrawnMaps, draw_gaps
from ..measure.inference.posterior import credible
from ..measure.question import Question, few_draws
from ..sums import GridMoments

#: Draws from the posterior of a single problem.
DRAWS = 400
#: Rank cells worked on at a time, times draws.
_TOGETHER = 1 << 19
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
    def of(
        cls, sums: Iterable[GridMoments], question: Question, low: float, threshold: float | None, seed: int
    ) -> RepairGain:
        """Draw the gaps of a question's problems; ``low`` is the least calibration error, 0 for none.

        An error e costs e² of Brier's score at least (Jensen), and 2 e² of log-loss (Pinsker).
        """
        rng = np.random.default_rng(seed)
        asked = question.informative
        parts, left = [], len(asked)
        for part in sums:
            some = part.rows[: min(left, len(part.rows))]
            left -= len(some)
            parts.append(_draws(some, few_draws(asked, DRAWS), threshold, rng))
            if not left:
                break
        log_odds, brier, log_loss, *moved = (np.concatenate(each) for each in zip(*parts, strict=True))
        changed = _read(ErrorDraws(moved[0], log_odds), asked, low, 0.0) if moved else (None, None)
        brier_gain, log_gain = (
            _read(ErrorDraws(brier, log_odds, corrected=True), asked, low, low**2),
            _read(ErrorDraws(log_loss, log_odds, corrected=True), asked, low, 2 * low**2),
        )
        return cls(*log_gain, *brier_gain, threshold, *changed)


def check_threshold(threshold: float | None) -> float | None:
    """Judge the ``threshold`` argument."""
    return None if threshold is None else check_fraction("threshold", threshold)


def _draws(
    sums: GridMoments, n_draws: int, threshold: float | None, rng: np.random.Generator
) -> tuple[FloatArray, ...]:
    """Log odds of a deviation (R,), and draws of the gains in Brier's score and log-loss and of changes, (R, D)."""
    from scipy.special import expit, logit, rel_entr

    log_odds = np.full(len(sums), np.nan)
    gains = [np.full((len(sums), n_draws), np.nan) for _ in range(2 if threshold is None else 3)]
    for some, cells in rank_cells(sums, max(1, _TOGETHER // n_draws)):
        drawn = draw_gaps(cells, WIDE, laplace.fit(cells, WIDE), n_draws, rng)
        stated = expit(cells.logit)[..., None, :]
        right = np.clip(stated + drawn.gap, 0.0, 1.0)
        divergence = rel_entr(right, stated) + rel_entr(1 - right, 1 - stated)
        log_odds[some] = drawn.log_odds
        gains[0][some] = drawn.mean_power(2)
        gains[1][some] = drawn.mean(divergence, logit(np.clip(right, _EDGE, 1 - _EDGE)) - logit(stated))
        if threshold is not None:
            gains[2][some] = _changed(cells, drawn, threshold)
    return (log_odds, *gains)


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

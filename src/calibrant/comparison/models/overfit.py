"""By how much isotonic fits beat the truth on their own rows: the bias of miscalibration and discrimination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ...data.predictions import Predictions
from ...data.progress import counted
from ...data.types import AnyArray, FloatArray
from ...estimators.isotonic import isotonic_means
from ...measure.scoring_rules import ScoringRule, matrix_of
from ...sums.logistic_fit import Counts, Point, expit, maximum, warned
from .parts import Mean, cells_of, columns_of, isotonic_fits
from .units import IndependentUnits

#: Draws of labels. What they leave of noise in a mean is a tenth of the noise of one sample.
N_DRAWS = 100
#: Scores that are told apart in draws.
_MOST_CELLS = 20_000
#: Cells of draws that are fitted together.
_TOGETHER = 1 << 16
#: Where, in shares of the weight, the slope of the map may change; what slope and changes cost, in rows; and its least
#: value.
_KNOTS = (0.2, 0.4, 0.6, 0.8)
_SLOPE_COST, _BEND_COST = 0.1, 1.0
_LEAST = 1e-9
#: Terms of the tetrachoric series, where it is summed, and the highest correlation that is drawn with.
_TERMS = 120
_CORRELATIONS = np.linspace(0, 1, 201)
_HIGHEST = 0.999


def overfits(
    models: Sequence[Predictions],
    rules: Mapping[str, ScoringRule],
    units: IndependentUnits,
    seed: int,
    *,
    steps: bool = False,
) -> FloatArray:
    r"""What isotonic fits gain by being judged on the rows that they were fitted to, (S, M, draws); the mean counts.

    .. math:: E^* \Big[ \tfrac1n \sum_i S(q(s_i), Y^*_i) - S(\hat q^*(s_i), Y^*_i) \Big],
        \qquad P(Y^*_i = 1) = q(s_i)

    with q a smooth non-decreasing map fitted to each class of each model, scores kept as they are, and q̂* the isotonic
    fit of the labels drawn. Miscalibration and discrimination are both too high by that. Resampled rows do not tell it:
    the isotonic fit that they are drawn around has flats of its own, and what they show depends on how many scores
    there are (Kosorok 2008; Sen, Banerjee & Woodroofe 2010). Labels of a group are drawn with normal latents of one
    correlation, that of the residuals. All models are given the same random numbers, and models that order rows alike
    the same labels.

    With ``steps`` the isotonic fit itself is taken for q: as if the truth were flat wherever the fit is. A fit gains
    less there, so that both together tell what the bias may be.
    """
    out = np.zeros((len(rules), len(models), N_DRAWS))
    for j, p in enumerate(counted(models if len(rules) else (), "noise of isotonic fits, by model")):
        matrix = matrix_of(p)
        whole = p.integral_weights
        means = [Mean(rule, p.n_classes) for rule in rules.values()]
        for k in columns_of(p):
            column = Column.of(matrix[:, k], p.codes == k, units, whole=whole, steps=steps)
            cells = column.weight.size
            draws = column.draws(N_DRAWS, np.random.default_rng([seed, k]))
            together = max(1, _TOGETHER // cells)
            for done in range(0, N_DRAWS, together):
                some = np.array(list(islice(draws, together)))
                number = len(some)
                problem, weight = np.repeat(np.arange(number), cells), np.tile(column.weight, number)
                positive, start = some.reshape(-1), np.arange(number) * cells
                fitted = isotonic_fits(positive, weight, problem)
                said = np.tile(column.map, number)
                for i, mean in enumerate(means):
                    gained = mean(said, weight, positive, start) - mean(fitted, weight, positive, start)
                    out[i, j, done : done + number] += gained
    return out


@dataclass(frozen=True, eq=False)
class Column:
    """One class of one model, from which labels can be drawn.

    Attributes
    ----------
    cell : ndarray of shape (n,)
        Of each row; cells ascend with the score.
    weight : ndarray of shape (cells,)
    map : ndarray of shape (cells,)
        Probability of the class, a smooth function of the score.
    correlation : float
        Of the latents of a group's rows.
    units : Units
    whole : bool
        Whether weights are numbers of rows.
    """

    cell: AnyArray
    weight: FloatArray
    map: FloatArray
    correlation: float
    units: IndependentUnits
    whole: bool

    @classmethod
    def of(
        cls, scores: FloatArray, happened: AnyArray, units: IndependentUnits, *, whole: bool, steps: bool = False
    ) -> Column:
        """Of a class's scores and whether it happened."""
        mass = units.row_mass
        cell, number = cells_of(scores, units, _MOST_CELLS)
        weight: FloatArray = np.bincount(cell, weights=mass, minlength=number).astype(np.float64)
        positive: FloatArray = np.bincount(cell, weights=mass * happened, minlength=number).astype(np.float64)
        rows = units.total if whole else units.total**2 / float(mass @ mass)
        smooth = smooth_map(positive, weight, rows)
        if steps:
            smooth = np.clip(isotonic_means(positive, weight), _LEAST, 1 - _LEAST)
        held = latent_correlation(smooth[cell], happened, units, whole=whole) if units.grouped else 0.0
        return cls(cell, weight, smooth, held, units, whole)

    def draws(self, number: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Weights of the positive labels in each cell, one draw at a time."""
        from scipy.special import ndtr, ndtri

        mass, units = self.units.row_mass, self.units
        count = np.rint(mass).astype(np.int64) if self.whole and (mass != 1).any() else None
        share = self.map[self.cell]
        below, common, own = ndtri(share), np.sqrt(self.correlation), np.sqrt(1 - self.correlation)
        for _ in range(number):
            if units.grouped:
                latent = rng.standard_normal(units.copies.size)[units.of_row]
                share = ndtr((below - common * latent) / own) if common > 0 else share
            positive = mass * (rng.random(mass.size) < share) if count is None else rng.binomial(count, share)
            drawn = np.bincount(self.cell, weights=positive, minlength=self.weight.size)
            yield np.minimum(drawn, self.weight)


def smooth_map(positive: FloatArray, weight: FloatArray, rows: float) -> FloatArray:
    """Probability in each cell as a smooth non-decreasing function of its rank among all weight.

    A logistic fit, piecewise linear in normal ranks, pooled where it would fall; ``rows`` is how many rows the weights
    are worth, beside which slopes cost something. Ranks, so that it is the same of all scores of one order.
    """
    from scipy.special import logit, ndtri

    number = weight.size
    share = weight / weight.sum()
    base = float(positive.sum() / weight.sum())
    if number == 1 or not 0 < base < 1:
        return np.full(number, np.clip(base, _LEAST, 1 - _LEAST))
    x = ndtri(np.cumsum(share) - share / 2)
    knots = np.unique(np.clip(ndtri(_KNOTS), x[0], x[-1]))
    knots = knots[(knots > x[0]) & (knots < x[-1])]
    design = np.column_stack([x, *(np.maximum(x - knot, 0.0) for knot in knots)])
    design = np.column_stack([np.ones(number), design - share @ design])
    cost = np.array([0.0, _SLOPE_COST, *(_BEND_COST for _ in knots)]) * (weight.sum() / rows)

    start = np.zeros((1, design.shape[1]))
    start[0, 0] = logit(base)
    counts = Counts(design.T[None], weight[None], positive[None])
    point = warned(*maximum(counts, cost, Point.at(start, np.zeros((1, number)), counts)))
    q = np.clip(expit(point.logit[0]), _LEAST, 1 - _LEAST)
    return np.asarray(isotonic_means(q * weight, weight), dtype=np.float64)


def latent_correlation(q: FloatArray, happened: AnyArray, units: IndependentUnits, *, whole: bool) -> float:
    r"""Correlation of normal latents whose labels would hang together within groups as the residuals do.

    .. math:: \sum_{i \ne j} (y_i - q_i)(y_j - q_j) = \sum_{i \ne j} \sum_{t \ge 1} \frac{\rho^t}{t}
        \varphi(h_i) \psi_{t-1}(h_i) \varphi(h_j) \psi_{t-1}(h_j), \qquad h = \Phi^{-1}(q)

    over pairs of rows of one group, with ψ the normed Hermite polynomials (the tetrachoric series); at least 0.
    """
    from scipy.special import ndtri

    def pairs(values: FloatArray) -> float:
        sums = units.sums(values)
        # Repeats of a row are rows of the group too.
        return float(sums @ sums - (units.weight if whole else units.weight**2) @ values**2)

    found = pairs(happened - q)
    h = ndtri(q)
    density = np.exp(-(h**2) / 2) / np.sqrt(2 * np.pi)
    before, term = np.zeros(h.shape), density
    expected = np.zeros(_CORRELATIONS.shape)
    for t in range(1, _TERMS + 1):
        expected += _CORRELATIONS**t / t * pairs(term)
        before, term = term, (h * term - np.sqrt(t - 1) * before) / np.sqrt(t)
    if not expected[-1] > 0 or found <= 0:
        return 0.0
    return float(min(np.interp(found, np.maximum.accumulate(expected), _CORRELATIONS), _HIGHEST))

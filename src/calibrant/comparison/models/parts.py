"""Miscalibration and discrimination of a model's score (CORP), for many resamples; and the fits' bias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ...data.predictions import Predictions
from ...data.progress import counted
from ...data.types import AnyArray, FloatArray
from ...data.weights import run_starts
from ...estimators.isotonic import isotonic_means
from ...measure.scoring_rules import Brier, ScoringRule, matrix_of, score_rows
from ...sums.logistic_fit import Counts, Point, expit, maximum, warned
from .units import IndependentUnits

#: Most scores that are distinguished in resamples: beyond, neighbours are pooled before the isotonic fit, which has
#: about the cube root of n steps anyway.
MOST_CELLS = 2000
#: Cells of problems that are fitted together.
_TOGETHER = 1 << 16
#: Draws of labels. Their mean has a tenth of the noise of one sample.
N_DRAWS = 100
#: Most scores that are distinguished in draws.
_MOST_CELLS = 20_000
#: Shares of the weight at which the slope of the map may change; the penalties of slope and changes, in rows; the
#: smallest value of the map.
_KNOTS = (0.2, 0.4, 0.6, 0.8)
_SLOPE_COST, _BEND_COST = 0.1, 1.0
_LEAST = 1e-9
#: Terms of the tetrachoric series, the correlations at which it is summed, and the highest correlation of draws.
_TERMS = 120
_CORRELATIONS = np.linspace(0, 1, 201)
_HIGHEST = 0.999


def has_parts(rule: ScoringRule, n_classes: int) -> bool:
    """Whether CORP decomposes a score: any score of two classes; for more, sums over classes."""
    return n_classes == 2 or isinstance(rule, Brier)


def columns_of(p: Predictions) -> Sequence[int]:
    """Classes that are fitted: the second of two; of more, every observed one, as fits to the others are 0."""
    # The class of a single column comes last, as rules that distinguish their classes need.
    return np.unique(p.codes).tolist() if p.n_classes > 2 else [1 if p.positive is None else p.positive]


def cells_of(scores: FloatArray, units: IndependentUnits, most: int | None) -> tuple[AnyArray, int]:
    """Cell of each row, ascending with the score, and number of cells: at most ``most``, of about equal weights."""
    _, cell = np.unique(scores, return_inverse=True)
    cell = cell.reshape(-1)
    number = int(cell.max()) + 1
    if most is not None and number > most:
        before = np.cumsum(np.bincount(cell, weights=units.row_mass))
        _, pool = np.unique(np.floor(before * (most / before[-1]) * (1 - 1e-12)), return_inverse=True)
        cell = pool.reshape(-1)[cell]
        number = int(cell.max()) + 1
    return cell, number


@dataclass(frozen=True, eq=False)
class Mean:
    """Mean score of forecasts p in cells, given their total and positive weights."""

    rule: ScoringRule
    n_classes: int

    def __call__(
        self, p: FloatArray, weight: FloatArray, positive: FloatArray, start: AnyArray | None = None
    ) -> FloatArray:
        """For one p, weight and positive weight per cell; for problems laid end to end, one mean each."""
        start = np.zeros(1, dtype=np.intp) if start is None else start
        if isinstance(self.rule, Brier):
            # With two classes the other one is equally far off; with more, every class has its own turn.
            costs = (positive * (1 - 2 * p) + weight * p**2) * (2 if self.n_classes == 2 else 1)
            if self.rule.scale != "sum":
                costs /= 2
        else:
            counts = np.column_stack([weight - positive, positive])
            # An outcome that did not occur costs nothing, even where it would cost ∞.
            table = self.rule.table(np.column_stack([1 - p, p]))
            costs = np.multiply(counts, table, out=np.zeros(counts.shape), where=counts > 0).sum(axis=1)
        return np.asarray(np.add.reduceat(costs, start) / np.add.reduceat(weight, start))


def isotonic_fits(positive: FloatArray, weight: FloatArray, problem: AnyArray) -> FloatArray:
    """Isotonic fits of problems laid end to end; the cells' problem numbers ascend."""
    return isotonic_means(positive, weight, 2.0 * problem)


@dataclass(frozen=True, eq=False)
class TiedCells:
    """Some classes of one model, laid end to end: sums of weights and of outcomes at their scores, by units.

    Attributes
    ----------
    weight, positive : sparse arrays of shape (cells, G)
        Cells of a class ascend with the score.
    problem : ndarray of shape (cells,)
        Place of each cell's class among these.
    """

    weight: Any
    positive: Any
    problem: AnyArray

    @classmethod
    def of(cls, columns: Sequence[tuple[AnyArray, int, AnyArray]], units: IndependentUnits) -> TiedCells:
        """From each class's cell of each row, number of cells, and whether the class was observed."""
        from scipy.sparse import vstack

        weight, positive = (
            vstack([units.matrix(c, m, np.ones(c.size) * (came if second else 1)) for c, m, came in columns], "csr")
            for second in (False, True)
        )
        return cls(weight, positive, np.repeat(np.arange(len(columns)), [m for _, m, _ in columns]))

    def resampled(self, times: FloatArray) -> Iterator[tuple[int, FloatArray, FloatArray, AnyArray]]:
        """Number of resamples, with their problems laid end to end: weights, positive weights, and problem numbers."""
        number = int(self.problem[-1]) + 1
        together = max(1, _TOGETHER // self.problem.size)
        for first in range(0, times.shape[1], together):
            some = times[:, first : first + together]
            weight, positive = (np.ascontiguousarray((m @ some).T) for m in (self.weight, self.positive))
            held = weight > 0
            problem = self.problem + number * np.arange(some.shape[1])[:, None]
            yield some.shape[1], weight[held], positive[held], problem[held]


@dataclass(frozen=True, eq=False)
class Refinements:
    """Scores of the isotonic fits of one model, and of the base rates.

    Attributes
    ----------
    tiles : tuple of TiedCells
        Cells of all classes that are fitted.
    rules : dict of str to ScoringRule
    n_classes : int
    """

    tiles: tuple[TiedCells, ...]
    rules: dict[str, ScoringRule]
    n_classes: int

    @classmethod
    def of(
        cls, p: Predictions, rules: dict[str, ScoringRule], units: IndependentUnits, most: int | None = MOST_CELLS
    ) -> Refinements:
        """From predictions whose rows all have weight; at most ``most`` cells per class, None for one per score."""
        matrix = matrix_of(p)
        tiles: list[TiedCells] = []
        waiting: list[tuple[AnyArray, int, AnyArray]] = []
        size = 0
        for k in columns_of(p) if rules else ():
            cell, number = cells_of(matrix[:, k], units, most)
            if waiting and size + number > _TOGETHER:
                tiles.append(TiedCells.of(waiting, units))
                waiting, size = [], 0
            waiting.append((cell, number, p.codes == k))
            size += number
        if waiting:
            tiles.append(TiedCells.of(waiting, units))
        return cls(tuple(tiles), rules, p.n_classes)

    def read(self, times: FloatArray) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Refinement and uncertainty by each rule, (r,) each, for resamples given by counts of units (G, r)."""
        out: dict[str, tuple[FloatArray, FloatArray]] = {
            name: (np.zeros(times.shape[1]), np.zeros(times.shape[1])) for name in self.rules
        }
        means = {name: Mean(rule, self.n_classes) for name, rule in self.rules.items()}
        for tile in self.tiles:
            done = 0
            for r, weight, positive, problem in tile.resampled(times):
                start = run_starts(problem)
                fitted = isotonic_fits(positive, weight, problem)
                whole, came = np.add.reduceat(weight, start), np.add.reduceat(positive, start)
                each = np.arange(whole.size)
                for name, mean in means.items():
                    refinement, uncertainty = out[name]
                    refinement[done : done + r] += mean(fitted, weight, positive, start).reshape(r, -1).sum(axis=1)
                    uncertainty[done : done + r] += mean(came / whole, whole, came, each).reshape(r, -1).sum(axis=1)
                done += r
        return out


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """Miscalibration and discrimination of several models by several scores.

    Attributes
    ----------
    fits : tuple of Refinements
        Fits of each model.
    losses : ndarray of shape (S, M, G)
        Sums of each score over one copy of each unit.
    units : IndependentUnits
    """

    fits: tuple[Refinements, ...]
    losses: FloatArray
    units: IndependentUnits

    @classmethod
    def of(
        cls,
        models: Sequence[Predictions],
        rules: Mapping[str, ScoringRule],
        units: IndependentUnits,
        most: int | None = MOST_CELLS,
    ) -> ScoreParts:
        """From predictions whose rows all have weight."""
        losses = np.empty((len(rules), len(models), units.copies.size))
        for i, rule in enumerate(rules.values()):
            for j, p in enumerate(models):
                losses[i, j] = units.sums(score_rows(p, rule))
        return cls(tuple(Refinements.of(p, dict(rules), units, most) for p in models), losses, units)

    def read(self, times: FloatArray) -> FloatArray:
        """Parts (S, 2, M, r) for resamples given by counts of units (G, r)."""
        if not len(self.losses):
            return np.empty((0, 2, len(self.fits), times.shape[1]))
        with np.errstate(invalid="ignore"):  # a loss of ∞ that a resample left out
            total = self.losses @ times / (self.units.mass @ times)
        found = [fit.read(times) for fit in self.fits]
        out = np.empty((len(self.losses), 2, len(self.fits), times.shape[1]))
        for j, one in enumerate(found):
            for i, (refinement, uncertainty) in enumerate(one.values()):
                out[i, :, j] = total[i, j] - refinement, uncertainty - refinement
        return out


def overfits(
    models: Sequence[Predictions],
    rules: Mapping[str, ScoringRule],
    units: IndependentUnits,
    seed: int,
    *,
    steps: bool = False,
) -> FloatArray:
    r"""Gain of isotonic fits evaluated on the rows of the fit, (S, M, draws); the bias is its mean.

    .. math:: E^* \Big[ \tfrac1n \sum_i S(q(s_i), Y^*_i) - S(\hat q^*(s_i), Y^*_i) \Big],
        \qquad P(Y^*_i = 1) = q(s_i)

    with q a smooth non-decreasing map fitted to each class of each model, scores fixed, and q̂* the isotonic fit to the
    drawn labels. Miscalibration and discrimination are both too high by this. Resampled rows do not estimate it: the
    isotonic fit around which they are drawn has its own flat parts, and their result depends on the number of distinct
    scores (Kosorok 2008; Sen, Banerjee & Woodroofe 2010). Labels of a group are drawn with equicorrelated normal
    latents that match the correlation of the residuals. All models use the same random numbers, and models that order
    rows alike get the same labels.

    With ``steps``, q is the isotonic fit itself, as if the true map were flat wherever the fit is. A fit gains less
    there, so the two together bound the bias.
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
        Cell of each row; cells ascend with the score.
    weight : ndarray of shape (cells,)
    map : ndarray of shape (cells,)
        Probability of the class, a smooth function of the score.
    correlation : float
        Correlation of the latents of a group's rows.
    units : IndependentUnits
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
        """From a class's scores and outcomes."""
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

    A logistic fit, piecewise linear in normal ranks, pooled where it would decrease. ``rows``, the effective number of
    rows, scales the penalties on slopes. Because of the ranks, it depends only on the order of the scores.
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
    r"""Correlation of normal latents whose labels are as correlated within groups as the residuals.

    .. math:: \sum_{i \ne j} (y_i - q_i)(y_j - q_j) = \sum_{i \ne j} \sum_{t \ge 1} \frac{\rho^t}{t}
        \varphi(h_i) \psi_{t-1}(h_i) \varphi(h_j) \psi_{t-1}(h_j), \qquad h = \Phi^{-1}(q)

    over pairs of rows of one group, with ψ the normalised Hermite polynomials (the tetrachoric series); at least 0.
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

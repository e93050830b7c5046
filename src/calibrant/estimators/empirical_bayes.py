"""`EmpiricalBayes`: the posterior mean of the calibration error under a prior centred on perfect calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data.checks import check_choice
from ..data.types import AnyArray, FloatArray, IntArray
from ..sums import Grid, GridMoments
from ..sums.base import Shared
from . import laplace
from .base import CellEstimator, ErrorDraws, Functional, PosteriorEstimator
from .laplace import APART, CELLS_A_TERM, ENDS, Component, Prior, RankCells
from .maps import FittedMaps
from .norm import LARGE_NORM

#: Rank cells of fits made together, and such cells times draws, chosen to fit into the cache.
_BLOCK, _DRAWN = 1 << 14, 1 << 17
#: Ranks times cells within this of a whole number are rounded to it, so that the order of summation does not matter.
_ROUNDING = 1e-9
#: Smallest and largest share, and least number, of rows at a score inside the domain with its own coefficient.
_PILE, _LARGE_PILE, _FEWEST = 0.01, 0.2, 8.0
#: Least ratio of its rows to the average number of rows that share a score elsewhere.
_TIMES = 5.0
#: Components with a smaller posterior probability are omitted from the estimate.
_NEGLIGIBLE = 1e-4
#: Sample sizes are capped at this value.
_HEAVIEST = 1e12
#: Typical models: gaps of 0.3 to 1 in logits are common, smooth ones larger than rough ones, and a common offset of
#: all scores is rare, since models are fitted to base rates.
TYPICAL = Prior(
    (
        Component(0.08, 1.0, 0.02),
        Component(0.35, 0.4, 0.33),
        Component(0.65, 1.0, 0.35),
        Component(1.2, 1.5, 0.22),
        Component(2.5, 1.5, 0.06),
        Component(8.0, 1.5, 0.02),
    ),
    intercept=0.25,
    slope=0.3,
)
#: The same for confidences, whose maps are smoother: accuracy is a smoother function of the confidence than the
#: frequency of a single class is of its probability. The smallest of the priors that none outperformed on the selection
#: half of real models and mixtures (benchmarks/arena/prior.md).
TYPICAL_CONFIDENCE = Prior(
    (
        Component(0.08, 1.0, 0.03),
        Component(0.3, 0.5, 0.29),
        Component(0.65, 1.0, 0.32),
        Component(0.65, 2.5, 0.08),
        Component(1.2, 1.5, 0.20),
        Component(2.5, 1.5, 0.06),
        Component(8.0, 1.5, 0.02),
    ),
    intercept=0.3,
    slope=0.4,
)
#: Possible models: rough and smooth maps of any size, with offsets and slopes nearly as large as any other term.
#: Ordered so that the mode of each is near that of the next, whose fit starts there.
WIDE = Prior(
    (
        Component(0.06, 1.0, 0.06),
        Component(0.12, 1.0, 0.10),
        Component(0.25, 1.0, 0.10),
        Component(0.5, 1.0, 0.13),
        Component(1.0, 1.0, 0.16),
        Component(2.0, 1.0, 0.09),
        Component(4.0, 1.0, 0.05),
        Component(0.25, 0.3, 0.06),
        Component(0.5, 0.3, 0.09),
        Component(1.0, 0.3, 0.11),
        Component(2.0, 0.3, 0.05),
    ),
    intercept=0.5,
    slope=0.7,
)
PRIORS = {"typical": TYPICAL, "wide": WIDE}


@dataclass(frozen=True)
class EmpiricalBayes(PosteriorEstimator):
    r"""Posterior mean of the calibration error; the default.

    The recalibration map is logistic in smooth functions of the score,

    .. math:: & \mathrm{logit}\,P(o = 1 \mid s) = \mathrm{logit}\,s + \theta_0 \\
              & \quad + \sum_{k=1}^{K-1} \theta_k \cos(k \pi u) + \theta_z z + \sum_a \theta_a [s = a],

    with the rank u of the score, its standardised logit ``z = (l - c mean l) / sd l``, ``c = min(1, 300 / n)``, and
    ``K = 2 n^(1/3)`` up to 32, then ``2 n^(1/4) + 2`` (rounded up). The slope pivots about the mean logit for few rows,
    and about 0 for many, like a temperature. Scores a with their own term are the two ends of the domain and at most
    two heavy scores inside it: each has 1 to 20 % of the rows, at least eight, and five times as many as share another
    score on average. The prior assumes that models are calibrated on average and that smooth deviations are larger
    than rough ones: it is a mixture of normal distributions of θ_k with sd ``τ (1 + k)^(-decay)``, whose amplitudes
    and decays are averaged with weights from their Laplace evidence, that is, from the data (hence the name). The
    estimate is

    .. math:: E\Big[\frac1n \sum_i |P(o = 1 \mid s_i) - s_i|^p \,\Big|\, \text{data}\Big],

    where the gap at a score is normal by the delta method and its absolute moments are those of a folded normal.

    With 500 rows or more, this map is averaged by evidence with a map that is miscalibrated only locally: up to six
    ranges of scores have their own term (a gap, constant over the range in logits or in probabilities), and the rest
    is calibrated or nearly so. Ranges are included if they raise the evidence by more than expected by chance from
    their number. Thus a narrow gap neither makes the map rough nor inflates the estimate.

    Parameters
    ----------
    prior : {"typical", "wide"} or Prior, default "typical"
        ``"typical"``: informative, for the miscalibration of typical models; it differs between class probabilities
        and confidences (notions ``"confidence"`` and ``"top-label"``), whose maps are smoother. ``"wide"``: diffuse;
        intervals always use it, while the default estimate uses the informative prior, which is right on average.
        Or a custom ``calibrant.estimators.Prior``.

    See Also
    --------
    calibrant.estimators.Prior : A custom prior.
    calibrant.Binned : The binned estimate that papers report.
    calibrant.estimators.AdaptiveKernel : Curves without a prior.

    Notes
    -----
    A binned or kernel estimate adds the noise of its cells to the error, so 30 samples give about 0.15 whatever the
    model. Here noise is weighed against the errors of known models: small samples give a typical error (0.02 to 0.08)
    and large samples the error in the data, because K grows with n and the estimate is consistent. Range [0, 1]. Bias:
    upwards for calibrated models and small n (it is never 0), downwards for large errors and small n. The
    default prior was chosen on mixtures that are not part of the published results, and on half of the real models
    of the arena (docs/development/default.md). Scores are binned at a resolution of 1/4096 of the domain. The
    reliability curve is the posterior mean of the map under ``"wide"``, with up to 60 cosines; see
    :func:`calibrant.reliability_curve`. With ``groups``, draws add a nuisance term shared by the rows of a group to the
    coefficients of the constant and the first two cosines, with a variance from their design effects; it counts
    neither as evidence nor as error. Issues a :class:`ConvergenceWarning` if the fit does not converge. Cost
    O(n + G + components · K³): 1 to 30 ms plus a pass over the rows; twice that if ranges are found. Accuracy on
    local gaps: docs/development/local_truths.md.

    References
    ----------
    MacKay (1992), *Bayesian interpolation* (evidence); Cox (1958) and Dalton (2013) for logistic recalibration; the
    experiment is that of Posocco & Bonnefoy (2021), §5.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # true error: ∫|p² - p| dp = 1/6
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.EmpiricalBayes()) - 1 / 6) < 0.01)
    True
    """

    prior: str | Prior = "typical"

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior):
            check_choice("prior", self.prior, PRIORS, instead="a Prior or ")

    def _prior_for(self, low: float) -> Prior:
        """The prior as an object; a domain that starts above 0 is that of a confidence."""
        if self.prior == "typical" and low > 0:
            return TYPICAL_CONFIDENCE
        return PRIORS[self.prior] if isinstance(self.prior, str) else self.prior

    @property
    def _drawn_as(self) -> CellEstimator:
        """The estimator itself: its curve is the posterior mean."""
        return self

    def _needs(self, domain: tuple[float, float]) -> Grid:
        """Linear-binned counts."""
        return Grid()

    def read(self, sums: GridMoments, norm: float) -> FloatArray:
        """``errorᵖ`` from grid counts."""
        out: FloatArray = np.full(len(sums.rows), np.nan)
        for some, cells in rank_cells(sums, _BLOCK):
            out[some] = expected_power(cells, self._prior_for(sums.low), norm)
        return out.reshape(sums.shape)

    def _draws(
        self,
        sums: GridMoments,
        norm: float,
        n_draws: int,
        rng: np.random.Generator,
        functionals: Sequence[Functional] = (),
        of: int = 1,
    ) -> ErrorDraws:
        """Draw the errors under :data:`WIDE`, whatever the prior of the estimate, corrected for p ≤ 32."""
        powers, log_odds = np.full((len(sums.rows), n_draws), np.nan), np.full(len(sums.rows), np.nan)
        values: list[list[FloatArray]] = [[] for _ in functionals]
        places: list[IntArray] = []
        for some, cells in cells_of_groups(sums, _BLOCK):
            maps = FittedMaps.of(cells, WIDE)
            together = max(1, _DRAWN // (of * n_draws * cells.count.shape[-1]))
            for a in range(0, len(some), together):
                part = slice(a, a + together)
                few = maps.some(part)
                drawn = few.draw_gaps(n_draws, rng, of)
                at = some[part]
                powers[at], log_odds[at] = drawn.mean_power(norm), drawn.log_odds
                places.append(at)
                for found, functional in zip(values, functionals, strict=True):
                    found.append(functional(few.cells, drawn))
        return ErrorDraws(
            powers.reshape(*sums.shape, n_draws),
            log_odds.reshape(sums.shape),
            norm <= LARGE_NORM,
            tuple(_placed(places, found, sums.shape) for found in values),
        )


def _placed(places: Sequence[IntArray], found: Sequence[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    """Results of parts of the problems, (…, n), in the original order; NaN without samples."""
    out = np.full((int(np.prod(shape)), found[0].shape[-1] if found else 1), np.nan)
    for some, values in zip(places, found, strict=True):
        out[some] = values
    return out.reshape(*shape, -1)


def rank_cells(
    grid: GridMoments, most: int, terms: Callable[[float], int] | None = None
) -> Iterator[tuple[IntArray, RankCells]]:
    """Rank cells of nearly equal mass, for problems with equally many cells, about ``most`` cells at a time.

    ``terms`` gives the number of cosines for a sample size, with four cells each; by default :func:`.laplace.n_terms`.
    A node is never split, so ties stay together. Problems without samples are omitted.
    """
    g = grid.rows
    sizes = np.asarray(g.effective_size, dtype=np.float64)
    cosines = np.array([(terms or laplace.n_terms)(n) if n > 0 else 0 for n in sizes.tolist()])
    for each in np.unique(cosines[cosines > 0]).tolist():
        rows, k = np.flatnonzero(cosines == each), CELLS_A_TERM * each
        step = max(1, most // k)
        for a in range(0, len(rows), step):
            some = rows[a : a + step]
            cells = _in_cells(g if some.size == len(g) else g[some], k)
            yield some, cells if terms is None else replace(cells, cosines=each)


def cells_of_groups(
    grid: GridMoments, most: int, terms: Callable[[float], int] | None = None
) -> Iterator[tuple[IntArray, RankCells]]:
    """:func:`rank_cells` with the variance shared within groups, and the effective sample size for rough functions."""
    shared = Shared.of(grid.rows)
    if shared is not None:
        grid = replace(grid.rows, squares=grid.rows.squares * shared.rough)
    for some, cells in rank_cells(grid, most, terms):
        yield some, cells if shared is None else replace(cells, shared=shared.smooth[some] / shared.rough[some, None])


def _in_cells(g: GridMoments, k: int) -> RankCells:
    """Rank cells (R, k). Sums are taken in the order of the nodes, so that they do not depend on empty ones."""
    size = np.asarray(g.effective_size, dtype=np.float64)[:, None]
    n = np.minimum(size, _HEAVIEST)  # beyond, sums of squares lose the prior to rounding
    unit = np.asarray(g.unit)[:, None] * np.divide(n, size, out=np.ones(n.shape), where=size > 0)
    mass = g.count * unit
    moment = mass * (np.cumsum(mass, axis=-1) - mass / 2) / n
    beside = np.diff(g.place, axis=-1) == 1
    # A lone sample lies on two nodes: their mean rank, and so that of three neighbours, is the sample's.
    rank = _three(moment, beside) / np.maximum(_three(mass, beside), np.finfo(float).tiny)
    used = mass > 0
    cell = (
        np.minimum((np.where(used, rank, 0.0) * k + _ROUNDING).astype(np.intp), k - 1) + k * np.arange(len(g))[:, None]
    )
    flat = cell.reshape(-1)

    def sums(values: FloatArray) -> FloatArray:
        return np.bincount(flat, values.reshape(-1), minlength=len(g) * k).reshape(-1, k).astype(np.float64)

    place = np.broadcast_to(g.place, mass.shape)
    apart = [_at(place == end, mass, flat, k) for end in (0, g.cells)]
    inside = np.where((place > 0) & (place < g.cells), mass, 0.0)
    apart += [_at(on, mass, flat, k) for on in _piles(inside, n, beside)]
    # Where a weight vanishes beside the others a node is empty, whatever its outcomes say.
    positive = np.where(used, g.positive * unit, 0.0)
    return from_sums(sums(mass), sums(positive), sums(mass * g.nodes), sums(mass * rank), np.stack(apart, -1), n[:, 0])


def _at(on: AnyArray, mass: FloatArray, cell: IntArray, k: int) -> FloatArray:
    """Samples per cell on some nodes, (R, k), for the few problems that have any."""
    at = np.flatnonzero(on.reshape(-1))
    found = np.bincount(cell[at], mass.reshape(-1)[at], minlength=len(mass) * k)
    return np.asarray(found.reshape(-1, k), dtype=np.float64)


def _piles(mass: FloatArray, total: FloatArray, beside: AnyArray) -> Iterator[AnyArray]:
    """Nodes (R, m) of the heavy scores inside the domain, the heaviest first, for samples of size ``total``.

    A score lies on two nodes. It is heavy if it has 1 to 20 % of the rows, at least eight of them, and five times as
    many as share a score with a row elsewhere on average: if all scores have many rows, none is heavy.
    """
    if mass.shape[-1] < ENDS:
        return
    pair = mass[:, :-1] + mass[:, 1:] * beside
    share, numbers = np.round(pair / total, 9), np.arange(mass.shape[-1])  # whatever the order in which rows came
    for _ in range(APART - ENDS):
        first = share.argmax(axis=-1)[:, None]
        largest = np.take_along_axis(share, first, -1)
        both = np.take_along_axis(np.broadcast_to(beside, share.shape), first, -1)
        on = (numbers == first) | ((numbers == first + 1) & both)
        rest = np.where(on, 0.0, mass)
        usual = (rest**2).sum(axis=-1, keepdims=True) / np.maximum(rest.sum(axis=-1, keepdims=True), _ROUNDING)
        heavy = largest * total >= np.maximum(_FEWEST, _TIMES * usual)
        yield on & heavy & (largest >= _PILE) & (largest <= _LARGE_PILE)
        share = np.where(np.abs(numbers[:-1] - first) > 1, share, 0.0)


def _three(values: FloatArray, beside: AnyArray) -> FloatArray:
    """Sum of every value and its neighbours on the adjacent nodes."""
    out = values.copy()
    out[:, 1:] += values[:, :-1] * beside
    out[:, :-1] += values[:, 1:] * beside
    return out


def from_sums(
    count: FloatArray, positive: FloatArray, score: FloatArray, rank: FloatArray, apart: FloatArray, n: FloatArray
) -> RankCells:
    """Cells from sums of counts, positives, scores, ranks (…, m), of counts at heavy scores (…, m, 2 to 4), and sizes.

    An empty cell has score and rank ½.
    """
    filled = count > 0
    half = np.full(count.shape, 0.5)
    return RankCells(
        count,
        positive,
        np.divide(score, count, out=half.copy(), where=filled),
        np.divide(rank, count, out=half, where=filled),
        np.divide(apart, count[..., None], out=np.zeros(apart.shape), where=filled[..., None]),
        n,
    )


def expected_power(cells: RankCells, prior: Prior, norm: float) -> FloatArray:
    """Posterior mean of ``errorᵖ`` (of the error itself for p > 32), over leading axes."""
    return _expected(FittedMaps.of(cells, prior), norm)


def _expected(maps: FittedMaps, norm: float) -> FloatArray:
    cells, posteriors = maps.cells, maps.posteriors
    weight = laplace.weights(maps.prior, posteriors)
    weight = np.where(weight > _NEGLIGIBLE, weight, 0.0)
    weight /= weight.sum(axis=-1, keepdims=True)
    share = cells.count / cells.count.sum(axis=-1, keepdims=True)
    total = np.zeros(cells.count.shape[:-1])
    for i, posterior in enumerate(posteriors):
        some = np.flatnonzero(weight[:, i])
        if 0 < some.size < len(cells.count) / 2:  # where most have weight, a copy costs more than it saves
            mean, sd = laplace.gaps(cells.of(some), posterior.of(some))
            total[some] += weight[some, i] * _moment(mean, sd, share[some], norm)
        elif some.size:
            mean, sd = laplace.gaps(cells, posterior)
            total += weight[:, i] * _moment(mean, sd, share, norm)
    return total if maps.local is None else maps.average(total, maps.local, _expected(maps.local, norm))


def _moment(mean: FloatArray, sd: FloatArray, share: FloatArray, norm: float) -> FloatArray:
    """``E Σ share |gap|^p`` of normal gaps; for p = inf the largest ``E |gap|``, in place of E max |gap|."""
    from scipy.special import gamma, hyp1f1

    size = folded(mean, sd)
    if np.isinf(norm):
        return np.asarray(np.where(share > 0, size, 0.0).max(axis=-1))
    if norm == 1:
        return np.asarray((share * size).sum(axis=-1))
    if norm == 2:
        return np.asarray((share * (mean**2 + sd**2)).sum(axis=-1))
    if norm > LARGE_NORM:
        largest = np.maximum(size.max(axis=-1, keepdims=True), np.finfo(float).tiny)
        inner = (share * (size / largest) ** norm).sum(axis=-1)
        return np.asarray(largest[..., 0] * inner ** (1 / norm))
    ratio = np.divide(mean, sd, out=np.zeros_like(mean), where=sd > 0)
    scale = 2 ** (norm / 2) * gamma((1 + norm) / 2) / np.sqrt(np.pi)
    moment = sd**norm * scale * hyp1f1(-norm / 2, 0.5, -(ratio**2) / 2)
    # Far from 0 the fold is nothing, and the series loses digits.
    moment = np.where(np.abs(ratio) > 30, np.abs(mean) ** norm, moment)
    return np.asarray((share * moment).sum(axis=-1))


def folded(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """``E |X|`` for normal X."""
    from scipy.special import erf

    ratio = np.divide(np.abs(mean), sd, out=np.full(mean.shape, np.inf), where=sd > 0)
    return np.asarray(sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * ratio**2) + np.abs(mean) * erf(ratio / np.sqrt(2)))

"""`evalue_test`: evidence against calibration that may be inspected at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np

from ..data.checks import check_choice, check_fraction, check_int, check_random_state
from ..data.dependence import group_codes
from ..data.predictions import Predictions, rows_with_weight
from ..data.printing import number_of
from ..data.problem import Problem
from ..data.progress import counted
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, FloatArray, IntArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import ones_or, run_starts
from ..estimators.isotonic import isotonic_means
from ..notions import Notion, as_notion
from ..sums.logistic_fit import fit
from .result import TestResult

ALGORITHMS = ("sequential", "split")
ORDERS = ("random", "given")
#: Cells, of equal width in log odds, that summarise past rows: a state of fixed size, whatever the number of rows.
N_CELLS = 512
#: Log odds of the outermost cells.
END = 12.0
#: Rows before the first bet, and the factor by which their number grows from one fit to the next.
FIRST, GROWTH = 8, 1.1
#: Rows processed at a time.
TOGETHER = 1 << 16
#: Prior standard deviations of intercept and slope, and of the first cosine; that of the k-th is 1/k of it.
PRIORS = ((0.3, 0.0), (0.3, 0.4), (0.3, 1.0))
#: Number of cosines of ranks.
N_COSINES = 8
#: Rows of the stated frequency that are added to each pool of the isotonic fit, so that no bet risks everything.
SHRINKAGE = 5.0


@public_function(grouped=True)
def evalue_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    algorithm: str = "sequential",
    order: str = "random",
    n_splits: int = 20,
    fraction: float = 0.5,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Test of calibration by an e-value (the safe Hosmer–Lemeshow test of Henzi, Puke, Dimitriadis & Ziegel 2023).

    An alternative q is fitted to some rows and compared with the stated p on others:

    .. math:: E = \prod_i \Big(\frac{q_i}{p_i}\Big)^{o_i} \Big(\frac{1 - q_i}{1 - p_i}\Big)^{1 - o_i}

    which has mean 1 for a calibrated model, whatever q. So ``P(E ≥ 1/α) ≤ α``: E is the wealth of a bettor against the
    model with initial wealth 1, and 1/E is a p-value, without bins or asymptotics.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        The positive class, the confidence, ``ClassSpecific``, or ``"classwise"``, for which the classes' e-values are
        averaged: the mean of e-values is an e-value.
    algorithm : {"sequential", "split"}, default "sequential"
        ``"sequential"``: rows are bet on one after the other, each with alternatives fitted to earlier rows; the
        running E may be inspected after every row, and testing may stop at any time (``P(sup E ≥ 1/α) ≤ α``).
        ``"split"``: isotonic regression on a random part of the rows, evaluated on the others, averaged over splits;
        the order does not matter, and E is valid for this sample only.
    order : {"random", "given"}, default "random"
        Order in which rows are bet on (sequential). ``"given"`` is for rows in order of time, whose labels were unknown
        when the probabilities were predicted. Files are often sorted by label, which gives the next label away.
    n_splits : int, default 20
        Number of random splits over which E is averaged (split).
    fraction : float within (0, 1), default 0.5
        Fraction of the rows to which the isotonic map is fitted (split).
    random_state : int, Generator or None, default 0
        Seed of the order and of the splits.
    groups : array-like of shape (n,), optional
        Rows of one group are one bet (sequential): the mean of their ratios, which has mean 1 however they depend on
        each other, with alternatives fitted to earlier groups. ``"split"`` does not accept groups.
    sample_weight : array-like of shape (n,), optional
        Each row is one bet; the exponent of its factor is its weight over the largest so far, at most 1, so that E has
        mean at most 1. Whole numbers do not stand for repeated rows here: those would be bets on a known outcome.

    Returns
    -------
    TestResult
        ``statistic``: the e-value (split), or its maximum so far (sequential); ``pvalue`` = min(1, 1 / statistic).
        ``details``: ``e_value`` after the last row, ``e_max``, and their logarithms, which do not overflow. ∞ if an
        outcome had stated probability 0.

    Raises
    ------
    ValueError, TypeError
        For other kinds of notions, shares, and ``"split"`` with groups or one row.

    See Also
    --------
    calibrant.CalibrationMonitor : The sequential test, batch by batch.
    calibrant.significance.hosmer_lemeshow_test : The binned test that it replaces.
    calibrant.significance.TestResult : The result, field by field.

    Notes
    -----
    Validity at any time costs power: see the table on the tests' page. Sequential: the mean wealth of three bettors,
    whose maps are logistic with normal priors about the identity (a line in the log odds; a line and cosines of ranks,
    small or large), refitted whenever the number of rows has grown by a tenth. (Isotonic maps bet on noise: in trials
    with up to 2000 rows they did worse than these.) Split: 5 rows with the stated frequency are added to each pool of
    the isotonic fit, so that no single row can ruin the bet. No bets are made on scores of 0 and 1. Cost O(n), plus
    O(log n) fits on 512 cells; split: O(n log n) per split.

    References
    ----------
    Henzi, Puke, Dimitriadis & Ziegel (2023), *A safe Hosmer–Lemeshow test*; Ramdas, Grünwald, Vovk & Shafer (2023),
    *Game-theoretic statistics and safe anytime-valid inference*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < 0.25 + 0.5 * p
    >>> from calibrant.significance import evalue_test
    >>> bool(evalue_test(y, p).pvalue < 1e-6), bool(evalue_test(y, p, algorithm="split").pvalue < 1e-6)
    (True, True)
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    check_choice("order", order, ORDERS)
    n_splits, fraction = check_int("n_splits", n_splits, 1), check_fraction("fraction", fraction)
    p = whole_outcomes(as_predictions(y_true, y_prob, **inputs), "evalue_test")
    rng = check_random_state(random_state)
    if algorithm == "sequential":
        return SequentialBets(notion).bet(p.subset(_shuffled(p, rng)) if order == "random" else p)
    if p.groups is not None:
        raise ValueError(
            "algorithm 'split' treats all rows as independent: use algorithm='sequential' for rows in groups"
        )
    chosen, n_rows = as_notion(notion, p), p.n_samples
    problems = _problems(chosen, rows_with_weight(p))
    n_bets = problems[0].n_samples
    if n_bets < 2:
        raise ValueError("algorithm 'split' needs at least 2 rows; got 1")
    found = [split_log_ratios(one.scores, one.outcomes != 0, n_splits, fraction, rng, one.weights) for one in problems]
    log_e = log_mean_exp(np.concatenate(found)[:, None])[0]
    return _result(
        log_e, log_e, chosen, f"e-value of isotonic regression, {number_of(n_splits, 'split')}", n_rows, n_bets
    )


def whole_outcomes(p: Predictions, title: str) -> Predictions:
    """Return the predictions; raise ValueError if rows have shares."""
    if p.given is not None:
        raise ValueError(
            f"{title} bets on one outcome per row, but y_true holds shares: pass one row per draw, or use another "
            "test of calibration"
        )
    return p


class Bettor(Protocol):
    """Bettor on rows one after the other, with E alternatives."""

    def path(
        self, scores: FloatArray, happened: AnyArray, weights: FloatArray | None, group_starts: IntArray | None, /
    ) -> FloatArray:
        """Log wealth after each bet, (E, n)."""
        ...


class SequentialBets:
    """Bets on rows as they arrive, with alternatives fitted to earlier rows and an initial wealth of 1.

    Attributes
    ----------
    notion : str or Notion
    n_samples, n_bets : int
        Rows and bets so far, without rows of weight 0; rows of one group are one bet.
    log_e, log_max : float
        Logarithms of the wealth and of its maximum so far.
    """

    def __init__(
        self,
        notion: str | Notion,
        start: Callable[[], Bettor] | None = None,
        name: str = "sequential e-value of logistic maps",
    ) -> None:
        self.notion, self._start, self._name = notion, start or Wealth, name
        self.n_samples = self.n_bets = 0
        self.log_e = self.log_max = 0.0
        self.bettors: list[Bettor] = []

    def bet(self, p: Predictions) -> TestResult:
        """Bet on further rows, in the given order, and return the result so far."""
        chosen = as_notion(self.notion, p)
        p, starts = rows_with_weight(p), None
        if p.groups is not None:  # rows of a group together, groups in the order of their first rows
            codes = group_codes(p.groups)
            order = np.argsort(codes, kind="stable")
            p, starts = p.subset(order), run_starts(codes[order])
        problems = _problems(chosen, p)
        self.bettors = self.bettors or [self._start() for _ in problems]
        paths = [
            one.path(problem.scores, problem.outcomes != 0, problem.weights, starts)
            for one, problem in zip(self.bettors, problems, strict=True)
        ]
        mean = log_mean_exp(np.concatenate(paths))
        self.log_e, self.log_max = float(mean[-1]), max(self.log_max, float(mean.max()))
        self.n_samples, self.n_bets = self.n_samples + p.n_samples, self.n_bets + mean.size
        return self.result(chosen)

    def result(self, chosen: Notion) -> TestResult:
        """The result so far."""
        return _result(self.log_e, self.log_max, chosen, self._name, self.n_samples, self.n_bets)


def log_mean_exp(values: FloatArray) -> FloatArray:
    """Logarithm of the mean of exponentials over the first axis."""
    from scipy.special import logsumexp

    return np.asarray(logsumexp(values, axis=0) - np.log(len(values)))


def exp_of(value: float) -> float:
    """Exponential; infinite where it overflows."""
    with np.errstate(over="ignore"):
        return float(np.exp(value))


def _problems(notion: Notion, p: Predictions) -> list[Problem]:
    """The notion's problems, each with all rows: the mean of e-values of the same rows is one too."""
    if notion.vector or any(target.rows is not None for target in notion.targets(p)):
        raise ValueError(
            f"notion {notion.name!r} has no e-value test: use the positive class, 'confidence', 'classwise' or "
            "ClassSpecific(label)"
        )
    problems: Any = notion.reduce(p)
    return list(problems)


def _shuffled(p: Predictions, rng: np.random.Generator) -> AnyArray:
    """Rows in a random order, those of a group together."""
    if p.groups is None:
        return rng.permutation(p.n_samples)
    place = rng.permutation(int(p.groups.max()) + 1)
    return np.asarray(np.argsort(place[p.groups], kind="stable"))


def _result(log_e: float, log_max: float, notion: Notion, name: str, n_rows: int, n_bets: int) -> TestResult:
    few = n_bets < 2 * FIRST
    return TestResult(
        statistic=exp_of(log_max),
        pvalue=float(min(1.0, np.exp(-log_max))),
        null=f"the probabilities are calibrated ({notion.name})",
        name=name,
        n_samples=n_rows,
        details={"e_value": exp_of(log_e), "e_max": exp_of(log_max), "log_e_value": log_e, "log_e_max": log_max},
        warnings=(f"too few rows to bet on: {n_bets}",) if few else (),
    )


class StatedRows(NamedTuple):
    """Rows to bet on: stated log odds, labels, weights relative to the largest so far, and flags of scores of 0 or 1.

    A row's log ratio is multiplied by its weight over the largest so far: powers of at most 1 keep the mean at most 1.
    """

    z: FloatArray
    happened: AnyArray
    power: FloatArray
    most: FloatArray
    certain: AnyArray
    impossible: AnyArray

    @classmethod
    def of(cls, scores: FloatArray, happened: AnyArray, weights: FloatArray | None, largest: float) -> StatedRows:
        """Rows that follow others whose largest weight is given."""
        s = scores.astype(np.float64)
        with np.errstate(divide="ignore"):
            z = np.log(s) - np.log1p(-s)
        certain = ~np.isfinite(z)
        impossible = certain & (happened != (s > 0.5))
        z[certain] = 0.0
        w = ones_or(weights, s.size)
        most = np.maximum(np.maximum.accumulate(w), largest) if s.size else w
        return cls(z, happened, w / most, most, certain, impossible)

    def log_ratios(self, rows: slice, shift: FloatArray, group_starts: IntArray | None) -> FloatArray:
        """Log likelihood ratios (E, n) of log odds ``z + shift`` to those stated; for groups, logs of mean ratios."""
        z = self.z[rows]
        found = np.where(self.happened[rows], shift, 0.0) - (np.logaddexp(0, z + shift) - np.logaddexp(0, z))
        found *= self.power[rows]
        found[:, self.certain[rows]] = 0.0
        found[:, self.impossible[rows]] = np.inf
        if group_starts is None:
            return np.asarray(found)
        count = np.diff(group_starts, append=rows.stop - rows.start)
        return np.asarray(np.logaddexp.reduceat(found, group_starts, axis=1) - np.log(count))


class Wealth:
    """Bets on rows one after the other: past rows in cells, alternatives, and the wealth of each.

    Attributes
    ----------
    log_wealth : ndarray of shape (E,)
        Logarithm of each alternative's product of likelihood ratios; ∞ once an outcome had stated probability 0.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.largest = 0.0  # weight so far
        self.fit_at = FIRST
        self.sums: FloatArray = np.zeros((3, N_CELLS))  # of weights, of those of positives, of weighted scores
        self.theta: FloatArray = np.zeros((len(PRIORS), N_COSINES + 2))
        self.shifts: FloatArray = np.zeros((len(PRIORS), N_CELLS))
        self.log_wealth: FloatArray = np.zeros(len(PRIORS))

    def path(
        self,
        scores: FloatArray,
        happened: AnyArray,
        weights: FloatArray | None = None,
        group_starts: IntArray | None = None,
    ) -> FloatArray:
        """Bet on rows one after the other; return the log wealth of every alternative after each bet, (E, n).

        A row's log ratio is multiplied by its weight over the largest so far: powers of at most 1 keep the mean at most
        1. Rows of one group are one bet, their mean ratio, which has mean 1 however they depend on each other; its
        alternatives are fitted to earlier groups. ``group_starts``: first rows of groups; None for single rows.
        """
        rows_of = StatedRows.of(scores, happened, weights, self.largest)
        s, certain, w = scores.astype(np.float64), rows_of.certain, ones_or(weights, scores.size)
        cell = cells_of(rows_of.z)
        parts = []
        start = 0
        while start < s.size:
            stop = min(s.size, start + self.fit_at - self.n_rows, start + TOGETHER)
            if group_starts is not None:  # the end of the group that is reached
                ends = np.append(group_starts[1:], s.size)
                stop = int(ends[np.searchsorted(ends, stop)])
            rows = slice(start, stop)
            shift = self.shifts[:, cell[rows]]
            inner = None
            if group_starts is not None:
                inner = group_starts[(group_starts >= start) & (group_starts < stop)] - start
            won = rows_of.log_ratios(rows, shift, inner)
            parts.append(self.log_wealth[:, None] + np.cumsum(won, axis=1))
            self.log_wealth = parts[-1][:, -1]
            inside = np.flatnonzero(~certain[rows]) + start
            of_rows = np.stack([np.ones(inside.size), happened[inside], s[inside]]) * w[inside]
            self.sums += [np.bincount(cell[inside], one, N_CELLS) for one in of_rows]
            self.n_rows += stop - start
            self.largest = float(rows_of.most[stop - 1])
            if self.n_rows >= self.fit_at:
                self.theta, self.shifts = alternatives(self.sums / self.largest, self.theta)
                self.fit_at = max(self.n_rows + 1, int(np.ceil(GROWTH * self.n_rows)))
            start = stop
        return np.concatenate(parts, axis=1)


def cells_of(z: FloatArray) -> AnyArray:
    """Cell of each log odds."""
    return np.asarray(np.clip((z + END) * (N_CELLS / (2 * END)), 0, N_CELLS - 1), dtype=np.intp)


def alternatives(sums: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients of each alternative, and its shift of the stated log odds in each cell, (E, cells).

    Logistic maps with normal priors around the identity: a line in the log odds, and two that add cosines of the
    scores' ranks. ``sums`` are the sums of weights, of weights of positives, and of weighted scores in each cell. The
    search starts from ``start``, the coefficients of the previous fit.
    """
    count, positive, score = sums
    used = count > 0
    if not used.any():
        return start, np.zeros((len(PRIORS), N_CELLS))
    z = (np.arange(N_CELLS) + 0.5) * (2 * END / N_CELLS) - END
    mean = score[used] / count[used]
    with np.errstate(divide="ignore"):  # a mean that rounds to 1
        z[used] = np.clip(np.log(mean) - np.log1p(-mean), -END, END)
    total = count.sum()
    rank = (np.cumsum(count) - count / 2) / total
    centre = (count @ z) / total
    spread = np.sqrt(count @ (z - centre) ** 2 / total)
    slope = (z - centre) / spread if spread > 1e-9 else np.zeros(N_CELLS)
    order = np.arange(1, N_COSINES + 1)[:, None]
    cosines = np.cos(np.pi * order * rank) / order
    columns = np.stack(
        [np.concatenate([[line * np.ones(N_CELLS), line * slope], wave * cosines]) for line, wave in PRIORS]
    )
    at, rows, hits = (np.broadcast_to(values[used], (len(PRIORS), mean.size)) for values in (z, count, positive))
    theta = fit(columns[:, :, used], at, rows, hits, 1.0, start)
    return theta, np.asarray((theta[:, None, :] @ columns)[:, 0])


def split_log_ratios(
    scores: FloatArray,
    happened: AnyArray,
    n_splits: int,
    fraction: float,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Log likelihood ratio of each split: isotonic fit to some rows, evaluated on the others.

    Weights divided by the largest are exponents of at most 1.
    """
    stake = ones_or(weights, scores.size)
    stake = stake / stake.max()
    distinct, home = np.unique(scores.astype(np.float64), return_inverse=True)
    s: FloatArray = distinct
    inside, n = (s > 0) & (s < 1), home.size
    n_fit = min(max(1, round(fraction * n)), n - 1)
    found = np.empty(n_splits)
    for i in counted(range(n_splits), "splits"):
        order = rng.permutation(n)
        # Rows and positives of each distinct score, in the part that is fitted and in the other.
        (count, positive), (left, won) = (
            [np.bincount(home[rows], weights[rows], s.size) for weights in (stake, stake * happened)]
            for rows in (order[:n_fit], order[n_fit:])
        )
        used = (count > 0) & inside
        at, q = s[used], s
        if at.size:
            fitted = shrunken_isotonic(at, count[used], positive[used])
            q = fitted[np.searchsorted((at[1:] + at[:-1]) / 2, s)]
        found[i] = likelihood_ratio(q, s, won, left)
    return found


def shrunken_isotonic(scores: FloatArray, count: AnyArray, positive: AnyArray) -> FloatArray:
    """Isotonic fit at ascending scores, with each pool's frequency shrunken towards its mean score."""
    pool = np.unique(isotonic_means(positive, count), return_inverse=True)[1]
    weight = np.bincount(pool, count)
    stated = np.bincount(pool, count * scores) / weight
    found = (np.bincount(pool, positive) + SHRINKAGE * stated) / (weight + SHRINKAGE)
    # Rounding may leave 0 or 1, which would risk everything.
    return np.asarray(np.clip(found, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)[pool])


def likelihood_ratio(q: FloatArray, p: FloatArray, positive: AnyArray, count: AnyArray) -> float:
    """Logarithm of ``Π (q/p)^positive ((1-q)/(1-p))^(count-positive)``.

    No bet is made on scores of 0 and 1; the ratio is ∞ if an outcome contradicts one.
    """
    certain = (p == 0) | (p == 1)
    if np.any(np.where(p == 0, positive, count - positive)[certain] > 0):
        return float("inf")
    q, p, positive, count = (values[~certain] for values in (q, p, positive, count))
    return float(positive @ (np.log(q) - np.log(p)) + (count - positive) @ (np.log1p(-q) - np.log1p(-p)))

"""`evalue_test`: evidence against calibration that may be looked at again and again."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from ..data.checks import check_choice, check_fraction, check_int
from ..data.dependence import group_codes
from ..data.predictions import Predictions
from ..data.problem import Problem
from ..data.public_function import InputOptions, verb
from ..data.types import AnyArray, FloatArray, IntArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import run_starts
from ..notions import Notion, as_notion
from .betting import FIRST, Wealth, split_log_ratios
from .result import TestResult

ALGORITHMS = ("sequential", "split")
ORDERS = ("random", "given")


@verb(grouped=True)
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

    An alternative q is fitted to some rows and set against the stated p on others:

    .. math:: E = \prod_i \Big(\frac{q_i}{p_i}\Big)^{o_i} \Big(\frac{1 - q_i}{1 - p_i}\Big)^{1 - o_i}

    which is 1 on average for a calibrated model, whatever q. So ``P(E ≥ 1/α) ≤ α``: E is what betting against the model
    has made of 1, and 1/E is a p-value, with no bins and no asymptotics.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label
        See :func:`calibrant.as_predictions`.
    notion : str or Notion, default "auto"
        The positive class, the confidence, ``ClassSpecific``, or ``"classwise"``, for which the classes' e-values are
        averaged: the mean of e-values is one.
    algorithm : {"sequential", "split"}, default "sequential"
        ``"sequential"``: rows are bet on one after the other, each with alternatives fitted to those before it; the
        running E may be looked at after every row, and testing may stop when it pleases (``P(sup E ≥ 1/α) ≤ α``).
        ``"split"``: isotonic regression on a random part of the rows, read at the others, averaged over splits; the
        order does not matter, and E is valid for this one sample only.
    order : {"random", "given"}, default "random"
        In which order rows are bet on (sequential). ``"given"`` is for rows in the order of time, whose labels were not
        known when their probabilities were stated: files are often sorted by label, and the next label is then no news.
    groups : array-like of shape (n,), optional
        Rows that belong together are one bet (sequential): the mean of theirs, which is 1 on average however they hang
        together, by alternatives fitted to the groups before. Algorithm ``"split"`` takes no groups.
    n_splits : int, default 20
    fraction : float within (0, 1), default 0.5
        Of the rows, to which the isotonic map is fitted (split).
    sample_weight : array-like of shape (n,), optional
        A row is one bet, and its weight over the largest so far is the exponent of its factor: at most 1, so that E is
        at most 1 on average. Whole numbers are no repeated rows here, which would be bets on what is known.
    random_state : int, Generator or None
        Of the order, and of the splits.

    Returns
    -------
    TestResult
        ``statistic``: the e-value (split), or the largest that was reached (sequential); ``pvalue`` = min(1, 1 /
        statistic). ``details``: ``e_value`` after the last row, ``e_max``, and their logarithms, which do not overflow.
        ∞ where an outcome had stated probability 0.

    Raises
    ------
    ValueError, TypeError
        For notions of other kinds.

    Notes
    -----
    The price of being valid at any time is power: see the table of the tests' page. Sequential: the mean wealth of
    three bettors, whose maps are logistic with normal priors about the identity (a line in the log odds; a line and
    waves over ranks, small or large), refitted whenever the rows have grown by a tenth. (Isotonic maps bet their noise:
    in trials up to 2000 rows they lost to these.) Split: each pool of the isotonic fit has 5 rows of the frequency
    it states added to it, so that no single row can ruin the bet. Scores of 0 and 1 are never bet on. Cost
    O(n), plus O(log n) fits on 512 cells; split: O(n log n) a split.

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
    p = as_predictions(y_true, y_prob, **inputs)
    rng = np.random.default_rng(random_state)
    if algorithm == "sequential":
        return SequentialBets(notion).bet(p.subset(_shuffled(p, rng)) if order == "random" else p)
    if p.groups is not None:
        raise ValueError(
            "algorithm 'split' takes all rows as independent: use algorithm='sequential' for rows in groups"
        )
    chosen, n_rows = as_notion(notion, p), p.n_samples
    problems = _problems(chosen, _used(p))
    n_bets = problems[0].n_samples
    if n_bets < 2:
        raise ValueError("algorithm 'split' needs at least 2 rows; got 1")
    found = [split_log_ratios(one.scores, one.outcomes != 0, n_splits, fraction, rng, one.weights) for one in problems]
    log_e = float(log_mean_exp(np.concatenate(found)[:, None])[0])
    return _result(log_e, log_e, chosen, f"e-value of isotonic regression, {n_splits} splits", n_rows, n_bets)


class SequentialBets:
    """Bets on rows as they arrive, by alternatives that earlier rows suggest; what they have made of 1.

    Attributes
    ----------
    notion : str or Notion
    n_samples, n_bets : int
        Rows and bets so far, rows of weight 0 left out; rows of one group are one bet.
    log_e, log_max : float
        Logarithm of the wealth, and of the most that it ever was.
    """

    def __init__(self, notion: str | Notion) -> None:
        self.notion = notion
        self.n_samples = self.n_bets = 0
        self.log_e = self.log_max = 0.0
        self._bettors: list[Wealth] = []

    def bet(self, p: Predictions) -> TestResult:
        """Bet on further rows, in the order given; the result so far."""
        chosen = as_notion(self.notion, p)
        p, starts = _in_order(_used(p))
        problems = _problems(chosen, p)
        self._bettors = self._bettors or [Wealth() for _ in problems]
        paths = [
            one.path(problem.scores, problem.outcomes != 0, problem.weights, starts)
            for one, problem in zip(self._bettors, problems, strict=True)
        ]
        mean = log_mean_exp(np.concatenate(paths))
        self.log_e, self.log_max = float(mean[-1]), max(self.log_max, float(mean.max()))
        self.n_samples, self.n_bets = self.n_samples + p.n_samples, self.n_bets + mean.size
        return _result(
            self.log_e, self.log_max, chosen, "sequential e-value of logistic maps", self.n_samples, self.n_bets
        )


def log_mean_exp(values: FloatArray) -> FloatArray:
    """Logarithm of the mean of exponentials over the first axis."""
    with np.errstate(invalid="ignore"):
        found = np.logaddexp.reduce(values, axis=0) - np.log(len(values))
    return np.asarray(found)


def exp_of(value: float) -> float:
    """Exponential; infinite where it overflows."""
    with np.errstate(over="ignore"):
        return float(np.exp(value))


def _problems(notion: Notion, p: Predictions) -> list[Problem]:
    """The notion's problems, each of all rows: the mean of e-values of the same rows is one."""
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


def _in_order(p: Predictions) -> tuple[Predictions, IntArray | None]:
    """Rows with those of a group together, groups in the order of their first rows, and where each begins."""
    if p.groups is None:
        return p, None
    codes = group_codes(p.groups)
    order = np.argsort(codes, kind="stable")
    return p.subset(order), run_starts(codes[order])


def _used(p: Predictions) -> Predictions:
    """Rows with a weight."""
    return p if p.weights is None else p.subset(p.weights > 0)


def _result(log_e: float, log_max: float, notion: Notion, name: str, n_rows: int, n_bets: int) -> TestResult:
    few = n_bets < 2 * FIRST
    return TestResult(
        statistic=exp_of(log_max),
        pvalue=float(min(1.0, np.exp(-log_max))),
        null=f"the probabilities are calibrated ({notion.name})",
        name=name,
        n_samples=n_rows,
        details={"e_value": exp_of(log_e), "e_max": exp_of(log_max), "log_e_value": log_e, "log_e_max": log_max},
        warnings=(f"{n_bets} rows are too few to bet on",) if few else (),
    )

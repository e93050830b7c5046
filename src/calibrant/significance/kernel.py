"""`kernel_test`: is the kernel calibration error larger than that of a calibrated model?"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_choice, check_random_state, check_resamples, check_type, is_auto
from ..data.predictions import Predictions, rows_with_weight
from ..data.problem import Problem, VectorProblem
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from ..estimators import KernelCalibrationError
from ..notions import Notion, as_notion
from .null import DrawnLabels, GroupSigns, Null
from .result import TestResult

ALGORITHMS = ("resampling", "asymptotic")
#: Default rows per block, minimum and maximum: large blocks have more power, and cost more.
LEAST_BLOCK, MOST_BLOCK = 10, 50


@public_function(grouped=True)
def kernel_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: KernelCalibrationError | None = None,
    algorithm: str = "resampling",
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Test by the squared kernel calibration error (Widmann, Lindsten & Zachariah 2019).

    .. math:: \mathrm{SKCE} = \frac{1}{n(n-1)} \sum_{i \ne j} κ(f_i, f_j)\, (y_i - f_i)^\top (y_j - f_j)

    which has mean 0 for a calibrated model, and for no other.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        ``"auto"``: the positive class of a 1-D ``y_prob``, the whole vector (``"canonical"``) of a matrix. Also
        ``"confidence"`` and ``ClassSpecific``.
    estimator : KernelCalibrationError, optional
        Kernel, bandwidth and distance; default ``KernelCalibrationError()``, for ``"asymptotic"`` with blocks of √n
        rows (10 to 50).
    algorithm : {"resampling", "asymptotic"}, default "resampling"
        ``"resampling"``: labels are drawn from the stated probabilities; exact for any n; O(n² K) per draw, but the
        kernels, the costliest part, are computed once. ``"asymptotic"``: the mean over random blocks of
        ``estimator.block`` rows, by Student's t distribution of block means; O(n · block); one-sided, and less
        powerful, the more so the smaller the blocks (Zaremba, Gretton & Blaschko 2013).

    Returns
    -------
    TestResult
        ``statistic``: SKCE (with blocks, divided by its standard error; with ``groups``, over pairs of rows of
        different groups). ``details``: ``skce``, ``bandwidth``. ``df``: with blocks only.

    Raises
    ------
    ValueError, TypeError
        For notions of several problems, other estimators, and ``"asymptotic"`` with groups or fewer than two blocks.

    See Also
    --------
    calibrant.estimators.KernelCalibrationError : The estimator of the statistic.
    calibrant.calibration_test : The same draws with an estimator of your choice.

    Notes
    -----
    The cost depends on ``algorithm`` (see above); resampling stores n² numbers.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([1, 1, 1], 600)
    >>> y = (rng.random((600, 1)) > (P**2 / (P**2).sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    >>> bool(cal.significance.kernel_test(y, P, n_resamples=199, random_state=0).pvalue < 0.02)
    True
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    n_resamples = check_resamples(n_resamples, 1)
    check_type("estimator", estimator, (KernelCalibrationError, type(None)), "a KernelCalibrationError or None")
    p = as_predictions(y_true, y_prob, **inputs)
    if algorithm == "asymptotic" and p.together is not None:
        raise ValueError(
            "algorithm 'asymptotic' treats all rows as independent: use 'resampling' for rows in groups, or with shares"
        )
    if p.together is not None:
        p = rows_with_weight(p)
    reader = estimator or KernelCalibrationError()
    if estimator is None and algorithm == "asymptotic":
        reader = KernelCalibrationError(block=min(max(math.isqrt(p.n_samples), LEAST_BLOCK), MOST_BLOCK))
    rng = check_random_state(random_state)
    if algorithm == "asymptotic":
        if p.n_samples < 2 * reader.block:
            raise ValueError(
                f"algorithm 'asymptotic' needs two blocks of {reader.block} rows; got {p.n_samples} rows: use "
                "'resampling'"
            )
        p = p.subset(rng.permutation(p.n_samples))  # files are often sorted by label: blocks would be of one
    chosen = as_notion("canonical" if is_auto(notion) and p.positive is None else notion, p)
    targets = list(chosen.targets(p))
    if len(targets) != 1:
        raise ValueError(f"notion {chosen.name!r} has several problems: test one class with ClassSpecific(label)")
    reduction = chosen.reduce(p)
    problem = reduction if isinstance(reduction, VectorProblem) else reduction[0]
    if algorithm == "asymptotic":
        return _asymptotic(reader, chosen, problem, p, rng)
    target, codes = targets[0], p.codes.astype(np.int64)
    scores = target.scores.astype(np.float64).reshape(p.n_samples, -1)

    def happened(codes: AnyArray) -> FloatArray:
        return np.asarray(target.outcomes(codes).reshape(scores.shape), dtype=np.float64)

    null: Null
    if p.together is None:
        null, groups = DrawnLabels(p), None
        labels = np.concatenate([codes[None], *null.sets(n_resamples, rng)])
        number = len(labels)

        def outcomes(r: int) -> FloatArray:
            return happened(labels[r])

    else:
        null = GroupSigns.of_targets(p, targets)
        groups, residual = null.group, happened(codes) - scores
        signs = np.concatenate([null.observed, *null.sets(n_resamples, rng)])
        number = len(signs)

        def outcomes(r: int) -> FloatArray:
            return np.asarray(scores + signs[r, groups][:, None] * residual)

    found = reader._resampled(problem, outcomes, number, groups)
    skce = float(found[0])
    return TestResult(
        statistic=skce,
        pvalue=null.pvalue(found[1:], skce),
        null=f"the probabilities are calibrated ({chosen.name})",
        name=f"kernel calibration error, {null.described(n_resamples)}",
        n_samples=p.n_samples,
        draws=found[1:],
        details={"skce": skce} | reader._details(problem, 2),
        n_groups=null.n_groups,
    )


def _asymptotic(
    reader: KernelCalibrationError,
    notion: Notion,
    problem: Problem | VectorProblem,
    p: Predictions,
    rng: np.random.Generator,
) -> TestResult:
    from dataclasses import replace

    from scipy.special import stdtr

    found = replace(reader, statistic="linear")._power_and_se(problem, 2)
    varies = found.se > 0
    t = found.power / found.se if varies else 0.0 if found.power <= 0 else math.inf
    rows = p.n_samples if p.weights is None else int((p.weights > 0).sum())
    freedom = max(rows // reader.block - 1, 1)
    return TestResult(
        statistic=float(t),
        pvalue=float(stdtr(freedom, -t)) if varies or t > 0 else 1.0,
        null=f"the probabilities are calibrated ({notion.name})",
        name=f"kernel calibration error of blocks of {reader.block} rows (Student's t)",
        n_samples=p.n_samples,
        df=float(freedom),
        details={"skce": float(found.power)} | reader._details(problem, 2),
        warnings=() if p.n_samples >= 200 else ("fewer than 200 rows: Student's distribution is a poor approximation",),
    )

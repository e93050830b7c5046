"""Decisions of lowest expected cost (survey, §2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.checks import check_list, check_number, received
from ..data.types import AnyArray, FloatArray
from ..data.validation import read_probabilities

#: Largest cost; sums and squares of costs up to this are finite.
_MOST = 1e100


def check_costs(costs: Any, k: int, positive: int) -> FloatArray:
    """Check the ``costs`` argument: a table (K, A), or costs by name for the positive of two classes."""
    if isinstance(costs, Mapping):
        if k != 2:
            raise ValueError(f"costs named 'fp' and 'fn' are for two classes; got {k}: pass one row per class")
        if not {"fp", "fn"} <= set(costs) <= {"fp", "fn", "tp", "tn"}:
            raise ValueError(f"costs must have the names 'fp' and 'fn', and may have 'tp' and 'tn'; got {list(costs)}")
        of = {"tp": 0.0, "tn": 0.0} | {name: check_number(f"costs[{name!r}]", v) for name, v in costs.items()}
        rows = [[of["tn"], of["fp"]], [of["fn"], of["tp"]]]  # decisions are the classes, in their order
        return np.array(rows if positive == 1 else [row[::-1] for row in rows[::-1]], dtype=np.float64)
    try:
        table = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"costs must be numbers, a row for each of {k} classes, all of the same length; got {received(costs)}"
        ) from None
    if table.ndim != 2 or table.shape[0] != k or table.shape[1] == 0:
        raise ValueError(f"costs must have a row for each of {k} classes; got shape {table.shape}")
    if not (np.abs(table) <= _MOST).all():
        raise ValueError(f"costs must be finite, and at most {_MOST:g}: only their ratios matter")
    return table


def optimal_threshold(cost_fp: float, cost_fn: float, *, prior_shift: tuple[float, float] | None = None) -> float:
    r"""Probability above which "positive" is the cheaper decision.

    .. math:: t = \frac{c_{FP}}{c_{FP} + c_{FN}}

    Parameters
    ----------
    cost_fp, cost_fn : float
        Costs of a false positive and of a false negative, beyond those of correct decisions; not negative, not both 0.
    prior_shift : (float, float), optional
        Base rate of the positive class where probabilities are calibrated, and where decisions are made, if these
        differ: the threshold then applies to the unadjusted probabilities (see :func:`shift_prior`).

    Returns
    -------
    float
        In [0, 1]: decide "positive" where the probability is at least this.

    See Also
    --------
    calibrant.decisions.decide : Decisions for more than two classes or decisions.
    calibrant.expected_cost : The cost of the decisions on labelled data.
    calibrant.shift_prior : Probabilities under another base rate.

    Notes
    -----
    Cost O(1).

    References
    ----------
    Elkan (2001), *The foundations of cost-sensitive learning*.

    Examples
    --------
    >>> from calibrant.decisions import optimal_threshold
    >>> optimal_threshold(1, 4)
    0.2
    >>> round(optimal_threshold(1, 1, prior_shift=(0.5, 0.1)), 3)  # rarer now: more evidence is needed
    0.9
    """
    cost_fp, cost_fn = check_number("cost_fp", cost_fp, least=0), check_number("cost_fn", cost_fn, least=0)
    if cost_fp + cost_fn == 0:
        raise ValueError("cost_fp and cost_fn must not both be 0: then all decisions cost the same")
    t = float(cost_fp / (cost_fp + cost_fn))
    if prior_shift is None:
        return t
    rates = check_list("prior_shift", prior_shift, "two base rates")
    if len(rates) != 2:
        raise ValueError(f"prior_shift must be two base rates; got {received(prior_shift)}")
    old, new = (check_number("base rates of prior_shift", value, above=0, below=1) for value in rates)
    # Odds of the threshold, as they were under the old base rate.
    up, down = t * old / new, (1 - t) * (1 - old) / (1 - new)
    return float(up / (up + down))


def decide(y_prob: Any, costs: Any) -> AnyArray:
    r"""Decision of lowest expected cost.

    .. math:: \arg\min_a \sum_k p_k\, C_{ka}

    Parameters
    ----------
    y_prob : array-like of shape (n, K)
        Calibrated probabilities; if 1-D, those of the second of two classes.
    costs : array-like of shape (K, A), or mapping with the keys "fp" and "fn"
        Cost of decision a if class k is true. There may be more decisions than classes, such as deferring to a person.

    Returns
    -------
    ndarray of shape (n,)
        Index of the decision; ties go to the first.

    See Also
    --------
    calibrant.optimal_threshold : The threshold for two classes and two decisions.
    calibrant.expected_cost : The cost of the decisions on labelled data.

    Examples
    --------
    >>> from calibrant.decisions import decide
    >>> decide([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], [[0, 1, 0.3], [5, 0, 0.3]]).tolist()  # 2: ask
    [2, 2, 1]
    """
    p = read_probabilities(y_prob)
    p = p if p.ndim == 2 else np.column_stack([1 - p, p])
    return np.asarray((p @ check_costs(costs, p.shape[1], 1)).argmin(axis=1))

"""`risk_coverage`: the gain from abstaining on the least confident rows, as a curve and as areas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from ..data.checks import check_level
from ..data.convert import to_array
from ..data.predictions import Predictions
from ..data.public_function import InputOptions, public_function
from ..data.result import Curve
from ..data.types import AnyArray, FloatArray, Interval
from ..data.validation import as_predictions
from ..data.weights import ones_or

#: Areas below this are rounding errors of 0; factors are at most e to the power of this.
_ROUNDING, _FAR = 1e-12, 100.0


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage(Curve):
    """Risk and coverage when only the most confident rows are accepted, and the areas below the curves.

    Attributes
    ----------
    aurc : float
        Area under the risk–coverage curve: the mean, over coverages, of the error rate of the rows accepted.
    augrc : float
        Area under the generalised curve: the mean share of rows that are accepted and wrong.
    excess_aurc, excess_augrc : float
        The same areas minus those of the best order, in which all errors come last.
    error_rate : float
        Error rate of all rows.
    intervals, standard_errors : mapping of name to Interval, and to float
        Intervals and standard errors of the five values above, by their names.
    thresholds : ndarray of shape (m,)
        Distinct confidences, from the highest; rows with at least this confidence are accepted.
    coverage : ndarray of shape (m,)
        Share of rows accepted.
    risk : ndarray of shape (m,)
        Error rate of these rows.

    See Also
    --------
    calibrant.decisions.risk_coverage : Computes it.
    calibrant.plot.RiskCoverageDisplay : Draws it.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.decisions.risk_coverage([0, 1, 1, 0], [0.1, 0.9, 0.3, 0.6], pos_label=1)
    >>> found.coverage.tolist(), found.risk.round(2).tolist()
    ([0.5, 0.75, 1.0], [0.0, 0.33, 0.5])
    """

    display: ClassVar[str] = "RiskCoverageDisplay"

    aurc: float
    augrc: float
    excess_aurc: float
    excess_augrc: float
    error_rate: float
    intervals: Mapping[str, Interval]
    standard_errors: Mapping[str, float]
    thresholds: FloatArray
    coverage: FloatArray
    risk: FloatArray
    level: float
    n_samples: int

    @property
    def generalised_risk(self) -> FloatArray:
        """Share of all rows that are accepted and wrong, (m,)."""
        return self.coverage * self.risk

    def _columns(self) -> dict[str, Any]:
        return {
            "threshold": self.thresholds,
            "coverage": self.coverage,
            "risk": self.risk,
            "generalised_risk": self.generalised_risk,
        }

    @property
    def summary(self) -> str:
        """Error rates of the more confident half and of all rows."""
        half = float(self.risk[np.argmin(np.abs(self.coverage - 0.5))])
        return (
            f"The more confident half of {self.n_samples:,} rows has an error rate of {100 * half:.1f} %, "
            f"all rows {100 * self.error_rate:.1f} %."
        )

    def _text(self) -> str:
        lines = [f"Risk and coverage of {self.n_samples:,} rows, {100 * self.level:g} % intervals"]
        for name, words in _WORDS.items():
            low, high = self.intervals[name]
            lines.append(f"  {words:<14}{getattr(self, name):>9.4g}   ({low:.4g} to {high:.4g})")
        return "\n".join(lines)


_WORDS = {
    "aurc": "AURC",
    "augrc": "AUGRC",
    "excess_aurc": "excess AURC",
    "excess_augrc": "excess AUGRC",
    "error_rate": "error rate",
}


@public_function()
def risk_coverage(
    y_true: Any,
    y_prob: Any = None,
    *,
    confidence: Any = None,
    level: float = 0.95,
    **inputs: Unpack[InputOptions],
) -> RiskCoverage:
    r"""Risk–coverage curve for predicting only where the model is confident, with AURC and AUGRC.

    With rows in decreasing order of confidence and ℓ = 1 where the predicted class is wrong,

    .. math:: & \mathrm{AURC} = \frac1n \sum_{k=1}^n \frac1k \sum_{i \le k} \ell_i, \\
              & \mathrm{AUGRC} = \frac{1}{n^2} \sum_i \ell_i \big(n - i + \tfrac12\big) \\
              & \quad = \tfrac12 r^2 + r (1 - r)(1 - \mathrm{AUROC}),

    with r the error rate and AUROC that of the confidence for correct predictions. Ties in confidence are averaged
    exactly over all orders.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, K)
        Predicted probabilities. 1-D: of ``pos_label``. 2-D: one column per class, in the order of ``labels``. The most
        probable class is predicted; for ties, the first label.
    confidence : array-like of shape (n,), optional
        Finite numbers, higher for more certain rows; by default the largest probability of each row.

    Returns
    -------
    RiskCoverage
        Areas in [0, 1]; 0 is perfect, lower is better. ``.plot()`` draws risk over coverage.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.plot.RiskCoverageDisplay : The plot of several models.
    calibrant.expected_cost : The cost of decisions, including abstention.
    calibrant.results.RiskCoverage : The result, field by field.

    Notes
    -----
    AURC weights an error at rank i by about ``log n/i``: errors in the few most confident rows count most. AUGRC
    weights an error by the share of coverages at which its row is accepted. Both also depend on the error rate; the
    excess measures only the ranking. None of them measures calibration: any increasing function of the confidence gives
    the same values.

    Standard errors are those of influence functions (DeLong's for AUGRC); intervals are normal on the log scale. If a
    standard error is 0, as without errors or with all of them last, the interval ends at the largest value that the
    rows cannot exclude. Whole-number weights equal repeats; others count by Kish's effective size, with harmonic
    numbers interpolated by the digamma function. Cost O(n log n).

    References
    ----------
    Geifman, Uziel & El-Yaniv (2019), *Bias-reduced uncertainty estimation for deep neural classifiers* (AURC and its
    excess); Traub et al. (2024), *Overcoming common flaws in the evaluation of selective classification systems*
    (AUGRC); DeLong, DeLong & Clarke-Pearson (1988).

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.decisions.risk_coverage([0, 1, 1, 0], [0.1, 0.9, 0.3, 0.6], pos_label=1)  # wrong: 0.3, 0.6
    >>> round(found.aurc, 4), found.excess_aurc  # of the surest row, two, three, four: 0, 0, 1/3 and 1/2 are wrong
    (0.2083, 0.0)
    >>> found.augrc
    0.125
    """
    level = check_level(level)
    p = as_predictions(y_true, y_prob, **inputs)
    order = _Order.of(p, _confidences(confidence, p))
    values, influence = order.areas()
    share = order.row_weight / order.row_weight.sum()
    intervals, errors = {}, {}
    for name, value in values.items():
        each = influence[name]
        spread = float(share @ (each - share @ each) ** 2)
        errors[name] = float(np.sqrt(spread / (order.n - 1))) if order.n > 1 else float("nan")
        intervals[name] = order.interval(name, value, errors[name], level)
    upto = order.before + order.weight
    return RiskCoverage(
        **values,
        intervals=intervals,
        standard_errors=errors,
        thresholds=order.confidence,
        coverage=upto / order.n,
        risk=(order.wrong_before + order.wrong) / upto,
        level=level,
        n_samples=p.n_samples,
    )


class _Areas(NamedTuple):
    """AURC and AUGRC of an error rate."""

    aurc: float
    augrc: float


@dataclass(frozen=True, eq=False)
class _Order:
    """Rows in decreasing order of confidence, equal ones together, in units of the effective sample size n.

    ``before``, ``wrong_before`` are the weights of the rows, and of those that are wrong, ahead of each distinct
    confidence; ``place`` is the index of each row's confidence.
    """

    confidence: FloatArray
    weight: FloatArray
    wrong: FloatArray
    before: FloatArray
    wrong_before: FloatArray
    place: AnyArray
    row_wrong: FloatArray
    row_weight: FloatArray
    n: float

    @classmethod
    def of(cls, p: Predictions, confidence: FloatArray) -> _Order:
        """Order of the rows with weight."""
        w = ones_or(p.weights, p.n_samples)
        used = np.flatnonzero(w > 0)
        n = p.effective_size
        w = w[used] * (n / w.sum())
        wrong = (p.predicted[used] != p.codes[used]).astype(np.float64)
        negated, place = np.unique(-confidence[used], return_inverse=True)
        weight, missed = (np.bincount(place, v).astype(np.float64) for v in (w, w * wrong))
        before, wrong_before = (np.cumsum(v) - v for v in (weight, missed))
        return cls(-negated, weight, missed, before, wrong_before, place, wrong, w, n)

    def areas(self) -> tuple[dict[str, float], dict[str, FloatArray]]:
        """The areas, and the contribution of each row: influence functions, up to a constant."""
        from scipy.special import digamma

        n, missed = self.n, float(self.wrong.sum())
        rate = missed / n
        inverse = digamma(self.before + self.weight + 1) - digamma(self.before + 1)  # sum of 1 / rank
        mean_inverse = inverse / self.weight
        later = float(inverse.sum()) - np.cumsum(inverse)
        loss = 1 - self.before * mean_inverse + later  # contribution of an error here to n · AURC
        aurc = float(self.wrong @ loss) / n
        accepted = 1 - (self.before + self.weight / 2) / n
        augrc = float(self.wrong @ accepted) / n
        to_end = float(digamma(n + 1) - digamma(max(n - missed, 0.0) + 1))
        best = _Areas(rate - (1 - rate) * to_end, rate**2 / 2)
        pushed = self.wrong * mean_inverse
        behind = float(pushed.sum()) - np.cumsum(pushed) + pushed / 2
        ahead = (self.wrong_before + self.wrong / 2) / n
        row = self.row_wrong
        moved = {"aurc": row * loss[self.place] - behind[self.place], "augrc": row * accepted[self.place]}
        moved["augrc"] += ahead[self.place]
        values = {"aurc": aurc, "augrc": augrc}
        excess = {f"excess_{name}": values[name] - getattr(best, name) for name in values}
        values |= {name: value if value > _ROUNDING else 0.0 for name, value in excess.items()}
        moved |= {"excess_aurc": moved["aurc"] - row * to_end, "excess_augrc": moved["augrc"] - row * rate}
        return {**values, "error_rate": rate}, {**moved, "error_rate": row}

    def interval(self, name: str, value: float, se: float, level: float) -> Interval:
        """Normal on the log scale, within the possible range; for a standard error of 0 see :func:`risk_coverage`."""
        from scipy.special import ndtri

        nan = float("nan")
        if np.isnan(se):
            return Interval(nan, nan)
        tail, n = (1 - level) / 2, self.n
        missed = float(self.wrong.sum())
        unseen = 1 - tail ** (1 / n)
        rate = min(max(missed / n, unseen), 1 - unseen)
        low, high = _best(rate), _worst(rate)
        if value > _ROUNDING and se > _ROUNDING * value:
            factor = float(np.exp(min(ndtri((1 + level) / 2) * se / value, _FAR)))
            return Interval(value / factor, min(value * factor, 1.0))
        if name == "error_rate":
            return Interval(*((0.0, unseen) if missed == 0 else (1 - unseen, 1.0)))
        pairs = min(missed, n - missed)  # of errors and right rows, all of them in the right order
        turned = 1 - tail ** (1 / pairs) if pairs >= 1 else 1.0
        area = name.removeprefix("excess_")
        least, most = getattr(low, area), getattr(high, area)
        if name != area:
            return Interval(0.0, max((most - least) * turned, value))
        return Interval(min(least, value) if missed else 0.0, max(most, value) if not missed else 1.0)


def _best(rate: float) -> _Areas:
    """Areas with all errors last."""
    from scipy.special import xlogy

    return _Areas(float(rate + xlogy(1 - rate, 1 - rate)), rate**2 / 2)


def _worst(rate: float) -> _Areas:
    """Areas with all errors first."""
    from scipy.special import xlogy

    return _Areas(float(rate - xlogy(rate, rate)), rate - rate**2 / 2)


def _confidences(confidence: Any, p: Predictions) -> FloatArray:
    """Check the ``confidence`` argument."""
    if confidence is None:
        return np.asarray(p.confidence, dtype=np.float64)
    array, _ = to_array(confidence, "confidence")
    if array.shape not in ((p.n_given,), (p.n_given, 1)):
        raise ValueError(f"confidence must hold a number for each of {p.n_given} rows; got shape {array.shape}")
    try:
        found = np.asarray(array.reshape(-1), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"confidence must hold numbers; got dtype {array.dtype}") from None
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        raise ValueError(f"confidence must be finite; got {found[row]!s} in row {row}")
    return p.of_given(found)

"""`censoring_weights`: converts right-censored follow-up to labels and weights at one horizon."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..exceptions import CensoringWarning
from .checks import check_bool, check_number, received
from .convert import check_same_order
from .libraries import library_of
from .predictions import effective_size
from .result import Result, Tabular, with_origin
from .types import AnyArray, FloatArray
from .validation import read_numbers

#: Thresholds of warnings: the relative excess of weights from ties of events and censorings, and the ratio of the
#: variance of the weighted event rate to that assumed by intervals. In benchmarks/coverage/censoring.md intervals cover
#: 92 % or more below it, and 72 to 86 % above it.
_TIED, _UNLIKE = 0.02, 1.6


@dataclass(frozen=True, eq=False, repr=False)
class CensoringWeights(Tabular, Result):
    """Labels and weights of rows whose follow-up may be censored, at one horizon.

    Unpacks into labels and weights: ``y_true, sample_weight = found``.

    Attributes
    ----------
    y_true : ndarray of shape (n,), bool
        Whether the event is known to have happened by the horizon. Rows censored before are False and have weight 0.
    sample_weight : ndarray of shape (n,)
        Inverse of the probability that such a row is not censored; 0 for censored rows.
    horizon : float
        The horizon.
    n_events : int
        Number of rows with the event by the horizon.
    n_censored : int
        Number of rows censored by the horizon, whose label is unknown.
    effective_size : float
        Kish's effective size of the weights, ``(Σw)² / Σw²``.

    See Also
    --------
    calibrant.censoring_weights : Computes it.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.censoring_weights([1, 2, 3, 4, 5], [1, 0, 1, 0, 0], horizon=3.5)
    >>> found.y_true.tolist(), found.sample_weight.round(3).tolist()
    ([True, False, True, False, False], [1.0, 0.0, 1.333, 1.333, 1.333])
    >>> found.n_events, found.n_censored, round(found.effective_size, 2)
    (2, 1, 3.95)
    """

    _unpictured: ClassVar[str] = "No picture: calibrant.report() draws one from labels, weights and probabilities."

    y_true: AnyArray
    sample_weight: FloatArray
    horizon: float
    n_samples: int
    n_events: int
    n_censored: int
    effective_size: float
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[AnyArray]:
        return iter((self.y_true, self.sample_weight))

    def _columns(self) -> dict[str, Any]:
        return {"y_true": self.y_true, "known": self.sample_weight > 0, "sample_weight": self.sample_weight}

    @property
    def summary(self) -> str:
        """Numbers of rows by label, and the effective number of rows."""
        without, size = self.n_samples - self.n_events - self.n_censored, self.effective_size
        return (
            f"By {self.horizon:,.10g}, {self.n_events:,} of {self.n_samples:,} rows had the event and {without:,} did "
            f"not; censored, with weight 0: {self.n_censored:,}. Effective sample size: {size:,.0f}."
        )

    def _text(self) -> str:
        used = self.sample_weight[self.sample_weight > 0]
        return "\n".join([f"weights: {used.min():.4g} to {used.max():.4g}", *self.warnings])


def censoring_weights(
    time: Any, event: Any, horizon: float, *, reference: Any = None, left_limit: bool = False
) -> CensoringWeights:
    r"""Compute labels and weights at a fixed horizon from right-censored follow-up (IPCW).

    A model predicts the probability of an event by a horizon t, such as death within five years. Rows censored before t
    have no label, and leaving them out would bias every measure. Inverse probability of censoring weights (IPCW)
    replace them by similar rows that were followed. With the follow-up time T and the Kaplan–Meier estimate Ĝ of the
    share of rows that are not censored by a time,

    .. math:: y_i = [T_i \le t,\ \text{event}], \qquad w_i = \begin{cases} 1/\hat G(T_i) & T_i \le t,\ \text{event} \\
              1/\hat G(t) & T_i > t \\ 0 & T_i \le t,\ \text{censored.} \end{cases}

    Pass these to any function: ``cal.report(found.y_true, p, sample_weight=found.sample_weight)``, where ``p`` is the
    predicted probability of the event by t, one minus the predicted survival.

    Parameters
    ----------
    time : array-like of shape (n,)
        Time of the event, or of the end of follow-up without it; finite, not negative.
    event : array-like of shape (n,)
        Whether the event was observed (1 or True) or the row was censored (0 or False).
    horizon : float
        The time by which the event is predicted, in the unit of ``time``. Events at the horizon count as happened. At
        least the first time, and below the last.
    reference : (time, event), optional
        Follow-up of other rows, such as the training data, from which Ĝ is estimated; it must go beyond the horizon.
        Default: the rows themselves.
    left_limit : bool, default False
        Whether an event at time T has the weight 1/Ĝ(T−), which excludes censoring at T itself. The default weights
        are those of scikit-survival and of Graf et al., 1/Ĝ(T). The two differ only if an event and a censoring have
        the same time, as is common when times are whole months or years; then 1/Ĝ(T−) is right on average, and 1/Ĝ(T)
        weights events too much.

    Returns
    -------
    CensoringWeights
        ``.y_true`` and ``.sample_weight``, in the order of the rows; it unpacks into these two.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received. A horizon at or beyond the last
        follow-up is an error: no row is known to be without the event by then.

    Warns
    -----
    CensoringWarning
        If events and censorings that share times make the weights of events too large (``left_limit=True`` avoids
        it), and if rows without the event have so much larger weights that intervals are too short.

    See Also
    --------
    calibrant.estimate : The calibration error of these rows, with an interval.
    calibrant.report : The full report on these rows.
    calibrant.results.CensoringWeights : The result, field by field.

    Notes
    -----
    At equal times, events precede censorings. Rows keep their order, so probabilities and groups match without changes;
    rows of weight 0 change no result and may be left out.

    ``brier_score(…, scale="half")`` divides by the sum of the weights, ``sksurv.metrics.brier_score`` by the number of
    rows: the latter is the former times ``sample_weight.mean()``. Without ``reference`` that mean is 1 with
    ``left_limit=True``, and whenever no event and censoring share a time (see ``benchmarks/censoring.md``).

    Censoring is assumed to depend neither on the time of the event nor on the scores. Intervals treat the weights as
    known and independent of the outcome, and use the effective size of the rows. With up to half of the rows censored,
    they cover 92 % or more in simulations, except for calibrated scores where nearly all rows have the event: few rows
    without it are then followed to the horizon, and intervals cover 72 to 86 %. A warning is then given, and an earlier
    horizon helps (``benchmarks/coverage/censoring.md``).

    Weights never count repeated rows: if all are whole numbers, those above 1 are reduced by a rounding error.

    With competing events, pass whether any of them was observed, and set ``y_true`` to False for events of other kinds.
    Cost: O(n log n).

    References
    ----------
    Graf, Schmoor, Sauerbrei & Schumacher (1999), *Assessment and comparison of prognostic classification schemes for
    survival data*; Gerds & Schumacher (2006), *Consistent estimation of the expected Brier score in general survival
    models with right-censored event times*; Pölsterl (2020), *scikit-survival*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.uniform(0.1, 0.9, 2000)  # of an event within a year
    >>> died, left = -rng.exponential(size=2000) / np.log(1 - risk), rng.exponential(2, size=2000)
    >>> y_true, weight = cal.censoring_weights(np.minimum(died, left), died <= left, horizon=1)
    >>> cal.estimate(y_true, risk, sample_weight=weight).interval.low
    0.0
    """
    horizon, left_limit = check_number("horizon", horizon), check_bool("left_limit", left_limit)
    times, happened = _follow_up(time, event, "time", "event")
    if reference is None:
        others = times, happened
    elif isinstance(reference, (tuple, list)) and len(reference) == 2:
        others = _follow_up(reference[0], reference[1], "reference[0]", "reference[1]")
    else:
        raise TypeError(f"reference must be a pair (time, event); got {received(reference)}")
    with np.errstate(over="ignore"):  # equal times are equal in float32 too
        limit = times.dtype.type(horizon) if times.dtype.kind == "f" else horizon
    for name, known in (("time", times), ("reference[0]", others[0])):
        if not limit < known.max():
            raise ValueError(
                f"horizon must be below the last follow-up, {known.max()} in {name}, beyond which no row is known to "
                f"be without the event; got {horizon:g}"
            )
    if limit < times.min():
        raise ValueError(f"horizon must be at least the first time, {times.min()}; got {horizon:g}: is its unit right?")
    curve = _Uncensored(*others)
    late, case = times > limit, (times <= limit) & happened
    weight = np.zeros(times.size)
    weight[late] = 1 / curve.at(limit, "right")
    weight[case] = 1 / curve.at(times[case], "left" if left_limit else "right")
    if (weight == np.floor(weight)).all():  # which would stand for repeats of rows: here it stands for other rows
        weight = np.where(weight > 1, np.nextafter(weight, 0), weight)
    case_weight = 1 / curve.at(times[case], "left")
    said = _doubts(case, weight, float(weight[case].sum() - case_weight.sum()))
    for text in said:
        warnings.warn(text, CensoringWarning, stacklevel=2)
    found = CensoringWeights(
        y_true=case,
        sample_weight=weight,
        horizon=horizon,
        n_samples=times.size,
        n_events=int(case.sum()),
        n_censored=int(times.size - case.sum() - late.sum()),
        effective_size=effective_size(weight, times.size, integral=False),
        warnings=said,
    )
    return with_origin(library_of(time, event), found)


def _doubts(case: AnyArray, weight: FloatArray, excess: float) -> tuple[str, ...]:
    """Reasons to distrust the weights; ``excess`` is the weight of events beyond that with left limits."""
    said, total = [], float(weight.sum())
    if excess > _TIED * (total - excess):
        said.append(
            "Some events and censorings share a time, so that the weights of these events are too large, and the sum "
            f"of all weights by {100 * excess / (total - excess):.0f} %: pass left_limit=True"
        )
    rate = float(weight[case].sum()) / total
    squares = weight**2
    if (ratio := float(squares @ (case - rate) ** 2) / max(rate * (1 - rate) * squares.sum(), 1e-300)) > _UNLIKE:
        said.append(
            f"Rows without the event are few and have large weights: the variance is {ratio:.1f} times the one "
            "that intervals assume, so intervals are too short; choose an earlier horizon"
        )
    return tuple(said)


def _follow_up(time: Any, event: Any, time_name: str, event_name: str) -> tuple[AnyArray, AnyArray]:
    """Check times and whether events were observed."""
    check_same_order(**{time_name: time, event_name: event})
    times = read_numbers(time_name, time)
    seen = read_numbers(event_name, event, times.size)
    if (other := (seen != 0) & (seen != 1)).any():
        row = int(np.argmax(other))
        raise ValueError(
            f"{event_name} must be 0 or False (censored) or 1 or True (the event was observed); row {row} is "
            f"{seen[row]}: are times and events swapped? With several kinds of events, pass whether any was observed"
        )
    return times, seen == 1


class _Uncensored:
    """Kaplan–Meier estimate of the share of rows that are not censored by a time; events precede censorings."""

    def __init__(self, time: AnyArray, event: AnyArray) -> None:
        self.times, place, left = np.unique(time, return_inverse=True, return_counts=True)
        events = np.bincount(place, event, minlength=left.size)
        at_risk = time.size - np.cumsum(left) + left - events
        steps = 1 - (left - events) / np.maximum(at_risk, 1)
        self.share = np.concatenate([[1.0], np.cumprod(steps)])

    def at(self, time: Any, side: Any) -> FloatArray:
        """Share at a time ("right"), or just before it ("left")."""
        found: FloatArray = self.share[np.searchsorted(self.times, time, side=side)]
        return found

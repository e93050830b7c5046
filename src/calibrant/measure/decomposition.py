"""`decompose`: what of a proper score is miscalibration, what discrimination, what nobody could know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_choice, check_level, check_resamples
from ..data.predictions import Predictions, effective_size
from ..data.result import Table, plain
from ..data.types import AnyArray, FloatArray, Interval, RandomState
from ..data.validation import as_predictions
from ..data.verbs import Reading, verb
from ..data.weights import ones_or, run_starts
from ..errors import Binned
from ..sums import quantile_edges, resolve_n_bins, uniform_edges
from .scores import Brier, ScoringRule, as_rule, matrix_of, score_named

METHODS = ("corp", "binned", "exact")


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(Table):
    r"""A mean score and its parts.

    With S the stated probabilities, C those that were observed where S was said, and :math:`\bar o` the base rates:

    Attributes
    ----------
    total : float
        Mean score, of S: ``calibration + refinement`` (``+ within`` for bins) and ``calibration - discrimination +
        uncertainty``.
    calibration, miscalibration : float
        What S loses against C: 0 for a calibrated forecast. Two names of one part.
    refinement : float
        Score of C.
    discrimination : float
        What C gains on the base rates (resolution).
    uncertainty : float
        Score of the base rates.
    within : float
        With bins: what the spread of scores within bins adds; 0 otherwise.
    grouping, epistemic, irreducible : float
        With a posterior Q: ``irreducible`` is the score of Q, ``epistemic`` what S loses against it, ``grouping`` what
        C does, so that ``refinement = grouping + irreducible`` and ``epistemic = calibration + grouping``. NaN without.
    skill : float
        ``1 - total / uncertainty``: 0 for the base rates, 1 for certainty that comes true.
    intervals : mapping of str to Interval
        Of each part, where resamples were asked for.
    score, method : str
    n_samples : int
    """

    total: float
    calibration: float
    refinement: float
    uncertainty: float
    within: float
    irreducible: float
    score: str
    method: str
    n_samples: int
    intervals: Mapping[str, Interval] = field(default_factory=dict)

    def _columns(self) -> dict[str, Any]:
        nothing = Interval(float("nan"), float("nan"))
        ends = [self.intervals.get(name, nothing) for name in _PARTS]
        return {
            "part": _PARTS,
            "value": [getattr(self, name) for name in _PARTS],
            "low": [e.low for e in ends],
            "high": [e.high for e in ends],
        }

    @property
    def miscalibration(self) -> float:
        """The same as ``calibration``."""
        return self.calibration

    @property
    def discrimination(self) -> float:
        """``uncertainty - refinement``."""
        return self.uncertainty - self.refinement

    @property
    def grouping(self) -> float:
        """``refinement - irreducible``; NaN without a posterior."""
        return self.refinement - self.irreducible

    @property
    def epistemic(self) -> float:
        """``total - irreducible``; NaN without a posterior."""
        return self.total - self.irreducible

    @property
    def skill(self) -> float:
        """``1 - total / uncertainty``; NaN where one class only was seen."""
        return 1 - self.total / self.uncertainty if self.uncertainty > 0 else float("nan")

    def __str__(self) -> str:
        lines = [f"{self.score} score of {self.n_samples:,} rows ({self.method})"]
        for name in _PARTS:
            value = getattr(self, name)
            if np.isnan(value) or (name == "within" and self.method != "binned"):
                continue
            interval = self.intervals.get(name)
            shown = "" if interval is None else f"   {interval.low:.4f} – {interval.high:.4f}"
            lines.append(f"  {name:<16}{value:>10.4f}{shown}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON (NaN and infinities as None)."""
        out = {name: plain(getattr(self, name)) for name in _PARTS}
        out |= {"score": self.score, "method": self.method, "n_samples": self.n_samples}
        return out | {"intervals": {k: [plain(v.low), plain(v.high)] for k, v in self.intervals.items()}}


_PARTS = (
    "total",
    "calibration",
    "refinement",
    "discrimination",
    "uncertainty",
    "within",
    "grouping",
    "epistemic",
    "irreducible",
    "skill",
)


@verb()
def decompose(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: str | ScoringRule = "brier",
    method: str = "corp",
    posterior: Any = None,
    n_bins: int | str = 10,
    strategy: str = "uniform",
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: RandomState = 0,
    **reading: Unpack[Reading],
) -> Decomposition:
    r"""Decompose a mean proper score into calibration and refinement.

    .. math:: E\,\ell(S, Y) = \underbrace{E\,d(S, C)}_{calibration} + \underbrace{E\,e(C)}_{refinement},
              \qquad e(C) = \underbrace{d(C, Q)}_{grouping} + \underbrace{e(Q)}_{irreducible}

    where C are class frequencies given S, and Q the true posterior.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    score : {"brier", "log-loss", "spherical"} or a scoring rule of :mod:`calibrant.scores`, default "brier"
        ``"brier"``: ``(p - o)²`` of a 1-D ``y_prob``, ``Σ_k (p_k - o_k)²`` of a matrix.
    method : {"corp", "binned", "exact"}, default "corp"
        How C is found. ``"corp"``: by isotonic regression (Dimitriadis, Gneiting & Jordan 2021), without a choice of
        bins; of two classes for any score, of more for Brier's, class by class. ``"binned"``: frequencies of bins of
        the score (Murphy 1973), likewise. ``"exact"``: frequencies of rows with equal probability vectors, for scores
        that take few values; any score, any number of classes.
    posterior : array-like of the shape of ``y_prob``, optional
        True class probabilities Q of each row, where they are known.
    n_bins, strategy
        Of ``"binned"``: a number, ``"sqrt"`` or ``"cbrt"``, of equal width ("uniform") or equal mass ("quantile").
    n_resamples : int, default 0
        Bootstrap resamples of rows for ``intervals``: reflected about the estimate (the basic bootstrap), which
        corrects the bias of C's noise; percentiles for ``total``, and the wider of both for ``uncertainty``. The
        calibration's starts at 0 unless the estimate exceeds all but a share ``1 - level`` of those of labels drawn
        from the stated probabilities, as many draws again.
    level : float, default 0.95
    random_state : int, Generator or None

    Returns
    -------
    Decomposition
        The identities hold to rounding, on the sample: parts are means of realised scores.

    Raises
    ------
    ValueError
        For a score of two classes with more; for more than two classes with ``"corp"`` or ``"binned"`` and a score
        that is no sum over classes.

    Notes
    -----
    Calibration is biased upwards by the noise in C (of CORP by about ``log n / n``), refinement downwards.
    Intervals of CORP and of bins at 95 % hold the truth in 87 to 100 % of samples of 200 and 1000 rows, calibrated or
    not (``benchmarks/coverage/decomposition_coverage.py``); of many small exact groups they can lie beside the
    estimate, whose
    noise they take off. Infinite scores are reported: a total of ∞ is a calibration of ∞. Cost
    O(n log n) a class, and as much a resample
    without the sorting.

    References
    ----------
    Murphy (1973), *A new vector partition of the probability score*; Bröcker (2009), *Reliability, sufficiency, and the
    decomposition of proper scores*; Kull & Flach (2015), *Novel decompositions of proper scoring rules*; Silva Filho et
    al. (2023), §3.2.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> d = cal.decompose(rng.random(20_000) < p**2, p)  # the truth: 1/30, and E p² (1 - p²) = 2/15
    >>> bool(abs(d.calibration - 1 / 30) < 0.003 and abs(d.refinement - 2 / 15) < 0.003)
    True
    """
    check_choice("method", method, METHODS)
    p = as_predictions(y_true, y_prob, **reading)
    score = score_named(score)
    rule = as_rule(score, one_column=p.positive is not None)
    several = p.n_classes > 2 and method != "exact"
    if several and not isinstance(rule, Brier):
        raise ValueError(
            f"{rule!r} of {p.n_classes} classes is no sum over classes: method {method!r} needs Brier's score, or use "
            "method='exact'"
        )
    Binned(n_bins, strategy)  # judges both
    n_resamples, level = check_resamples(n_resamples, 0), check_level(level)
    stated, codes, weights = _counted(p)
    true = None if posterior is None else _posterior(posterior, p)
    observer = _observer(stated, method, n_bins, strategy, p.eps, weights, integral=p.integral_weights)
    rows = _Rows(rule, stated, codes, weights, observer, true)
    parts = rows.parts()
    intervals = {}
    if n_resamples:
        intervals = _intervals(rows, parts, n_resamples, level, np.random.default_rng(random_state))
    name = score if isinstance(score, str) else repr(score)
    return Decomposition(**parts, score=name, method=method, n_samples=len(codes), intervals=intervals)


#: Observed frequencies (n, K) and mean stated ones within bins (n, K) or None, given weights of the rows.
Observer = Callable[[FloatArray], tuple[FloatArray, FloatArray | None]]


def _counted(p: Predictions) -> tuple[FloatArray, AnyArray, FloatArray]:
    """Probabilities (n, K), codes and weights of the rows that count; what a single column speaks of comes last."""
    stated, codes = matrix_of(p), p.codes.astype(np.intp)
    if p.positive == 0:
        stated, codes = stated[:, ::-1], 1 - codes
    weights = ones_or(p.weights, len(codes))
    used = weights > 0
    return (stated, codes, weights) if used.all() else (stated[used], codes[used], weights[used])


def _posterior(posterior: Any, p: Predictions) -> FloatArray:
    """True probabilities, (n, K), in the order of the stated ones, whatever that of a frame's columns."""
    shape = getattr(posterior, "shape", None) or np.shape(posterior)
    if tuple(shape) != p.probs.shape:
        raise ValueError(f"posterior must have the shape of y_prob, {p.probs.shape}; got {tuple(shape)}")
    positive = None if p.positive is None else p.classes[p.positive]
    q = as_predictions(np.asarray(p.classes)[p.codes], posterior, labels=list(p.classes), pos_label=positive)
    true = matrix_of(q)
    true = true[:, ::-1] if q.positive == 0 else true
    return true if p.weights is None else true[p.weights > 0]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Stated probabilities, what happened, and what finds the observed frequencies: all that parts are made of."""

    rule: ScoringRule
    stated: FloatArray
    codes: AnyArray
    weights: FloatArray
    observer: Callable[[AnyArray], Observer]
    true: FloatArray | None

    def parts(self, used: Any = slice(None)) -> dict[str, float]:
        """Parts as means of realised scores, of the rows used."""
        observed, within = self.observer(self.codes)(self.weights)
        codes, weights = self.codes[used], self.weights[used]
        share = weights / weights.sum()
        base: FloatArray = np.bincount(codes, weights=share, minlength=self.stated.shape[1]).astype(np.float64)[None]

        def mean(p: FloatArray) -> float:
            return float(share @ _realised(self.rule, p[used], codes))

        total, refinement = mean(self.stated), mean(observed)
        # A bin speaks with one voice, the mean of its scores: what they differ by is no matter of calibration.
        spoken = total if within is None else mean(within)
        return {
            "total": total,
            "calibration": spoken - refinement,
            "refinement": refinement,
            "uncertainty": float(self.rule.expected(base, base)[0]),
            "within": 0.0 if within is None else total - spoken,
            "irreducible": float("nan") if self.true is None else mean(self.true),
        }


def _realised(rule: ScoringRule, p: FloatArray, codes: AnyArray) -> FloatArray:
    """Losses; of Brier's score also where rows do not sum to 1, for frequencies were found class by class."""
    if not isinstance(rule, Brier):
        return rule.losses(p, codes)
    own = np.take_along_axis(p, codes[:, None], axis=1)[:, 0]
    # Of two classes the other one is as far off.
    whole = 2 * (1 - own) ** 2 if p.shape[1] == 2 else np.einsum("ij,ij->i", p, p) - 2 * own + 1
    return np.asarray(whole if rule.scale == "sum" else whole / 2)


def _observer(
    stated: FloatArray,
    method: str,
    n_bins: int | str,
    strategy: str,
    eps: float,
    given: FloatArray,
    *,
    integral: bool,
) -> Callable[[AnyArray], Observer]:
    """What finds observed frequencies, for any labels and weights of the same rows; scores are sorted here, once."""
    k = stated.shape[1]
    if method == "exact":
        _, group = np.unique(stated, axis=0, return_inverse=True)
        return lambda codes: lambda weights: (_group_means(group.reshape(-1), codes, weights, k), None)
    columns = [1] if k == 2 else list(range(k))
    if method == "corp":
        found = [RowsByScore.of(stated[:, c]) for c in columns]
        return lambda codes: (
            lambda weights: (
                _joined([one.fit(codes == c, weights) for one, c in zip(found, columns, strict=True)]),
                None,
            )
        )
    bins = [_slots(stated[:, c], n_bins, strategy, eps, given, integral=integral) for c in columns]

    def binned(codes: AnyArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        pairs = list(zip(bins, columns, strict=True))
        observed = [_slot_means(slot, (codes == c).astype(np.float64), weights) for slot, c in pairs]
        return _joined(observed), _joined([_slot_means(slot, stated[:, c], weights) for slot, c in pairs])

    return lambda codes: partial(binned, codes)


def _joined(columns: list[FloatArray]) -> FloatArray:
    """Columns side by side; of two classes the first is the rest."""
    return np.column_stack([1 - columns[0], columns[0]] if len(columns) == 1 else columns)


def _group_means(group: AnyArray, codes: AnyArray, weights: FloatArray, k: int) -> FloatArray:
    m = int(group.max()) + 1
    sums = np.bincount(group * k + codes, weights=weights, minlength=m * k).reshape(m, k)
    whole = sums.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(sums, whole, out=np.zeros(sums.shape), where=whole > 0)[group])


def _slot_means(slot: AnyArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    whole = np.bincount(slot, weights=weights)
    means = np.divide(np.bincount(slot, weights=weights * values), whole, out=np.zeros(whole.shape), where=whole > 0)
    return np.asarray(means[slot])


def _slots(
    scores: FloatArray, n_bins: int | str, strategy: str, eps: float, weights: FloatArray, *, integral: bool
) -> AnyArray:
    """Bin of each score."""
    number = resolve_n_bins(n_bins, effective_size(weights, len(scores), integral=integral))
    edges = uniform_edges(number)
    if strategy == "quantile":
        edges = quantile_edges(scores, weights, number, integral=integral)
    return np.asarray(np.clip(edges.slots(scores, eps) - 1, 0, edges.n_bins - 1))


@dataclass(frozen=True, eq=False)
class RowsByScore:
    """Rows in the order of their scores, and where runs of equal ones start."""

    order: AnyArray
    start: AnyArray

    @classmethod
    def of(cls, scores: FloatArray) -> RowsByScore:
        """Sort; in which order equal scores come is no matter."""
        order = np.argsort(scores)
        s = scores[order]
        return cls(order, run_starts(s))

    def fit(self, outcomes: AnyArray, weights: FloatArray) -> FloatArray:
        """Isotonic frequencies of each row; equal scores are one."""
        from ..errors.isotonic import isotonic_means

        w = weights[self.order]
        positive = w * outcomes[self.order]
        distinct = self.start.size == w.size
        weight = w if distinct else np.add.reduceat(w, self.start)
        positive = positive if distinct else np.add.reduceat(positive, self.start)
        held = weight > 0
        if held.all():
            fitted = isotonic_means(positive, weight)
        else:  # scores that a resample left out have no row that asks
            fitted = np.zeros(weight.size)
            fitted[held] = isotonic_means(positive[held], weight[held])
        out = np.empty(w.size)
        out[self.order] = fitted if distinct else np.repeat(fitted, np.diff(self.start, append=w.size))
        return out


def _intervals(
    rows: _Rows, parts: dict[str, float], n_resamples: int, level: float, rng: np.random.Generator
) -> dict[str, Interval]:
    """Basic bootstrap intervals: as far from the estimate, on the other side, as resamples are from it."""
    n = len(rows.codes)

    def whole(parts: dict[str, float]) -> Decomposition:
        return Decomposition(**parts, score="", method="", n_samples=n, intervals={})

    known = whole(parts)
    drawn: dict[str, list[float]] = {name: [] for name in _PARTS if np.isfinite(getattr(known, name))}
    for _ in range(n_resamples):
        times = np.bincount(rng.integers(n, size=n), minlength=n)
        with np.errstate(invalid="ignore"):
            resampled = whole(replace(rows, weights=rows.weights * times).parts(times > 0))
        for name, values in drawn.items():
            values.append(getattr(resampled, name))
    out = {}
    for name, values in drawn.items():
        estimate = getattr(known, name)
        low, high = (float(v) for v in np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2]))
        if name == "uncertainty":  # a flat top, which percentiles stay below and reflections overshoot: both
            low, high = min(low, 2 * estimate - high), max(high, 2 * estimate - low)
        elif name != "total":
            low, high = 2 * estimate - high, 2 * estimate - low
        floor = -np.inf if name in ("skill", "within", "grouping", "epistemic") else 0.0
        out[name] = Interval(max(low, floor), max(high, floor))
    if "calibration" in out:
        null = _calibrations_of_calibrated(rows, n_resamples, rng)
        if known.calibration <= float(np.quantile(null, level)):
            out["calibration"] = Interval(0.0, max(out["calibration"].high, known.calibration))
    return out


def _calibrations_of_calibrated(rows: _Rows, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """The calibration that these scores would show if they were true: labels are drawn from them."""
    running = np.cumsum(rows.stated, axis=1)[:, :-1]
    out = np.empty(n_draws)
    for i in range(n_draws):
        codes = (rng.random((len(rows.codes), 1)) > running).sum(axis=1)
        out[i] = replace(rows, codes=codes, true=None).parts()["calibration"]
    return out

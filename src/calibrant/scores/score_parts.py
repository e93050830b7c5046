"""`Decomposition`: the parts of a mean score, as means of realised scores; intervals by resampling rows or groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..comparison.models.parts import latent_correlation
from ..comparison.models.units import IndependentUnits
from ..data.printing import number_of
from ..data.problem import Problem
from ..data.result import Measure, MeasuresDrawn, Table, jsonable
from ..data.types import AnyArray, FloatArray, Interval
from ..estimators import Binned
from ..estimators.isotonic import RowsByScore
from ..measure.scoring_rules import Brier, ScoringRule, brier_words

PARTS = (
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
#: Parts that may be below 0.
_SIGNED = ("skill", "within", "grouping", "epistemic")
#: Probabilities of 0 and 1 have no finite latent value: they are clipped to this and one minus this.
_CLIP = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition(MeasuresDrawn, Table):
    r"""A mean score and its parts.

    With S the stated probabilities, C the observed frequencies given S, and :math:`\bar o` the base rates:

    Attributes
    ----------
    total : float
        Mean score of S: ``calibration + refinement`` (``+ within`` for bins) and ``calibration - discrimination +
        uncertainty``.
    calibration, miscalibration : float
        Loss of S relative to C: 0 for a calibrated forecast. Both names mean the same part.
    refinement : float
        Score of C.
    discrimination : float
        Gain of C over the base rates (resolution).
    uncertainty : float
        Score of the base rates.
    within : float
        With bins: the contribution of the spread of scores within bins; 0 otherwise.
    grouping, epistemic, irreducible : float
        With a posterior Q: ``irreducible`` is the score of Q, ``epistemic`` the loss of S relative to Q, ``grouping``
        that of C, so that ``refinement = grouping + irreducible`` and ``epistemic = calibration + grouping``. NaN
        otherwise (see :func:`calibrant.scores.grouping_loss` for a lower bound).
    skill : float
        ``1 - total / uncertainty``: 0 for the base rates, 1 for certain and correct forecasts.
    intervals : mapping of str to Interval
        Interval of each part, if ``n_resamples`` or a calibrator was given.
    estimator : str
        How C was estimated.

    See Also
    --------
    calibrant.decompose : Computes it.
    calibrant.results.GroupingLoss : A lower bound on the part ``grouping``.

    Examples
    --------
    >>> import calibrant as cal
    >>> parts = cal.decompose([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4])
    >>> round(parts.total, 4), round(parts.calibration, 4), round(parts.refinement, 4)
    (0.075, 0.075, 0.0)
    """

    total: float
    calibration: float
    refinement: float
    uncertainty: float
    within: float
    irreducible: float
    score: str
    estimator: str
    n_samples: int
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    n_classes: int = 0

    _blank: ClassVar[str] = "these parts need a posterior, and intervals a level; see grouping_loss() for a lower bound"

    def measured(self) -> list[Measure]:
        """Parts that are known; miscalibration is ideally 0."""
        known = [name for name in PARTS if name != "skill" and getattr(self, name) == getattr(self, name)]
        found = ((name, getattr(self, name)) for name in known if name != "within" or self.estimator == "binned")
        return [
            Measure(name, value, self.intervals.get(name, (np.nan, np.nan)), 0.0 if name == "calibration" else None)
            for name, value in found
        ]

    def _columns(self) -> dict[str, Any]:
        nothing = Interval(float("nan"), float("nan"))
        ends = [self.intervals.get(name, nothing) for name in PARTS]
        return {
            "part": PARTS,
            "value": [getattr(self, name) for name in PARTS],
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
        """``1 - total / uncertainty``; NaN if only one class was observed."""
        return 1 - self.total / self.uncertainty if self.uncertainty > 0 else float("nan")

    @property
    def summary(self) -> str:
        """The part of the score due to miscalibration."""
        share = f", {100 * self.calibration / self.total:.0f} %" if self.total > 0 else ""
        score = {"brier": "Brier score", "log": "log-loss"}.get(self.score, f"{self.score} score")
        return f"Miscalibration accounts for {self.calibration:.4f} of the {score} of {self.total:.4f}{share}."

    def _text(self) -> str:
        lines = [f"{self.score} score of {number_of(self.n_samples, 'row')} ({self.estimator})"]
        if self.score == "brier" and self.n_classes:
            lines[0] += f": {brier_words(self.n_classes)}"
        for name in PARTS:
            value = getattr(self, name)
            if np.isnan(value) or (name == "within" and self.estimator != "binned"):
                continue
            interval = self.intervals.get(name)
            shown = "" if interval is None else f"   {interval.low:.4f} – {interval.high:.4f}"
            lines.append(f"  {name:<16}{value:>10.4f}{shown}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON (NaN and infinities as None)."""
        names = (*PARTS, "score", "estimator", "n_samples", "n_classes", "intervals")
        return {name: jsonable(getattr(self, name)) for name in names}


#: Observed frequencies (n, K), and mean stated ones within bins (n, K) or None, given codes and weights of the rows.
Observer = Callable[[AnyArray, FloatArray], tuple[FloatArray, FloatArray | None]]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Stated probabilities, outcomes and an estimator of observed frequencies, from which parts are computed.

    Attributes
    ----------
    rule : ScoringRule
    stated : ndarray of shape (n, K)
    codes : ndarray of shape (n,)
    weights : ndarray of shape (n,)
    observer : Observer
    true : ndarray of shape (n, K) or None
        The posterior, if known.
    units : IndependentUnits or None
        Independent units of the rows, if rows are dependent.
    integral : bool
        Whether weights are numbers of rows.
    """

    rule: ScoringRule
    stated: FloatArray
    codes: AnyArray
    weights: FloatArray
    observer: Observer
    true: FloatArray | None = None
    units: IndependentUnits | None = None
    integral: bool = True

    def parts(self, used: Any = slice(None)) -> dict[str, Any]:
        """Parts as means of realised scores, of the rows used."""
        observed, within = self.observer(self.codes, self.weights)
        codes, weights = self.codes[used], self.weights[used]
        share = weights / weights.sum()
        base: FloatArray = np.bincount(codes, weights=share, minlength=self.stated.shape[1]).astype(np.float64)[None]

        def mean(p: FloatArray) -> float:
            return float(share @ realised(self.rule, p[used], codes))

        total, refinement = mean(self.stated), mean(observed)
        # A bin is judged by the mean of its scores: their differences within it are not miscalibration.
        binned = total if within is None else mean(within)
        return {
            "total": total,
            "calibration": binned - refinement,
            "refinement": refinement,
            "uncertainty": float(self.rule.expected(base, base)[0]),
            "within": 0.0 if within is None else total - binned,
            "irreducible": float("nan") if self.true is None else mean(self.true),
        }

    def resamples(self, number: int, rng: np.random.Generator) -> Iterator[AnyArray]:
        """Number of times that each row, or its group, is drawn, (n,) each."""
        n = len(self.codes)
        units = self.units or IndependentUnits(np.arange(n), np.ones(n), np.ones(n), False)
        for drawn in units.draws(number, rng):
            yield from (times[units.of_row] for times in drawn.T)

    def intervals(self, level: float, n_resamples: int, rng: np.random.Generator) -> dict[str, Interval]:
        """Basic bootstrap intervals: quantiles of resamples, reflected about the estimate."""
        known = self._derived(self.parts())
        drawn: dict[str, list[float]] = {name: [] for name, value in known.items() if np.isfinite(value)}
        for times in self.resamples(n_resamples, rng):
            with np.errstate(invalid="ignore"):
                resampled = self._derived(replace(self, weights=self.weights * times).parts(times > 0))
            for name, values in drawn.items():
                values.append(resampled[name])
        out = {}
        for name, values in drawn.items():
            estimate = known[name]
            low, high = (float(v) for v in np.nanquantile(values, [(1 - level) / 2, (1 + level) / 2]))
            if name == "uncertainty":  # a flat top, which percentiles stay below and reflections overshoot: both
                low, high = min(low, 2 * estimate - high), max(high, 2 * estimate - low)
            elif name != "total":
                low, high = 2 * estimate - high, 2 * estimate - low
            floor = -np.inf if name in _SIGNED else 0.0
            out[name] = Interval(max(low, floor), max(high, floor))
        if "calibration" in out:
            null = self.calibrations_of_calibrated(n_resamples, rng)
            if known["calibration"] <= float(np.quantile(null, level)):
                out["calibration"] = Interval(0.0, max(out["calibration"].high, known["calibration"]))
        return out

    def _derived(self, parts: dict[str, Any]) -> dict[str, float]:
        """All parts, including those derived from others."""
        found = Decomposition(**parts, score="", estimator="", n_samples=len(self.codes))
        return {name: getattr(found, name) for name in PARTS}

    def calibrations_of_calibrated(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Calibration parts of a calibrated model with these scores: labels are drawn from them.

        Labels of a group are correlated as the residuals are: by normal latent variables with one correlation, the
        largest of any class against the rest; with several classes their order matters, and is drawn too.
        """
        from scipy.special import ndtr

        n, k = self.stated.shape
        running, order = np.cumsum(self.stated, axis=1)[:, :-1], np.arange(k)
        held, units = self._correlation, self.units
        out = np.empty(n_draws)
        for i in range(n_draws):
            if units is None or held == 0:
                place = rng.random((n, 1))
            else:
                shared = np.sqrt(held) * rng.standard_normal(units.copies.size)[units.of_row]
                place = ndtr(shared + np.sqrt(1 - held) * rng.standard_normal(n))[:, None]
                if k > 2:
                    order = rng.permutation(k)
                    running = np.cumsum(self.stated[:, order], axis=1)[:, :-1]
            codes = order[(place > running).sum(axis=1)]
            out[i] = replace(self, codes=codes, true=None).parts()["calibration"]
        return out

    @property
    def _correlation(self) -> float:
        """Largest correlation of the latents of one class against the rest; for two classes one is enough."""
        if self.units is None:
            return 0.0
        k = self.stated.shape[1]
        stated = np.clip(self.stated, _CLIP, 1 - _CLIP)
        return max(
            latent_correlation(stated[:, i], self.codes == i, self.units, whole=self.integral)
            for i in (range(k) if k > 2 else [1])
        )


def realised(rule: ScoringRule, p: FloatArray, codes: AnyArray) -> FloatArray:
    """Losses; for Brier's score rows need not sum to 1, since frequencies are estimated class by class."""
    if not isinstance(rule, Brier):
        return rule.losses(p, codes)
    own = np.take_along_axis(p, codes[:, None], axis=1)[:, 0]
    # With two classes the other one is equally far off.
    whole = 2 * (1 - own) ** 2 if p.shape[1] == 2 else np.einsum("ij,ij->i", p, p) - 2 * own + 1
    return np.asarray(whole if rule.scale == "sum" else whole / 2)


def equal_vectors(stated: FloatArray) -> Observer:
    """Frequencies of rows with equal probability vectors."""
    k = stated.shape[1]
    _, cell = np.unique(stated, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    m = int(cell.max()) + 1

    def observer(codes: AnyArray, weights: FloatArray) -> tuple[FloatArray, None]:
        sums = np.bincount(cell * k + codes, weights=weights, minlength=m * k).reshape(m, k)
        whole = sums.sum(axis=1, keepdims=True)
        return np.divide(sums, whole, out=np.zeros(sums.shape), where=whole > 0)[cell], None

    return observer


def isotonic(stated: FloatArray) -> Observer:
    """Isotonic regression, class by class; scores are sorted here, once."""
    columns = _columns_of(stated)
    found = {c: RowsByScore.of(stated[:, c]) for c in columns}
    return lambda codes, weights: (_joined([one.fit(codes == c, weights) for c, one in found.items()]), None)


def binned(stated: FloatArray, bins: Binned, weights: FloatArray, *, eps: float, integral: bool) -> Observer:
    """Frequencies and mean scores of bins, class by class."""
    slots = {}
    for c in _columns_of(stated):
        edges = bins._edges(Problem(stated[:, c], np.zeros(len(stated)), weights, integral, eps=eps))
        slots[c] = np.clip(edges.slots(stated[:, c], eps) - 1, 0, edges.n_bins - 1)

    def observer(codes: AnyArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        observed = [_slot_means(slot, (codes == c).astype(np.float64), weights) for c, slot in slots.items()]
        return _joined(observed), _joined([_slot_means(slot, stated[:, c], weights) for c, slot in slots.items()])

    return observer


def _columns_of(stated: FloatArray) -> list[int]:
    """Classes for which frequencies are estimated: of two classes, the second."""
    return [1] if stated.shape[1] == 2 else list(range(stated.shape[1]))


def _joined(columns: list[FloatArray]) -> FloatArray:
    """Columns side by side; for two classes the first is the complement."""
    return np.column_stack([1 - columns[0], columns[0]] if len(columns) == 1 else columns)


def _slot_means(slot: AnyArray, values: FloatArray, weights: FloatArray) -> FloatArray:
    whole = np.bincount(slot, weights=weights)
    means = np.divide(np.bincount(slot, weights=weights * values), whole, out=np.zeros(whole.shape), where=whole > 0)
    return np.asarray(means[slot])

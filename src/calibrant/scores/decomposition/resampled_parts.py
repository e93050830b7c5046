"""Parts as means of realised scores, and their intervals by resampling rows, or groups of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...comparison.models.overfit import latent_correlation
from ...comparison.models.units import IndependentUnits
from ...data.types import AnyArray, FloatArray, Interval
from ...measure.scoring_rules import Brier, ScoringRule
from .observed import Observer
from .result import PARTS, Decomposition

#: Probabilities of 0 and 1 have no latent: taken for this and one less this.
_CLIP = 1e-9


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Stated probabilities, what happened, and what finds the observed frequencies: all that parts are made of."""

    rule: ScoringRule
    stated: FloatArray
    codes: AnyArray
    weights: FloatArray
    observer: Callable[[AnyArray], Observer]
    true: FloatArray | None
    #: What rows belong to, where they are not independent; and whether weights are numbers of rows.
    units: IndependentUnits | None = None
    whole: bool = True

    def resamples(self, number: int, rng: np.random.Generator) -> Iterator[AnyArray]:
        """How often each row is drawn, or the group that it is of, (n,) each."""
        n = len(self.codes)
        if self.units is None:
            for _ in range(number):
                yield np.bincount(rng.integers(n, size=n), minlength=n)
        else:
            for drawn in self.units.draws(number, rng):
                yield from (times[self.units.of_row] for times in drawn.T)

    def parts(self, used: Any = slice(None)) -> dict[str, float]:
        """Parts as means of realised scores, of the rows used."""
        observed, within = self.observer(self.codes)(self.weights)
        codes, weights = self.codes[used], self.weights[used]
        share = weights / weights.sum()
        base: FloatArray = np.bincount(codes, weights=share, minlength=self.stated.shape[1]).astype(np.float64)[None]

        def mean(p: FloatArray) -> float:
            return float(share @ realised(self.rule, p[used], codes))

        total, refinement = mean(self.stated), mean(observed)
        # A bin is judged by the mean of its scores: how they differ within it is no matter of calibration.
        binned = total if within is None else mean(within)
        return {
            "total": total,
            "calibration": binned - refinement,
            "refinement": refinement,
            "uncertainty": float(self.rule.expected(base, base)[0]),
            "within": 0.0 if within is None else total - binned,
            "irreducible": float("nan") if self.true is None else mean(self.true),
        }


def realised(rule: ScoringRule, p: FloatArray, codes: AnyArray) -> FloatArray:
    """Losses; of Brier's score also where rows do not sum to 1, for frequencies were found class by class."""
    if not isinstance(rule, Brier):
        return rule.losses(p, codes)
    own = np.take_along_axis(p, codes[:, None], axis=1)[:, 0]
    # Of two classes the other one is as far off.
    whole = 2 * (1 - own) ** 2 if p.shape[1] == 2 else np.einsum("ij,ij->i", p, p) - 2 * own + 1
    return np.asarray(whole if rule.scale == "sum" else whole / 2)


def resampled_intervals(
    rows: ScoredRows, parts: dict[str, float], n_resamples: int, level: float, rng: np.random.Generator
) -> dict[str, Interval]:
    """Basic bootstrap intervals: as far from the estimate, on the other side, as resamples are from it."""
    n = len(rows.codes)

    def whole(parts: dict[str, float]) -> Decomposition:
        return Decomposition(**parts, score="", estimator="", n_samples=n, n_classes=0, intervals={})

    known = whole(parts)
    drawn: dict[str, list[float]] = {name: [] for name in PARTS if np.isfinite(getattr(known, name))}
    for times in rows.resamples(n_resamples, rng):
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


def _calibrations_of_calibrated(rows: ScoredRows, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """The calibration that these scores would show if they were true: labels are drawn from them.

    Those of a group hang together as the residuals do: by normal latents of one correlation, the largest of any class
    against the rest; what a latent makes of several classes depends on their order, which is drawn too.
    """
    from scipy.special import ndtr

    n, k = rows.stated.shape
    running, order = np.cumsum(rows.stated, axis=1)[:, :-1], np.arange(k)
    held, units = _correlation(rows), rows.units
    out = np.empty(n_draws)
    for i in range(n_draws):
        if units is None or held == 0:
            place = rng.random((n, 1))
        else:
            shared = np.sqrt(held) * rng.standard_normal(units.copies.size)[units.of_row]
            place = ndtr(shared + np.sqrt(1 - held) * rng.standard_normal(n))[:, None]
            if k > 2:
                order = rng.permutation(k)
                running = np.cumsum(rows.stated[:, order], axis=1)[:, :-1]
        codes = order[(place > running).sum(axis=1)]
        out[i] = replace(rows, codes=codes, true=None).parts()["calibration"]
    return out


def _correlation(rows: ScoredRows) -> float:
    """Largest correlation of the latents of one class against the rest; of two classes one is enough."""
    if rows.units is None:
        return 0.0
    k = rows.stated.shape[1]
    stated = np.clip(rows.stated, _CLIP, 1 - _CLIP)
    return max(
        latent_correlation(stated[:, i], rows.codes == i, rows.units, whole=rows.whole)
        for i in (range(k) if k > 2 else [1])
    )

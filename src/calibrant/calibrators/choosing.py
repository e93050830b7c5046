"""Choice among calibrators, over folds of one sample or across disjoint samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..data.checks import fold_seed
from ..data.progress import counted
from ..data.types import FloatArray
from ..measure.result import Estimate
from .base import Calibrator
from .combined import Mixture
from .crossval import (
    AVERAGE,
    FLOOR,
    SCORES,
    UNKNOWN,
    HeldOutEvidence,
    MeanDifference,
    chosen_of,
    design_effect,
    error_of,
    fit_quietly,
    fold_fits,
    folds_of,
    losses_of,
    predict_held_out,
    score_scale,
)
from .inputs import CalibrationSample
from .temperature import EndSmoothing, Identity

#: Maximum number of rows per class from which weights are learnt; larger samples are subsampled at random. With fewer
#: rows, calibrators with many parameters look worse than with all rows.
MOST = 10_000
#: Weights are proportional to ``exp(-n loss / 10)``, with ``log-loss + 2 Brier`` as the loss: both scores count.
_POWER, _OF_BRIER = 0.1, 2.0
#: Calibrators with smaller weights are left out.
_LEAST = 0.01
#: Prior log weights for two classes: the gain of two parameters for real models of another half.
_LIKELIER = {"ensemble-temperature": 2.0}
#: Factors of ``se² / gain²`` that are subtracted from the weight of changes: for the score that is the goal, and for
#: the other, which must not get worse; and the additional factor if one row makes up the gain.
_OWN, _OTHER, _OF_ONE_ROW = 0.5, 0.05, 3.0
#: Gains up to this count as 0; fourth powers of larger ones do not underflow.
_NOTHING = 1e-60


@dataclass(frozen=True, eq=False)
class Choice:
    """Weights of candidates by a rule, and their probabilities for the held-out rows of a sample.

    ``identity`` is the name of the candidate that leaves scores unchanged, and ``base`` that of the one that keeps the
    rest of the weight: the identity, or end smoothing if that is a candidate.
    """

    goal: str
    weights: dict[str, float]
    table: list[dict[str, Any]]
    sample: CalibrationSample
    held: Mapping[str, FloatArray]
    found: Mapping[str, HeldOutEvidence]
    identity: str | None
    base: str | None
    n_folds: int
    caution: float = 1.0

    @property
    def heaviest(self) -> str:
        """The candidate with the largest weight."""
        return _heaviest(self.weights)

    @property
    def name(self) -> str:
        """The candidate that has all the weight, or ``"average"``."""
        return self.heaviest if len(self.weights) == 1 else AVERAGE

    def gain(self, score: str) -> MeanDifference:
        """Decrease of a score on held-out rows, compared with unchanged scores; unknown without the identity."""
        if self.identity is None:
            return UNKNOWN
        return HeldOutEvidence.of(self.averaged, self.sample).gain_over(self.found[self.identity], score, self.sample)

    def leads(self, tried: Mapping[str, Calibrator]) -> str:
        """The family of calibrators that leads."""
        return _leader(self.weights, tried)

    def leading(self, tried: Mapping[str, Calibrator]) -> tuple[str, float]:
        """The family that leads, and the share of resamples of the held-out rows in which it does."""
        first = self.leads(tried)
        found = (self._weights_of(some) for some in _resamples(self.sample))
        return first, sum(_leader(weights, tried) == first for weights in found) / _RESAMPLES

    def _weights_of(self, sample: CalibrationSample) -> dict[str, float]:
        held = {name: p for name, p in self.held.items() if name == self.base or name != self.identity}
        return earned_weights(held, self.found, sample, base=self.base, goal=self.goal, caution=self.caution)

    @property
    def averaged(self) -> FloatArray:
        """Probabilities of the held-out rows by the average, (n, K)."""
        out = np.zeros_like(next(iter(self.held.values())))
        for name, weight in self.weights.items():
            out += weight * self.held[name]
        return out


@dataclass(frozen=True)
class Choosing:
    """Options of a choice: its goal, rule and folds, and whether it uses all rows or a part of them."""

    cv: int
    goal: str
    rule: str
    random_state: Any
    whole: bool = False
    caution: float = 1.0

    @property
    def averages(self) -> bool:
        """Whether candidates are averaged; averages of the best calibrated ones would be under-confident."""
        return self.rule == AVERAGE and self.goal != "calibration"

    def loss_of(self, p: FloatArray, sample: CalibrationSample) -> float:
        """Loss, by the goal, of probabilities (n, K) of a sample's rows."""
        if self.goal == "calibration":
            return error_of(p, sample).value
        scale = score_scale(self.goal, sample.n_classes)
        return scale * float(np.average(losses_of(p, sample.codes, self.goal), weights=sample.weights))

    def among(
        self,
        tried: Mapping[str, Calibrator],
        sample: CalibrationSample,
        judge: Callable[[FloatArray, CalibrationSample], Estimate] | None = None,
    ) -> Choice:
        """Choose by folds of a sample; ``judge`` gives the calibration error of each candidate."""
        some = self._some(sample)
        folds = folds_of(some.codes, self.cv, self.random_state, some.groups)
        held: dict[str, FloatArray] = {}
        seconds: dict[str, float] = {}
        parts = [some.part(train) for train, _ in folds]
        for name, one in counted(tried.items(), "candidates"):
            fits, seconds[name] = fold_fits(one, parts)
            held[name] = predict_held_out(fits, some, folds)
        return self._of(held, tried, some, seconds, len(folds), judge)

    def across(
        self, tried: Mapping[str, Calibrator], samples: Sequence[CalibrationSample]
    ) -> tuple[Choice, list[Calibrator]]:
        """The choice, and a calibrator fitted to each sample.

        Each candidate is fitted once to each sample and evaluated on the next one, so that all rows contribute, with
        fits of the size that is used.
        """
        parts = [self._some(sample, len(samples)) for sample in samples]
        fits: dict[str, list[Calibrator]] = {}
        held: dict[str, FloatArray] = {}
        seconds: dict[str, float] = {}
        for name, one in counted(tried.items(), "candidates"):
            ones, seconds[name] = fold_fits(one, parts)
            fits[name] = ones
            held[name] = np.concatenate([ones[i - 1]._probabilities_of(part.scores) for i, part in enumerate(parts)])
        choice = self._of(held, tried, CalibrationSample.together(parts), seconds, len(parts))
        fitted = []
        for i, (sample, part) in enumerate(zip(samples, parts, strict=True)):
            whole = part is sample
            ones = [fits[name][i] if whole else fit_quietly(tried[name], sample) for name in choice.weights]
            shares = list(choice.weights.values())
            fitted.append(ones[0] if len(ones) == 1 else Mixture._from_fitted(ones, shares))
        return choice, fitted

    def _some(self, sample: CalibrationSample, parts: int = 1) -> CalibrationSample:
        """The rows from which weights are learnt, of one of ``parts`` samples."""
        n, most = sample.scores.n_rows, MOST * sample.n_classes // parts
        if self.whole or self.rule != AVERAGE or n <= most:
            return sample
        return sample.part(np.sort(check_random_state(fold_seed(self.random_state)).permutation(n)[:most]))

    def _of(
        self,
        held: Mapping[str, FloatArray],
        tried: Mapping[str, Calibrator],
        sample: CalibrationSample,
        seconds: Mapping[str, float],
        n_folds: int,
        judge: Callable[[FloatArray, CalibrationSample], Estimate] | None = None,
    ) -> Choice:
        """Choose by probabilities of held-out rows."""
        identity = next((name for name, one in tried.items() if isinstance(one, Identity)), None)
        base = next((name for name, one in tried.items() if isinstance(one, EndSmoothing)), identity)
        judge = error_of if judge is None and self.goal == "calibration" else judge
        found = {name: HeldOutEvidence.of(p, sample, judge and judge(p, sample)) for name, p in held.items()}
        chosen, table = chosen_of(found, sample, self.goal, "best" if self.averages else self.rule, identity)
        about = identity, base, n_folds, self.caution
        choice = Choice(self.goal, {chosen: 1.0}, table, sample, held, found, *about)
        if self.averages and len(tried) > 1:
            choice = replace(choice, weights=choice._weights_of(sample))
        for row in table:
            row["accuracy"] = float(sample.weights @ found[row["name"]].right) / sample.total
            row["seconds"] = seconds[row["name"]]
            if self.rule == AVERAGE:
                row["weight"] = choice.weights.get(row["name"], 0.0)
            row["chosen"] = row["name"] == choice.heaviest
        return choice


#: Criteria in words.
SCORE_WORDS = {"log-loss": "log-loss", "brier": "Brier score", "calibration": "calibration error"}


#: Bases of an average, in words.
_BASES = {"identity": "the original scores", "end-smoothing": "the original scores, 0 and 1 smoothed,"}


def choice_words(table: Sequence[Mapping[str, Any]]) -> str:
    """The choice in words: one candidate, or an average of several.

    Rows of the table have ``name`` and ``chosen``, and ``weight`` if the rule averages.
    """
    held = {row["name"]: row["weight"] for row in table if row.get("weight")}
    if len(held) < 2:
        return str(next(row["name"] for row in table if row["chosen"]))
    name = _heaviest(held)
    most, base = min(held[name], 0.99), next((each for each in _BASES if each in held), name)
    lead = _BASES.get(name, name)
    words = f"an average of {len(held)}, {'mostly' if most >= 0.5 else 'led by'} {lead} (weight {most:.2f})"
    return words if name == base else f"{words}; {_BASES[base]} keep {max(held[base], 0.01):.2f}"


def choice_sentence(table: Sequence[Mapping[str, Any]], goal: str, rule: str) -> str:
    """Advice with its reason, the same for a selection, an :class:`AutoCalibrator` and a comparison.

    Rows of the table have ``name``, ``chosen``, ``difference`` and ``se``, and ``weight`` if the rule averages.
    """
    score, row = SCORE_WORDS[goal], next(row for row in table if row["chosen"])
    chosen, words = row["name"], choice_words(table)
    alone, its = chosen in _BASES, "their" if chosen in _BASES else "its"
    least = min(table, key=lambda one: one["difference"])
    above = f"({row['difference']:.2g} above {least['name']}, standard error {row['se']:.2g})"
    if words != chosen:
        return f"Use {words}. Weights follow the log-loss and the Brier score of held-out rows."
    if rule == AVERAGE and goal != "calibration":
        further = "further " if chosen == "end-smoothing" else ""
        noise = f"no {further}gain on held-out rows exceeds its sampling noise"
        why = noise if alone else "the average gives it all the weight"
    elif row["difference"] <= 0:
        why = f"{its} cross-validated {score} is the lowest"
    elif goal == "calibration":
        why = f"{its} cross-validated log-loss is the best among those whose {score} is close to the lowest {above}"
    else:
        why = f"it is the simplest whose cross-validated {score} is within one standard error of the lowest {above}"
    if alone:
        kept = "the probabilities" if chosen == "identity" else "all probabilities but those of exactly 0 and 1"
        return f"Leave {kept} unchanged: {why}."
    return f"Use {chosen}: {why}."


#: Names of families of calibrators, by module; maps of log odds with a few parameters are one family.
_FAMILIES = {
    **dict.fromkeys(("temperature", "logistic", "linear"), "the logistic family"),
    "monotone": "isotonic regression",
    "spline": "spline calibration",
}
#: Number of resamples for whether a family leads, and the share of them from which it is said to lead.
#: ``benchmarks/arena/gains.md`` shows how often it then leads with fits to other rows.
_RESAMPLES, SURE = 20, 0.9
ALONE = "the identity"


def family_of(one: Calibrator) -> str:
    """The family of a calibrator, or of the binary one that it applies one-vs-rest."""
    inner = getattr(one, "calibrator", one)
    if isinstance(inner, (Identity, EndSmoothing)):
        return ALONE
    return _FAMILIES.get(type(inner).__module__.rpartition(".")[2], type(inner).__name__)


def _leader(weights: Mapping[str, float], tried: Mapping[str, Calibrator]) -> str:
    """The family with the largest weight; the identity only if it has all of it."""
    sums: dict[str, float] = {}
    for name, weight in weights.items():
        family = family_of(tried[name])
        sums[family] = sums.get(family, 0.0) + weight
    if len(sums) > 1:
        sums.pop(ALONE, None)
    return _heaviest(sums)


def _resamples(sample: CalibrationSample) -> Iterator[CalibrationSample]:
    """Bootstrap samples of rows, or of groups, as weights; draws are fixed, as in a report."""
    rng = np.random.default_rng(0)
    unit = np.arange(sample.scores.n_rows) if sample.groups is None else sample.groups
    number = int(unit.max()) + 1
    for _ in range(_RESAMPLES):
        times = rng.multinomial(number, np.full(number, 1 / number))[unit]
        yield replace(sample, weights=sample.weights * times)


def _heaviest(weights: Mapping[str, float]) -> str:
    return max(weights, key=lambda name: weights[name])


def earned_weights(
    held: Mapping[str, FloatArray],
    found: Mapping[str, HeldOutEvidence],
    sample: CalibrationSample,
    *,
    base: str | None,
    goal: str,
    caution: float = 1.0,
) -> dict[str, float]:
    r"""Weights of calibrators from their probabilities (n, K) of held-out rows, and the evidence of these.

    Weights of all but ``base`` are proportional to :math:`e^{-n (\text{log-loss} + 2\,\text{Brier}) / 10}`, times
    :math:`e^2` for ensemble temperature with two classes. Their average then gets the part

    .. math:: \min_{\text{scores}} \left(1 - c \left(1 + \frac{3}{m}\right) \frac{\text{se}^2}{\text{gain}^2}\right)_+,
              \qquad m = \frac{(\sum_i g_i^2)^2}{\sum_i g_i^4}

    of the weight, and ``base`` the rest. The gain is that over ``base``, the mean of the rows' :math:`g_i`, and se its
    standard error; m is the effective number of rows that contribute to the gain; c is ``caution`` times ½ for the
    score that is the goal, or 1/20 for the other (James-Stein shrinkage). The prior's rows are added to the held-out
    rows, with the label probabilities of ``base``, so that confident candidates need evidence. With groups, n and m are
    divided by the design effect of the differences: the variance of sums of groups, relative to that of as many
    independent rows.

    Cost: O(n K) per calibrator.
    """
    changing = [name for name in held if name != base]
    if base is not None and not changing:
        return {base: 1.0}
    losses = {name: found[name].losses["log-loss"] + _OF_BRIER * found[name].losses["brier"] for name in changing}
    least = min(losses.values(), key=lambda each: float(sample.weights @ each))
    power = _POWER / max(design_effect(each - least, sample) for each in losses.values())
    logs = np.array([_before(name, sample) - power * float(sample.weights @ each) for name, each in losses.items()])
    each = np.exp(logs - logs.max())
    each = np.where(each < _LEAST * each.sum(), 0.0, each)
    each /= each.sum()
    weights = {name: float(w) for name, w in zip(changing, each, strict=True) if w > 0}
    if base is None:
        return weights
    mixed = np.zeros_like(held[base])
    for name, w in weights.items():
        mixed += w * held[name]
    factors = {score: caution * (_OWN if score == goal else _OTHER) for score in SCORES}
    part = min(_part(held[base], mixed, sample, score, factor) for score, factor in factors.items())
    return ({base: 1 - part} if part < 1 else {}) | (
        {name: part * w for name, w in weights.items()} if part > 0 else {}
    )


def _before(name: str, sample: CalibrationSample) -> float:
    """Prior log weight of a calibrator."""
    return _LIKELIER.get(name, 0.0) if sample.n_classes == 2 else 0.0


def _part(alone: FloatArray, mixed: FloatArray, sample: CalibrationSample, score: str, factor: float) -> float:
    """Weight that the gain in a score supports, from 0 to 1."""
    gain = _each_loss(alone, score) - _each_loss(mixed, score)
    rows, share = sample.weights / sample.total, sample.prior_share("auto")
    own = gain[np.arange(len(gain)), sample.codes]

    def moment(power: int) -> float:
        return (1 - share) * float(rows @ own**power) + share * float(rows @ (alone * gain**power).sum(axis=1))

    mean, square, fourth = (moment(power) for power in (1, 2, 4))
    if not mean > _NOTHING:
        return 0.0
    # One independent row's part of all, the prior's among them.
    of_one = (1 - share) * float(rows @ rows) * design_effect(own, sample)
    variance = max(square - mean**2, 0.0) * of_one
    return max(0.0, 1 - factor * (1 + _OF_ONE_ROW * of_one * fourth / square**2) * variance / mean**2)


def _each_loss(p: FloatArray, score: str) -> FloatArray:
    """The loss of each row for each possible label, (n, K)."""
    if score == "log-loss":
        return np.asarray(-np.log(np.maximum(p, FLOOR)))
    return np.asarray(np.einsum("ij,ij->i", p, p)[:, None] - 2 * p + 1)


def mixture_of(tried: Mapping[str, Calibrator], weights: Mapping[str, float]) -> Calibrator:
    """An unfitted mixture of candidates; a single candidate stays as it is."""
    parts = [tried[name] for name in weights]
    if len(parts) == 1:
        return parts[0]
    return Mixture(parts, list(weights.values()), input=parts[0].input, labels=parts[0].labels)

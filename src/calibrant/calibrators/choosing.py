"""Choosing among calibrators: over folds of one sample, or across samples that share no row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..data.progress import counted
from ..data.types import FloatArray
from .base import Calibrator
from .combined import Mixture
from .crossval import (
    FLOOR,
    SCORES,
    HeldOutEvidence,
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
from .temperature import Identity

#: The rule that takes several candidates, with weights.
AVERAGE = "average"
#: Rows a class that weights are learnt from: of more rows, a part drawn at random. With fewer, calibrators of many
#: parameters look worse than all rows make them.
MOST = 10_000
#: Weights are proportional to ``exp(-n loss / 10)``, with ``log-loss + 2 Brier`` as the loss: either score has a say.
_POWER, _OF_BRIER = 0.1, 2.0
#: Calibrators of smaller weight are left out.
_LEAST = 0.01
#: Prior log weights for two classes: the gain of two parameters for real models of another half.
_LIKELIER = {"ensemble-temperature": 2.0}
#: Squared standard errors, relative to the squared gain, that are taken from the weight of changes: of the score
#: that is the goal, and of the other, which is not to suffer; and the factor more where one row makes the gain.
_OWN, _OTHER, _OF_ONE_ROW = 0.5, 0.05, 3.0
#: A gain that is none: the fourth power of more is a number.
_NOTHING = 1e-60


@dataclass(frozen=True)
class Choosing:
    """How a choice is made: by which goal, which rule, and over which folds."""

    cv: int
    goal: str
    rule: str
    random_state: Any

    def loss_of(self, p: FloatArray, sample: CalibrationSample) -> float:
        """Loss by the goal of probabilities (n, K) of a sample's rows."""
        if self.goal == "calibration":
            return error_of(p, sample).value
        scale = score_scale(self.goal, sample.n_classes)
        return scale * float(np.average(losses_of(p, sample.codes, self.goal), weights=sample.weights))

    def among(
        self, tried: Mapping[str, Calibrator], sample: CalibrationSample
    ) -> tuple[str, Calibrator, list[dict[str, Any]]]:
        """Name of the choice, the calibrator to fit to all rows, and the table."""
        some = self._some(sample)
        folds = folds_of(some.codes, self.cv, self.random_state, some.groups)
        held: dict[str, FloatArray] = {}
        seconds: dict[str, float] = {}
        parts = [some.part(train) for train, _ in folds]
        for name, one in counted(tried.items(), "candidates"):
            fits, seconds[name] = fold_fits(one, parts)
            held[name] = predict_held_out(fits, some, folds)
        weights, table = self._weighed(held, tried, some, seconds)
        return _heaviest(weights), mixture_of(tried, weights, sample), table

    def across(
        self, tried: Mapping[str, Calibrator], samples: Sequence[CalibrationSample]
    ) -> tuple[str, list[Calibrator], list[dict[str, Any]]]:
        """Name of the choice, a calibrator fitted to each sample, and the table.

        Each candidate is fitted once to each sample, and judged by the rows of the next one: evidence of all rows, by
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
        weights, table = self._weighed(held, tried, CalibrationSample.together(parts), seconds)
        fitted = []
        for i, (sample, part) in enumerate(zip(samples, parts, strict=True)):
            whole = part is sample
            ones = [fits[name][i] if whole else fit_quietly(tried[name], sample) for name in weights]
            fitted.append(ones[0] if len(ones) == 1 else Mixture._from_fitted(ones, list(weights.values())))
        return _heaviest(weights), fitted, table

    def _some(self, sample: CalibrationSample, parts: int = 1) -> CalibrationSample:
        """The rows that weights are learnt from, of one of ``parts`` samples."""
        n, most = sample.scores.n_rows, MOST * sample.n_classes // parts
        if self.rule != AVERAGE or n <= most:
            return sample
        return sample.part(np.sort(check_random_state(self.random_state).permutation(n)[:most]))

    def _weighed(
        self,
        held: Mapping[str, FloatArray],
        tried: Mapping[str, Calibrator],
        sample: CalibrationSample,
        seconds: Mapping[str, float],
    ) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Weights of the candidates that have any, and the table, by probabilities of held-out rows."""
        identity = next((name for name, one in tried.items() if isinstance(one, Identity)), None)
        by_error = self.goal == "calibration"
        found = {
            name: HeldOutEvidence.of(p, sample, error_of(p, sample) if by_error else None) for name, p in held.items()
        }
        rule = "best" if self.rule == AVERAGE and not by_error else self.rule
        chosen, table = chosen_of(found, sample, self.goal, rule, identity)
        weights = {chosen: 1.0}
        if self.rule == AVERAGE and not by_error and len(tried) > 1:
            weights = earned_weights(held, found, sample, identity=identity, goal=self.goal)
        for row in table:
            row["accuracy"] = float(sample.weights @ found[row["name"]].right) / sample.total
            row["seconds"] = seconds[row["name"]]
            if self.rule == AVERAGE:
                row["weight"] = weights.get(row["name"], 0.0)
            row["chosen"] = row["name"] == _heaviest(weights)
        return weights, table


#: Criteria in words.
SCORE_WORDS = {"log-loss": "log-loss", "brier": "Brier score", "calibration": "calibration error"}


def choice_words(chosen: str, weights: Mapping[str, float | None]) -> str:
    """The choice in words: one candidate, or an average of several."""
    held = {name: weight for name, weight in weights.items() if weight}
    if len(held) < 2:
        return chosen
    name = _heaviest(held)
    return f"an average of {len(held)}, {'mostly' if held[name] >= 0.5 else 'led by'} {name} (weight {held[name]:.2f})"


def choice_sentence(chosen: str, table: Sequence[Mapping[str, Any]], goal: str, rule: str) -> str:
    """Advice with its reason, the same for a selection, an :class:`AutoCalibrator` and a comparison.

    Rows of the table have ``name``, ``difference`` and ``se``, and a ``weight`` by the rule that averages.
    """
    score, row = SCORE_WORDS[goal], next(row for row in table if row["name"] == chosen)
    alone = chosen == "identity"
    least = min(table, key=lambda one: one["difference"])
    above = f"({row['difference']:.2g} above {least['name']}, standard error {row['se']:.2g})"
    words = choice_words(chosen, {one["name"]: one.get("weight") for one in table})
    if words != chosen:
        return f"Use {words}: weights follow the log-loss and the Brier score of held-out rows."
    if rule == AVERAGE and goal != "calibration":
        why = "no gain on held-out rows exceeds its sampling noise" if alone else "the average gives it all the weight"
    elif row["difference"] <= 0:
        why = f"its cross-validated {score} is the lowest"
    elif goal == "calibration":
        why = f"its cross-validated log-loss is the best among those whose {score} is close to the lowest {above}"
    else:
        why = f"it is the simplest whose cross-validated {score} is within one standard error of the lowest {above}"
    return f"Leave the probabilities unchanged: {why}." if alone else f"Use {chosen}: {why}."


def _heaviest(weights: Mapping[str, float]) -> str:
    return max(weights, key=lambda name: weights[name])


def earned_weights(
    held: Mapping[str, FloatArray],
    found: Mapping[str, HeldOutEvidence],
    sample: CalibrationSample,
    *,
    identity: str | None,
    goal: str,
) -> dict[str, float]:
    r"""Weights of calibrators by the probabilities (n, K) that they gave for held-out rows, and the evidence of these.

    Those that change something share :math:`e^{-n (\text{log-loss} + 2\,\text{Brier}) / 10}`, ensemble temperature of
    two classes times :math:`e^2`; their average then gets the part

    .. math:: \min_{\text{scores}} \left(1 - c \left(1 + \frac{3}{m}\right) \frac{\text{se}^2}{\text{gain}^2}\right)_+,
              \qquad m = \frac{(\sum_i g_i^2)^2}{\sum_i g_i^4}

    of the whole, with its gain over leaving scores alone, the mean of the rows' :math:`g_i`, and the standard error of
    that; m is the number of rows that the gain rests on, and c = ½ for the score that is the goal, 1/20 for the other:
    James and Stein's shrinkage. The original scores keep the rest. The prior's rows count among those held out, with
    labels as likely as the scores say: what is sure of itself must earn that. With groups, n and m are divided by the
    design effect of the differences: by how much sums of groups vary more than those of as many independent rows.

    Cost O(n K) a calibrator.
    """
    changing = [name for name in held if name != identity]
    losses = {name: found[name].losses["log-loss"] + _OF_BRIER * found[name].losses["brier"] for name in changing}
    least = min(losses.values(), key=lambda each: float(sample.weights @ each))
    power = _POWER / max(design_effect(each - least, sample) for each in losses.values())
    logs = np.array([_before(name, sample) - power * float(sample.weights @ each) for name, each in losses.items()])
    each = np.exp(logs - logs.max())
    each = np.where(each < _LEAST * each.sum(), 0.0, each)
    each /= each.sum()
    weights = {name: float(w) for name, w in zip(changing, each, strict=True) if w > 0}
    if identity is None:
        return weights
    mixed = np.zeros_like(held[identity])
    for name, w in weights.items():
        mixed += w * held[name]
    part = min(_part(held[identity], mixed, sample, score, _OWN if score == goal else _OTHER) for score in SCORES)
    return ({identity: 1 - part} if part < 1 else {}) | (
        {name: part * w for name, w in weights.items()} if part > 0 else {}
    )


def _before(name: str, sample: CalibrationSample) -> float:
    """A calibrator's log weight before any row."""
    return _LIKELIER.get(name, 0.0) if sample.n_classes == 2 else 0.0


def _part(alone: FloatArray, mixed: FloatArray, sample: CalibrationSample, score: str, factor: float) -> float:
    """Weight that the gain in a score grants, from 0 to 1."""
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
    """The loss of each row by each label that might be its own, (n, K)."""
    if score == "log-loss":
        return np.asarray(-np.log(np.maximum(p, FLOOR)))
    return np.asarray(np.einsum("ij,ij->i", p, p)[:, None] - 2 * p + 1)


def mixture_of(tried: Mapping[str, Calibrator], weights: Mapping[str, float], sample: CalibrationSample) -> Calibrator:
    """An unfitted mixture of candidates; a single candidate stays as it is."""
    if len(weights) == 1:
        return tried[next(iter(weights))]
    parts = [tried[name] for name in weights]
    return Mixture(parts, list(weights.values()), input=sample.scores.kind, labels=list(sample.classes))

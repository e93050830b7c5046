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
from .crossval import (
    HeldOutEvidence,
    chosen_of,
    error_of,
    fit_quietly,
    fold_fits,
    folds_of,
    losses_of,
    said_of,
    shown_scale,
)
from .identity import Identity
from .inputs import CalibrationSample
from .mixture import Mixture, earned_weights, of_weights

#: The rule that takes several candidates, with weights.
AVERAGE = "average"
#: Rows a class that weights are learnt from: of more rows, a part drawn at random. With fewer, calibrators of many
#: parameters look worse than all rows make them.
MOST = 10_000


@dataclass(frozen=True)
class Choosing:
    """How a choice is made: by which goal, which rule, and over which folds."""

    cv: int
    goal: str
    rule: str
    random_state: Any

    def loss_of(self, p: FloatArray, sample: CalibrationSample) -> float:
        """What the goal says of probabilities (n, K) of a sample's rows."""
        if self.goal == "calibration":
            return error_of(p, sample).value
        scale = shown_scale(self.goal, sample.n_classes)
        return scale * float(np.average(losses_of(p, sample.codes, self.goal), weights=sample.weights))

    def among(
        self, tried: Mapping[str, Calibrator], sample: CalibrationSample
    ) -> tuple[str, Calibrator, list[dict[str, Any]]]:
        """Name of the choice, what is to be fitted to all rows, and the table."""
        some = self._some(sample)
        folds = folds_of(some.codes, self.cv, self.random_state)
        held: dict[str, FloatArray] = {}
        seconds: dict[str, float] = {}
        parts = [some.part(train) for train, _ in folds]
        for name, one in counted(tried.items(), "candidates"):
            fits, seconds[name] = fold_fits(one, parts)
            held[name] = said_of(fits, some, folds)
        weights, table = self._weighed(held, tried, some, seconds)
        return _heaviest(weights), of_weights(tried, weights, sample), table

    def across(
        self, tried: Mapping[str, Calibrator], samples: Sequence[CalibrationSample]
    ) -> tuple[str, list[Calibrator], list[dict[str, Any]]]:
        """Name of the choice, what is fitted to each sample, and the table.

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
            fitted.append(ones[0] if len(ones) == 1 else Mixture._of_fitted(ones, list(weights.values())))
        return _heaviest(weights), fitted, table

    def _some(self, sample: CalibrationSample, parts: int = 1) -> CalibrationSample:
        """The rows that weights are learnt from, where there are so many such samples."""
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
        """Weights of the candidates that have any, and the table, by what was said of rows held out."""
        alone = next((name for name, one in tried.items() if isinstance(one, Identity)), None)
        by_error = self.goal == "calibration"
        found = {
            name: HeldOutEvidence.of(p, sample, error_of(p, sample) if by_error else None) for name, p in held.items()
        }
        rule = "best" if self.rule == AVERAGE and not by_error else self.rule
        chosen, table = chosen_of(found, sample, self.goal, rule, alone)
        weights = {chosen: 1.0}
        if self.rule == AVERAGE and not by_error and len(tried) > 1:
            weights = earned_weights(held, found, sample, alone=alone, goal=self.goal)
        for row in table:
            row["accuracy"] = float(sample.weights @ found[row["name"]].right) / sample.total
            row["seconds"] = seconds[row["name"]]
            if self.rule == AVERAGE:
                row["weight"] = weights.get(row["name"], 0.0)
            row["chosen"] = row["name"] == _heaviest(weights)
        return weights, table


def _heaviest(weights: Mapping[str, float]) -> str:
    return max(weights, key=lambda name: weights[name])

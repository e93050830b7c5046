"""LightGBM trees that correct the logits of a calibrator's map, boosted from these logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..comparison.segments.features import Feature
from ..data.types import AnyArray, FloatArray
from .base import EPS
from .crossval import Folds
from .segment_offsets import RepairRows
from .temperature import softmax

#: Maximum number of rounds, and rounds without a gain on held-out rows after which a fold stops.
_MOST, _PATIENCE = 1000, 50
_TREES = {
    "learning_rate": 0.1,
    "num_leaves": 8,
    "min_sum_hessian_in_leaf": 5.0,
    "min_data_in_leaf": 1,
    "lambda_l2": 1.0,
    "boost_from_average": False,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


def need_lightgbm() -> None:
    """Raise ImportError if LightGBM is not installed."""
    if find_spec("lightgbm") is None:
        raise ImportError(
            'SegmentCalibrator(learner="boosting") needs lightgbm, which is not installed: '
            'pip install "calibrant[boost]"'
        )


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """LightGBM trees, and the features that they use."""

    features: Sequence[Feature]
    booster: Any
    rounds: int | None = None

    def repaired(self, p: FloatArray, codes: AnyArray) -> FloatArray:
        """Probabilities (n, K), corrected by the trees."""
        raw = self.booster.predict(_columns(self.features, p, codes), raw_score=True, num_iteration=self.rounds)
        logits = np.log(np.maximum(p, EPS))
        return softmax(logits + (raw if raw.ndim == 2 else np.column_stack([np.zeros(len(raw)), raw])))


@dataclass(frozen=True)
class Boosting:
    """Boosting, for as long as held-out rows improve."""

    features: Sequence[Feature]
    seed: int

    def cross_fitted(
        self, rows: RepairRows, folds: Folds, parts: Sequence[RepairRows], held: FloatArray
    ) -> tuple[BoostedTrees | None, FloatArray]:
        """As for segments: trees fitted to all rows, and probabilities of each row by trees that did not see it."""
        fits, curves = [], []
        for (_, test), part in zip(folds, parts, strict=True):
            judged = RepairRows(held[test], rows.sample.part(test), rows.codes[:, test])
            booster, curve = self._boosted(part, _MOST, judged)
            fits.append(BoostedTrees(self.features, booster))
            curves.append(np.append(curve, np.full(_MOST - len(curve), np.inf))[:_MOST])
        mass = np.array([[rows.sample.weights[test].sum()] for _, test in folds])
        losses = mass * np.array(curves)
        out = held.copy()
        for i, ((_, test), one) in enumerate(zip(folds, fits, strict=True)):
            # Rounds that the other folds choose: a fold's own loss would be judged by what chose them.
            rounds = 1 + int(np.argmin(np.delete(losses, i, axis=0).sum(axis=0)))
            out[test] = BoostedTrees(one.features, one.booster, rounds).repaired(held[test], rows.codes[:, test])
        booster, _ = self._boosted(rows, 1 + int(np.argmin(losses.sum(axis=0))), None)
        return BoostedTrees(self.features, booster), out

    def _boosted(self, rows: RepairRows, rounds: int, judged: RepairRows | None) -> tuple[Any, FloatArray]:
        """Trees, and the mean log-loss of the judged rows after each round."""
        import lightgbm

        k = rows.p.shape[1]
        of_loss = {"objective": "binary", "metric": "binary_logloss"}
        if k > 2:
            of_loss = {"objective": "multiclass", "metric": "multi_logloss", "num_class": k}
        options = {**_TREES, **of_loss, "seed": self.seed}
        losses: dict[str, Any] = {}
        callbacks: list[Any] = [lightgbm.record_evaluation(losses)]
        train, valid = self._dataset(rows), []
        if judged is not None:
            valid = [self._dataset(judged, train)]
            callbacks.append(lightgbm.early_stopping(_PATIENCE, verbose=False))
        booster = lightgbm.train(
            options, train, rounds, valid_sets=valid, valid_names=["held"][: len(valid)], callbacks=callbacks
        )
        return booster, np.array(next(iter(losses["held"].values())) if valid else [])

    def _dataset(self, rows: RepairRows, of: Any = None) -> Any:
        import lightgbm

        sample, k = rows.sample, rows.p.shape[1]
        logits = np.log(np.maximum(rows.p, EPS))
        start = logits[:, 1] - logits[:, 0] if k == 2 else logits
        named = [i for i, one in enumerate(self.features) if not one.ordered]
        return lightgbm.Dataset(
            _columns(self.features, rows.p, rows.codes),
            sample.codes,
            weight=sample.weights * (sample.effective_rows() / sample.total),
            init_score=start,
            reference=of,
            categorical_feature=named,
            free_raw_data=True,
        )


def _columns(features: Sequence[Feature], p: FloatArray, codes: AnyArray) -> FloatArray:
    """Codes of features, NaN if missing or unseen, and the scores' logits, (n, F + 1) or (n, F + K)."""
    logits = np.log(np.maximum(p, EPS))
    scores = (logits[:, 1] - logits[:, 0])[:, None] if p.shape[1] == 2 else logits
    values = codes.T.astype(np.float64)
    last = np.array([one.missing - one.ordered for one in features])
    values[values > last] = np.nan
    return np.column_stack([values, scores])

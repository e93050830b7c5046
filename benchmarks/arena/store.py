"""Files of the arena: predictions and truths, one each a data set × model, outside the repository."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.data.writing import replacing

from .truth import Truth

#: Where the arena is kept unless one says otherwise.
CACHE = Path.home() / ".cache" / "calibrant-arena"


@dataclass(frozen=True)
class Entry:
    """The place of one data set × model: ``PREDICTIONS/DATA.MODEL.npz`` and ``TRUTHS/DATA.MODEL.npz``."""

    cache: Path
    data: str
    model: str

    @property
    def predictions(self) -> Path:
        """Probabilities (n, K) float32, classes, and how they were made."""
        return self.cache / "predictions" / f"{self.data}.{self.model}.npz"

    @property
    def truths(self) -> Path:
        """Truths by notion, and the maps of those whose labels are redrawn."""
        return self.cache / "truths" / f"{self.data}.{self.model}.npz"

    def made_as(self, recipe: str) -> bool:
        """Whether predictions of this recipe are there."""
        return self.predictions.exists() and self.about()["recipe"] == recipe

    def about(self) -> dict[str, Any]:
        """How predictions were made: recipe, kind, versions, seconds."""
        with np.load(self.predictions) as file:
            return json.loads(str(file["about"]))

    def write_predictions(self, y_prob: np.ndarray, y_true: np.ndarray, about: dict[str, Any]) -> None:
        """Whole or not at all; truths of older predictions go first."""
        self.truths.unlink(missing_ok=True)
        _write(self.predictions, y_prob=y_prob, y_true=y_true.astype(np.int16), about=np.array(json.dumps(about)))

    def read_predictions(self) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities and class codes."""
        with np.load(self.predictions) as file:
            return file["y_prob"], file["y_true"].astype(np.intp)

    def write_truths(self, truths: dict[str, Truth], maps: dict[str, np.ndarray]) -> None:
        """Whole or not at all."""
        values = np.array([[t.value, t.standard_error] for t in truths.values()])
        _write(self.truths, notions=np.array(list(truths)), values=values, maps=np.array([*maps.values()]),
               mapped=np.array([*maps], dtype=str))  # fmt: skip

    def read_truths(self) -> tuple[dict[str, Truth], dict[str, np.ndarray]]:
        """Truths and maps by notion; a pool has no maps."""
        with np.load(self.truths) as file:
            truths = {str(n): Truth(*map(float, v)) for n, v in zip(file["notions"], file["values"], strict=True)}
            return truths, dict(zip(file["mapped"].tolist(), file["maps"], strict=True))


def _write(path: Path, **arrays: np.ndarray) -> None:
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)

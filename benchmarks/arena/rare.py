"""Rare outcomes: KEEL's imbalanced data sets of two classes, of sources that neither half of the arena has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from calibrant.data.writing import replacing

from . import keel
from .models import MODELS, held_out
from .reading import Experiment
from .repair import FEWEST, SIZES

RARE = "rare"
#: Sources that one half has.
ELSEWHERE = ("iris", "led", "pima", "segment", "vehicle", "vowel", "wisconsin")
CHOSEN = ("logistic", "bayes", "boosting")
SEED = 22


def rare(cache: Path) -> Iterator[Experiment]:
    """Held-out predictions of three models on each data set that leaves rows to judge; kept in the cache."""
    folder = keel.folder().parents[1] / "imbalanced" / "raw"
    for path in sorted(folder.glob("*.dat")):
        kin = re.split(r"[-\d]", path.stem)[0]
        rows = keel.read(folder, path.stem)
        if kin in ELSEWHERE or len(rows.y) < SIZES[0] + FEWEST:
            continue
        for model in CHOSEN:
            kept = cache / RARE / f"{path.stem}.{model}.npz"
            if not kept.exists():
                p = held_out(MODELS[model], rows, SEED)
                with replacing(kept) as file:
                    np.savez_compressed(file, p=p)
            with np.load(kept) as file:
                yield Experiment(path.stem, model, "tabular", RARE, kin, file["p"], rows.y, {}, {})

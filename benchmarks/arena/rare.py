"""Rare outcomes: KEEL's imbalanced data sets of two classes, of sources that neither half of the arena has."""

from __future__ import annotations

import re
from functools import cache, partial

import numpy as np

from . import keel
from .build import SEED, Job, make
from .models import MODELS as TRAINED
from .models import held_out
from .reading import Experiment
from .store import CACHE, Entry

RARE = "rare"
#: Those of 400 rows and more: 100 to fit, and 300 others.
DATA = (
    "abalone-17_vs_7-8-9-10", "abalone-19_vs_10-11-12-13", "abalone-20_vs_8-9-10", "abalone-21_vs_8",
    "abalone-3_vs_11", "abalone19", "abalone9-18", "car-good", "car-vgood", "flare-F", "kddcup-buffer_overflow_vs_back",
    "kddcup-guess_passwd_vs_satan", "kddcup-land_vs_portsweep", "kddcup-land_vs_satan", "kddcup-rootkit-imap_vs_back",
    "kr-vs-k-one_vs_fifteen", "kr-vs-k-three_vs_eleven", "kr-vs-k-zero-one_vs_draw", "kr-vs-k-zero_vs_eight",
    "kr-vs-k-zero_vs_fifteen", "page-blocks-1-3_vs_4", "page-blocks0", "poker-8-9_vs_5", "poker-8-9_vs_6",
    "poker-8_vs_6", "shuttle-2_vs_5", "shuttle-c0-vs-c4", "winequality-red-3_vs_5", "winequality-red-4",
    "winequality-red-8_vs_6-7", "winequality-red-8_vs_6", "winequality-white-3-9_vs_5", "winequality-white-3_vs_7",
    "yeast-0-2-5-6_vs_3-7-8-9", "yeast-0-2-5-7-9_vs_3-6-8", "yeast-0-3-5-9_vs_7-8", "yeast-0-5-6-7-9_vs_4",
    "yeast-1-2-8-9_vs_7", "yeast-1-4-5-8_vs_7", "yeast-1_vs_7", "yeast-2_vs_4", "yeast-2_vs_8", "yeast1", "yeast3",
    "yeast4", "yeast5", "yeast6",
)  # fmt: skip
#: Source of each.
KIN = {name: re.split(r"[-\d]", name)[0] for name in DATA}
MODELS = ("logistic", "bayes", "boosting")


@cache
def read(data: str, model: str) -> Experiment:
    """Held-out predictions, from the cache of the arena, where they are made if need be."""
    entry, one = Entry(CACHE / RARE, data, model), TRAINED[model]
    recipe = f"{one.about}, at most {one.rows} rows"
    if not entry.made_as(recipe):
        make(Job(data, model, "tabular", recipe, partial(_out_of_fold, data, model)), entry, truths=False)
    p, y = entry.read_predictions()
    return Experiment(data, model, "tabular", RARE, KIN[data], p, y, {}, {})


def _out_of_fold(data: str, model: str) -> tuple[np.ndarray, np.ndarray]:
    rows = keel.read(keel.folder().parents[1] / "imbalanced" / "raw", data)
    return held_out(TRAINED[model], rows, SEED), rows.y

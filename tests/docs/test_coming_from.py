"""Blocks of docs/coming_from.md, each with the package that it is about: their numbers are ours."""

import re
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

from ..versions import SKLEARN

PAGE = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^## (.+?)\n.*?```python\n(.*?)```", PAGE, flags=re.M | re.S))
#: The module of each package, and how near numbers are: 1e-12, or as near as it computes.
PACKAGES = {
    "scikit-learn": ("sklearn", 1e-12),
    "torchmetrics": ("torchmetrics", 1e-6),
    "netcal": ("netcal", 1e-12),
    "PyCalib": ("pycalib", 1e-12),
    "relplot": ("relplot", 5e-4),
    "uncertainty-calibration": ("calibration", 1e-12),
    "MAPIE": ("mapie", 1e-7),
    "probmetrics": ("probmetrics", 1e-6),
}


def rows():
    """Over-confident scores of two classes, and of four."""
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, 1.5, 2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-log_odds))).astype(int)
    P = rng.dirichlet(np.ones(4), 2000) ** 1.3
    P /= P.sum(axis=1, keepdims=True)
    L = np.array([rng.choice(4, p=q**0.7 / (q**0.7).sum()) for q in P])
    return {"y": y, "p": 1 / (1 + np.exp(-1.6 * log_odds)), "L": L, "P": P, "np": np, "cal": cal}


def test_every_block_is_of_a_package():
    assert set(BLOCKS) == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore")
def test_their_numbers_are_ours(package):
    module, near = PACKAGES[package]
    pytest.importorskip(module, exc_type=ImportError)
    if module == "sklearn" and SKLEARN < (1, 7):
        pytest.skip("scikit-learn has Brier scores of several classes since 1.7")
    names = rows()
    exec(BLOCKS[package], names)
    assert len(names["theirs"]) == len(names["ours"])
    for theirs, ours in zip(names["theirs"], names["ours"], strict=True):
        np.testing.assert_allclose(np.asarray(theirs, float), np.asarray(ours, float), rtol=0, atol=near)

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


def test_what_scikit_learn_clips_and_leaves_out():
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import log_loss

    clipped = log_loss([0, 1], [1.0, 0.5])
    assert f"is {clipped:.2f} there and infinite here" in " ".join(PAGE.split())
    assert cal.log_loss([0, 1], [1.0, 0.5]) == np.inf
    y, p = [0, 0, 1, 1], [0.05, 0.12, 0.9, 0.95]
    curve = cal.reliability_curve(y, p, estimator=cal.Binned(10))
    there = ~np.isnan(curve.observed)
    assert (len(there), there.sum()) == (10, 4)
    np.testing.assert_allclose(calibration_curve(y, p, n_bins=10), [curve.observed[there], curve.scores[there]])


def test_relplot_counts_scores_at_the_ends_half():
    relplot = pytest.importorskip("relplot", exc_type=ImportError)
    rng = np.random.default_rng(0)
    p = np.where(rng.random(5000) < 0.7, 1 - 1e-5 * rng.random(5000), rng.uniform(0.5, 1, 5000))
    y = (rng.random(5000) < p - 0.05).astype(int)
    smooth = {"estimator": cal.estimators.Smooth()}
    theirs = relplot.smECE(p, y)
    assert abs(cal.calibration_error(y, p, **smooth) - theirs) > 0.002
    half = cal.calibration_error(y, p, sample_weight=np.where(p > 0.9995, 0.5, 1), **smooth)
    assert half == pytest.approx(theirs, abs=1e-3)


def test_mapies_running_sums_have_no_start_and_stop_within_ties():
    mapie = pytest.importorskip("mapie.metrics.calibration", exc_type=ImportError)

    def both(y, p):
        found = (cal.significance.cumulative_test(y, p, statistic=name).statistic for name in ("kuiper", "ks"))
        return [*found, mapie.kuiper_statistic(y, p), mapie.kolmogorov_smirnov_statistic(y, p)]

    p = np.linspace(0.3, 0.9, 20)
    kuiper, ks, their_kuiper, their_ks = both((p > 0.85).astype(int), p)
    assert their_ks == pytest.approx(ks, abs=1e-6)
    gap = p[0] / 20 / np.sqrt((p * (1 - p)).sum() / 20**2)
    assert their_kuiper == pytest.approx(kuiper - gap, abs=1e-6)
    rng = np.random.default_rng(0)
    ties = np.round(rng.random(500), 1)
    kuiper, ks, their_kuiper, their_ks = both((rng.random(500) < ties).astype(int), ties)
    assert their_kuiper > kuiper
    assert their_ks > ks


@pytest.mark.parametrize("package", ["netcal", "torchmetrics"])
def test_scores_on_edges_lie_in_other_bins(package):
    pytest.importorskip(package, exc_type=ImportError)
    # 0.5 is an edge of ten bins: with 0.45 in one bin its gaps cancel, with 0.55 they do not.
    p, y = np.repeat([0.45, 0.5, 0.55], 100), np.repeat([0, 1, 1], 100)
    ours = (2 * abs(0.475 - 0.5) + abs(0.55 - 1)) / 3
    if package == "netcal":
        from netcal.metrics import ECE

        theirs = ECE(10).measure(p, y)
    else:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error

        theirs = binary_calibration_error(torch.as_tensor(p), torch.as_tensor(y), n_bins=10)
    assert cal.expected_calibration_error(y, p, n_bins=10) == pytest.approx(ours)
    assert float(theirs) == pytest.approx((abs(0.45 - 0) + 2 * abs(0.525 - 1)) / 3, abs=1e-6)


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

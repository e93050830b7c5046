"""The metric against torchmetrics' own, for every combination that both take."""

import itertools

import numpy as np
import pytest

import calibrant as cal

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.torch

from torchmetrics.classification import BinaryCalibrationError, MulticlassCalibrationError  # noqa: E402

from calibrant.torch import CalibrationError  # noqa: E402

NORMS = {"l1": 1, "l2": 2, "max": float("inf")}
BINS = (1, 2, 10, 15, 100)
DTYPES = (torch.float32, torch.float64)  # in half precision theirs adds up in half
TABLE = [*itertools.product(NORMS, BINS, [False, True], [None, 0, 1, -1, 255], DTYPES)]


def logits(shape, dtype):
    """Overconfident ones, with classes in dimension 1; their outcomes are those of half of them."""
    draw = torch.Generator().manual_seed(len(shape))
    z = 3 * torch.randn(shape, generator=draw, dtype=torch.float64)
    return z.to(dtype), draw


def off_edges(p, n_bins):
    """Whether no score is on an edge of the bins, where the two differ."""
    near = p.double() * n_bins
    return bool(((near - near.round()).abs() > 1e-6).all())


def both(ours, theirs, preds, target):
    for batch in zip(preds.chunk(3), target.chunk(3), strict=True):
        ours.update(*batch)
        theirs.update(*batch)
    return ours.compute().item(), theirs.compute().item()


@pytest.mark.parametrize("shape", [(9, 60), (9, 5, 12), (540,)])
def test_binary(shape):
    for norm, n_bins, from_logits, ignored, dtype in TABLE:
        z, draw = logits(shape, dtype)
        p = torch.sigmoid(z)
        target = (torch.rand(shape, generator=draw) < torch.sigmoid(z.double() / 2)).long()
        if ignored is not None:
            target[..., ::4] = ignored
        assert off_edges(p, n_bins)
        theirs = BinaryCalibrationError(n_bins, norm, ignore_index=ignored)
        ours = CalibrationError(
            cal.Binned(n_bins), "class-specific", norm=NORMS[norm], from_logits=from_logits, ignore_index=ignored
        )
        found, expected = both(ours, theirs, z if from_logits else p, target)
        assert found == pytest.approx(expected, abs=1e-6), (norm, n_bins, from_logits, ignored, dtype)
        assert found > 0.005


@pytest.mark.parametrize("shape", [(540, 4), (9, 4, 60), (9, 4, 5, 12), (540, 2)])
def test_multiclass(shape):
    for norm, n_bins, from_logits, ignored, dtype in TABLE:
        z, draw = logits(shape, dtype)
        p = torch.softmax(z, dim=1)
        flat = torch.softmax(z.double().movedim(1, -1).reshape(-1, shape[1]) / 2, dim=1)
        target = torch.multinomial(flat, 1, generator=draw).reshape(shape[:1] + shape[2:])
        if ignored is not None:
            target[..., ::4] = ignored
        assert off_edges(p.amax(dim=1), n_bins)
        theirs = MulticlassCalibrationError(shape[1], n_bins, norm, ignore_index=ignored)
        ours = CalibrationError(
            cal.Binned(n_bins), num_classes=shape[1], norm=NORMS[norm], from_logits=from_logits, ignore_index=ignored
        )
        found, expected = both(ours, theirs, z if from_logits else p, target)
        assert found == pytest.approx(expected, abs=1e-6), (norm, n_bins, from_logits, ignored, dtype)
        assert found > 0.005


@pytest.mark.parametrize("norm", NORMS)
def test_per_class(norm):
    """``average=None`` is theirs of each column."""
    z, draw = logits((540, 4), torch.float64)
    p = torch.softmax(z, dim=1)
    target = torch.multinomial(torch.softmax(z / 2, dim=1), 1, generator=draw)[:, 0]
    ours = CalibrationError(cal.Binned(15), "classwise", 4, NORMS[norm], average=None)
    ours.update(p, target)
    theirs = [BinaryCalibrationError(15, norm)(p[:, k], (target == k).long()).item() for k in range(4)]
    np.testing.assert_allclose(ours.compute(), theirs, atol=1e-6)


def binned(scores, outcomes, n_bins, norm, *, right):
    """The error of bins closed on the right, or on the left with a bin of its own for 1."""
    scores = np.round(np.asarray(scores, dtype=float), 9)
    position = np.round(scores * n_bins, 6)
    slot = np.maximum(np.ceil(position) - 1, 0) if right else np.floor(position)
    gaps, mass = [], []
    for b in np.unique(slot):
        at = slot == b
        gaps.append(abs(np.mean(outcomes[at]) - np.mean(scores[at])))
        mass.append(at.mean())
    gaps, mass = np.array(gaps), np.array(mass)
    return gaps.max() if norm == "max" else (mass @ gaps ** NORMS[norm]) ** (1 / NORMS[norm])


@pytest.mark.parametrize("norm", NORMS)
def test_scores_on_edges_tell_the_two_apart(norm):
    """Bins are closed on the right here and on the left there; a score of 1 has a bin of its own there."""
    rng = np.random.default_rng(0)
    scores = rng.choice([0.1, 0.15, 0.2, 0.25, 0.5, 0.55, 0.9, 0.95, 1.0], 400)
    outcomes = (rng.random(400) < 0.5 * scores + 0.4 * (np.round(scores * 20) % 2) + 0.1 * (scores == 1)).astype(int)
    preds, target = torch.tensor(scores), torch.tensor(outcomes)
    ours = CalibrationError(cal.Binned(10), "class-specific", norm=NORMS[norm])
    found, theirs = both(ours, BinaryCalibrationError(10, norm), preds, target)
    assert found == pytest.approx(binned(scores, outcomes, 10, norm, right=True), abs=1e-9)
    assert theirs == pytest.approx(binned(scores, outcomes, 10, norm, right=False), abs=1e-5)
    assert abs(found - theirs) > 1e-3

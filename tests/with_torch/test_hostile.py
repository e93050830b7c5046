"""Torch metric and losses over the hostile table: the number of the core, or an error that names the argument."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

import calibrant as cal  # noqa: E402
from calibrant.torch import CalibrationError, functional  # noqa: E402

from ..hostile.values import CODES, MANY, SCORES, TRUTHS, N, P, Y  # noqa: E402

pytestmark = pytest.mark.torch


def tensors(table):
    """Those of a table that torch can hold."""
    found = {}
    for name, value in table.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = torch.as_tensor(np.array(value))
            except (TypeError, ValueError, RuntimeError):
                found[name] = value  # as it is: no tensor
    return found


ODD = {
    "sparse": lambda t: t.to_sparse(),
    "meta": lambda t: t.to("meta"),
    "quantised": lambda t: torch.quantize_per_tensor(t.float(), 0.01, 0, torch.quint8),
    "complex": lambda t: t + 0j,
    "needs a gradient": lambda t: t.double().requires_grad_(),
    "not contiguous": lambda t: t.repeat_interleave(2)[::2] if t.ndim == 1 else t.repeat_interleave(2, 1)[:, ::2],
    "a list": lambda t: t.tolist(),
    "an array": lambda t: t.numpy(),
}
MATRICES = {
    "as they are": MANY,
    "rows that add up to 2": 2 * MANY.clip(0, 0.5),
    "columns of 0": np.zeros((N, 3)),
    "all equal": np.full((N, 3), 1 / 3),
    "hard": np.eye(3)[CODES],
    "logits": 20 * (MANY - 0.5),
    "enormous": 1e308 * (2 * MANY - 1),
    "nan": np.where(MANY > 0.9, np.nan, MANY),
}


def ends_well(notion, preds, target, **options):
    """A batch is taken, and the number is that of the core; or the error says why, and the metric is as before."""
    metric = CalibrationError(notion=notion, num_classes=3 if notion != "class-specific" else None, **options)
    before = metric.sums.clone()
    try:
        metric.update(preds, target)
    except (ValueError, TypeError) as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert "preds" in said or "target" in said
        assert torch.equal(metric.sums, before)
        return None
    value = metric.compute().item()
    if len(target):
        p, y = (np.asarray(t.detach()) for t in (preds, target))
        labels = [0, 1] if notion == "class-specific" else [0, 1, 2]
        expected = cal.calibration_error(y, p, notion=notion, labels=labels, **options)
        assert value == pytest.approx(expected, abs=1e-6)
    return value


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_scores(name, from_logits):
    ends_well("class-specific", tensors(SCORES)[name], torch.as_tensor(Y), from_logits=from_logits)


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("notion", ["class-specific", "confidence"])
def test_targets(name, notion):
    preds = torch.as_tensor(P if notion == "class-specific" else MANY)
    ends_well(notion, preds, tensors(TRUTHS)[name])


@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("notion", ["confidence", "classwise"])
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name, notion, from_logits):
    ends_well(notion, torch.as_tensor(MATRICES[name]), torch.as_tensor(CODES), from_logits=from_logits)


@pytest.mark.parametrize("notion", ["class-specific", "confidence", "classwise"])
@pytest.mark.parametrize("side", ["preds", "target"])
@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("ignore:.*(sparse|quantize|torch.ao|storage|Quantiz).*")
def test_odd_tensors(name, side, notion):
    preds, target = (P, Y) if notion == "class-specific" else (MANY, CODES)
    both = {"preds": torch.as_tensor(preds), "target": torch.as_tensor(target)}
    try:
        both[side] = ODD[name](both[side])
    except RuntimeError:
        pytest.skip("torch makes no such tensor")
    found = ends_well(notion, **both)
    if name == "needs a gradient" and side == "preds":
        assert found is not None


LOSSES = {
    f.__name__: f for f in (functional.dirichlet_kernel_error, functional.mmce, functional.focal_loss,
                            functional.soft_binned_ece, functional.brier_loss, functional.brier_sharpness,
                            functional.dca, functional.confidence_penalty)
}  # fmt: skip


@pytest.mark.parametrize("side", ["logits", "target"])
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore:.*(sparse|quantize|torch.ao|storage|Quantiz).*")
def test_odd_tensors_in_losses(loss, name, side):
    both = {"logits": torch.as_tensor(4 * MANY), "target": torch.as_tensor(CODES)}
    try:
        both[side] = ODD[name](both[side])
    except RuntimeError:
        pytest.skip("torch makes no such tensor")
    if name == "not contiguous" or (name, side) == ("needs a gradient", "logits"):
        assert torch.isfinite(LOSSES[loss](**both)).all()
    else:
        with pytest.raises((ValueError, TypeError), match=side):
            LOSSES[loss](**both)

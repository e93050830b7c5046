"""The metric of rows with several labels: the number that arrays give, entry by entry."""

import numpy as np
import pytest

import calibrant as cal

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.torch

from calibrant.torch import CalibrationError  # noqa: E402

RNG = np.random.default_rng(0)
Z = 2 * RNG.normal(size=(300, 4)) - [0, 1, 2, 3]
Y = (RNG.random(Z.shape) < 1 / (1 + np.exp(-Z / 2))).astype(int)
AVERAGES = ["multilabel", "multilabel:micro", "multilabel:weighted"]
ESTIMATORS = [cal.Binned(15), cal.EmpiricalBayes()]


def metric(*batches, **options):
    made = CalibrationError(num_classes=4, **options)
    for preds, target in batches:
        made.update(torch.as_tensor(preds), torch.as_tensor(target))
    return made


def pooled(p, estimator, norm):
    return cal.calibration_error(Y.ravel(), p.ravel(), estimator=estimator, norm=norm)


@pytest.mark.parametrize("notion", AVERAGES)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("norm", [1, 2, float("inf")])
def test_the_number_is_that_of_arrays(notion, estimator, norm):
    if norm == float("inf") and isinstance(estimator, cal.EmpiricalBayes):
        norm = 3
    p = 1 / (1 + np.exp(-Z))
    wanted = cal.calibration_error(Y, p, notion=notion, estimator=estimator, norm=norm)
    if notion == "multilabel:micro":  # whose entries are independent here
        assert isinstance(estimator, cal.EmpiricalBayes) or wanted == pytest.approx(pooled(p, estimator, norm))
        wanted = pooled(p, estimator, norm)
    options = {"notion": notion, "estimator": estimator, "norm": norm}
    assert metric((p[:99], Y[:99]), (p[99:], Y[99:] > 0), **options).compute().item() == pytest.approx(wanted, abs=1e-9)
    found = metric((Z, Y), from_logits=True, **options)
    assert found.compute().item() == pytest.approx(wanted, abs=1e-9)
    assert int(found.samples) == 300
    # Labels in dimension 1, places behind it.
    dense = [np.moveaxis(a.reshape(3, 10, 10, 4), -1, 1) for a in (p, Y)]
    assert metric(tuple(dense), **options).compute().item() == pytest.approx(wanted, abs=1e-9)
    single = metric((p.astype(np.float32), Y), **options).set_dtype(torch.float32)
    assert single.compute().item() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_entries_are_ignored_one_by_one(estimator):
    p, y = 1 / (1 + np.exp(-Z)), Y.copy()
    y[::3, 1] = y[:, 3] = -1
    each = metric((p, y), notion="multilabel", estimator=estimator, ignore_index=-1, average=None).compute().numpy()
    kept = [y[:, k] >= 0 for k in range(3)]
    alone = [cal.calibration_error(y[rows, k], p[rows, k], estimator=estimator) for k, rows in enumerate(kept)]
    np.testing.assert_allclose(each[:3], alone, atol=1e-9)
    assert np.isnan(each[3])
    whole = metric((p, y), notion="multilabel", estimator=estimator, ignore_index=-1)
    assert whole.compute().item() == pytest.approx(np.mean(alone), abs=1e-9)
    flat = y.ravel() >= 0
    micro = metric((p, y), notion="multilabel:micro", estimator=estimator, ignore_index=-1).compute().item()
    assert micro == pytest.approx(
        cal.calibration_error(y.ravel()[flat], p.ravel()[flat], estimator=estimator), abs=1e-9
    )
    curves = whole.reliability_curve() if isinstance(estimator, cal.Binned) else {0: None, 1: None, 2: None, 3: None}
    assert list(curves) == [0, 1, 2, 3]


def test_what_does_not_fit_is_refused():
    made = CalibrationError(notion="multilabel", num_classes=4)
    p = torch.full((5, 4), 0.5)
    for preds, target, words in (
        (p, torch.zeros(5, dtype=torch.long), "target must be class indices of shape"),
        (p[:, :3], torch.zeros((5, 3), dtype=torch.long), "preds must have shape"),
        (p, torch.full((5, 4), 2), "target must lie in 0 … 1"),
        (p + 1, torch.zeros((5, 4), dtype=torch.long), "preds must lie in"),
    ):
        with pytest.raises(ValueError, match=words):
            made.update(preds, target)
    assert int(made.samples) == 0
    with pytest.raises(ValueError, match="num_classes must be an int"):
        CalibrationError(notion="multilabel")
    with pytest.raises(ValueError, match="average must be"):
        CalibrationError(notion="multilabel:micro", num_classes=4, average=None)

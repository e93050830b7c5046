"""The streaming metric against the core on all rows at once."""

import numpy as np
import pytest

import calibrant as cal

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.torch

from calibrant.torch import CalibrationError  # noqa: E402

ESTIMATORS = [
    cal.Binned(15),
    cal.Binned(10, span="domain"),
    cal.Binned((0.0, 0.1, 0.35, 0.6, 0.9, 1.0)),
    cal.Binned(15, debias=True),
    cal.estimators.Density(),
    cal.estimators.ResidualKernel(),
    cal.estimators.AdaptiveKernel(),
    cal.EmpiricalBayes(),
]


def sample(n=500, k=4, dtype=torch.float64, rounded=False):
    rng = np.random.default_rng(n)
    p = rng.dirichlet(np.ones(k), n)
    if rounded:  # on the edges of bins
        p = np.round(p, 1)
        p[:, 0] = np.abs(1 - p[:, 1:].sum(axis=1))
        p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > (0.7 * p + 0.3 / k).cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return torch.tensor(p, dtype=dtype), torch.tensor(y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("notion", ["confidence", "classwise", "class-specific"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rounded", [False, True])
def test_batches_add_up_to_the_core(estimator, notion, dtype, rounded):
    p, y = sample(dtype=dtype, rounded=rounded)
    k = 4
    if notion == "class-specific":
        p, y, k = p[:, 1].contiguous(), (y == 1).long(), None
    for norm in (1, 2):
        metric = CalibrationError(estimator, notion, k, norm)
        for start in range(0, 500, 130):
            metric.update(p[start : start + 130], y[start : start + 130])
        problem = {"pos_label": 1} if k is None else {"notion": notion, "labels": range(4)}
        expected = cal.calibration_error(y.numpy(), p.numpy(), estimator=estimator, norm=norm, **problem)
        assert metric.compute().item() == pytest.approx(expected, abs=1e-12 if dtype == torch.float64 else 1e-6)


def test_processes_and_devices_add_up():
    """What distributed training does: states of two processes, summed."""
    p, y = sample()
    one, other, both = (CalibrationError("auto", "classwise", 4) for _ in range(3))
    one.update(p[:200], y[:200])
    other.update(p[200:], y[200:])
    both.update(p, y)
    for name, reduce in one._reductions.items():
        setattr(one, name, reduce(torch.stack([getattr(one, name), getattr(other, name)])))
    one._update_count = 2
    assert one.compute().item() == pytest.approx(both.compute().item(), abs=1e-13)
    assert one.sums.shape == (4, 2, 4097)


def test_forward_reset_and_pickle():
    import pickle

    p, y = sample()
    metric = CalibrationError(cal.Binned(15), num_classes=4)
    first = metric(p[:100], y[:100])
    expected = cal.calibration_error(y[:100].numpy(), p[:100].numpy(), estimator=cal.Binned(15), labels=range(4))
    assert first.item() == pytest.approx(expected, abs=1e-12)
    metric(p[100:], y[100:])
    whole = cal.calibration_error(y.numpy(), p.numpy(), estimator=cal.Binned(15), labels=range(4))
    assert metric.compute().item() == pytest.approx(whole, abs=1e-12)
    assert pickle.loads(pickle.dumps(metric)).compute().item() == pytest.approx(whole, abs=1e-12)
    assert metric.half().sums.dtype == torch.float64
    metric.reset()
    assert metric.samples == 0


def test_logits():
    p, y = sample()
    probs, logits = (
        CalibrationError(cal.estimators.Density(), num_classes=4, from_logits=flag) for flag in (False, True)
    )
    probs.update(p, y)
    logits.update(p.log() + 3, y)
    assert logits.compute().item() == pytest.approx(probs.compute().item(), abs=1e-9)
    one, other = (
        CalibrationError(cal.estimators.Density(), "class-specific", from_logits=flag) for flag in (False, True)
    )
    one.update(p[:, 1], (y == 1).long())
    other.update(torch.logit(p[:, 1]), (y == 1).long())
    assert other.compute().item() == pytest.approx(one.compute().item(), abs=1e-9)


def test_half_precision_and_an_empty_batch():
    p, y = sample(dtype=torch.bfloat16)
    metric = CalibrationError(cal.Binned(15), num_classes=4)
    metric.update(p, y)
    metric.update(p[:0], y[:0])
    assert 0 < metric.compute().item() < 1


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_nothing_is_nan():
    assert torch.isnan(CalibrationError(num_classes=3).compute())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"notion": "canonical"}, "notion must be one of"),
        ({}, "num_classes must be an int >= 2 for the notion 'confidence'"),
        ({"num_classes": 3, "norm": 0.5}, "norm must be"),
        ({"num_classes": 3, "estimator": "bins"}, "estimator must be 'auto'"),
        ({"num_classes": 3, "estimator": cal.Binned("sqrt")}, "fixed edges and hard mapping"),
        ({"num_classes": 3, "estimator": cal.Binned(mapping="linear")}, "fixed edges and hard mapping"),
        ({"num_classes": 3, "estimator": cal.estimators.Isotonic()}, "estimator must work on grid counts"),
        ({"num_classes": 3, "estimator": cal.estimators.BetaKernel()}, "estimator must work on grid counts"),
    ],
)
def test_bad_parts(arguments, words):
    with pytest.raises(ValueError, match=words):
        CalibrationError(**arguments)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, y: (p[:, 0], y), r"preds must be floats of shape \(N, 4\)"),
        (lambda p, y: (p[:, :3], y), "preds must have num_classes=4 columns; got 3"),
        (lambda p, y: (p.long(), y), "preds must be floats"),
        (lambda p, y: (p, y[:-1]), "target must be class indices of shape"),
        (lambda p, y: (p, y + 1), r"target must lie in 0 … 3"),
        (lambda p, y: (p * 9, y), r"preds must lie in \[0, 1\]; .*pass from_logits=True"),
        (lambda p, y: (p * torch.nan, y), r"preds must lie in \[0, 1\]"),
    ],
)
def test_bad_batches_leave_the_state_alone(change, words):
    p, y = sample()
    metric = CalibrationError(num_classes=4)
    metric.update(p, y)
    before = metric.sums.clone()
    with pytest.raises(ValueError, match=words):
        metric.update(*change(p, y))
    assert torch.equal(metric.sums, before)

"""Refinement: the loss after a scaler's fit, by another way, and what it must obey."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.torch

from torch.nn.functional import cross_entropy  # noqa: E402
from torchmetrics import MetricCollection  # noqa: E402

from calibrant.torch import BrierLoss, MatrixScaler, Refinement, TemperatureScaler  # noqa: E402


def sample(n=600, k=4, times=2.5, seed=0):
    draw = torch.Generator().manual_seed(seed)
    z = 1.5 * torch.randn(n, k, generator=draw, dtype=torch.float64)
    return times * z, torch.multinomial(torch.softmax(z, dim=1), 1, generator=draw)[:, 0]


def test_it_is_the_least_loss_over_temperatures():
    z, y = sample()
    metric = Refinement(TemperatureScaler(shrinkage=0))
    for rows in (slice(0, 250), slice(250, 600)):
        metric.update(z[rows], y[rows])

    def loss(log_t):
        return -log_softmax(z.numpy() / np.exp(log_t), axis=1)[np.arange(600), y.numpy()].mean()

    found = metric.parts()
    assert found.refinement.item() == pytest.approx(
        minimize_scalar(loss, bounds=(-3, 3), method="bounded").fun, abs=1e-9
    )
    assert found.loss.item() == pytest.approx(loss(0.0), abs=1e-12)
    assert found.calibration.item() == pytest.approx((found.loss - found.refinement).item(), abs=1e-15)
    assert found.calibration > 0.3
    assert metric.compute() == found.refinement


@pytest.mark.parametrize("scaler", [None, MatrixScaler(4), MatrixScaler(4, 0)])
def test_a_scaler_removes_something_and_is_left_as_it_was(scaler):
    z, y = sample()
    metric = Refinement(scaler)
    before = {k: v.clone() for k, v in metric.state_dict().items()}
    metric.update(z, y)
    found = metric.parts()
    assert 0 < found.refinement < found.loss
    fitted = (TemperatureScaler() if scaler is None else scaler.__class__(4, scaler.shrinkage)).fit(z, y)
    assert found.refinement.item() == pytest.approx(cross_entropy(fitted(z), y).item(), abs=1e-12)
    assert all(torch.equal(v, before[k]) for k, v in metric.state_dict().items())


def test_a_temperature_changes_nothing():
    """Refinement is that of the ranking of classes: to 1e-9 without shrinkage."""
    values = []
    for times in (0.1, 1.0, 2.5, 40.0):
        metric = Refinement(TemperatureScaler(shrinkage=0))
        metric.update(*sample(times=times))
        values.append(metric.compute().item())
    assert np.ptp(values) < 1e-9


@pytest.mark.parametrize("times", [0.01, 1.0, 10.0])
def test_it_is_never_above_the_loss(times):
    for seed in range(20):
        metric = Refinement()
        metric.update(*sample(8, times=times, seed=seed))
        assert metric.parts().calibration > -1e-12


def test_brier_score_pixels_and_rows_left_out():
    z, y = sample()
    y[::5] = -100
    flat, dense = Refinement(loss="brier"), Refinement(loss="brier")
    flat.update(z[y >= 0], y[y >= 0])
    dense.update(z.reshape(6, 10, 10, 4).movedim(-1, 1), y.reshape(6, 10, 10))
    assert dense.compute().item() == pytest.approx(flat.compute().item(), abs=1e-12)
    assert flat.parts().loss == BrierLoss()(z, y)


@pytest.mark.filterwarnings("ignore:The ``compute`` method")
def test_batches_reset_and_nothing():
    z, y = sample()
    metric = MetricCollection({"refinement": Refinement()})
    first = metric(z[:300], y[:300])["refinement"]
    metric(z[300:], y[300:])
    alone, whole = Refinement(), Refinement()
    alone.update(z[:300], y[:300])
    whole.update(z, y)
    assert first == alone.compute()
    assert metric.compute()["refinement"].item() == pytest.approx(whole.compute().item(), abs=1e-12)
    metric.reset()
    assert torch.isnan(metric.compute()["refinement"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda z, y: (z[:, :3], y), "logits must have 4 classes in dimension 1"),
        (lambda z, y: (z * torch.inf, y), "logits must be finite"),
        (lambda z, y: (z, y + 9), "target must lie in 0 … 3 or be ignore_index=-100"),
        (lambda z, y: (z, y[:-1]), "target must be class indices of shape"),
    ],
)
def test_bad_batches_leave_the_state_alone(change, words):
    z, y = sample()
    metric = Refinement()
    metric.update(z, y)
    with pytest.raises(ValueError, match=words):
        metric.update(*change(z, y))
    assert len(metric.logits) == len(metric.target) == 1


def one_of_two(rank, folder):
    """A process with some of the rows, in float32 in one of them, or with all, or with none."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    z, y = sample(1000)
    for cut in (700, 1000, 0):
        metric = Refinement()
        rows = slice(0, cut) if rank == 0 else slice(cut, 1000)
        for start in range(rows.start, rows.stop, 150):
            batch = slice(start, min(start + 150, rows.stop))
            metric.update(z[batch].float() if rank else z[batch], y[batch])
        torch.save((metric.parts(), metric.compute(), sum(map(len, metric.target))), f"{folder}/{rank} {cut}")
    metric = Refinement()
    assert torch.isnan(metric.compute())  # nothing anywhere
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path):
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path),), nprocs=2)
    z, y = sample(1000)
    whole = Refinement()
    whole.update(z, y)
    for rank in range(2):
        for cut in (700, 1000, 0):
            parts, value, own = torch.load(tmp_path / f"{rank} {cut}", weights_only=False)
            torch.testing.assert_close(list(parts), list(whole.parts()), atol=1e-6, rtol=0, check_dtype=False)
            assert parts.loss.item() == pytest.approx(cross_entropy(z, y).item(), abs=1e-6)
            assert value == parts.refinement
            assert own == (cut if rank == 0 else 1000 - cut)  # its own rows again, to go on with


def test_bad_parts():
    with pytest.raises(ValueError, match="loss must be one of 'log-loss', 'brier'"):
        Refinement(loss="l1")
    with pytest.raises(TypeError, match="scaler must be a Scaler or None"):
        Refinement("temperature")

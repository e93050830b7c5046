"""Losses against the NumPy core, their gradients against finite differences, and what training throws at them."""

import copy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import dirichlet
from sklearn.datasets import load_digits

import calibrant as cal

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from calibrant import torch as ct  # noqa: E402
from calibrant.torch import _kernel  # noqa: E402
from calibrant.torch import functional as F  # noqa: E402, N812

KERNELS = [
    (h, p, orientation, debias, residual)
    for h in (0.05, "auto")
    for orientation in ("data", "query")
    for residual in (False, True)
    for debias, norms in ((None, (1, 2, 3)), ("ratio", (1, 2)), ("square", (2,)), ("cross", (1, 2)))
    for p in norms
]
LOSSES = {
    "dirichlet": ct.DirichletKernelLoss(0.05),
    "dirichlet query": ct.DirichletKernelLoss(0.05, 2, "query"),
    "dirichlet cross": ct.DirichletKernelLoss("auto", 2, "query", "cross", residual=True),
    "dirichlet sign": ct.DirichletKernelLoss("auto", 1, "query", "cross", residual=True),
    "dirichlet ratio": ct.DirichletKernelLoss(debias="ratio"),
    "mmce": ct.MMCELoss(),
    "mmce squared": ct.MMCELoss(squared=True),
    "focal": ct.FocalLoss(),
    "focal 2": ct.FocalLoss(2.0),
    "soft-binned": ct.SoftBinnedECELoss(),
    "soft-binned 1": ct.SoftBinnedECELoss(5, 0.05, 1),
    "brier": ct.BrierLoss(),
    "sharpness": ct.BrierSharpnessLoss(0.5),
    "sharpness plug-in": ct.BrierSharpnessLoss(0.5, 0.1, "query", None),
    "sharpness cross": ct.BrierSharpnessLoss(2.0, 0.05, debias="cross"),
    "dca": ct.DCALoss(weight=2.0),
    "entropy": ct.ConfidencePenaltyLoss(weight=0.3),
    "top-label kernel": ct.DirichletKernelLoss(0.1, notion="confidence"),
    "marginal kernel": ct.DirichletKernelLoss("auto", 2, "query", "cross", residual=True, notion="classwise"),
}


def sample(n, k, seed=0, scale=1.5, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    z = scale * rng.normal(size=(n, k))
    y = (rng.random((n, 1)) > np.exp(z - np.logaddexp.reduce(z, axis=1)[:, None]).cumsum(axis=1)).sum(axis=1)
    return torch.tensor(z, dtype=dtype), torch.tensor(y.clip(0, k - 1))


def core(z, y, h, p, orientation, debias, residual):
    """The core's power."""
    estimator = cal.estimators.DirichletKernel(h, orientation, debias, residual)
    problem = {"notion": "canonical", "estimator": estimator, "labels": range(z.shape[1]), "from_logits": True}
    if debias in ("square", "cross") and p == 2:
        return cal.squared_calibration_error(y.numpy(), z.double().numpy(), **problem)
    return cal.calibration_error(y.numpy(), z.double().numpy(), norm=p, **problem) ** p


@pytest.mark.parametrize(("h", "p", "orientation", "debias", "residual"), KERNELS)
@pytest.mark.parametrize("tile", [40, 1 << 20])
def test_the_same_number_as_the_core(h, p, orientation, debias, residual, tile, monkeypatch):
    monkeypatch.setattr("calibrant.torch._kernel.TILE", tile)
    z, y = sample(60, 4)
    expected = core(z, y, h, p, orientation, debias, residual)
    got = F.dirichlet_kernel_error(z, y, h, p, orientation, debias, residual=residual)
    assert got.item() == pytest.approx(expected, abs=1e-12)
    single = F.dirichlet_kernel_error(z.float(), y, h, p, orientation, debias, residual=residual)
    assert single.dtype == torch.float32
    # The float32 logits are other logits: the core reads the same ones.
    assert single.item() == pytest.approx(core(z.float(), y, h, p, orientation, debias, residual), abs=2e-6)


@pytest.mark.parametrize(("h", "p", "orientation", "debias", "residual"), KERNELS)
def test_gradients_of_kernels_in_tiles(h, p, orientation, debias, residual, monkeypatch):
    monkeypatch.setattr("calibrant.torch._kernel.TILE", 25)
    z, y = sample(9, 3, seed=1)
    z.requires_grad_()
    if debias == "cross" and p == 1:  # a sum of signs times residuals: the sign has no slope
        loss = F.dirichlet_kernel_error(z, y, h, p, orientation, debias, residual=residual)
        (slope,) = torch.autograd.grad(loss, z)
        assert slope.abs().max() > 0
        return
    assert torch.autograd.gradcheck(
        lambda x: F.dirichlet_kernel_error(x, y, h, p, orientation, debias, residual=residual), (z,), atol=1e-6
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_no_weight_is_a_subnormal_number(dtype):
    """With them a CPU is several times slower."""
    least = torch.finfo(dtype).tiny
    weights = _kernel._powers(torch.linspace(-1200, 0, 5000, dtype=dtype))
    for powers in (weights, weights.square()):
        assert ((powers == 0) | (powers >= least)).all()
    assert weights[-1] == 1
    kept = weights[weights > 0]
    assert kept[0] < torch.finfo(dtype).eps ** 2


@pytest.mark.parametrize("h", [0.2, 0.02])
def test_sharp_scores_in_single_precision(h):
    """Error and slope are those of the formula, step by step in float64."""
    z, y = sample(80, 4, seed=2)
    z = (3 * z).float().requires_grad_()
    error = F.dirichlet_kernel_error(z, y, h)
    (slope,) = torch.autograd.grad(error, z)
    plain = z.detach().double().requires_grad_()
    f = torch.softmax(plain, dim=1)
    logs = torch.log(f) @ (f / h).T - torch.lgamma(f / h + 1).sum(dim=1)
    weights = torch.softmax(logs.masked_fill(torch.eye(len(f), dtype=torch.bool), -torch.inf), dim=1)
    expected = (weights @ torch.nn.functional.one_hot(y, 4).double() - f).abs().sum(dim=1).mean()
    (of_expected,) = torch.autograd.grad(expected, plain)
    assert error.item() == pytest.approx(expected.item(), rel=2e-5)
    torch.testing.assert_close(slope.double(), of_expected, rtol=2e-3, atol=2e-5)


NARROW = {
    f"{name} {orientation}": loss
    for orientation in ("data", "query")
    for name, loss in {
        "square": ct.DirichletKernelLoss(0.001, 2, orientation, "square"),
        "cross": ct.DirichletKernelLoss(0.001, 2, orientation, "cross"),
        "residual": ct.DirichletKernelLoss(0.001, 2, orientation, "cross", residual=True),
        "classwise": ct.DirichletKernelLoss(0.001, 2, orientation, "square", notion="classwise"),
        "sharpness": ct.BrierSharpnessLoss(0.1, 0.001, orientation),
        "sharpness cross": ct.BrierSharpnessLoss(0.1, 0.001, orientation, "cross"),
    }.items()
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("k", [4, 10])
@pytest.mark.parametrize("name", NARROW)
def test_unbiased_squares_have_slopes_in_single_precision(name, k, dtype):
    """Once they were rounding errors, up to hundreds of times larger: 1 - Σw² is 1e-5 where one weight is nearly 1."""
    z, y = sample(64, k, seed=k, scale=2, dtype=dtype)
    single, double = z.clone().requires_grad_(), z.double().requires_grad_()
    found, expected = NARROW[name](single, y), NARROW[name](double, y)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    found.backward()
    expected.backward()
    assert single.grad.dtype == dtype
    assert (single.grad - double.grad).norm() < (1e-3 if dtype == torch.float32 else 1e-2) * double.grad.norm()


def test_the_slope_of_an_unbiased_square_is_that_of_pairs():
    """``Σ w_i w_k y_i y_k / Σ w_i w_k`` over pairs i ≠ k, which cancels nothing, in float64."""
    z, y = sample(64, 4, seed=4, scale=2, dtype=torch.float32)
    single, plain = z.clone().requires_grad_(), z.double().requires_grad_()
    F.dirichlet_kernel_error(single, y, 0.001, 2, debias="square").backward()
    f, same = torch.softmax(plain, dim=1), torch.nn.functional.one_hot(y, 4).double()
    logs = f.log() @ (f / 0.001).T - torch.lgamma(f / 0.001 + 1).sum(dim=1)
    w = torch.softmax(logs.masked_fill(torch.eye(64, dtype=torch.bool), -torch.inf), dim=1)
    pairs = (w[:, :, None] * w[:, None, :]).masked_fill(torch.eye(64, dtype=torch.bool), 0)
    rest = pairs.sum(dim=(1, 2))
    square = torch.einsum("jik,ic,kc->jc", pairs, same, same) / rest[:, None]
    (square - 2 * (w @ same) * f + f**2).sum(dim=1)[rest > 1e-6].mean().backward()
    assert (single.grad - plain.grad).norm() < 1e-3 * plain.grad.norm()


def test_training_with_narrow_squares_learns():
    """A small network on digits; with slopes that were rounding errors half of the digits were right."""
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    x = (x / 16).float()
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer, loss = torch.optim.Adam(network.parameters(), lr=0.01), ct.BrierSharpnessLoss(0.1, 0.001)
    for _ in range(150):
        rows = torch.randint(0, 1200, (64,))
        optimizer.zero_grad()
        loss(network(x[rows]), y[rows]).backward()
        optimizer.step()
    assert (network(x[1200:]).argmax(dim=1) == y[1200:]).float().mean() > 0.75


@pytest.mark.parametrize("name", LOSSES)
def test_second_derivatives(name):
    """A product with the Hessian beside differences of the gradient; once it lacked the kernel's part."""
    z, y = sample(12, 3, seed=4)
    way = torch.randn(12, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def slope(at, *, graph=False):
        at = at.clone().requires_grad_()
        return at, torch.autograd.grad(LOSSES[name](at, y), at, create_graph=graph)[0]

    at, first = slope(z, graph=True)
    torch.testing.assert_close(first, slope(z)[1])
    (found,) = torch.autograd.grad((first * way).sum(), at)
    expected = (slope(z + 1e-6 * way)[1] - slope(z - 1e-6 * way)[1]) / 2e-6
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", [n for n in {**LOSSES, **NARROW} if "marginal" not in n and "classwise" not in n])
def test_a_masked_class_is_as_one_that_is_not_there(name, dtype):
    """Logits of -inf once gave NaN, or 0."""
    loss = copy.copy({**LOSSES, **NARROW}[name])
    if getattr(loss, "bandwidth", 0) == "auto":  # that depends on the number of classes
        loss.bandwidth = 0.2
    z, y = sample(40, 3, dtype=dtype)
    some, masked = z.clone().requires_grad_(), torch.cat([z, torch.full_like(z[:, :1], -torch.inf)], dim=1)
    masked.requires_grad_()
    wanted, found = loss(some, y), loss(masked, y)
    wanted.backward()
    found.backward()
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(masked.grad[:, :3], some.grad)
    assert not masked.grad[:, 3].any()


@pytest.mark.parametrize("name", [n for n in {**LOSSES, **NARROW} if "focal" not in n])
def test_masks_that_differ_give_a_number_and_nan_remains_nan(name):
    loss = {**LOSSES, **NARROW}[name]
    z, y = sample(40, 4, dtype=torch.float32)
    z[::2, 3], z[5, 0] = -torch.inf, -torch.inf
    z.requires_grad_()
    found = loss(z, y)
    found.backward()
    assert found != 0
    assert torch.isfinite(found)
    assert torch.isfinite(z.grad).all()
    with torch.no_grad():
        z[0, 0] = torch.nan
        assert torch.isnan(loss(z, y))


@pytest.mark.parametrize("name", LOSSES)
def test_one_logit_a_row(name):
    """It once gave 0, the error of one class that is always right."""
    z, y = sample(20, 2)
    one = z[:, 1] - z[:, 0]
    for given in (one, one[:, None]):
        with pytest.raises(ValueError, match=r"K >= 2; .*\[torch.zeros_like\(z\), z\], 1\)"):
            LOSSES[name](given, y)
    both = LOSSES[name](torch.stack([torch.zeros_like(one), one], 1), y)
    assert both.item() == pytest.approx(LOSSES[name](z, y).item(), abs=1e-12)


@pytest.mark.parametrize("notion", ["classwise", "confidence"])
@pytest.mark.parametrize(("h", "p", "orientation", "debias", "residual"), KERNELS)
def test_marginal_and_top_label(notion, h, p, orientation, debias, residual):
    """The core's numbers of one score at a time, and slopes by finite differences."""
    z, y = sample(60, 4, seed=7)
    estimator = cal.estimators.DirichletKernel(h, orientation, debias, residual)
    given = {"notion": notion, "estimator": estimator, "labels": range(4), "from_logits": True}
    if debias in ("square", "cross") and p == 2:
        expected = cal.squared_calibration_error(y.numpy(), z.numpy(), **given)
    else:
        expected = cal.calibration_error(y.numpy(), z.numpy(), norm=p, **given) ** p
    how = {"orientation": orientation, "debias": debias, "residual": residual, "notion": notion}
    assert F.dirichlet_kernel_error(z, y, h, p, **how).item() == pytest.approx(expected, abs=1e-10)
    if debias == "cross" and p == 1:
        return
    z, y = sample(9, 3, seed=1)
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: F.dirichlet_kernel_error(x, y, h, p, **how), (z,), atol=1e-6)


def test_top_label_parity():
    """Values of the published code; its marginal error is a sum over classes."""
    data = np.load(Path(__file__).parents[1] / "reference" / "dirichlet_K4_N500.npz")
    f, y = (torch.as_tensor(data[name]) for name in ("f", "y"))
    logits = f.double().log()
    for notion, value, times in (("canonical", 0.285811053039419, 1), ("classwise", 0.242151056736799, 4),
                                 ("confidence", 0.119968084184234, 1)):  # fmt: skip
        got = times * F.dirichlet_kernel_error(logits, y.long(), 0.05, notion=notion).item()
        assert got == pytest.approx(value, abs=2e-7), notion


@pytest.mark.parametrize("debias", [None, "square", "cross"])
@pytest.mark.parametrize("orientation", ["data", "query"])
def test_brier_and_sharpness(orientation, debias):
    """By a double loop; and Brier + λ (Brier + sharpness - 1) is (1 + λ) times it but for λ; γ = λ / (1 + λ)."""
    z, y = sample(30, 3, seed=9)
    f, hot = torch.softmax(z, dim=1).numpy(), np.eye(3)[y]
    kernel = np.zeros((30, 30))
    for j in range(30):
        for i in range(30):
            at, to = (f[i], f[j]) if orientation == "data" else (f[j], f[i])
            kernel[j, i] = dirichlet.pdf(to, at / 0.1 + 1) if i != j else 0
    w = kernel / kernel.sum(axis=1, keepdims=True)
    mean, s2 = w @ hot, (w**2).sum(axis=1)
    square = ((mean**2).sum(axis=1) - (w**2 @ hot).sum(axis=1)) / (1 - s2)
    each = {None: (mean**2).sum(axis=1), "square": square, "cross": 2 * (mean * hot).sum(axis=1) - square}[debias]
    brier = ((f - hot) ** 2).sum(axis=1).mean()
    got = F.brier_sharpness(z, y, 0.75, 0.1, orientation, debias).item()
    assert got == pytest.approx(brier + 0.75 * each.mean(), abs=1e-10)
    assert 4 * (got - 0.75) == pytest.approx(brier + 3 * (brier + each.mean() - 1), abs=1e-9)


def test_dca_and_confidence_penalty():
    z, y = sample(50, 5, seed=11)
    f = torch.softmax(z, dim=1).numpy()
    gap = abs((f.argmax(axis=1) == y.numpy()).mean() - f.max(axis=1).mean())
    assert F.dca(z, y).item() == pytest.approx(gap, abs=1e-12)
    entropy = -(f * np.log(f)).sum(axis=1)
    assert F.confidence_penalty(z, y).item() == pytest.approx(-entropy.mean(), abs=1e-12)
    np.testing.assert_allclose(F.confidence_penalty(z, y, "none").numpy(), -entropy, atol=1e-12)
    # At equal logits entropy is at its top.
    even = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    F.confidence_penalty(even, torch.arange(4) % 3).backward()
    assert even.grad.abs().max() < 1e-15


@pytest.mark.parametrize("k", [2, 10, 1000])
@pytest.mark.parametrize("name", ["sharpness", "sharpness cross", "dca", "entropy", "top-label kernel"])
def test_slopes_along_directions_from_two_to_a_thousand_classes(name, k):
    """Finite differences in float64, and float32 beside them."""
    z, y = sample(40, k, seed=k)
    z.requires_grad_()
    loss = LOSSES[name](z, y)
    (slope,) = torch.autograd.grad(loss, z)
    rng = np.random.default_rng(0)
    for _ in range(3):
        way = torch.tensor(rng.normal(size=(40, k)))
        step = 1e-6
        with torch.no_grad():
            found = (LOSSES[name](z + step * way, y) - LOSSES[name](z - step * way, y)).item() / (2 * step)
        assert (slope * way).sum().item() == pytest.approx(found, abs=1e-6, rel=1e-5)
    single = z.detach().float().requires_grad_()
    low = LOSSES[name](single, y)
    assert low.dtype == torch.float32
    (low_slope,) = torch.autograd.grad(low, single)
    assert low.item() == pytest.approx(loss.item(), rel=2e-4, abs=2e-5)
    assert (low_slope - slope).norm() < 1e-3 * slope.norm()


@pytest.mark.parametrize("name", [n for n in LOSSES if n != "dirichlet sign"])
def test_gradients(name):
    z, y = sample(8, 3, seed=2)
    z.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: LOSSES[name](x, y), (z,), atol=1e-6)


@pytest.mark.parametrize("tile", [30, 1 << 20])
def test_mmce_is_the_cores(tile, monkeypatch):
    monkeypatch.setattr("calibrant.torch.functional.TILE", tile)
    z, y = sample(50, 4)
    kce = cal.estimators.KernelCalibrationError(bandwidth=0.4, statistic="biased")
    P = torch.softmax(z, dim=1).numpy()
    assert F.mmce(z, y).item() == pytest.approx(cal.calibration_error(y.numpy(), P, estimator=kce), abs=1e-12)
    square = cal.squared_calibration_error(y.numpy(), P, estimator=kce)
    assert F.mmce(z, y, squared=True).item() == pytest.approx(square, abs=1e-12)
    z.requires_grad_()
    F.mmce(z, y).backward()
    whole = torch.autograd.grad(_plain_mmce(z, y), z)[0]
    assert torch.allclose(z.grad, whole, atol=1e-12)


def _plain_mmce(z, y):
    c, predicted = torch.softmax(z, dim=1).max(dim=1)
    r = (predicted == y).double() - c
    return (r @ torch.exp(-(c[:, None] - c).abs() / 0.4) @ r / len(c) ** 2).sqrt()


def test_focal_loss():
    z, y = sample(200, 5)
    p = torch.softmax(z, dim=1)[torch.arange(200), y]
    gamma = torch.where(p < 0.2, 5.0, 3.0)
    assert torch.allclose(F.focal_loss(z, y, reduction="none"), -((1 - p) ** gamma) * p.log(), atol=1e-12)
    assert torch.allclose(F.focal_loss(z, y, 0.0), torch.nn.functional.cross_entropy(z, y), atol=1e-12)
    assert torch.allclose(F.focal_loss(z, y, 2.0, "sum"), (-((1 - p) ** 2) * p.log()).sum(), atol=1e-10)


@pytest.mark.parametrize("norm", [1, 2])
def test_soft_bins_harden(norm):
    z, y = sample(300, 4)
    P = torch.softmax(z, dim=1).numpy()
    hard = cal.calibration_error(y.numpy(), P, estimator=cal.Binned(15), norm=norm)
    assert F.soft_binned_ece(z, y, 15, 1e-7, norm).item() == pytest.approx(hard, abs=1e-6)
    # A sample is shared: two centres at equal distance take half of it each.
    one = torch.tensor([[0.0, 0.0]], dtype=torch.float64)
    assert F.soft_binned_ece(one, torch.tensor([0]), 2, 0.1, 1).item() == pytest.approx(0.5)


def test_brier_loss():
    z, y = sample(50, 3)
    P = torch.softmax(z, dim=1)
    expected = ((P - torch.eye(3, dtype=torch.float64)[y]) ** 2).sum(dim=1)
    assert torch.allclose(F.brier_loss(z, y, "none"), expected)
    assert F.brier_loss(z, y).item() == pytest.approx(expected.mean().item())


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", ["saturated", "one class", "one of a class", "pairs", "single", "equal"])
def test_finite(name, dtype, case):
    """Logits × 200, absent classes, a class of one sample, N of 1 and 2, duplicated rows."""
    z, y = sample(24, 4, seed=3, dtype=dtype)
    if case == "saturated":
        z = z * 200
    elif case == "one class":
        y = torch.zeros_like(y)
    elif case == "one of a class":
        y = torch.where(torch.arange(24) == 5, 3, 1)
    elif case == "pairs":
        z, y = z[:2], y[:2]
    elif case == "single":
        z, y = z[:1], y[:1]
    elif case == "equal":
        z = z[:1].repeat(24, 1)
    z = z.clone().requires_grad_()
    loss = LOSSES[name](z, y)
    assert loss.shape == ()
    assert torch.isfinite(loss)
    loss.backward()
    assert torch.isfinite(z.grad).all()


@pytest.mark.parametrize("name", LOSSES)
def test_autocast_and_half_precision(name):
    z, y = sample(32, 4, dtype=torch.float32)
    low = z.bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = LOSSES[name](low, y)
    assert got.dtype == torch.float32
    assert got.item() == pytest.approx(LOSSES[name](low.float(), y).item(), abs=1e-6)


def test_training_with_the_loss_calibrates():
    """An over-confident temperature is undone: the loss's slope points to the temperature of the truth."""
    truth, y = sample(400, 3, seed=5, scale=1.0)
    for loss in (ct.DirichletKernelLoss(0.1, 2, "query", "cross", residual=True), ct.MMCELoss(), ct.BrierLoss()):
        log_scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)  # logits × e
        optimizer = torch.optim.Adam([log_scale], lr=0.1)
        for _ in range(60):
            optimizer.zero_grad()
            loss(truth * log_scale.exp(), y).backward()
            optimizer.step()
        assert abs(log_scale.item()) < 0.35


def test_weight():
    z, y = sample(20, 3)
    for kind in (ct.DirichletKernelLoss, ct.MMCELoss, ct.SoftBinnedECELoss, ct.DCALoss):
        assert kind(weight=0.25)(z, y).item() == pytest.approx(0.25 * kind()(z, y).item())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda z, y: F.mmce(z[0], y), r"logits must be floats of shape \(N, K\)"),
        (lambda z, y: F.brier_loss(z.long(), y), "logits must be floats"),
        (lambda z, y: F.brier_loss(z, y[:-1]), r"target must be class indices of shape \(20,\)"),
        (lambda z, y: F.brier_loss(z, y.double()), "target must be class indices"),
        (lambda z, y: F.brier_loss(z, y, "max"), "reduction must be one of 'mean', 'sum', 'none'; got 'max'"),
        (lambda z, y: F.mmce(z, y, 0.0), "bandwidth must be a number above 0"),
        (lambda z, y: F.focal_loss(z, y, "fl-3"), "gamma must be 'fl-53' or a number >= 0"),
        (lambda z, y: F.focal_loss(z, y, -1.0), "gamma must be"),
        (lambda z, y: F.soft_binned_ece(z, y, 0), "n_bins must be an int >= 1"),
        (lambda z, y: F.soft_binned_ece(z, y, temperature=0), "temperature must be a number above 0"),
        (lambda z, y: F.soft_binned_ece(z, y, norm=float("inf")), "norm must be a finite number >= 1; got inf"),
        (lambda z, y: F.dirichlet_kernel_error(z, y, "loo"), "bandwidth must be 'auto' or a number in"),
        (lambda z, y: F.dirichlet_kernel_error(z, y, -1.0), "bandwidth must be"),
        (lambda z, y: F.dirichlet_kernel_error(z, y, 0.1, float("inf")), "norm must be a finite number >= 1; got inf"),
        (lambda z, y: F.dirichlet_kernel_error(z, y, 0.1, 1, "row"), "orientation must be"),
        (
            lambda z, y: F.dirichlet_kernel_error(z, y, 0.1, 1, "data", "square"),
            "debias='square' is defined for norm 2",
        ),
        (lambda z, y: F.brier_sharpness(z, y, -1.0), "gamma must be a number >= 0"),
        (lambda z, y: F.brier_sharpness(z, y, debias="ratio"), "debias must be one of None, 'square', 'cross'"),
        (lambda z, y: F.brier_sharpness(z, y, bandwidth="loo"), "bandwidth must be 'auto' or a number in"),
        (lambda z, y: F.confidence_penalty(z, y, "max"), "reduction must be one of"),
        (lambda z, y: F.dirichlet_kernel_error(z, y, notion="top-label"), "notion must be"),
        (lambda z, y: ct.DirichletKernelLoss(notion="marginal"), "notion must be"),
        (lambda z, y: ct.DirichletKernelLoss(0.1, 3, debias="cross"), "debias='cross' is defined for norm 1 and 2"),
    ],
)
def test_bad_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call(*sample(20, 3))


@pytest.mark.parametrize("name", LOSSES)
def test_ignored_rows_are_as_rows_that_are_not_there(name):
    """Targets of -100 once counted as wrong."""
    z, y = sample(40, 5)
    padded, target = torch.cat([z, torch.randn(7, 5, dtype=z.dtype)]), torch.cat([y, torch.full((7,), -100)])
    order = torch.randperm(47, generator=torch.Generator().manual_seed(0))
    whole, some = padded[order].requires_grad_(), z.clone().requires_grad_()
    loss, wanted = LOSSES[name](whole, target[order]), LOSSES[name](some, y)
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-9)
    loss.backward()
    assert not whole.grad[target[order] == -100].any()
    wanted.backward()
    torch.testing.assert_close(whole.grad[torch.argsort(order)][:40], some.grad, rtol=1e-8, atol=1e-11)
    nothing = z.clone().requires_grad_()
    none = LOSSES[name](nothing, torch.full((40,), -100))
    none.backward()
    assert none.item() == 0
    assert not nothing.grad.any()


@pytest.mark.parametrize(
    "loss", [ct.FocalLoss(reduction="none"), ct.BrierLoss("none"), ct.ConfidencePenaltyLoss("none")]
)
def test_ignored_rows_lose_nothing(loss):
    z, y = sample(6, 3)
    y[2] = -100
    found = loss(z, y)
    assert found.shape == (6,)
    assert found[2] == 0
    torch.testing.assert_close(found[3:], loss(z[3:], y[3:]))


@pytest.mark.parametrize("name", LOSSES)
def test_pixels_are_rows(name):
    z, y = sample(60, 5)
    y[::7] = -100
    flat, dense = z.clone().requires_grad_(), z.clone().requires_grad_()
    loss = LOSSES[name](dense.reshape(3, 4, 5, 5).movedim(-1, 1), y.reshape(3, 4, 5))
    wanted = LOSSES[name](flat, y)
    torch.testing.assert_close(loss, wanted, rtol=1e-12, atol=1e-14)
    loss.backward()
    wanted.backward()
    torch.testing.assert_close(dense.grad, flat.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize(
    "loss", [ct.FocalLoss(reduction="none"), ct.BrierLoss("none"), ct.ConfidencePenaltyLoss("none")]
)
def test_losses_of_pixels_have_their_shape(loss, marked):
    z, y = sample(60, 5)
    if marked:
        y[::7] = -100
    found = loss(z.reshape(3, 4, 5, 5).movedim(-1, 1), y.reshape(3, 4, 5))
    torch.testing.assert_close(found, loss(z, y).reshape(3, 4, 5), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("target", [-1, 5, -100])
@pytest.mark.parametrize("name", LOSSES)
def test_targets_that_are_no_class(name, target):
    z, y = sample(10, 5)
    y[4] = target
    made = type(LOSSES[name])(ignore_index=-7)
    with pytest.raises(ValueError, match=rf"target must lie in 0 … 4 or be ignore_index=-7; got {target} at row 4"):
        made(z, y)


def test_a_compiled_graph_asserts_its_targets():
    z, y = sample(20, 5)
    y[3] = -100
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match="leave out ignored rows beforehand"):
        torch.compile(ct.MMCELoss(), backend="aot_eager", fullgraph=True)(z, y)


# PyTorch's own tracer makes an instance of an autograd function, against which it warns itself.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize("name", LOSSES)
def test_losses_compile_into_one_graph(name):
    """Traced whole, forward and backward (by the compiler that needs no C++), to the same numbers."""
    z, y = sample(40, 5)
    eager, traced = z.clone().requires_grad_(), z.clone().requires_grad_()
    loss = LOSSES[name](eager, y)
    loss.backward()
    torch._dynamo.reset()
    compiled = torch.compile(LOSSES[name], backend="aot_eager", fullgraph=True)(traced, y)
    compiled.backward()
    assert compiled.item() == pytest.approx(loss.item(), rel=1e-12)
    torch.testing.assert_close(traced.grad, eager.grad, rtol=1e-9, atol=1e-12)


def test_dir_is_what_is_public():
    import calibrant.torch

    assert dir(calibrant.torch) == sorted(calibrant.torch.__all__)

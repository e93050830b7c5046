"""Scalers on logits: the core's optimum, as layers."""

import io

import numpy as np
import pytest

from calibrant.calibrators import DirichletCalibration, MatrixScaling, TemperatureScaling, VectorScaling
from calibrant.exceptions import ConvergenceWarning

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from calibrant.torch import DirichletScaler, MatrixScaler, TemperatureScaler, VectorScaler  # noqa: E402

#: Scalers of five classes, and the core's calibrator with the same options.
OF_CLASSES = {
    "vector": (VectorScaler, VectorScaling, {}),
    "vector, free": (VectorScaler, VectorScaling, {"shrinkage": 0}),
    "matrix": (MatrixScaler, MatrixScaling, {}),
    "matrix, free": (MatrixScaler, MatrixScaling, {"shrinkage": 0}),
    "matrix, strong": (MatrixScaler, MatrixScaling, {"shrinkage": 0.1}),
    "dirichlet": (DirichletScaler, DirichletCalibration, {}),
    "dirichlet, published": (DirichletScaler, DirichletCalibration, {"strength": 0.01, "shrinkage": 0}),
    "dirichlet, l2": (DirichletScaler, DirichletCalibration, {"penalty": "l2", "strength": 0.02}),
    "dirichlet, intercepts": (DirichletScaler, DirichletCalibration, {"strength": 0.01, "intercept_strength": 1.0}),
}
MAKERS = [TemperatureScaler, lambda: VectorScaler(5), lambda: MatrixScaler(5), lambda: DirichletScaler(5)]


def sample(n=2000, k=5, dtype=torch.float64, seed=0):
    draw = torch.Generator().manual_seed(seed)
    z = torch.randn(n, k, generator=draw, dtype=torch.float64) * 2
    y = torch.multinomial(torch.softmax(z, dim=1), 1, generator=draw)[:, 0]
    return (2.5 * z + torch.arange(k) * 0.2).to(dtype), y


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_temperature_is_the_core_and_the_optimum(dtype):
    z, y = sample(dtype=dtype)
    wide = z.double().numpy() if dtype == torch.float64 else z.float().numpy()
    for shrinkage in ("auto", 3, 0):
        scaler = TemperatureScaler(shrinkage=shrinkage).fit(z, y)
        core = TemperatureScaling(shrinkage=shrinkage, input="logit").fit(wide, y.numpy())
        assert scaler.temperature.item() == pytest.approx(core.temperature_, rel=1e-6)
    exact = z.double()
    t = scaler.temperature.detach().double().clone().requires_grad_()
    torch.nn.functional.cross_entropy(exact / t, y).backward()
    assert abs(t.grad.item()) < 1e-6
    assert scaler.temperature.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert scaler.gradient_norm < 1e-6


@pytest.mark.parametrize("name", OF_CLASSES)
def test_scalers_of_classes_are_the_core(name):
    """In float64 to 1e-12; a layer in float32, on logits that are not centred, to 1e-5."""
    make, calibrator, options = OF_CLASSES[name]
    z, y = sample()
    scaler = make(5, **options).fit(z, y)
    expected = calibrator(input="logit", labels=range(5), **options).fit(z.numpy(), y.numpy()).predict_proba(z.numpy())
    np.testing.assert_allclose(scaler.predict_proba(z).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(
        make(5, **options).fit(z.float(), y).predict_proba(z.float()).detach(), expected, atol=1e-5
    )
    assert np.abs(expected - torch.softmax(z, dim=1).numpy()).max() > 0.05


@pytest.mark.parametrize("make", [VectorScaler, MatrixScaler])
def test_the_free_optimum_has_no_slope(make):
    z, y = sample()
    free = make(5, shrinkage=0).fit(z, y)
    torch.nn.functional.cross_entropy(free(z), y).backward()
    assert max(float(p.grad.abs().max()) for p in free.parameters()) < 1e-6


@pytest.mark.parametrize("make", MAKERS[1:])
def test_scalers_mix_precisions(make):
    z, y = sample(dtype=torch.bfloat16)
    fitted = make().fit(z, y)
    assert fitted.weight.dtype == torch.float32
    torch.testing.assert_close(fitted(z), fitted(z.float()), atol=0.2, rtol=0.05)
    assert fitted(z.double()).dtype == torch.float64


@pytest.mark.parametrize("make", MAKERS)
def test_pictures_weights_and_rows_left_out(make):
    z, y = sample(1200)
    w = torch.randint(0, 4, (1200,), generator=torch.Generator().manual_seed(1))
    weighted = make().fit(z, y, w)
    repeated = make().fit(z.repeat_interleave(w, dim=0), y.repeat_interleave(w))
    pictures = make().fit(z.reshape(12, 10, 10, 5).movedim(-1, 1), y.reshape(12, 10, 10), w.reshape(12, 10, 10))
    marked = torch.where(w > 0, y, -100)
    for a, b, c in zip(weighted.parameters(), repeated.parameters(), pictures.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(a, c, rtol=1e-9, atol=1e-12)
    without = make().fit(z, marked)
    chosen = make().fit(z[w > 0], y[w > 0])
    for a, b in zip(without.parameters(), chosen.parameters(), strict=True):
        torch.testing.assert_close(a, b)
    shaped = z.reshape(12, 10, 10, 5).movedim(-1, 1)
    torch.testing.assert_close(weighted(shaped).movedim(1, -1).reshape(-1, 5), weighted(z))


@pytest.mark.parametrize("make", MAKERS)
def test_a_layer_like_any_other(make):
    z, y = sample(dtype=torch.float32)
    fitted = make().fit(z, y)
    stream = io.BytesIO()
    torch.save(fitted.state_dict(), stream)
    stream.seek(0)
    other = make()
    other.load_state_dict(torch.load(stream, weights_only=True))
    torch.testing.assert_close(other(z), fitted(z))
    network = torch.nn.Sequential(torch.nn.Linear(5, 5), fitted)
    network(z).sum().backward()
    assert all(p.grad is not None for p in network.parameters())
    compiled = torch.compile(fitted, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(z), fitted(z))
    assert "Scaler(" in repr(fitted)
    if isinstance(fitted, TemperatureScaler):
        assert bool((fitted(z).argmax(dim=1) == z.argmax(dim=1)).all())


@pytest.mark.parametrize("make", MAKERS)
def test_probabilities_have_no_gradient_and_logits_have(make):
    z, y = sample()
    fitted = make().fit(z, y)
    np.testing.assert_allclose(fitted.predict_proba(z).numpy().sum(axis=1), 1)
    torch.softmax(fitted(z), dim=1)[:, 0].sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in fitted.parameters())


@pytest.mark.parametrize("shape", [(5,), (20, 4), (20, 1), (3, 4, 5)])
@pytest.mark.parametrize("make", MAKERS[1:])
def test_logits_of_other_shapes_are_refused(make, shape):
    with pytest.raises(ValueError, match=r"logits must be floats of shape \(N, 5\) or \(N, 5, d1, …\); got"):
        make()(torch.zeros(shape))


def test_probabilities_of_one_logit_are_refused():
    for shape in ((20,), (20, 1)):
        with pytest.raises(ValueError, match=r"K >= 2; .*: one logit z a row"):
            TemperatureScaler().predict_proba(torch.zeros(shape))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("make", MAKERS)
def test_onnxruntime_reads_an_exported_scaler(make):
    runtime = pytest.importorskip("onnxruntime")
    z, y = sample(dtype=torch.float32)
    fitted = make().fit(z, y)
    for given in (z, z.reshape(20, 10, 10, 5).movedim(-1, 1)):
        stream = io.BytesIO()
        torch.onnx.export(fitted, (given[:7],), stream, input_names=["z"], dynamic_axes={"z": {0: "N"}}, dynamo=False)
        (found,) = runtime.InferenceSession(stream.getvalue()).run(None, {"z": given.numpy()})
        np.testing.assert_allclose(found, fitted(given).detach(), rtol=1e-4, atol=1e-5)


def test_inverse_logits_have_an_infinite_temperature():
    """As the core's: every probability is the same, and no warning says more."""
    z, y = sample()
    scaler = TemperatureScaler(shrinkage=0).fit(-z, y)
    core = TemperatureScaling(shrinkage=0, input="logit").fit(-z.numpy(), y.numpy())
    assert scaler.temperature.item() == core.temperature_ == np.inf
    np.testing.assert_allclose(scaler.predict_proba(z), 0.2)
    np.testing.assert_allclose(core.predict_proba(z.numpy()), 0.2)


def test_separated_classes_are_warned_of():
    z = torch.eye(3).repeat(10, 1)
    with pytest.warns(ConvergenceWarning):
        TemperatureScaler(shrinkage=0).fit(z, torch.arange(3).repeat(10))
    assert 0.05 < TemperatureScaler().fit(z, torch.arange(3).repeat(10)).temperature < 1


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"logits": torch.randn(4)}, ValueError, r"shape \(N, K\).*: one logit z a row.* is torch.stack"),
        ({"logits": np.zeros((4, 3))}, TypeError, "logits must be a torch.Tensor"),
        ({"logits": torch.zeros(4, 3, dtype=torch.int64)}, ValueError, "logits must be floats"),
        ({"target": torch.zeros(3, dtype=torch.int64)}, ValueError, r"target must be class indices of shape \(4,\)"),
        ({"target": torch.zeros(4)}, ValueError, "class indices"),
        ({"logits": torch.randn(4, 1)}, ValueError, r"K >= 2; .* shape \(4, 1\): one logit z a row"),
        ({"target": torch.tensor([0, 1, 2, 3])}, ValueError, "0 … 2 or be ignore_index=-100; got 3"),
        ({"target": torch.tensor([0, 1, 2, -1])}, ValueError, "got -1"),
        ({"target": torch.full((4,), -100)}, ValueError, "no row"),
        ({"weight": np.ones(4)}, TypeError, "weight must be a Tensor"),
        ({"weight": torch.ones(3)}, ValueError, "weight must have the shape"),
        ({"weight": -torch.ones(4)}, ValueError, "[Nn]egative"),
        ({"logits": torch.tensor([[0.0, 1, float("nan")]] * 4)}, ValueError, "NaN"),
    ],
)
def test_bad_input(change, error, words):
    good = {
        "logits": torch.randn(4, 3, generator=torch.Generator().manual_seed(0)),
        "target": torch.tensor([0, 1, 2, 0]),
    }
    with pytest.raises(error, match=words):
        TemperatureScaler().fit(**(good | change))


def test_bad_parameters():
    with pytest.raises(ValueError, match="temperature must be"):
        TemperatureScaler(0)
    with pytest.raises(ValueError, match="n_classes must be"):
        VectorScaler(1)
    with pytest.raises(ValueError, match="n_classes=4"):
        VectorScaler(4).fit(*sample())
    with pytest.raises(ValueError, match="n_classes=4"):
        DirichletScaler(4).fit(*sample())
    with pytest.raises(ValueError, match="penalty must be"):
        DirichletScaler(5, "l1").fit(*sample())

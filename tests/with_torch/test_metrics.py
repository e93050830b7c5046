"""The streaming metric against the core on all rows at once."""

import importlib.util

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
    assert one.sums.shape == (2, 4, 2, 4097)


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
    assert metric.half().sums.dtype == metric.to(torch.float16).sums.dtype == torch.float64
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
        ({"num_classes": 3, "ignore_index": 0.5}, "ignore_index must be an int"),
        ({"num_classes": 3, "average": None}, "average must be one of 'power'; got None"),
        (
            {"num_classes": 3, "notion": "classwise", "average": "macro"},
            "average must be one of 'power', 'mean', 'max', None",
        ),
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
        (lambda p, y: (p, y + 1), r"target must lie in 0 … 3 or be ignore_index=-100; got 4 at row"),
        (
            lambda p, y: (p.reshape(5, 100, 4), y.reshape(5, 100)),
            "preds must have num_classes=4 columns; got 100|target",
        ),
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


@pytest.mark.parametrize("notion", ["confidence", "classwise", "class-specific"])
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("ignored", [-100, 0, 255, None])
def test_pixels_are_rows_and_ignored_ones_are_not_there(notion, from_logits, ignored):
    p, y = sample(480)
    k, single = 4, notion == "class-specific"
    if single:
        p, y, k = p[:, 1], (y == 1).long(), None
    preds = (torch.logit(p) if single else p.log()) if from_logits else p
    marked = y.clone()
    if ignored is not None:
        marked[::7] = ignored
    used = torch.ones_like(y, dtype=torch.bool) if ignored is None else marked != ignored
    options = {"from_logits": from_logits, "ignore_index": ignored}
    dense, flat = (CalibrationError(cal.Binned(15), notion, k, **options) for _ in range(2))
    shaped = preds.reshape(6, 8, 10) if single else preds.reshape(6, 8, 10, 4).movedim(-1, 1)
    for image in range(0, 6, 2):
        dense.update(shaped[image : image + 2], marked.reshape(6, 8, 10)[image : image + 2])
    flat.update(preds[used], y[used])
    assert dense.compute().item() == pytest.approx(flat.compute().item(), abs=1e-14)
    problem = {"pos_label": 1, "labels": [0, 1]} if single else {"notion": notion, "labels": range(4)}
    expected = cal.calibration_error(y[used].numpy(), p[used].numpy(), estimator=cal.Binned(15), **problem)
    assert dense.compute().item() == pytest.approx(expected, abs=1e-9)
    assert dense.samples == used.sum() > 80


@pytest.mark.parametrize("norm", [1, 2, float("inf")])
@pytest.mark.parametrize("estimator", [cal.Binned(15), cal.EmpiricalBayes()])
def test_errors_of_classes_and_their_averages(norm, estimator):
    p, y = sample()
    each = CalibrationError(estimator, "classwise", 4, norm, average=None)
    each.update(p, y)
    one = [
        cal.calibration_error((y == k).long().numpy(), p[:, k].numpy(), estimator=estimator, norm=norm)
        for k in range(4)
    ]
    torch.testing.assert_close(each.compute(), torch.tensor(one, dtype=torch.float64), atol=1e-12, rtol=0)
    for average in ("power", "mean", "max"):
        metric = CalibrationError(estimator, "classwise", 4, norm, average=average)
        metric.update(p, y)
        notion = cal.notions.Classwise(average=average)
        expected = cal.calibration_error(
            y.numpy(), p.numpy(), notion=notion, estimator=estimator, norm=norm, labels=range(4)
        )
        assert metric.compute().item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("notion", ["confidence", "classwise", "class-specific"])
def test_curves_and_pictures(notion):
    pytest.importorskip("matplotlib")
    from torchmetrics import MetricCollection

    p, y = sample()
    k, about = (None, {"pos_label": 1}) if notion == "class-specific" else (4, {"notion": notion, "labels": range(4)})
    if k is None:
        p, y = p[:, 1].contiguous(), (y == 1).long()
    for estimator in (cal.Binned(10), cal.EmpiricalBayes()):
        metric = CalibrationError(estimator, notion, k)
        with pytest.raises(ValueError, match="no rows were added yet"):
            metric.reliability_curve()
        metric.update(p, y)
        found, expected = (
            curve if isinstance(curve, dict) else {0: curve}
            for curve in (
                metric.reliability_curve(level=0.9),
                cal.reliability_curve(y.numpy(), p.numpy(), estimator=estimator, level=0.9, **about),
            )
        )
        assert list(found) == list(expected)
        for key, curve in found.items():
            for field in ("scores", "observed", "lower", "count"):
                np.testing.assert_allclose(getattr(curve, field), getattr(expected[key], field), atol=1e-9)
        figure, axes = metric.plot()
        panels = list(np.ravel(axes))
        assert len(panels) == len(found)
        assert all(panel in figure.axes and len(panel.lines) > 1 for panel in panels)
    both = MetricCollection(
        {"L1": CalibrationError(cal.Binned(15), notion, k), "L2": CalibrationError(cal.Binned(15), notion, k, 2)}
    )
    values = [both(p[a : a + 250], y[a : a + 250]) for a in (0, 250)]
    whole = both.compute()
    drawn = both.plot()
    height = [float(axis.lines[0].get_ydata()[0]) for _, axis in drawn]
    assert height == pytest.approx([float(whole["L1"]), float(whole["L2"])])
    _, axis = both.plot(values, together=True)
    assert {line.get_label() for line in axis.lines} >= {"L1", "L2"}


def hard_rows(n):
    """Scores whose float32 sums drift: one that is no sum of powers of two, and all over the range."""
    draw = torch.Generator().manual_seed(n)
    scores = torch.where(torch.rand(n, generator=draw) < 0.5, torch.tensor(0.9), torch.rand(n, generator=draw))
    return scores, (torch.rand(n, generator=draw) < 0.8 * scores).long()


@pytest.mark.parametrize("estimator", [cal.Binned(15), cal.Binned(1), cal.EmpiricalBayes()], ids=repr)
@pytest.mark.parametrize("n", [300_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_sums_in_float32_lose_nothing(estimator, n):
    """To 1e-6 of the error, and the sums themselves to 1e-7 of the rows."""
    scores, target = hard_rows(n)
    narrow, wide = (CalibrationError(estimator, "class-specific") for _ in range(2))
    assert narrow.set_dtype(torch.float32).sums.dtype == torch.float32
    for start in range(0, n, 1_000_000):
        rows = slice(start, start + 1_000_000)
        narrow.update(scores[rows], target[rows])
        wide.update(scores[rows], target[rows])
    assert narrow.compute().dtype == torch.float32
    assert narrow.compute().item() == pytest.approx(wide.compute().item(), abs=1e-6)
    gap = (narrow.sums.double().sum(dim=0) - wide.sums.sum(dim=0)).abs().max().item()
    assert gap < 1e-7 * n
    assert int(narrow.samples) == n


class Float32Only(torch.utils._python_dispatch.TorchDispatchMode):
    """A device without float64."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for value in out if isinstance(out, (tuple, list)) else [out]:
            assert not (isinstance(value, torch.Tensor) and value.dtype == torch.float64), f"{func} made float64"
        return out


def move_without_float64(tensor):
    """What ``.to("mps")`` does, on this device."""
    if tensor.dtype == torch.float64:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    return tensor.clone()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("notion", ["confidence", "classwise", "class-specific"])
@pytest.mark.parametrize("from_logits", [False, True])
def test_a_device_without_float64(estimator, notion, from_logits):
    p, y = sample(dtype=torch.float32)
    k = 4
    if notion == "class-specific":
        p, y, k = p[:, 1].contiguous(), (y == 1).long(), None
    preds = (torch.logit(p) if k is None else p.log()) if from_logits else p
    narrow, wide = (CalibrationError(estimator, notion, k, from_logits=from_logits) for _ in range(2))
    for metric in (narrow, wide):
        metric(preds[:100], y[:100])
    narrow._apply(move_without_float64)
    assert {t.dtype for t in (narrow.sums, narrow._defaults["sums"], narrow._forward_cache)} == {torch.float32}
    with Float32Only():
        narrow.update(preds[100:], y[100:])
    wide.update(preds[100:], y[100:])
    assert narrow.compute().item() == pytest.approx(wide.compute().item(), abs=1e-6)
    back = narrow.set_dtype("float64")
    assert back.compute().item() == pytest.approx(wide.compute().item(), abs=1e-6)
    narrow.reset()
    assert narrow.sums.dtype == torch.float64
    assert not narrow.sums.any()


def test_sums_have_two_precisions():
    with pytest.raises(ValueError, match=r"dst_type must be torch.float32 or torch.float64; got torch.float16"):
        CalibrationError(num_classes=3).set_dtype(torch.float16)


def one_of_two(rank, folder):
    """A process that sees every other row; both have the error, the curves and the number of all."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    p, y = sample()
    for dtype in (torch.float64, torch.float32):
        metric = CalibrationError(cal.EmpiricalBayes(), "classwise", 4, average=None).set_dtype(dtype)
        metric.update(p[rank::2], y[rank::2])
        curves = {k: (c.observed, c.count) for k, c in metric.reliability_curve().items()}
        found = metric.compute().double(), metric.samples, curves, int(metric.rows)
        torch.save(found, f"{folder}/{rank} {dtype}")
        if rank == 0:  # the other does not take part in what was exchanged
            assert metric.samples == 500
            assert np.array_equal(metric.reliability_curve()[2].observed, curves[2][0])
    metric = CalibrationError(cal.Binned(15), "classwise", 4)
    if rank == 0:
        metric.update(p, y)
    assert (metric.samples, metric.reliability_curve()[3].count.sum()) == (500, 500)
    if importlib.util.find_spec("matplotlib") is not None:
        assert len(np.ravel(metric.plot()[1])) == 4
    metric = CalibrationError(cal.Binned(15 + rank), num_classes=4)
    with pytest.raises(ValueError, match=r"the same number of bins .*; got 15 and 16"):
        metric.samples  # noqa: B018  # it exchanges sums
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path):
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path),), nprocs=2)
    whole = CalibrationError(cal.EmpiricalBayes(), "classwise", 4, average=None)
    whole.update(*sample())
    for rank in range(2):
        for dtype, near in ((torch.float64, 1e-13), (torch.float32, 1e-6)):
            value, n, curves, own = torch.load(tmp_path / f"{rank} {dtype}", weights_only=False)
            torch.testing.assert_close(value, whole.compute(), atol=near, rtol=0)
            assert (n, own) == (500, 250)
            for k, curve in whole.reliability_curve().items():
                np.testing.assert_allclose(curves[k][0], curve.observed, atol=1e-4 if near > 1e-9 else 1e-9)
                np.testing.assert_allclose(curves[k][1], curve.count, rtol=1e-5)


CONFIGURATIONS = [
    ((cal.Binned(15), "confidence", 4), ("auto", "confidence", 4), r"number of bins \(0: a grid\) .*; got 15 and 0"),
    ((cal.Binned(15), "confidence", 4), (cal.Binned(10), "confidence", 4), "number of bins .*; got 15 and 10"),
    (("auto", "confidence", 100), ("auto", "confidence", 4), "num_classes .*; got 100 and 4"),
    (("auto", "classwise", 4), ("auto", "multilabel", 4), "notion .*; got 'classwise' and 'multilabel'"),
    ((cal.Binned((0, 0.3, 1)), "confidence", 4), (cal.Binned((0, 0.4, 1)), "confidence", 4), "edges of bins .*; got"),
]


@pytest.mark.parametrize(("given", "own", "words"), CONFIGURATIONS)
def test_sums_of_another_problem_are_refused(given, own, words):
    rng = np.random.default_rng(0)
    source, metric = CalibrationError(*given), CalibrationError(*own)
    for one in (source, metric):
        p = torch.tensor(rng.dirichlet(np.ones(one.num_classes), 50))
        y = torch.tensor(rng.integers(2, size=p.shape) if one.several else rng.integers(one.num_classes, size=50))
        one.update(p, y)
        one.persistent(True)
    before = metric.compute()
    model = torch.nn.ModuleDict({"metric": metric})
    with pytest.raises(ValueError, match=f"states must have the same {words}"):
        model.load_state_dict({f"metric.{key}": value for key, value in source.state_dict().items()})
    for incoming in (source, source.metric_state):
        with pytest.raises(ValueError, match=f"states must have the same {words}"):
            metric.merge_state(incoming)
    assert CalibrationError(*own).load_state_dict(metric.state_dict())  # as it was
    metric._computed = None
    assert torch.equal(metric.compute(), before)


def test_sums_of_the_same_problem_are_loaded_and_merged(tmp_path):
    p, y = sample()
    one = CalibrationError(cal.Binned(15), num_classes=4)
    one.persistent(True)
    one.update(p[:200], y[:200])
    torch.save(one.state_dict(), tmp_path / "state.pt")
    # Another norm, another use of the same sums; in place of rows whose error was computed.
    other = CalibrationError(cal.Binned(15, debias=True), num_classes=4, norm=2)
    other.update(p, y)
    other.compute()
    other.load_state_dict(torch.load(tmp_path / "state.pt"))
    about = {"labels": range(4), "notion": "confidence", "norm": 2, "estimator": cal.Binned(15, debias=True)}
    expected = cal.calibration_error(y[:200].numpy(), p[:200].numpy(), **about)
    assert (other.compute().item(), other.samples) == (pytest.approx(expected, abs=1e-12), 200)
    rest = CalibrationError(cal.Binned(15), num_classes=4)
    rest.update(p[200:], y[200:])
    other.merge_state(rest)
    other.update(p[:0], y[:0])
    expected = cal.calibration_error(y.numpy(), p.numpy(), **about)
    assert (other.compute().item(), other.samples) == (pytest.approx(expected, abs=1e-12), 500)
    assert not CalibrationError(num_classes=4).state_dict()
    weighted, plain = (CalibrationError("auto", notion, 4) for notion in ("multilabel:weighted", "multilabel"))
    plain.merge_state(weighted)

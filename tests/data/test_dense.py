"""Pixels and tokens: the same rows by another way, and images as groups."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.exceptions import ScoreWarning

#: Shapes of the axes behind the classes.
SHAPES = ((5,), (3, 4), (2, 3, 2))


def images(n=6, k=3, shape=(3, 4), seed=0):
    """Logits (N, K, d1, …), too sure, and labels (N, d1, …), with a shift of each image that the logits do not know."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k, *shape)) * 2
    p = softmax(0.6 * z + rng.normal(size=(n, k, *[1] * len(shape))))
    y = (rng.random((n, 1, *shape)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return z, y


def softmax(z):
    return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


def one_by_one(z, y, ignored):
    """Rows, labels and images by loops."""
    rows, labels, image = [], [], []
    for n in range(len(y)):
        for at in itertools.product(*(range(d) for d in y.shape[1:])):
            if y[(n, *at)] != ignored:
                rows.append([z[(n, k, *at)] for k in range(z.shape[1])])
                labels.append(y[(n, *at)])
                image.append(n)
    return np.array(rows), np.array(labels), np.array(image)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("ignored", [None, 255, 0, -100])
def test_places_are_rows(shape, from_logits, ignored):
    z, y = images(shape=shape)
    if ignored is not None:
        y[:, ::2] = ignored
    scores = z if from_logits else softmax(z)
    rows, labels, image = one_by_one(scores, y, ignored)
    options = {"labels": range(3), "from_logits": from_logits}
    found = cal.as_predictions(y, scores, groups="first-axis", ignore_index=ignored, **options)
    expected = cal.as_predictions(labels, rows, groups=image, **options)
    for field in ("probs", "codes", "groups", "logs"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
    assert found.classes == expected.classes
    for measure in (cal.calibration_error, cal.estimate, cal.calibration_test):
        assert str(measure(found)) == str(measure(expected))


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 5), st.integers(2, 4), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 99))
def test_any_shape(n, k, shape, seed):
    z, y = images(n, k, tuple(shape), seed)
    weight = np.random.default_rng(seed).random(y.shape) + 0.1
    found = cal.as_predictions(y, softmax(z), labels=range(k), sample_weight=weight)
    rows, labels, _ = one_by_one(softmax(z), y, None)
    np.testing.assert_array_equal(found.probs, rows)
    np.testing.assert_array_equal(found.codes, labels)
    np.testing.assert_array_equal(found.weights, weight.ravel())


def test_two_classes_weights_and_groups_of_images():
    z, y = images(k=2)
    p = softmax(z)[:, 1]
    whole = cal.as_predictions(y, p, groups=list("abcabc"), sample_weight=np.arange(1, 7), group_average="macro")
    expected = cal.as_predictions(
        y.ravel(), p.ravel(), groups=np.repeat(list("abcabc"), 12), sample_weight=np.repeat(np.arange(1, 7), 12),
        group_average="macro",
    )  # fmt: skip
    assert cal.estimate(whole).interval == cal.estimate(expected).interval
    one_column = cal.as_predictions(y, p[:, None])
    np.testing.assert_array_equal(one_column.probs, p.ravel())
    single = cal.as_predictions(y[:, None], p[:, None])
    np.testing.assert_array_equal(single.codes, y.ravel())


def test_places_of_several_labels():
    z, _ = images()
    p = 1 / (1 + np.exp(-z))
    y = (np.random.default_rng(0).random(z.shape) < p).astype(int)
    found = cal.as_predictions(y, p, multilabel=True, groups="first-axis")
    rows, labels = (np.moveaxis(v, 1, -1).reshape(-1, 3) for v in (p, y))
    expected = cal.as_predictions(labels, rows, multilabel=True, groups=np.repeat(np.arange(6), 12))
    assert cal.calibration_error(found) == cal.calibration_error(expected)
    np.testing.assert_array_equal(found.groups, expected.groups)
    with pytest.raises(ValueError, match="ignore_index needs one label per row"):
        cal.as_predictions(y, p, multilabel=True, ignore_index=0)


def test_every_function_takes_places():
    z, y = images(n=40)
    rows, labels, image = one_by_one(softmax(z), y, None)
    dense, flat = (
        cal.report(*pair, groups=groups, labels=range(3)).to_dict()
        for pair, groups in (((y, softmax(z)), "first-axis"), ((labels, rows), image))
    )
    assert dense == flat


def test_groups_widen_the_interval():
    """Rows of an image share a shift, so pixels are fewer than they look."""
    z, y = images(n=30, shape=(12, 12))
    pixels, clustered = (cal.estimate(y, softmax(z), labels=range(3), groups=g).interval for g in (None, "first-axis"))
    assert clustered[1] - clustered[0] > 1.5 * (pixels[1] - pixels[0])


def test_rows_with_a_label_are_left_out_of_arrays_and_frames():
    import polars as pl

    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    marked = np.where(rng.random(200) < 0.3, -1, y)
    used = marked != -1
    p_odd = np.where(used, p, np.nan)
    frame = pl.DataFrame({"y": marked, "p": p_odd, "w": np.arange(1.0, 201), "g": np.arange(200) // 10})
    found = cal.as_predictions(frame, label="y", prob="p", weight="w", groups="g", ignore_index=-1)
    expected = cal.as_predictions(
        y[used], p[used], sample_weight=np.arange(1.0, 201)[used], groups=(np.arange(200) // 10)[used]
    )
    for field in ("probs", "codes", "weights", "groups"):
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))


def test_tensors():
    torch = pytest.importorskip("torch")
    z, y = images()
    found = cal.as_predictions(torch.tensor(y), torch.tensor(z), from_logits=True, labels=range(3))
    assert found.n_samples == 72


def test_an_accumulator_of_images_is_the_estimate_of_all():
    """Streamed image by image in pieces, unlabelled pixels left out."""
    z, y = images(n=60, shape=(10, 10))
    y[:, 0] = 255
    sums = cal.Accumulator(labels=range(3))
    for start in range(0, 60, 20):
        piece = slice(start, start + 20)
        sums.update(
            cal.as_predictions(
                y[piece], z[piece], from_logits=True, ignore_index=255, groups="first-axis", labels=range(3)
            )
        )
    whole = cal.as_predictions(y, z, from_logits=True, ignore_index=255, labels=range(3))
    assert sums.n_samples == whole.n_samples == 60 * 90
    assert sums.calibration_error("binned") == pytest.approx(
        cal.calibration_error(whole, estimator="binned"), abs=1e-12
    )
    of_sums, as_pixels = (np.diff(found.interval)[0] for found in (sums.estimate(), cal.estimate(whole)))
    assert of_sums > 1.2 * as_pixels


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y_true": lambda z, y: y[:, :2]}, ValueError, "y_true must have the shape of y_prob without axis 1"),
        ({"y_prob": lambda z, y: np.moveaxis(softmax(z), 1, -1)}, ValueError, r"Pass np.moveaxis\(y_prob, -1, 1\)"),
        ({"y_true": lambda z, y: (y[:, None] == np.arange(3)[:, None, None]) * 1}, ValueError, r"y_true.argmax\(axis"),
        ({"y_prob": lambda z, y: z}, ValueError, "y_prob must lie in"),
        ({"groups": lambda z, y: [0, 1]}, ValueError, r"groups must have the shape of y_true, \(6, 3, 4\)"),
        ({"sample_weight": lambda z, y: np.ones(72)}, ValueError, "sample_weight must have the shape of y_true"),
        ({"ignore_index": lambda z, y: 1.5}, ValueError, "ignore_index must be an int"),
        ({"ignore_index": lambda z, y: 0, "y_true": lambda z, y: 0 * y}, ValueError, r"all rows \(72\) have it"),
        ({"y_true": lambda z, y: y.astype(str), "ignore_index": lambda z, y: 0}, TypeError, "labels that are numbers"),
        ({"groups": lambda z, y: "first-axis", "y_true": lambda z, y: y[0, 0],
          "y_prob": lambda z, y: softmax(z)[0, :, 0].T}, ValueError, "groups='first-axis' needs y_prob"),
        ({"sample_weight": lambda z, y: (y == 255) * 1.0, "y_true": lambda z, y: np.where(y == 0, 255, y),
          "ignore_index": lambda z, y: 255}, ValueError, "must not be all zero"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings(f"ignore::{ScoreWarning.__module__}.ScoreWarning")
def test_what_is_refused(change, error, words):
    z, y = images()
    arguments = {"y_true": y, "y_prob": softmax(z)} | {name: of(z, y) for name, of in change.items()}
    with pytest.raises(error, match=words):
        cal.as_predictions(**arguments)


def test_predictions_say_everything():
    z, y = images()
    done = cal.as_predictions(y, softmax(z))
    with pytest.raises(TypeError, match="ignore_index must not be given with Predictions"):
        cal.as_predictions(done, ignore_index=255)


def test_bfloat16_scores_stay_in_their_bins():
    """Only scores within a rounding error of an edge lie on it; 0.34 is far from 1/3."""
    torch = pytest.importorskip("torch")
    s = torch.tensor([0.3125] * 50 + [0.33984375] * 50)
    y = np.repeat([1, 0], 50)
    wanted = cal.calibration_error(y, s.numpy(), estimator=cal.Binned(15))
    assert cal.calibration_error(y, s.bfloat16(), estimator=cal.Binned(15)) == pytest.approx(wanted, abs=1e-6)
    edge = torch.tensor([0.3] * 100)  # as bfloat16 0.30078125: in the bin below, as in float64
    curve = cal.reliability_curve(y, edge.bfloat16(), estimator=cal.Binned(10), level=None)
    assert curve.count[2] == 100

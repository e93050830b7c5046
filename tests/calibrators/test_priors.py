"""Other base rates: what they are in new rows, what resampling made of them, models and files under them."""

import json
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import calibrant as cal
from calibrant.calibrators import PlattScaling, VectorScaling
from calibrant.calibrators.label_shift import PriorRows
from calibrant.calibrators.saving import sealed
from calibrant.cli.commands import app
from calibrant.exceptions import PriorShiftWarning


def samples(k, n):
    """Labels and over-confident probabilities at equal base rates, and probabilities at others."""
    rng = np.random.default_rng(38)

    def drawn(rates):
        y = rng.choice(k, n, p=rates)
        z = rng.normal(size=(n, k))
        z[np.arange(n), y] += 1.6
        p = np.exp(1.5 * z + np.linspace(0, 0.6, k))
        return y, p / p.sum(axis=1, keepdims=True)

    y, p = drawn(np.full(k, 1 / k))
    return y, p, drawn(np.r_[0.15, np.full(k - 1, 0.85 / (k - 1))])[1]


#: Of `abstention` 0.1.3.1 (PyPI), its EM given probabilities by its own `TempScaling(bias_positions=…)` (with its
#: `calibrator_factory` it would apply EM to the uncalibrated ones) and run to 1e-13, and ratios by its BBSE.
OF_ABSTENTION = {
    (2, 200): ([0.17739122737957705, 0.8226087726204228], [0.5121443442054129, 1.539208882720333]),
    (4, 400): (
        [0.1336637548276146, 0.29154558049951784, 0.25778001780249965, 0.31701064687036823],
        [0.49237948217089217, 1.0925391609529924, 1.3098998658610777, 1.1014425350169368],
    ),
}


@pytest.mark.parametrize("size", OF_ABSTENTION)
def test_estimates_are_those_of_abstention(size):
    y, p, new = samples(*size)
    em, ratio = OF_ABSTENTION[size]
    second = slice(1, 2) if size[0] == 2 else slice(None)
    found = cal.estimate_prior(new, reference=(y, p), n_resamples=20)
    assert found.value == pytest.approx(np.array(em)[second], abs=1e-8)
    found = cal.estimate_prior(new, reference=(y, p), algorithm="bbse", n_resamples=20)
    assert found.value / found.reference == pytest.approx(np.array(ratio)[second], abs=1e-8)


@pytest.mark.parametrize("algorithm", ["em", "bbse", "pacc"])
def test_base_rates_of_the_reference_itself_are_found(algorithm):
    y, p, _ = samples(3, 300)
    found = cal.estimate_prior(p, reference=(y, p), algorithm=algorithm, n_resamples=20)
    assert found.value == pytest.approx(np.bincount(y) / 300, abs=1e-6)
    assert found.pvalue > 0.9
    assert found.warnings == ()


def test_one_column_equals_two_and_names_say_the_class():
    y, p, new = samples(2, 200)
    both = cal.estimate_prior(new, reference=(y, p), n_resamples=50)
    one = cal.estimate_prior(new[:, 1], reference=(y, p[:, 1]), n_resamples=50)
    assert (one.value, *one.interval) == pytest.approx((both.value, *both.interval))
    words = np.array(["no", "yes"])[y]
    no = cal.as_predictions(words, p[:, 0], pos_label="no")
    found = cal.estimate_prior(new[:, 0], reference=no, n_resamples=50)
    assert found.label == "no"
    assert found.value == pytest.approx(1 - one.value)
    assert "base rate of no" in str(found)
    frame = pl.DataFrame({"yes": new[:, 1], "no": new[:, 0]})
    assert cal.estimate_prior(frame, reference=(words, p), n_resamples=50).value == pytest.approx(one.value)


def test_weights_repeat_rows_and_groups_widen_the_interval():
    y, p, new = samples(2, 200)
    whole = cal.estimate_prior(new, reference=(np.repeat(y, 3), np.repeat(p, 3, axis=0)), n_resamples=100)
    weighted = cal.as_predictions(y, p, sample_weight=np.full(200, 3))
    assert cal.estimate_prior(new, reference=weighted, n_resamples=100).value == pytest.approx(whole.value)
    one = cal.estimate_prior(new, reference=(y, p))
    three = cal.estimate_prior(
        np.repeat(new, 3, axis=0),
        reference=cal.as_predictions(np.repeat(y, 3), np.repeat(p, 3, axis=0), groups=np.repeat(np.arange(200), 3)),
        groups=np.repeat(np.arange(200), 3),
    )
    assert np.diff(three.interval)[0] == pytest.approx(np.diff(one.interval)[0], rel=0.2)


def test_rows_with_nearly_the_same_log_odds_count_as_one():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = (rng.random(5000) < p).astype(int)
    new = PriorRows.of(np.column_stack([1 - p, p]), codes=y)
    merged = new.merged()
    assert len(merged.z) < 2500
    assert np.bincount(merged.codes, merged.weights) == pytest.approx(np.bincount(y))
    assert merged.weights @ np.exp(merged.z[:, 1]) == pytest.approx(p.sum(), rel=1e-5)
    assert PriorRows.of(np.column_stack([1 - p, p]), counted=False).merged().z.shape == (5000, 2)


def test_another_shift_than_of_base_rates_is_warned_of():
    rng = np.random.default_rng(1)
    y = rng.random(2000) < 0.5
    z = rng.normal(3.0 * y - 1.5, 1.7)
    other = rng.normal(1.5 * (rng.random(2000) < 0.5), 0.5)  # all of them in the middle
    with pytest.warns(PriorShiftWarning, match="More than base rates has changed"):
        found = cal.estimate_prior(1 / (1 + np.exp(-other)), reference=(y, 1 / (1 + np.exp(-z))), n_resamples=100)
    assert found.pvalue < 0.02
    assert "More than base rates has changed" in found.summary
    assert found.interval.low < found.value  # all rows are of one class: that is not certain of others


def test_em_is_doubted_where_no_temperature_calibrates():
    rng = np.random.default_rng(2)

    def drawn(rate):
        y = rng.random(6000) < rate
        return y, np.clip(rng.beta(1 + 2 * y, 4 - 2 * y), 0.001, 0.999) ** 8  # a skewed map, which no slope undoes

    (y, p), (_, new) = drawn(0.5), drawn(0.05)
    with pytest.warns(PriorShiftWarning, match="use algorithm='pacc'"):
        cal.estimate_prior(new, reference=(y, p), n_resamples=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cal.estimate_prior(new, reference=(y, p), algorithm="pacc", n_resamples=100)
    assert found.interval.low < 0.05 < found.interval.high


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"reference": [0, 1, 0]}, r"reference must be Predictions or a pair \(y, p\)"),
        ({"reference": ([0, 0], [[0.5, 0.5]] * 2)}, "reference must have rows of every class; it has none of 1"),
        ({"reference": ([0, 1], [0.2, 0.8])}, "p_new must be 1-D like the reference; got 2"),
        ({"p_new": [[0.2, 0.2]]}, "p_new"),
        ({"algorithm": "saerens"}, "algorithm must be one of 'em', 'bbse', 'pacc'"),
        ({"algorithm": "bbse", "reference": ([0, 1, 0, 1], [[0.9, 0.1]] * 4)}, "every class is predicted"),
    ],
)
def test_bad_arguments_are_refused(given, message):
    about = {"p_new": [[0.2, 0.8]] * 4, "reference": ([0, 1, 0, 1], [[0.6, 0.4], [0.3, 0.7]] * 2)}
    with pytest.raises((ValueError, TypeError), match=message):
        cal.estimate_prior(**about | given, n_resamples=5)


rates = st.floats(0.01, 0.99)


@given(rates, rates, st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_shift_and_its_reverse_leave_everything_as_it_was(old, new, p):
    there = cal.shift_prior(p, old, new)
    assert cal.shift_prior(there, new, old) == pytest.approx(np.array(p), abs=1e-9)
    both = cal.shift_prior(np.column_stack([1 - np.array(p), p]), old, [1 - new, new])
    assert both[:, 1] == pytest.approx(there, abs=1e-12)


@given(rates, rates, st.floats(0.01, 5))
def test_a_resampled_prior_undoes_the_resampling_whatever_the_prior_is(p, prior, share):
    undone = cal.shift_prior([p], cal.resampled_prior(share, prior), prior)[0]
    assert undone == pytest.approx(share * p / (share * p - p + 1), abs=1e-9)
    assert cal.shift_prior([p], cal.resampled_prior(share), 0.5)[0] == pytest.approx(undone, abs=1e-9)


def test_resampled_classes():
    assert cal.resampled_prior([1, 0.5, 2], [0.2, 0.4, 0.4]) == pytest.approx(np.array([0.2, 0.2, 0.8]) / 1.2)
    for bad in (0, [1, -1], "all"):
        with pytest.raises(ValueError, match="share_kept must be"):
            cal.resampled_prior(bad)
    with pytest.raises(ValueError, match="prior must"):
        cal.resampled_prior(0.5, 1.5)


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(3000, n_informative=4, weights=[0.6], random_state=0)
    return cal.CalibratedModel(LogisticRegression(), "platt").fit(X[:1500], y[:1500]), X[1500:], y[1500:]


def test_a_model_under_other_base_rates(fitted):
    model, X, y = fitted
    before = model.predict_proba(X)
    rare = model.with_prior(0.02)
    assert model.prior_ == pytest.approx(np.bincount(y) / len(y), abs=0.05)
    assert rare.predict_proba(X) == pytest.approx(cal.shift_prior(before, model.prior_, [0.98, 0.02]))
    assert rare.with_prior(model.prior_).predict_proba(X) == pytest.approx(before)
    assert (model.predict_proba(X) == before).all()
    assert rare.fit(X, y).new_prior_ is None
    for bad in (0, 2, [0.5, 0.2], "rare"):
        with pytest.raises(ValueError, match="prior must"):
            model.with_prior(bad)


def test_a_model_is_adapted_to_the_base_rates_of_new_rows(fitted):
    model, X, y = fitted
    rare = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:60]])
    adapted = model.adapt(X[rare])
    assert adapted.new_prior_[1] == pytest.approx(np.mean(y[rare]), abs=0.03)
    assert cal.log_loss(y[rare], adapted.predict_proba(X[rare])) < cal.log_loss(y[rare], model.predict_proba(X[rare]))
    assert adapted.predict_proba(X[:1]) == pytest.approx(adapted.predict_proba(X)[:1], abs=1e-15)
    none = model.adapt(X[y == 0][:5])
    assert none.new_prior_.min() > 0
    again = adapted.adapt(X[rare])
    assert again.new_prior_ == pytest.approx(adapted.new_prior_)


def test_the_calibrator_of_a_model_under_other_base_rates_is_saved(fitted, tmp_path):
    model = fitted[0].with_prior(0.02)
    with pytest.warns(cal.exceptions.CalibrantWarning, match="the calibrator only"):
        path = cal.save_calibrator(model, tmp_path / "rare.json")
    p = np.linspace(0.01, 0.99, 9)
    p = np.column_stack([1 - p, p])
    expected = cal.shift_prior(fitted[0].calibrator_.predict_proba(p), fitted[0].prior_, model.new_prior_)
    assert cal.load_calibrator(path).predict_proba(p) == pytest.approx(expected)


@pytest.mark.parametrize("k", [2, 3])
def test_the_command_applies_a_calibrator_under_other_base_rates(k, tmp_path):
    y, p, new = samples(k, 300)
    names = ["c", "a", "b"][:k]  # not in the order of the labels
    kind = PlattScaling() if k == 2 else VectorScaling()
    fitted = kind.fit(pl.DataFrame(p, schema=names).to_pandas(), np.array(names)[y])
    cal.save_calibrator(fitted, tmp_path / "fitted.json")
    pl.DataFrame(new, schema=names).write_csv(tmp_path / "new.csv")
    rates = {"c": 0.1, "a": 0.7, "b": 0.2} if k == 3 else {"c": 0.1, "a": 0.9}
    given = ["apply", str(tmp_path / "fitted.json"), str(tmp_path / "new.csv"), "--out", str(tmp_path / "out.csv")]
    written = ",".join(str(rates[name]) for name in names)
    done = CliRunner().invoke(app, [*given, "--prior", written])
    assert done.exit_code == 0, done.output
    out = pl.read_csv(tmp_path / "out.csv")
    plain = fitted.predict_proba(pl.DataFrame(new, schema=names).to_pandas())
    expected = cal.shift_prior(plain, fitted.prior_, [rates[str(c)] for c in fitted.classes_])
    for i, label in enumerate(fitted.classes_):
        assert out[str(label)].to_numpy() == pytest.approx(expected[:, i], abs=1e-9)
    wrong = CliRunner().invoke(app, [*given, "--force", "--prior", "2"])
    assert wrong.exit_code != 0
    assert "--prior must" in wrong.output
    saved = json.loads((tmp_path / "fitted.json").read_text())
    del saved["fitted"]["prior_"]  # as an earlier version wrote it
    (tmp_path / "fitted.json").write_text(json.dumps(sealed(saved)))
    assert CliRunner().invoke(app, [*given, "--force"]).exit_code == 0
    assert "--prior needs a calibrator" in CliRunner().invoke(app, [*given, "--force", "--prior", written]).output


def test_a_picture_marks_each_class_at_its_own_base_rate():
    y, p, new = samples(4, 400)
    found = cal.estimate_prior(new, reference=(y, p), n_resamples=20)
    (ax,) = found.plot().axes_
    marks = [line.get_segments()[0] for line in ax.collections if len(line.get_segments()) == 1]
    marks = [mark for mark in marks if mark[0][0] == mark[1][0]]
    assert [mark[0][0] for mark in marks] == pytest.approx(found.reference.tolist())
    assert [mark.mean(axis=0)[1] for mark in marks] == pytest.approx([0, 1, 2, 3])

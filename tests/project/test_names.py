"""The same thing has the same name and default everywhere."""

import inspect

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators.names import NAMES as ESTIMATORS
from calibrant.estimators.names import estimator_named

from ..surface import NAMES

RNG = np.random.default_rng(0)
P = RNG.random(300)
#: Functions that draw data, as scikit-learn's do: anew where no seed is given.
DRAW_ROWS = ("make_scores", "make_survey")
#: Their ``alpha`` is no level.
OF_A_PENALTY = ("BetaFamily", "OrderPreserving", "SplineCalibrator")
Y = (RNG.random(300) < P**1.3).astype(int)


def test_unknown_keywords_are_refused_by_the_name_of_the_function():
    with pytest.raises(TypeError, match=r"estimate\(\) got an unexpected keyword argument 'estimater'"):
        cal.estimate(Y, P, estimater="auto")
    with pytest.raises(TypeError, match="unexpected keyword argument 'groupz'"):
        cal.compare_models(Y, {"a": P, "b": P}, groupz=[1])


def test_swapped_arguments_name_the_order():
    matrix = np.c_[1 - P, P]
    for scores in (P, P.tolist(), matrix, P.astype(object)):
        with pytest.raises(TypeError, match=r"compare_calibrators\(y_true, y_prob\) takes labels first"):
            cal.compare_calibrators(scores, Y)
    named = np.where(Y == 1, "yes", "no")
    with pytest.raises(TypeError, match="takes labels first"):
        cal.compare_calibrators(P, named)
    with pytest.raises(TypeError, match="takes labels first"):
        cal.compare_calibrators(P, np.eye(2)[Y])
    with pytest.raises(TypeError, match="takes labels and scores"):
        cal.compare_calibrators(Y)


def verbs():
    of = {name: inspect.signature(value).parameters for name, value in NAMES.items() if inspect.isfunction(value)}
    return {name: p for name, p in of.items() if "y_true" in p and name not in ("compare_calibrators", "score_samples")}


@pytest.mark.parametrize(("name", "parameters"), verbs().items())
def test_all_verbs_read_predictions_alike(name, parameters):
    wanted = {"labels": None, "pos_label": None, "sample_weight": None, "sum_tolerance": None, "from_logits": False}
    assert {k: parameters[k].default for k in wanted} == wanted
    assert all(parameters[k].kind is inspect.Parameter.KEYWORD_ONLY for k in wanted)
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def test_names_and_defaults_are_the_same_everywhere():
    shared = {"level": (0.95, None), "random_state": (0,), "notion": ("auto", "classwise"), "n_resamples": None}
    for name, value in NAMES.items():
        if callable(value) and name not in (*cal.results.__all__, *cal.exceptions.__all__):
            for key, p in inspect.signature(value).parameters.items():
                if name == "to_power" and key == "error":  # an error, and not what finds it
                    continue
                assert key not in ("alpha", "error", "method", "scoring") or name in OF_A_PENALTY, (name, key)
                if shared.get(key) and inspect.isfunction(value) and name not in DRAW_ROWS:
                    assert p.default in shared[key], (name, key, p.default)


def test_logits_are_read_by_every_verb():
    z = np.log(P / (1 - P))
    for name in ("spiegelhalter_test", "log_loss", "brier_score", "cox_test", "expected_calibration_error"):
        verb = NAMES[name]
        one, two = verb(Y, P), verb(Y, z, from_logits=True)
        assert float(getattr(one, "statistic", one)) == pytest.approx(float(getattr(two, "statistic", two)), rel=1e-9)


def test_logits_are_read_in_pieces():
    z = np.log(P / (1 - P))
    kept = cal.Accumulator(from_logits=True).update(Y[:100], z[:100]) + cal.Accumulator().update(Y[100:], P[100:])
    assert kept.from_logits
    want = cal.calibration_error(Y, P, estimator="binned")
    assert kept.estimate(cal.Binned()).value == pytest.approx(want, rel=1e-9)
    one, two = cal.CalibrationMonitor(from_logits=True), cal.CalibrationMonitor()
    assert one.update(Y, z).statistic == pytest.approx(two.update(Y, P).statistic, rel=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_a_name(name):
    kind, _ = ESTIMATORS[name]
    assert estimator_named(name) == kind()


def test_every_estimator_is_public_and_no_other_has_a_name():
    bases = (cal.estimators.CellEstimator, cal.estimators.Estimator, cal.estimators.PosteriorEstimator)
    public = [getattr(cal.estimators, name) for name in cal.estimators.__all__]
    public = {value for value in public if isinstance(value, type) and issubclass(value, bases) and value not in bases}
    assert {kind for kind, _ in ESTIMATORS.values()} == public


def test_names_take_values():
    assert estimator_named("binned:20:quantile:linear:debias") == cal.Binned(20, "quantile", "linear", debias=True)
    assert estimator_named("binned:sqrt") == cal.Binned("sqrt")
    assert estimator_named("density:0.05:triweight") == cal.estimators.Density(0.05, "triweight")
    assert estimator_named("residual:score") == cal.estimators.ResidualKernel(space="score")
    assert cal.calibration_error(Y, P, estimator="binned:20") == cal.calibration_error(Y, P, estimator=cal.Binned(20))
    assert cal.reliability_curve(Y, P, estimator="binned:20").edges.size == 21
    assert cal.report(Y, P, estimator="smooth").headline.estimator == repr(cal.estimators.Smooth())
    for wrong in ("binned:20:30", "sweep:1", "bins", "", "auto:1", "density:a:b:c"):
        with pytest.raises(ValueError, match=r"estimator|bandwidth"):
            cal.calibration_error(Y, P, estimator=wrong)


def test_notions_in_words():
    q = RNG.dirichlet(np.ones(3), 200)
    k = (q.cumsum(axis=1) > RNG.random((200, 1))).argmax(axis=1)
    both = [cal.calibration_error(k, q, notion=n) for n in ("classwise", "class-wise")]
    assert both[0] == both[1]
    one = cal.calibration_error(k, q, notion="class-specific:2")
    assert one == cal.calibration_error(k, q, notion=cal.notions.ClassSpecific(2))
    names = np.array(["cat", "dog", "eel"])[k]
    assert cal.calibration_error(names, q, notion="class-specific:eel") == one
    with pytest.raises(ValueError, match="zebra"):
        cal.calibration_error(names, q, notion="class-specific:zebra")


def test_names_wherever_a_value_is():
    from calibrant.benchmark import read_samples

    kept = cal.Accumulator(binned="binned:20", estimators=["isotonic"]).update(Y, P)
    assert kept.binned == cal.Binned(20)
    assert kept.estimate("isotonic").value == pytest.approx(cal.calibration_error(Y, P, estimator="isotonic"))
    assert read_samples("binned:5", P[None], Y[None])[0] == pytest.approx(
        cal.calibration_error(Y, P, estimator="binned:5")
    )
    shown = cal.ReliabilityDisplay.from_predictions(Y, P, bins="binned:6")
    assert shown.diagrams[0].bins.edges.size == 7
    assert cal.decompose(Y, P, score="log-loss").score == "log-loss"
    assert cal.reliability_curve(Y, P, estimator="binned:6").estimator.startswith("Binned(n_bins=6")
    asked = cal.compare_models(Y, {"a": P, "b": P**2}, notion="class-specific:1", n_resamples=20)
    assert cal.calibration_error(Y, P, notion=asked.notion) == cal.calibration_error(Y, P)
    for wrong in ("class-specific:", "confidence:1", "classwise:"):
        with pytest.raises(ValueError, match="notion must be one of"):
            cal.calibration_error(Y, P, notion=wrong)
    with pytest.raises(ValueError, match="must give its mapping only once"):
        cal.calibration_error(Y, P, estimator="binned:hard:linear")


def test_displays_name_what_they_draw():
    with pytest.raises(TypeError, match="needs a ReliabilityCurve, an Estimate or a Report; got TestResult"):
        cal.ReliabilityDisplay.from_result(cal.significance.cox_test(Y, P))
    with pytest.raises(TypeError, match=r"MurphyDisplay draws the result of murphy_curve\(\); got ReliabilityCurve"):
        cal.plot.MurphyDisplay.from_result(cal.reliability_curve(Y, P))

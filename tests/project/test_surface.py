"""The public surface: what a newcomer finds, each name in one place."""

import ast
import inspect
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import calibrant as cal

from ..surface import MODULES, NAMES, room

TOP = {
    "measure": "calibration_error estimate expected_calibration_error squared_calibration_error report "
    "reliability_curve brier_score log_loss",
    "judge": "calibration_test decompose compare_models subgroup_calibration find_segments calibration_measures "
    "decision_curve expected_cost optimal_threshold",
    "repair": "CalibratedModel AutoCalibrator TemperatureScaling compare_calibrators save_calibrator load_calibrator "
    "estimate_prior resampled_prior shift_prior",
    "scale": "Accumulator from_frame as_predictions censoring_weights Predictions",
    "time": "CalibrationMonitor calibration_over_time expected_performance",
    "pictures": "ReliabilityDisplay",
    "values": "Binned EmpiricalBayes",
    "modules": " ".join((*MODULES, "torch")),
}
#: Names of the top that a module has too, where the whole of its kind is.
REPEATED = {
    "calibrators": "AutoCalibrator CalibratedModel TemperatureScaling load_calibrator save_calibrator",
    "decisions": "calibration_measures decision_curve estimate_prior expected_cost optimal_threshold resampled_prior "
    "shift_prior",
    "estimators": "Binned EmpiricalBayes",
    "plot": "ReliabilityDisplay",
    "scores": "brier_score decompose log_loss",
    "significance": "calibration_test",
}


def test_the_top_has_these_names_and_no_others():
    assert set(cal.__all__) == set(" ".join(TOP.values()).split())
    assert len(cal.__all__) <= 65
    assert dir(cal) == sorted(cal.__all__)
    assert cal.__version__


@pytest.mark.parametrize("name", MODULES)
def test_a_module_shows_its_names_and_nothing_else(name):
    module = room(name)
    assert getattr(cal, name) is module
    assert dir(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    assert not [public for public in module.__all__ if public.startswith("_")]
    assert all(getattr(module, public) is not None for public in module.__all__)
    assert module.__doc__


def test_a_name_lives_in_one_place():
    places = Counter(public for name in MODULES for public in room(name).__all__)
    assert [public for public, times in places.items() if times > 1] == []
    repeated = {name: set(room(name).__all__) & set(cal.__all__) for name in MODULES}
    assert {name: found for name, found in repeated.items() if found} == {
        k: set(v.split()) for k, v in REPEATED.items()
    }
    for name, found in repeated.items():
        assert all(getattr(room(name), public) is getattr(cal, public) for public in found)


def test_star_imports_load_what_is_listed():
    """In a fresh interpreter: nothing that was loaded before helps."""
    code = "from calibrant import *; from calibrant.{0} import *; import calibrant; print(len(calibrant.{0}.__all__))"
    for name in ("estimators", "results"):
        done = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True)
        assert int(done.stdout) == len(room(name).__all__)


def test_functions_return_what_results_lists():
    """Every class of results is public, a test's among the tests."""
    from calibrant.data.result import Curve, MeasuresDrawn, Paged, Picture, Result, Table

    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    ours = {kind for kind in below(Result) if kind.__module__.startswith("calibrant.")}
    public = {NAMES[name] for name in cal.results.__all__} | {cal.significance.TestResult}
    hidden = {kind.__qualname__ for kind in ours - public - {Result, Table, Picture, Curve, MeasuresDrawn, Paged}}
    assert hidden == set()


def is_ours(value):
    """A class that is made by calling it, rather than a warning."""
    return inspect.isclass(value) and not issubclass(value, Warning)


def test_no_importer_and_no_folder_that_image_slimming_deletes():
    code = "import sys; before = list(sys.meta_path); import calibrant; print(sys.meta_path == before)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"
    folders = {path.name for path in Path(cal.__file__).parent.rglob("*") if path.is_dir()}
    assert not folders & {"test", "tests", "testing", "docs", "doc", "examples"}


@pytest.mark.parametrize("name", sorted(n for n in NAMES if inspect.isfunction(NAMES[n]) or is_ours(NAMES[n])))
def test_no_parameter_is_called_method(name):
    assert "method" not in inspect.signature(NAMES[name]).parameters


def test_the_package_is_a_command():
    done = subprocess.run([sys.executable, "-m", "calibrant", "--version"], capture_output=True, text=True, check=True)
    assert cal.__version__ in done.stdout


#: What scikit-learn demands of a classifier that transforms.
SCIKIT_LEARN = (
    *("fit", "fit_transform", "get_feature_names_out", "get_metadata_routing", "get_params", "predict"),
    *("predict_proba", "score", "set_fit_request", "set_output", "set_params", "set_score_request", "transform"),
)


def made(kind):
    """A value of a class, of which abstract ones have none."""
    needed = [p for p in inspect.signature(kind).parameters.values() if p.default is p.empty and p.kind not in (2, 4)]
    abstract = inspect.isabstract(kind) or kind in (cal.estimators.Estimator, cal.calibrators.Calibrator)
    return kind if abstract else kind(*[None] * len(needed))


def parts(room_name, base):
    public = (getattr(room(room_name), name) for name in room(room_name).__all__)
    return [value for value in public if inspect.isclass(value) and issubclass(value, base)]


@pytest.mark.parametrize("kind", parts("estimators", cal.estimators.Estimator), ids=lambda kind: kind.__name__)
def test_an_estimator_shows_its_parameters_and_four_verbs(kind):
    parameters = set(inspect.signature(kind).parameters)
    assert {name for name in dir(made(kind)) if not name.startswith("_")} - parameters <= {
        "fit",
        "power",
        "read",
        "summarize",
    }


@pytest.mark.parametrize(
    "kind", [*parts("calibrators", cal.calibrators.Calibrator), cal.CalibratedModel], ids=lambda kind: kind.__name__
)
def test_a_calibrator_shows_its_parameters_and_what_scikit_learn_demands(kind):
    one = made(kind)  # whose properties of what is fitted scikit-learn leaves out since 1.9
    shown = {name for name in dir(one) if not name.startswith("_") and hasattr(one, name)}
    more = shown - set(inspect.signature(kind).parameters) - set(SCIKIT_LEARN)
    columns = {"by", "features"} & shown  # which can be routed
    routed = {"set_predict_request", "set_predict_proba_request"} if columns else set()
    streams = {"partial_fit", "set_partial_fit_request"}
    assert more - routed <= {"predict_interval", "calibrator_", "with_prior", "adapt"} | streams


def test_a_class_has_a_name_of_its_own():
    """One class name, one meaning, in the whole package."""
    named = Counter(
        node.name
        for path in Path(cal.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, times in named.items() if times > 1] == []

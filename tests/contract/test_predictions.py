"""Every public verb takes Predictions in place of labels and probabilities, and judges each row once."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.data import validation

from ..surface import NAMES

N = 90
#: What verbs need besides rows.
NEEDED: dict[str, dict[str, Any]] = {
    "OverTimeDisplay.from_predictions": {"time": np.arange(N)},
    "calibration_over_time": {"time": np.arange(N)},
    "SubgroupDisplay.from_predictions": {"by": np.arange(N) % 3, "min_size": 10},
    "decision_calibration_error": {"thresholds": (0.1, 0.6)},
    "SegmentDisplay.from_predictions": {"X": np.arange(N) % 3},
    "find_segments": {"X": np.arange(N) % 3},
    "grouping_loss": {"features": np.arange(N) % 3},
    "CostDisplay.curve_function": {"costs": [[0, 1], [4, 0]]},
    "CostDisplay.from_predictions": {"costs": [[0, 1], [4, 0]]},
    "expected_cost": {"costs": [[0, 1], [4, 0]]},
    "subgroup_calibration": {"by": np.arange(N) % 3, "min_size": 10},
}
#: Verbs of several models, by name.
SEVERAL = {"ModelComparisonDisplay.from_predictions", "compare_models"}
#: Verbs of three classes alone.
THREE = {"SimplexDisplay.from_predictions"}
#: Arguments that speak of rows, as the others do not.
OF_ROWS = ("labels", "pos_label", "sample_weight", "sum_tolerance", "from_logits")


#: Judges scores of any kind, by the rules of calibrators, and its result holds times: test_compare_calibrators.py.
OTHERS = ("compare_calibrators",)


def verbs() -> dict[str, Callable[..., Any]]:
    """Everything public whose first argument is ``y_true``: functions, and methods of classes by ``Class.method``."""
    found: dict[str, Callable[..., Any]] = {}
    for name, value in NAMES.items():
        methods = [(m, f) for m, f in inspect.getmembers(value, callable) if not m.startswith("_")]
        own = [] if not inspect.isclass(value) else [(f"{name}.{m}", f) for m, f in methods]
        for called, verb in [(name, value), *own]:
            if not (inspect.isfunction(verb) or inspect.ismethod(verb)):
                continue
            parameters = [p for p in inspect.signature(verb).parameters if p not in ("self", "cls")]
            if parameters[:1] == ["y_true"] and called not in OTHERS:
                found[called] = verb
    return found


VERBS = verbs()


def rows(kind: str) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(5)
    weights = rng.integers(1, 4, N)
    if kind == "two classes":
        p = rng.beta(0.8, 0.9, N)
        y = np.where(rng.random(N) < p**1.5, "yes", "no")
        return y, p, {"pos_label": "yes", "labels": ["no", "yes"], "sample_weight": weights}
    p = rng.dirichlet([1, 1, 2], N)
    y = (rng.random((N, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return y, p, {"labels": [0, 1, 2], "sample_weight": weights}


def options_of(name: str) -> dict[str, Any]:
    """What the verb needs, with few draws and a seed where it takes them (a display hands them on)."""
    parameters = inspect.signature(VERBS[name]).parameters
    passed_on = name in ("ModelComparisonDisplay.from_predictions", "SubgroupDisplay.from_predictions")
    default = {"n_resamples": 20, "random_state": 0}
    return {k: v for k, v in default.items() if k in parameters or passed_on} | NEEDED.get(name, {})


def of_rows(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(VERBS[name]).parameters
    return {k: v for k, v in given.items() if k in parameters or "options" in parameters}


def call(name: str, *given: Any, made_with: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """The verb's result; of a method that adds rows on a new object, which is told the labels where rows are not."""
    verb = VERBS[name]
    if "self" not in inspect.signature(verb).parameters:
        return verb(*given, **options)
    instance = NAMES[name.split(".")[0]](**(made_with or {}))
    found = verb(instance, *given, **options)
    return found.estimate(n_resamples=20, random_state=0) if found is instance else found


def with_arrays(name: str, kind: str) -> Any:
    y, p, given = rows(kind)
    probs = {"one": p, "other": p[::-1]} if name in SEVERAL else p
    made_with = {k: v for k, v in given.items() if k != "sample_weight"}
    return call(name, y, probs, made_with=made_with, **of_rows(name, given), **options_of(name))


def with_predictions(name: str, kind: str, **more: Any) -> Any:
    y, p, given = rows(kind)
    judged: Any = cal.as_predictions(y, p, **given)
    if name in SEVERAL:
        judged = {"one": judged, "other": cal.as_predictions(y, p[::-1], **given)}
    return call(name, judged, **options_of(name), **more)


def plain(value: Any) -> Any:
    """Numbers and texts of a result, whatever holds them."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (int, float, str)):
        return value
    # A display: what it draws, not where.
    return {k: plain(v) for k, v in vars(value).items() if k.rstrip("_") not in ("ax", "axes", "figure")}


def outcome(result: Callable[[], Any]) -> Any:
    try:
        return plain(result())
    except ValueError as error:
        return str(error)


def same(one: Any, other: Any) -> None:
    """Equal, numbers to rounding."""
    if isinstance(one, float) and isinstance(other, float):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-14, nan_ok=True)
    elif isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            same(value, other[key])
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        assert one == other


each_verb = pytest.mark.parametrize("name", sorted(VERBS))


@pytest.fixture(autouse=True)
def _drawing(request: pytest.FixtureRequest) -> Any:
    name = request.node.callspec.params.get("name", "") if hasattr(request.node, "callspec") else ""
    if "Display" not in name:
        yield
        return
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def test_verbs_are_found():
    """Names of the README are among them, and every exception is one of them."""
    assert {"calibration_error", "report", "compare_models", "mean_score", "CalibrationMonitor.update"} <= VERBS.keys()
    assert len(VERBS) >= 35
    assert VERBS.keys() >= NEEDED.keys() | SEVERAL


@each_verb
def test_results_are_those_of_arrays(name):
    kind = "three classes" if name in THREE else "two classes"
    same(plain(with_predictions(name, kind)), plain(with_arrays(name, kind)))
    same(outcome(lambda: with_predictions(name, "three classes")), outcome(lambda: with_arrays(name, "three classes")))


@each_verb
def test_nothing_is_said_of_rows_twice(name):
    """Labels, weights and probabilities that come with Predictions are a TypeError that names them."""
    y, p, given = rows("two classes")
    parameters = inspect.signature(VERBS[name]).parameters
    values = given | {"sum_tolerance": 1e-3, "from_logits": True}
    several = name in SEVERAL
    for argument in [a for a in OF_ROWS if a in parameters] or ["pos_label"] * ("options" in parameters):
        with pytest.raises(TypeError, match=f"{argument}.* must not be given"):
            with_predictions(name, "two classes", **{argument: values[argument]})
    judged = cal.as_predictions(y, p, **given)
    first, second = ({"one": judged, "other": judged}, {"one": p, "other": p}) if several else (judged, p)
    with pytest.raises(TypeError, match="must not be given"):
        call(name, first, second, **options_of(name))


@each_verb
def test_rows_are_judged_once(name, monkeypatch):
    judged: list[int] = []
    check = validation._scores

    def counted(array: Any) -> Any:
        judged.append(len(array))
        return check(array)

    monkeypatch.setattr(validation, "_scores", counted)
    for kind in ("two classes", "three classes"):
        judged.clear()
        outcome(lambda kind=kind: with_arrays(name, kind))
        assert judged == [N] * (2 if name in SEVERAL else 1)


@each_verb
def test_predictions_are_not_judged_again(name, monkeypatch):
    made: dict[str, Any] = {}
    for kind in ("two classes", "three classes"):
        y, p, given = rows(kind)
        judged: Any = cal.as_predictions(y, p, **given)
        made[kind] = {"one": judged, "other": judged} if name in SEVERAL else judged

    def refused(array: Any) -> Any:
        raise AssertionError("rows were judged again")

    monkeypatch.setattr(validation, "_scores", refused)
    for judged in made.values():
        outcome(lambda judged=judged: call(name, judged, **options_of(name)))


@pytest.mark.parametrize(
    "name", [f"{kind}.from_predictions" for kind in ("BrierCurveDisplay", "DecisionCurveDisplay", "MurphyDisplay")]
)
def test_predictions_of_several_models(name):
    y, p, given = rows("two classes")
    judged = {key: cal.as_predictions(y, probs, **given) for key, probs in (("a", p), ("b", p[::-1]))}
    same(plain(VERBS[name](judged)), plain(VERBS[name](y, {"a": p, "b": p[::-1]}, **given)))


def test_a_posterior_beside_predictions():
    y, p, given = rows("two classes")
    judged = cal.as_predictions(y, p, **given)
    same(plain(cal.decompose(judged, posterior=p**1.5)), plain(cal.decompose(y, p, posterior=p**1.5, **given)))


def test_costs_must_be_given():
    with pytest.raises(TypeError, match="costs must be given"):
        cal.expected_cost(cal.as_predictions([0, 1], [0.2, 0.7]))


def test_batches_of_a_monitor_have_the_same_labels():
    monitor = cal.CalibrationMonitor(pos_label="yes")
    yes, no, other = (
        cal.as_predictions(names, [0.2, 0.7], pos_label=label)
        for names, label in ((["no", "yes"], "yes"), (["no", "yes"], "no"), (["no", "perhaps"], "perhaps"))
    )
    assert monitor.update(yes).n_samples == 2
    assert monitor.update(["yes", "no"], [0.3, 0.1]).n_samples == 4
    with pytest.raises(ValueError, match="the same pos_label: 'yes' before, 'no' now"):
        monitor.update(no)
    with pytest.raises(ValueError, match="the same labels"):
        monitor.update(other)
    assert monitor.n_samples == 4

"""Adapters give calibrant's numbers inside other packages: `record.json` has what `.ci/adapters` saw there."""

import ast
import importlib.util
import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace as Made

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant import adapters

from .in_packages import ESTIMATOR, PACKAGES

RECORD = json.loads((Path(__file__).parent / "record.json").read_text(encoding="utf-8"))
IMPORTED = {"lm-eval": "lm_eval", "inspect-ai": "inspect_ai"}  # the others' names are those of their packages
NEEDS = {
    "evaluate_metric": "evaluate",
    "evidently_metric": "evidently",
    "inspect_metric": "inspect_ai",
    "keras_callback": "keras",
    "mlflow_metric": "mlflow",
    "monai_metric": "monai",
}


def binned(confidence, right):
    """Five bins of equal width, right-closed: written out."""
    confidence, right = np.asarray(confidence), np.asarray(right, dtype=float)
    cell = np.clip(np.ceil(confidence * 5 - 1e-12).astype(int) - 1, 0, 4)
    return sum(abs((right - confidence)[cell == i].sum()) for i in range(5)) / len(confidence)


def rows_of(name):
    """Confidence of each row, and whether it was right."""
    found = RECORD[name]
    if "rows" in found:
        _, confidence, right = zip(*found["rows"], strict=True)
        return list(confidence), list(right)
    return [max(p) for _, p in found["items"]], [int(np.argmax(p)) == y for y, p in found["items"]]


def test_the_record_has_every_adapter():
    assert set(RECORD) == set(PACKAGES)
    assert all(found["versions"] for found in RECORD.values())
    assert set(adapters.__all__) == {*NEEDS, "harness_aggregation", "scorers"}


def test_the_page_has_the_versions_that_were_tried():
    page = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
    shown = [line.split("|")[2].strip() for line in page.splitlines() if line.startswith("|")][2:]
    assert sorted(shown) == sorted(found["versions"][name] for name, found in RECORD.items())


@pytest.mark.parametrize("name", PACKAGES)
def test_the_number_in_the_package_is_ours(name):
    confidence, right = rows_of(name)
    ours = [cal.calibration_error(right, confidence, estimator=ESTIMATOR), binned(confidence, right)]
    items = RECORD[name].get("items", [])
    if len({len(probs) for _, probs in items}) == 1:
        labels, probs = zip(*items, strict=True)
        ours.append(cal.calibration_error(labels, probs, labels=range(len(probs[0])), estimator=ESTIMATOR))
    np.testing.assert_allclose(RECORD[name]["value"], ours, rtol=0, atol=1e-12)


def test_the_aggregation_needs_no_package():
    found = adapters.harness_aggregation(estimator=ESTIMATOR)(RECORD["lm-eval"]["items"])
    assert found == pytest.approx(RECORD["lm-eval"]["value"], abs=1e-12)


class Base:
    """Stands in for the class of a package that an adapter derives from."""

    def __init__(self, **fields):
        vars(self).update(fields)

    def __class_getitem__(cls, _):
        return cls


def inside_evaluate(labels, probs):
    return adapters.evaluate_metric(estimator=ESTIMATOR)._compute(probs, labels)["calibration_error"]


def inside_evidently(labels, probs):
    metric = adapters.evidently_metric("three", estimator=ESTIMATOR, labels=range(3))
    *_, calculation = (one for one in Base.__subclasses__() if one.__name__ == "CalibrationCalculation")
    calculation.result = lambda _, value: value
    frame = pd.DataFrame(probs, columns=["a", "b", "c"]).assign(y=labels)
    task = Made(target="y", prediction_probas=["a", "b", "c"])
    context = Made(data_definition=Made(get_classification={"three": task}.get))
    data = Made(as_dataframe=lambda: frame)
    value, none = calculation(metric=metric).calculate(context, data, None)
    assert none is None
    assert calculation(metric=metric).calculate(context, data, data) == (value, value)
    return value


def inside_inspect(rows):
    scores = [
        Made(sample_id=name, score=Made(value="C" if right else "I", metadata={"confidence": f"{said:.0%}"}))
        for name, said, right in rows
    ]
    return adapters.inspect_metric(estimator=ESTIMATOR)(scores)


def inside_keras(labels, probs):
    callback, logs = adapters.keras_callback("x", labels, estimator=ESTIMATOR), {}
    callback.model = Made(predict=lambda x, verbose: np.asarray(probs))
    callback.on_epoch_end(0, logs)
    return logs["val_calibration_error"]


def inside_mlflow(labels, probs):
    metric = adapters.mlflow_metric("a", "b", "c", estimator=ESTIMATOR, labels=range(3))
    assert [*inspect.signature(metric.eval_fn).parameters] == ["a", "b", "c", "targets"]
    columns = [pd.Series(one) for one in np.transpose(probs)]
    metric.eval_fn(*columns, pd.Series(labels[:1]))  # the first row is tried before
    return metric.eval_fn(*columns, pd.Series(labels))


STAND_INS = {
    "evaluate": (inside_evaluate, {"evaluate": Made(Metric=Base, MetricInfo=Made), "datasets": Made(
        Features=dict, Sequence=list, Value=str)}),
    "evidently": (inside_evidently, {"evidently": Made(), "evidently.core": Made(), "evidently.core.metric_types": Made(
        SingleValueMetric=Base, SingleValueCalculation=Base)}),
    "inspect-ai": (inside_inspect, {"inspect_ai": Made(), "inspect_ai.scorer": Made(metric=lambda **_: lambda f: f)}),
    "keras": (inside_keras, {"keras": Made(callbacks=Made(Callback=Base))}),
    "mlflow": (inside_mlflow, {"mlflow": Made(), "mlflow.models": Made(make_metric=lambda **given: Made(**given))}),
}  # fmt: skip


@pytest.mark.parametrize("name", STAND_INS)
def test_the_adapter_gives_what_was_recorded(name, monkeypatch):
    inside, modules = STAND_INS[name]
    for module, stand_in in modules.items():
        monkeypatch.setitem(sys.modules, module, stand_in)
    found = RECORD[name]
    value = inside(*zip(*found["items"], strict=True)) if "items" in found else inside(found["rows"])
    assert value == pytest.approx(found["value"], abs=1e-12)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_adapter_in_the_package_that_is_installed(name):
    pytest.importorskip(IMPORTED.get(name, name))
    assert PACKAGES[name]()["value"] == pytest.approx(RECORD[name]["value"], abs=1e-12)


@pytest.mark.parametrize("name", adapters.__all__)
def test_an_adapter_has_at_most_twenty_lines(name):
    tree = ast.parse(inspect.getsource(getattr(adapters, name))).body[0]
    tree.body = tree.body[1:]
    assert len(ast.unparse(tree).splitlines()) <= 20


@pytest.mark.parametrize(("name", "package"), NEEDS.items())
def test_without_the_package_the_error_names_it(name, package):
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    with pytest.raises(ImportError, match=f"{package}|torch|datasets"):
        getattr(adapters, name)(*[None] * 2 * (name == "keras_callback"))

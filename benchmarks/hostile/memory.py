"""Kinds in memory: every public function and class, called with rows and options of any kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.linear_model import LogisticRegression
from tests.surface import NAMES, room

import calibrant as cal
from calibrant import calibrators as c

from .drawing import Draw
from .endings import Case, EndedError, probabilities, told
from .given import OF_ROWS, as_predictions, as_sums, in_a_frame
from .options import OPTIONS, value_of
from .rows import TIMES, Rows

Kind = Callable[[Draw], Case]
#: Options that make a call quick, given where nothing else is drawn.
QUICK = {"n_resamples": 20, "max_points": 20}
#: Parameters that are optional only because a frame may replace them, or sums.
ALWAYS = ("y_prob", "y_probs", "y", "by", "time", "costs", "features", "X")
#: Public names that are no kind of their own, and why.
LEFT_OUT = {
    **dict.fromkeys(cal.results.__all__, "made by functions, which are kinds"),
    **dict.fromkeys(room("benchmark").__all__, "runs of minutes, on data of their own"),
    **dict.fromkeys(("load_digits_predictions", "load_even_digits_predictions"), "train a model on a fixed set"),
    "load_breast_cancer_predictions": "trains a model on a fixed set",
    **dict.fromkeys(("load_calibrator", "save_calibrator", "from_dict", "to_dict"), "kinds of archives"),
    "to_onnx": "another runtime: tests of its graphs",
    **dict.fromkeys(("Predictions", "Target", "Sample"), "made by functions, which are kinds"),
    **dict.fromkeys(("Estimator", "CellEstimator", "PosteriorEstimator", "Notion", "ScoringRule"), "abstract"),
    **dict.fromkeys(("Calibrator", "BinaryCalibrator"), "abstract"),
    **dict.fromkeys(("BinMoments", "GridMoments", "Runs", "ErrorDraws"), "sums: kinds of archives"),
    "TestResult": "made by tests, which are kinds",
    "stated_confidence": "NaN is its answer where a text states none: tests of its own",
    "Answers": "made by llm.read, which is a kind",
    **dict.fromkeys(("evaluate_metric", "evidently_metric", "keras_callback"), "need their packages: tests/adapters"),
    **dict.fromkeys(("inspect_metric", "mlflow_metric", "monai_metric"), "need their packages: tests/adapters"),
    "CalibrationMapDisplay": "drawn of calibrators, which are kinds",
    "SimplexMapDisplay": "drawn of calibrators, which are kinds",
    **dict.fromkeys(
        ("CriticalDifferenceDisplay", "MonitorDisplay", "OverTimeDisplay", "SubgroupDisplay"), "plot() of results"
    ),
    **dict.fromkeys(("IntervalDisplay", "NullDistributionDisplay", "Diagram", "CostDisplay"), "plot() of results"),
}


@cache
def signature(function: Any) -> inspect.Signature:
    """The signature of a function, found once."""
    return inspect.signature(function)


def rows_of(rows: Rows, name: str) -> Any:
    """What a parameter that holds rows is given."""
    draw = rows.draw
    match name:
        case "y_true" | "y":
            return rows.y_true()
        case "y_prob" | "posterior" | "p_new" | "scores" | "X" | "logits" | "preds":
            return rows.y_prob()
        case "y_probs":
            return {name: rows.y_prob(f"p of {name}") for name in ("a", "b", "c")[: draw.whole(1, 4)]}
        case "sample_weight":
            return rows.weight()
        case "groups":
            return rows.groups()
        case "labels":
            return rows.labels()
        case "pos_label":
            return rows.pos_label()
        case "confidence" | "features":
            return rows.held(name, draw.rng.random(rows.n if name == "confidence" else (rows.n, 2)), "container")
        case "time":
            return rows.held(name, draw.named("times", TIMES)(draw.rng, rows.n), "container")
        case "by":
            columns = {f"by {i}": rows.groups() for i in range(draw.whole(1, 3))}
            return rows.tried(draw.one([dict, pd.DataFrame, lambda given: next(iter(given.values()))]), columns)
    raise KeyError(name)


def _wanted(draw: Draw, rows: Rows, parameter: inspect.Parameter, binary_labels: bool) -> bool:
    """Whether a parameter is given."""
    name = parameter.name
    if parameter.default is parameter.empty or name in ALWAYS:
        return True
    if name == "labels":
        return binary_labels or draw.chance(0.2)
    if name == "pos_label":
        return draw.chance(0.3) and rows.binary
    if name in ("sample_weight", "groups"):
        return draw.chance(0.25) or name.removeprefix("sample_") in rows.wrong
    return draw.chance(0.08)


def drawn_arguments(draw: Draw, rows: Rows, function: Any, name: str, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """Arguments of a function: rows, options that it takes, and where options are to be wrong, anything."""
    parameters = [
        p
        for p in signature(function).parameters.values()
        if p.name not in skip and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name != "self"
    ]
    given: dict[str, Any] = {}
    # Two classes in two columns, or some classes that no row has, need labels.
    need_labels = not rows.binary and len(set(rows.codes.tolist())) < rows.k and draw.chance(0.8)
    options = [p for p in parameters if p.name not in OF_ROWS]
    wrong = {p.name for p in draw.some(options, 2)} if "option" in rows.wrong and options else set()
    for p in parameters:
        rows_name = p.name in ("y_true", "y_prob", "y_probs", "sample_weight", "groups", "labels", "pos_label")
        if p.name in ("label", "prob", "weight") and "prob" in signature(function).parameters:
            continue
        if p.name in wrong:
            given[p.name] = value_of(draw, name, p.name, wrong=True)
        elif not _wanted(draw, rows, p, need_labels):
            if p.name in QUICK:
                given[p.name] = QUICK[p.name]
        elif (
            (rows_name and name not in OWN)
            or (name, p.name) in MORE_ROWS
            or p.name in ("by", "time", "confidence", "features")
        ):
            given[p.name] = rows_of(rows, p.name)
        else:
            given[p.name] = value_of(draw, name, p.name, wrong=False)
    return given


#: Functions whose parameters of these names hold no rows.
OWN = ("shift_prior", "decide", "Accumulator", "CalibrationMonitor", "survey_restored", "survey_true_map", "true_map")
MORE_ROWS = {
    *(("select_calibrator", "scores"), ("select_calibrator", "y"), ("estimate_prior", "p_new")),
    ("expected_performance", "p_new"),
    ("find_segments", "X"),
    *(("optimism_corrected", "X"), ("optimism_corrected", "y")),
    *((name, "scores") for name in ("survey_restored", "survey_true_map", "true_map")),
    *(("shift_prior", "y_prob"), ("decide", "y_prob"), ("survey_distorted", "posterior")),
}


def function_case(name: str, function: Callable[..., Any], draw: Draw) -> Case:
    """A call of a public function."""
    rows = Rows(draw)
    given = drawn_arguments(draw, rows, function, name, skip=("model",))
    inputs = list(given.values())
    args: list[Any] = []
    how = draw.rng.random()
    if "y_true" in given and "y_prob" in given:
        parameters = signature(function).parameters
        if how < 0.1 and "prob" in parameters:
            args, given = in_a_frame(draw, given)
        elif how < 0.16:
            args, given = as_predictions(draw, given)
        elif how < 0.2:
            args, given = as_sums(draw, given)
        else:
            args = [given.pop("y_true"), given.pop("y_prob")]
    if name in ("estimate_prior", "expected_performance") and isinstance(given.get("reference"), str):
        given["reference"] = cal.as_predictions([0, 1] * 10, np.linspace(0.1, 0.9, 20))
    if name == "expected_performance":
        _mostly_alone(draw, given)
    if name == "censoring_weights" and draw.chance(0.8):
        of_rows = rows.n if draw.chance(0.9) else rows.n + 1
        given |= {"event": draw.rng.random(of_rows) < 0.6, "horizon": draw.one([0.1, 1, 1.0, np.float32(0.5), 10])}
        given["time"] = rows.held("time", draw.one(LENGTHS)(draw.rng, rows.n), "container")
        inputs = list(given.values())
    if name == "optimism_corrected":
        given["model"] = draw.one([LogisticRegression(), LogisticRegression, None, c.PlattScaling()])
    random = given.get("random_state", 0)
    return Case(
        f"{name}({draw})",
        partial(function, *args, **given),
        inputs,
        tuple(signature(function).parameters),
        again=draw.chance(0.03) and isinstance(random, int) and random == 0,
        page=draw.chance(0.01),
    )


#: Times of rows: of any kind, with ties, in whole units, far apart, and all at once.
LENGTHS: tuple[Callable[[np.random.Generator, int], Any], ...] = (
    lambda rng, n: rng.exponential(1, n),
    lambda rng, n: rng.exponential(2, n).round(1),
    lambda rng, n: rng.integers(0, 5, n),
    lambda rng, n: 10.0 ** rng.uniform(-300, 300, n),
    lambda rng, n: np.ones(n),
)


def _mostly_alone(draw: Draw, given: dict[str, Any]) -> None:
    """Leave out what contradicts other arguments, in most cases: all refused would say little."""
    for key in ("groups", "costs", "threshold", "features", "time", "calibrator"):
        if draw.chance(0.8):
            given.pop(key, None)
    if draw.chance(0.7):
        given["reference"] = cal.as_predictions([0, 1] * 30, np.linspace(0.05, 0.95, 60))


def estimator_case(name: str, kind: Any, draw: Draw) -> Case:
    """An estimator with drawn parameters, on drawn rows."""
    rows = Rows(draw)
    given = drawn_arguments(draw, rows, kind, name)
    y, p = rows.y_true(), rows.y_prob()
    notion = draw.one(OPTIONS["notion"])
    draw.say("notion", notion)
    weight = rows.weight() if draw.chance(0.2) else None

    def run() -> Any:
        made = kind(**given)
        if not isinstance(made, cal.estimators.Estimator):
            return made if name != "Prior" else cal.calibration_error(y, p, estimator=cal.EmpiricalBayes(made))
        return cal.calibration_error(y, p, estimator=made, notion=notion, sample_weight=weight)

    return Case(f"{name}({draw})", run, [y, p, *given.values()], (*given, *signature(cal.calibration_error).parameters))


def notion_case(name: str, kind: Any, draw: Draw) -> Case:
    """A notion or a scoring rule with drawn parameters, on drawn rows."""
    rows = Rows(draw)
    given = drawn_arguments(draw, rows, kind, name)
    y, p = rows.y_true(), rows.y_prob()

    def run() -> Any:
        made = kind(**given)
        if isinstance(made, cal.notions.Notion):
            return cal.estimate(y, p, notion=made, n_resamples=10)
        return cal.scores.mean_score(y, p, made)

    return Case(f"{name}({draw})", run, [y, p], (*given, "notion", "score", *signature(cal.estimate).parameters))


#: What calibrators take beside scores.
BESIDE = {"SubgroupCalibrator": "by", "SegmentCalibrator": "features"}


def calibrator_case(name: str, kind: Any, draw: Draw) -> Case:
    """A calibrator with drawn parameters: fitted, used on other rows, and saved."""
    rows = Rows(draw)
    given = drawn_arguments(draw, rows, kind, name, skip=(BESIDE[name],) if name in BESIDE else ())
    if name == "LabelSmoothing" and not isinstance(given.get("calibrator"), (str, c.Calibrator)):
        draw.say("calibrator", "that")
    p, y = rows.y_prob(), rows.y_true()
    more: dict[str, Any] = {}
    if draw.chance(0.25) or "weight" in rows.wrong:
        more["sample_weight"] = rows.weight()
    if name in BESIDE:
        more[BESIDE[name]] = rows.groups()
    then = rows.y_prob("later p") if draw.chance(0.5) else p
    also = draw.one(["", "", "predict", "saved", "partial_fit", "predict_interval"])
    draw.say("then", also)

    def run() -> Any:
        made = kind(**given)
        if also == "partial_fit" and hasattr(made, "partial_fit"):
            made.partial_fit(p, y, **more)
        made.fit(p, y, **more)
        by = {beside: more[beside] for beside in BESIDE.values() if beside in more}
        if also == "predict":
            return np.asarray(made.predict(then, **by)).size * 0.0
        found = made.predict_proba(then, **by)
        if also == "predict_interval" and hasattr(made, "predict_interval"):
            made.predict_interval(then)
        if also == "saved" and not by:
            again = c.from_dict(c.to_dict(made)).predict_proba(then)
            if told(again) != told(found):
                raise EndedError(f"another answer when it was saved: {abs(again - found).max()}")
        return found

    def holds(found: Any) -> str:
        if not isinstance(found, np.ndarray):
            return ""
        return probabilities(found, sums=given.get("normalisation", "sum") == "sum")

    names = ("y", "X", "scores", "by", *signature(kind).parameters)
    return Case(f"{name}({draw})", run, [p, y, then, *more.values()], names, holds)


def model_case(draw: Draw) -> Case:
    """A classifier with a calibrator."""
    rows = Rows(draw)
    given = drawn_arguments(draw, rows, cal.CalibratedModel, "CalibratedModel", skip=("estimator",))
    if "n_jobs" in given:
        given["n_jobs"] = 1
    X = rows.held("X", draw.rng.normal(size=(rows.n, 2)), "container p", "container")
    y = rows.y_true()

    def run() -> Any:
        return cal.CalibratedModel(LogisticRegression(), **given).fit(X, y).predict_proba(X)

    names = ("y", "X", *signature(cal.CalibratedModel).parameters)
    return Case(f"CalibratedModel({draw})", run, [X, y], names, lambda found: probabilities(found))


def accumulator_case(method: str, draw: Draw) -> Case:
    """Rows added in pieces, of which one may be hostile, and then a method of the sums."""
    rows = Rows(draw)
    start = drawn_arguments(draw, rows, cal.Accumulator, "Accumulator", skip=("labels", "pos_label"))
    if draw.chance(0.3):
        start["labels"] = rows.labels()
    function = getattr(cal.Accumulator, method)
    given = drawn_arguments(
        draw, rows, function, f"Accumulator.{method}", skip=("y_true", "y_prob", "other", "data", "ax")
    )
    y, p = rows.y_true(), rows.y_prob()
    weight, groups = (rows.weight() if draw.chance(0.2) else None), (rows.groups() if draw.chance(0.2) else None)
    good = rows.matrix[:, -1] if rows.binary else rows.matrix
    given = {key: value for key, value in given.items() if key not in ("sample_weight", "groups")}

    def run() -> Any:
        sums = cal.Accumulator(**start).update(y, p, weight, groups)
        before = sums.to_bytes()
        try:
            sums.update(y[:3], p[:3])
        except (TypeError, ValueError, IndexError, KeyError):
            if sums.to_bytes() != before:
                raise EndedError("a piece that was refused changed the sums") from None
        if method == "merge":
            return sums.merge(cal.Accumulator(**start).update(y, good)).calibration_error()
        if method == "from_bytes":
            return float(cal.Accumulator.from_bytes(before).to_bytes() != before)
        if method == "update":
            return sums.calibration_error()
        found = getattr(sums, method)(**given)
        if method == "fit":
            return found.predict_proba(good)
        return found if isinstance(found, (float, cal.results.Estimate)) or hasattr(found, "to_dict") else 0.0

    names = (*signature(cal.Accumulator).parameters, *signature(cal.calibration_error).parameters, *given)
    holds = probabilities if method == "fit" else _not_one if method == "from_bytes" else None
    return Case(f"Accumulator().{method}({draw})", run, [y, p, weight, groups], names, holds)


def _not_one(found: float) -> str:
    return "other bytes after a round trip" if found else ""


def monitor_case(draw: Draw) -> Case:
    """Batches of a monitor, of which one may be hostile."""
    rows = Rows(draw)
    given = drawn_arguments(draw, rows, cal.CalibrationMonitor, "CalibrationMonitor", skip=("labels", "pos_label"))
    if draw.chance(0.3):
        given["labels"] = rows.labels()
    y, p = rows.y_true(), rows.y_prob()
    more = {"sample_weight": rows.weight()} if draw.chance(0.2) else {}
    if draw.chance(0.15):
        more["groups"] = rows.groups()

    def run() -> Any:
        monitor = cal.CalibrationMonitor(**given)
        monitor.update(y, p, **more)
        n, e = monitor.n_samples, monitor.e_value
        try:
            monitor.update(y, p if draw.number_is_even else p[:1], **more)
        except (ValueError, TypeError, IndexError, KeyError):
            if (monitor.n_samples, monitor.e_value) != (n, e) and not np.isnan(e):
                raise EndedError("a batch that was refused changed the monitor") from None
        if not (monitor.e_value >= 0 and 0 <= monitor.pvalue <= 1):
            raise EndedError(f"e-value {monitor.e_value}, p-value {monitor.pvalue}")
        repr(monitor), str(monitor)
        return monitor.update(y, p) if not more else 0.0

    names = (*signature(cal.CalibrationMonitor).parameters, *signature(cal.calibration_error).parameters)
    return Case(f"CalibrationMonitor({draw})", run, [y, p], names)


FRAMES: Mapping[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "polars": partial(pl.DataFrame, strict=False),
    "polars lazy": lambda columns: pl.DataFrame(columns, strict=False).lazy(),
    "pyarrow": pa.table,
    "a mapping": dict,
}


def frame_columns(draw: Draw, rows: Rows) -> dict[str, Any]:
    """Columns of a frame: labels, scores, weights, groups and subgroups."""
    p = rows.y_prob()
    try:
        p = np.asarray(p)
        columns: dict[str, Any] = {"p": p} if p.ndim == 1 else {f"p_{v}": p[:, i] for i, v in enumerate(rows.classes)}
    except (Exception, pl.exceptions.PanicException):
        columns = {"p": rows.matrix[:, -1]}
    columns = {name: list(values) for name, values in columns.items()}
    return {"y": rows.y_true(), **columns, "w": rows.weight(), "g": rows.groups(), "part": rows.groups()}


def frame_case(draw: Draw, frames: Mapping[str, Callable[[Any], Any]] = FRAMES, name: str = "from_frame") -> Case:
    """Sums of a frame."""
    rows = Rows(draw)
    columns = frame_columns(draw, rows)
    made = draw.named("as", frames)
    while columns:
        try:
            frame = made(columns)
            break
        except (Exception, pl.exceptions.PanicException):  # this library holds no such columns
            columns.pop(next(reversed(columns)))
    else:
        frame = columns
    skip = ("frame", "label", "prob", "weight", "groups", "by", "time", "every", "labels", "pos_label")
    given = drawn_arguments(draw, rows, cal.from_frame, "from_frame", skip=skip)
    prob = [column for column in columns if column.startswith("p") and column != "part"]
    given |= {"label": "y", "prob": prob[0] if len(prob) == 1 else prob}
    for option, column in (("weight", "w"), ("groups", "g"), ("by", "part")):
        if draw.chance(0.25):
            given[option] = column if draw.chance(0.9) else draw.one(["none such", "y", 1, None, ["part"], "p"])
            draw.say(option, given[option])
    if not rows.binary and draw.chance(0.7):
        given["labels"] = rows.labels()
    if draw.chance(0.1):
        given |= {"time": draw.one(["part", "part", "p", "none such", 1]), "every": draw.one(OPTIONS["every"])}
        draw.say("time", given["time"])

    def run() -> Any:
        found = cal.from_frame(frame, **given)
        if isinstance(found, cal.Accumulator):
            return found.calibration_error()
        return found.over_time() if "time" in given else cal.subgroup_calibration(found, n_resamples=20)

    names = (*signature(cal.from_frame).parameters, *signature(cal.calibration_error).parameters)
    return Case(f"{name}({draw})", run, [columns], names)


def display_case(name: str, kind: Any, draw: Draw) -> Case:
    """A picture of drawn rows."""
    from matplotlib import pyplot

    rows = Rows(draw)
    y = rows.y_true()
    p = {"a": rows.y_prob(), "b": rows.y_prob()} if name == "ModelComparisonDisplay" else rows.y_prob()
    made: Any = kind.from_predictions
    match name:
        case "PerformanceDisplay":
            draws = partial(made, p, reference=(y, p))
        case "SegmentDisplay":
            draws = partial(made, y, p, rows_of(rows, "features"))
        case _:
            draws = partial(made, y, p)

    def run() -> Any:
        try:
            return float(len(draws().figure_.axes) < 1)
        finally:
            pyplot.close("all")

    return Case(
        f"{name}.from_predictions({draw})", run, [y, p], (*signature(cal.report).parameters, "reference", "p_new", "X")
    )


def kinds() -> dict[str, Kind]:
    """Every kind in memory."""
    found: dict[str, Kind] = {}
    families = (
        (cal.estimators.Estimator, estimator_case),
        (cal.calibrators.Calibrator, calibrator_case),
        (cal.notions.Notion, notion_case),
        (cal.scores.ScoringRule, notion_case),
    )
    for name, value in NAMES.items():
        if name in LEFT_OUT or (inspect.isclass(value) and issubclass(value, Warning)):
            continue
        if inspect.isfunction(value):
            found[name] = frame_case if name == "from_frame" else partial(function_case, name, value)
        elif name.endswith("Display"):
            found[name] = partial(display_case, name, value)
        elif name in ("Accumulator", "CalibrationMonitor", "CalibratedModel"):
            continue
        else:
            made = next((case for base, case in families if issubclass(value, base)), estimator_case)
            found[name] = partial(made, name, value)
    methods = ("update", "merge", "from_bytes", "calibration_error", "calibration_test", "decompose", "estimate", "fit")
    for method in (*methods, "reliability_curve", "report", "to_frame"):
        found[f"Accumulator.{method}"] = partial(accumulator_case, method)
    found |= {"CalibrationMonitor": monitor_case, "CalibratedModel": model_case}
    return found

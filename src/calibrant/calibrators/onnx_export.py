"""Export of fitted calibrators and models as ONNX graphs, which run without Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce, singledispatch
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_type
from ..data.types import FloatArray
from ..sums import Edges
from .base import EPS, Calibrator
from .by_segment import SegmentCalibrator
from .by_subgroup import SubgroupCalibrator
from .combined import Composed, LabelSmoothing, Mixture
from .gaussian_process import GaussianProcessCalibrator
from .histogram import BayesianBinning, HistogramBinning, UnitMap
from .label_shift import prior_shift
from .linear import DirichletCalibration, MatrixScaling, VectorScaling
from .logistic import BetaCalibration, PlattScaling, QuadraticLogit
from .model import CalibratedModel
from .monotone import Knots, VennAbers
from .multiclass import LEAST_ANSWER, TELLS_APART, OneVsOne, OneVsRest, TopLabelCalibrator, pairs_of
from .onnx_graph import OPSET, Graph, GraphScores, Tensor, coupled_by_likelihood, finished, joined, solved
from .select import AutoCalibrator
from .spline import CurveCalibrator, OrderPreserving, SplineCalibrator
from .temperature import EndSmoothing, EnsembleTemperatureScaling, Identity, TemperatureScaling

if TYPE_CHECKING:
    import onnx


def to_onnx(calibrator: Calibrator | CalibratedModel) -> onnx.ModelProto:
    """Convert a fitted calibrator, or a whole fitted model, to an ONNX graph.

    Parameters
    ----------
    calibrator : Calibrator or CalibratedModel
        A fitted calibrator, or a fitted model whose classifier skl2onnx can convert.

    Returns
    -------
    onnx.ModelProto
        The graph, with outputs ``label`` (n,) and ``probabilities`` (n, K). The input of a calibrator is ``scores``,
        doubles of shape (n, 1) or (n, K), as in ``fit``; a :class:`SubgroupCalibrator` with subgroups also has ``by``,
        strings of shape (n, 1). The input of a model is ``X``, doubles of shape (n, features).

    Raises
    ------
    ImportError
        If the packages of ``calibrant[onnx]`` are not installed.
    TypeError
        For anything but a calibrator or a :class:`CalibratedModel`.
    ValueError
        For a :class:`SegmentCalibrator` whose repair uses features.

    See Also
    --------
    calibrant.save_calibrator : Saves to a JSON file for this package.

    Notes
    -----
    Computations are in double precision and agree with ``predict_proba`` to 1e-6, mostly to 1e-12. Scores are not
    checked; those outside [0, 1] are clipped. Large tables use binary search. Within a model, skl2onnx computes the
    scores of most classifiers in single precision: probabilities differ by about 1e-7, or by a whole step of a
    calibrator with steps if a score lies on one. ``OneVsOne(coupling="likelihood")`` uses 15 steps of
    Newton's method. Cost: O(size of the calibrator).

    Examples
    --------
    >>> from calibrant.calibrators import PlattScaling, to_onnx
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> model = to_onnx(fitted)  # doctest: +SKIP
    >>> open("platt.onnx", "wb").write(model.SerializeToString())  # doctest: +SKIP
    """
    _need("onnx")
    check_type("calibrator", calibrator, (Calibrator, CalibratedModel), "a calibrator or a CalibratedModel")
    check_is_fitted(calibrator)
    graph = Graph()
    if isinstance(calibrator, CalibratedModel):
        p = _of_model(calibrator, graph)
    else:
        scores = _read(calibrator, graph.input("scores", calibrator.n_features_in_))
        if isinstance(calibrator, SubgroupCalibrator) and len(calibrator.subgroups_) > 1:
            p = _of_subgroups(calibrator, scores, graph.input("by", 1, text=True))
        else:
            p = _probabilities(calibrator, scores)
    return finished(graph, p, calibrator.classes_)


def _need(package: str) -> None:
    if find_spec(package) is None:
        raise ImportError(f'to_onnx needs {package}, which is not installed: pip install "calibrant[onnx]"')


def _read(one: Calibrator, values: Tensor) -> GraphScores:
    """Columns in the order of the classes, and probabilities within [0, 1]."""
    if one.order_ is not None:
        values = values.columns(*one.order_.tolist())
    return GraphScores(values.clip(0.0, 1.0) if one.input == "probability" else values, one.input, one.n_features_in_)


def _of_model(model: CalibratedModel, graph: Graph) -> Tensor:
    _need("skl2onnx")
    from skl2onnx import to_onnx as converted
    from skl2onnx.common.data_types import DoubleTensorType

    given = graph.input("X", model.n_features_in_)
    members = []
    for i, (one, calibrator) in enumerate(model.pairs_):
        if not np.array_equal(one.classes_, model.classes_):
            raise ValueError("to_onnx needs all classes in every fold")
        if getattr(calibrator, "by", None) is not None and len(calibrator.subgroups_) > 1:
            raise ValueError(
                "to_onnx cannot read subgroups from a column of X: export calibrator_, which has the input 'by'"
            )
        inner = one.estimator if isinstance(one, FrozenEstimator) else one
        last = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner
        kind = [("X", DoubleTensorType([None, model.n_features_in_]))]
        options: dict[str, bool] = {"raw_scores": True} if calibrator.input == "margin" else {}
        if not isinstance(last, LinearSVC):  # whose output is an array anyhow
            options["zipmap"] = False
        proto = converted(
            inner, initial_types=kind, options={id(last): options}, target_opset={"": OPSET, "ai.onnx.ml": 3}
        )
        values = graph.absorb(proto, f"fold_{i}_", given, output=1)
        if calibrator.n_features_in_ == 1:
            values = values.columns(-1)
        members.append((calibrator, _read(calibrator, values)))
    p = _average(members, np.full(len(members), 1 / len(members)))
    if model.new_prior_ is None:
        return p
    shift = prior_shift(model.classes_, model.prior_, model.new_prior_)
    return _probabilities(shift, GraphScores(p, "probability", len(model.classes_)))


def _average(members: Sequence[tuple[Any, GraphScores]], weights: FloatArray) -> Tensor:
    """As ``average`` of fitted calibrators."""
    first = members[0][0]
    if len(members) > 1 and all(type(one) is type(first) and one._merges for one, _ in members):
        if isinstance(first, VennAbers):
            return _of_venn_abers(members, weights)
        if isinstance(first, AutoCalibrator):
            return _of_auto(members, weights)
        return _against_rest(members, weights)
    each = zip(weights.tolist(), members, strict=True)
    out: Tensor = reduce(Tensor.__add__, (_probabilities(one, scores) * weight for weight, (one, scores) in each))
    return out


def _of_auto(members: Sequence[tuple[AutoCalibrator, GraphScores]], weights: FloatArray) -> Tensor:
    each = [
        (_probabilities(one, scores), weight) for weight, (one, scores) in zip(weights.tolist(), members, strict=True)
    ]
    mean = reduce(Tensor.__add__, (p * weight for p, weight in each))
    logs = reduce(Tensor.__add__, (p.graph.call("Max", p, EPS).log() * weight for p, weight in each))
    out: Tensor = (mean + logs.softmax()) * 0.5
    return out


@singledispatch
def _probabilities(one: Any, scores: GraphScores) -> Tensor:
    """Calibrated probabilities (n, K), by the calibrator's class."""
    p = _second(one, scores).clip(0.0, 1.0)
    return joined(1.0 - p, p)


@_probabilities.register
def _(one: Identity, scores: GraphScores) -> Tensor:
    return scores.logs(EPS).softmax() if scores.kind == "logit" else scores.both()


@_probabilities.register
def _(one: EndSmoothing, scores: GraphScores) -> Tensor:
    p = _probabilities(Identity(), scores)
    moved = (p <= one.eps).number() * one.ends_
    out: Tensor = (p + moved) / (1.0 + moved.sum())
    return out


@_probabilities.register
def _(one: TemperatureScaling, scores: GraphScores) -> Tensor:
    return (scores.logs(one.eps) / one.temperature_).softmax()


@_probabilities.register
def _(one: EnsembleTemperatureScaling, scores: GraphScores) -> Tensor:
    z = scores.logs(one.eps)
    a, b, c = one.weights_.tolist()
    out: Tensor = a * (z / one.temperature_).softmax() + b * z.softmax() + c / len(one.classes_)
    return out


@_probabilities.register
def _(one: VectorScaling, scores: GraphScores) -> Tensor:
    return (scores.logs(one.eps) * one.coef_ + one.intercept_).softmax()


@_probabilities.register
def _(one: MatrixScaling, scores: GraphScores) -> Tensor:
    of = scores.log_probabilities if isinstance(one, DirichletCalibration) else scores.logs
    out: Tensor = (of(one.eps) @ one.coef_.T + one.intercept_).softmax()
    return out


@_probabilities.register
def _(one: OrderPreserving, scores: GraphScores) -> Tensor:
    z = scores.logs(one.eps)
    behind = z.max() - z
    reach = np.concatenate([[0.0], np.cumsum(one.slopes_[:-1] * np.diff(one.knots_))])
    piece = behind.below(one.knots_[1:], ties=True)
    return (-(piece.of(reach) + piece.of(one.slopes_) * (behind - piece.of(one.knots_)))).softmax()


@_probabilities.register
def _(one: Mixture, scores: GraphScores) -> Tensor:
    return _average([(member, scores) for member in one.calibrators_], one.weights_)


@_probabilities.register
def _(one: Composed, scores: GraphScores) -> Tensor:
    p = _probabilities(one.calibrators_[0], scores)
    for member in one.calibrators_[1:]:
        p = _probabilities(member, GraphScores(p, "probability", len(one.classes_)))
    return p


@_probabilities.register(LabelSmoothing)
@_probabilities.register(AutoCalibrator)
def _(one: Any, scores: GraphScores) -> Tensor:
    return _probabilities(one.calibrator_, scores)


@_probabilities.register
def _(one: SegmentCalibrator, scores: GraphScores) -> Tensor:
    if one.weight_ > 0:
        raise ValueError(
            "to_onnx cannot read the features of a SegmentCalibrator: save_calibrator writes it, or export its common_"
        )
    return _probabilities(one.common_, scores)


@_probabilities.register
def _(one: SubgroupCalibrator, scores: GraphScores) -> Tensor:
    return _shifted(one, scores, one.mean_slope_, one.mean_shift_)


def _of_subgroups(one: SubgroupCalibrator, scores: GraphScores, by: Tensor) -> Tensor:
    known = by.equals(np.asarray(one.subgroups_, dtype=object)[None, :]).number()
    other = 1.0 - known.sum()
    slope = known @ one.slopes_[:, None] + other * one.mean_slope_
    return _shifted(one, scores, slope, known @ one.shifts_ + other * one.mean_shift_)


def _shifted(one: SubgroupCalibrator, scores: GraphScores, slope: Any, shift: Any) -> Tensor:
    q = _probabilities(one.common_, scores)
    z = q.graph.call("Max", q, EPS).log()
    z = z - z.sum() / float(len(one.classes_))
    out: Tensor = (z + slope * (z - one.centre_) + shift).softmax()
    return out


@_probabilities.register
def _(one: TopLabelCalibrator, scores: GraphScores) -> Tensor:
    log_p = scores.log_probabilities(EPS)
    first = log_p.argmax().equals(np.arange(len(one.classes_)))
    confidence = GraphScores(log_p.max().exp().clip(0.0, 1.0), "probability", 1)
    each = joined(*(_probabilities(member, confidence).columns(1) for member in one.calibrators_))
    repaired = first.where(each, 0.0).sum()
    return first.where(repaired, first.where(-np.inf, log_p).softmax() * (1.0 - repaired))


@_probabilities.register
def _(one: OneVsRest, scores: GraphScores) -> Tensor:
    return _against_rest([(one, scores)], np.ones(1))


def _against_rest(members: Sequence[tuple[OneVsRest, GraphScores]], weights: FloatArray) -> Tensor:
    first, scores = members[0]
    k = len(first.classes_)
    if first._several:
        raise TypeError("a calibrator of several labels has no graph: export calibrators_, one per label")
    alone = first._alone
    columns = []
    for c in [1] if alone else range(k):
        each = [(one.calibrators_[c % len(one.calibrators_)], s.of_class(c)) for one, s in members]
        columns.append(_average(each, weights).columns(1))
    if alone:
        return joined(1.0 - columns[0], columns[0])
    p = joined(*columns)
    if first.shared:
        p = p + TELLS_APART * scores.logs(EPS).softmax()
    if first.normalisation == "none":
        return p.clip(0.0, 1.0)
    nothing = p.sum() <= 0.0
    p = nothing.where(scores.both() if scores.kind == "probability" else 1.0, p)
    return p / p.sum()


@_probabilities.register
def _(one: OneVsOne, scores: GraphScores) -> Tensor:
    k = len(one.classes_)
    n = scores.values.graph
    place: list[list[Any]] = [[None] * k for _ in range(k)]
    weight = np.zeros((k, k))
    for (i, j), member, w in zip(pairs_of(k), one.calibrators_, one.weights_, strict=True):
        r = _probabilities(member, scores.of_pair(i, j)).columns(1).clip(LEAST_ANSWER, 1 - LEAST_ANSWER)
        place[i][j], place[j][i] = r, 1.0 - r
        weight[i, j] = weight[j, i] = w
    half = 0.0 * scores.values.columns(0) + 0.5
    flat = joined(*(half if cell is None else cell for row in place for cell in row))
    answers = n.call("Reshape", flat, np.array([-1, k, k]))
    off = 1 - np.eye(k)
    turned = n.call("Transpose", answers, perm=[0, 2, 1])
    squares = n.call("ReduceSum", turned * turned, np.array([2])) - 0.25
    # With one more in every place the solution of what is right of it is in ratio that of least squares with sum 1.
    system = 1.0 - answers * turned * off + squares * np.eye(k)
    u = solved(system, 0.0 * squares + 1.0, k)
    u = n.call("Max", u / n.call("ReduceSum", u, np.array([1])), 0.0)
    u = u / n.call("ReduceSum", u, np.array([1]))
    if one.coupling == "likelihood":
        u = coupled_by_likelihood(answers, weight / weight.max() * off, u, k)
    return n.call("Squeeze", u, np.array([2]))


@singledispatch
def _second(one: Any, scores: GraphScores) -> Tensor:
    """Probability of the second class, (n, 1), by a binary calibrator's class."""
    raise TypeError(f"{type(one).__qualname__} cannot be written as ONNX: only calibrators of this package can")


@_second.register
def _(one: PlattScaling, scores: GraphScores) -> Tensor:
    return (scores.log_odds(one.eps) * one.coef_ + one.intercept_).expit()


@_second.register
def _(one: BetaCalibration, scores: GraphScores) -> Tensor:
    up, down = scores.halves(one.eps)
    return (up * one.a_ - down * one.b_ + one.c_).expit()


@_second.register
def _(one: QuadraticLogit, scores: GraphScores) -> Tensor:
    z = scores.log_odds(one.eps)
    b, c = one.coef_.tolist()
    out: Tensor = ((z * c + b) * z + one.intercept_).expit()
    return out


@_second.register
def _(one: SplineCalibrator, scores: GraphScores) -> Tensor:
    from scipy.interpolate import BSpline, PPoly

    z, knots = scores.log_odds(one.eps), one.knots_
    pieces = PPoly.from_spline(BSpline(knots, one.coef_, 3))
    inner = np.unique(knots)
    at = [int(np.flatnonzero(pieces.x == x)[-1]) for x in inner[:-1]]
    a, b, c, d = (row[at] for row in pieces.c)
    inside = z.clip(float(inner[0]), float(inner[-1]))
    piece = inside.below(inner[1:-1], ties=True)
    t = inside - piece.of(inner[:-1])
    value = ((piece.of(a) * t + piece.of(b)) * t + piece.of(c)) * t + piece.of(d)
    slopes = np.diff(one.coef_)[[0, -1]] / one._gaps()[[0, -1]]
    graph = z.graph
    beyond = graph.call("Min", z - inside, 0.0) * slopes[0] + graph.call("Max", z - inside, 0.0) * slopes[1]
    out: Tensor = (value + beyond).expit()
    return out


@_second.register
def _(one: GaussianProcessCalibrator, scores: GraphScores) -> Tensor:
    z = scores.log_odds(one.eps)
    u = (z - one.centre_) / one.scale_
    gap = (u - one.nodes_) / one.length_scale_
    out: Tensor = (z + u * one.coef_[1] + one.coef_[0] + (gap * gap * -0.5).exp() @ one.node_coef_[:, None]).expit()
    return out


@_second.register
def _(one: Knots, scores: GraphScores) -> Tensor:
    s = scores.of_positive()
    if one.interpolation == "linear":
        p = s.interpolated(one.scores_, one.values_)
    else:
        p = s.below(one.scores_[1:], ties=True).of(one.values_)
    return p if one.clip is None or isinstance(one.clip, str) else p.clip(one.clip, 1 - one.clip)


@_second.register
def _(one: VennAbers, scores: GraphScores) -> Tensor:
    return _of_venn_abers([(one, scores)], np.ones(1)).columns(1)


def _of_venn_abers(members: Sequence[tuple[VennAbers, GraphScores]], weights: FloatArray) -> Tensor:
    up: Any = 0.0
    down: Any = 0.0
    for weight, (one, scores) in zip(weights, members, strict=True):
        s = scores.of_positive()
        at = s.below(one.scores_, ties=False) + s.below(one.scores_, ties=True)
        with np.errstate(divide="ignore"):
            up = up + at.of(float(weight) * np.log(one.upper_))
            down = down + at.of(float(weight) * np.log1p(-one.lower_))
    each = joined(down.exp(), up.exp())
    return each / each.sum()


@_second.register
def _(one: UnitMap, scores: GraphScores) -> Tensor:
    s, (low, high) = scores.of_positive(), one.range_.tolist()
    if scores.kind == "logit":
        s = s.expit()
    elif scores.kind == "margin":
        s = ((s - low) / (high - low)).clip(0.0, 1.0) if high > low else 0.0 * s + 0.5
    if isinstance(one, CurveCalibrator):
        return s.interpolated(one.scores_, one.values_)
    if isinstance(one, HistogramBinning):
        return _of_bins(one._edges(), one.values_, s)
    if not isinstance(one, BayesianBinning):
        raise TypeError(f"{type(one).__qualname__} cannot be written as ONNX: only calibrators of this package can")
    used = one.weights_ > 1e-9
    total: Any = 0.0
    for weight, edges, values in zip(one.weights_, one.edges_, one.values_, strict=True):
        if weight > 1e-9:
            total = total + _of_bins(Edges(edges, exact=True), values * (weight / one.weights_[used].sum()), s)
    out: Tensor = total
    return out


def _of_bins(edges: Edges, values: FloatArray, s: Tensor) -> Tensor:
    return s.below(edges.limits(float(np.finfo(np.float64).eps)), ties=False).of(values)

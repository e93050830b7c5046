"""ONNX graphs with a NumPy-like interface: arrays of double precision, rows first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..data.types import AnyArray, FloatArray
from .base import EPS

if TYPE_CHECKING:
    import onnx

#: Versions supported by onnxruntime 1.17 (2024) and later.
OPSET, IR_VERSION = 19, 9
#: Steps of Newton's method for coupling pairwise probabilities, started at the quadratic coupling.
_STEPS = 15
Operand: TypeAlias = "Tensor | AnyArray | float"


@dataclass(eq=False)
class Graph:
    """Nodes and constants, in order of addition."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)

    def input(self, name: str, n_columns: int, *, text: bool = False) -> Tensor:
        """Input rows of the graph."""
        from onnx import TensorProto, helper

        kind = TensorProto.STRING if text else TensorProto.DOUBLE
        self.inputs.append(helper.make_tensor_value_info(name, kind, [None, n_columns]))
        return Tensor(self, name)

    def constant(self, value: Any) -> Tensor:
        """An array; numbers have double precision, indices 64 bits."""
        from onnx import helper, numpy_helper

        array = np.asarray(value)
        if array.dtype.kind not in "ib":
            array = array.astype(object if array.dtype.kind in "OU" else np.float64)
        name = f"constant_{len(self.constants)}"
        if array.dtype == object:
            texts: Any = [str(text).encode() for text in array.ravel()]
            self.constants.append(helper.make_tensor(name, 8, array.shape, texts))
        else:
            self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return Tensor(self, name)

    def call(self, op: str, *operands: Operand, **attributes: Any) -> Tensor:
        """The first output of a node."""
        from onnx import helper

        names = [(one if isinstance(one, Tensor) else self.constant(one)).name for one in operands]
        name = f"node_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [name], name=name, **attributes))
        return Tensor(self, name)

    def named(self, tensor: Tensor, name: str) -> None:
        """Name an output."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [tensor.name], [name]))

    def absorb(self, model: onnx.ModelProto, prefix: str, given: Tensor, output: int) -> Tensor:
        """Add the nodes of another graph with one input; return one of its outputs, in double precision."""
        from onnx import TensorProto, compose, helper

        inner = compose.add_prefix_graph(model.graph, prefix)
        self.nodes.append(helper.make_node("Identity", [given.name], [inner.input[0].name]))
        self.nodes += inner.node
        self.constants += inner.initializer
        return self.call("Cast", Tensor(self, inner.output[output].name), to=TensorProto.DOUBLE)


@dataclass(frozen=True, eq=False)
class Tensor:
    """An array that a graph computes."""

    graph: Graph
    name: str
    #: Makes NumPy leave operators to this class.
    __array_ufunc__ = None

    def __add__(self, other: Operand) -> Tensor:
        return self.graph.call("Add", self, other)

    def __sub__(self, other: Operand) -> Tensor:
        return self.graph.call("Sub", self, other)

    def __mul__(self, other: Operand) -> Tensor:
        return self.graph.call("Mul", self, other)

    def __truediv__(self, other: Operand) -> Tensor:
        return self.graph.call("Div", self, other)

    def __matmul__(self, other: Operand) -> Tensor:
        return self.graph.call("MatMul", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return self + other

    def __rmul__(self, other: Operand) -> Tensor:
        return self * other

    def __rsub__(self, other: Operand) -> Tensor:
        return self.graph.call("Sub", other, self)

    def __neg__(self) -> Tensor:
        return self.graph.call("Neg", self)

    def __lt__(self, other: Operand) -> Tensor:
        return self.graph.call("Less", self, other)

    def __le__(self, other: Operand) -> Tensor:
        return self.graph.call("LessOrEqual", self, other)

    def equals(self, other: Operand) -> Tensor:
        """Whether entries of two arrays are equal."""
        return self.graph.call("Equal", self, other)

    def columns(self, *which: int) -> Tensor:
        """Some of the columns, (n, len(which))."""
        return self.graph.call("Gather", self, np.array(which, dtype=np.int64), axis=1)

    def of(self, table: AnyArray) -> Tensor:
        """Entries of a table at these indices."""
        return self.graph.call("Gather", table, self, axis=0)

    def clip(self, low: float, high: float) -> Tensor:
        """Values clipped to bounds."""
        return self.graph.call("Min", self.graph.call("Max", self, low), high)

    def exp(self) -> Tensor:
        """Exponentials."""
        return self.graph.call("Exp", self)

    def log(self) -> Tensor:
        """Natural logarithms."""
        return self.graph.call("Log", self)

    def expit(self) -> Tensor:
        """``1 / (1 + exp(-x))``."""
        return self.graph.call("Sigmoid", self)

    def softmax(self) -> Tensor:
        """Softmax of each row."""
        return self.graph.call("Softmax", self, axis=1)

    def where(self, yes: Operand, no: Operand) -> Tensor:
        """Entries of one or the other array, by this condition."""
        return self.graph.call("Where", self, yes, no)

    def number(self, *, whole: bool = False) -> Tensor:
        """Booleans or indices as numbers of double precision, or as integers (``whole``)."""
        return self.graph.call("Cast", self, to=7 if whole else 11)

    def sum(self, axis: int = 1) -> Tensor:
        """Sums along an axis, which is kept."""
        return self.graph.call("ReduceSum", self, np.array([axis]))

    def max(self) -> Tensor:
        """Largest entry of each row, (n, 1)."""
        return self.graph.call("ReduceMax", self, np.array([1]))

    def argmax(self) -> Tensor:
        """Column of the (first) largest entry of each row, (n, 1)."""
        return self.graph.call("ArgMax", self, axis=1)

    def logsumexp(self) -> Tensor:
        """``log Σ exp`` of each row, (n, 1)."""
        top = self.max()
        return (self - top).exp().sum().log() + top

    def softplus(self) -> Tensor:
        """``log(1 + exp(x))``."""
        size = self.graph.call("Abs", self)
        return self.graph.call("Max", self, 0.0) + (1.0 + (-size).exp()).log()

    def below(self, table: AnyArray, *, ties: bool) -> Tensor:
        """Number of entries of an increasing table that are less, or (``ties``) at most as large: binary search."""
        steps = len(table).bit_length()
        padded = np.full(2**steps - 1, np.inf)
        padded[: len(table)] = table
        found = (self < -np.inf).number(whole=True)
        for step in 2 ** np.arange(steps)[::-1]:
            entry = (found + (step - 1)).of(padded)
            passed = entry <= self if ties else entry < self
            found = found + passed.number(whole=True) * step
        return found

    def interpolated(self, x: AnyArray, y: AnyArray) -> Tensor:
        """Linear interpolation between points of increasing x, constant beyond the ends."""
        if len(x) == 1:
            return 0.0 * self + float(y[0])
        inside = self.clip(float(x[0]), float(x[-1]))
        piece = inside.below(x[1:-1], ties=True)
        gap = np.diff(x)
        slope = np.divide(np.diff(y), gap, out=np.zeros(len(gap)), where=gap > 0)
        return piece.of(y[:-1]) + piece.of(slope) * (inside - piece.of(x[:-1]))


def joined(*columns: Tensor) -> Tensor:
    """Concatenate columns."""
    return columns[0] if len(columns) == 1 else columns[0].graph.call("Concat", *columns, axis=1)


def solved(system: Tensor, right: Tensor, k: int) -> Tensor:
    """Solutions (n, k, 1) of positive definite systems (n, k, k), by elimination."""
    graph = system.graph
    both = graph.call("Concat", system, right, axis=2)
    for j in range(k):
        row = graph.call("Gather", both, np.array([j]), axis=1)
        row = row / graph.call("Gather", row, np.array([j]), axis=2)
        own = graph.call("Gather", both, np.array([j]), axis=2) - np.eye(k)[:, [j]]
        both = both - own * row
    return graph.call("Gather", both, np.array([k]), axis=2)


@dataclass(frozen=True)
class GraphScores:
    """Scores in a graph, (n, 1) or (n, K), on their original scale; the counterpart of ``Scores``."""

    values: Tensor
    kind: str
    n_columns: int

    def of_positive(self) -> Tensor:
        """One score per row, increasing with the probability of the second class, (n, 1)."""
        if self.n_columns == 1:
            return self.values
        second = self.values.columns(1)
        return second if self.kind == "probability" else second - self.values.columns(0)

    def both(self) -> Tensor:
        """One column per class."""
        v = self.values
        if self.n_columns > 1:
            return v
        return joined(1.0 - v if self.kind == "probability" else 0.0 * v, v)

    def log_odds(self, eps: float) -> Tensor:
        """Log odds of the second class, (n, 1)."""
        if self.kind != "probability":
            return self.of_positive()
        up, down = self.halves(eps)
        return up - down

    def halves(self, eps: float) -> tuple[Tensor, Tensor]:
        """``log s`` and ``log(1 - s)``."""
        if self.kind != "probability":
            z = self.of_positive()
            return -(-z).softplus(), -z.softplus()
        p = self.values.clip(eps, 1 - eps)
        return (p.log(), (1.0 - p).log()) if self.n_columns == 1 else (p.columns(1).log(), p.columns(0).log())

    def logs(self, eps: float) -> Tensor:
        """Logarithms of class probabilities, up to a constant per row, (n, K)."""
        both = self.both()
        return both.graph.call("Max", both, eps).log() if self.kind == "probability" else both

    def log_probabilities(self, eps: float) -> Tensor:
        """Logarithms of class probabilities, (n, K)."""
        z = self.logs(eps)
        return z if self.kind == "probability" else z - z.logsumexp()

    def of_class(self, c: int) -> GraphScores:
        """Scores of one class against the others."""
        v = self.values
        if self.n_columns <= 2:
            s = self.of_positive()
            s = s if c == 1 else 1.0 - s if self.kind == "probability" else -s
        elif self.kind == "logit":
            s = v.columns(c) - v.columns(*(j for j in range(self.n_columns) if j != c)).logsumexp()
        else:
            s = v.columns(c)
        return GraphScores(s, self.kind, 1)

    def of_pair(self, i: int, j: int) -> GraphScores:
        """Scores of class i against class j."""
        one, other = (self.both().columns(c) for c in (i, j))
        if self.kind != "probability":
            return GraphScores(one - other, self.kind, 1)
        total = one + other
        nothing = total <= 0.0
        return GraphScores(nothing.where(0.5, one / nothing.where(1.0, total)), self.kind, 1)


def coupled_by_likelihood(answers: Tensor, weights: FloatArray, start: Tensor, k: int) -> Tensor:
    """As ``likeliest``, with a fixed number of steps, (n, k, 1)."""
    n = answers.graph
    u = n.call("Max", start, EPS).log()
    for _ in range(_STEPS):
        mu = (u - n.call("Transpose", u, perm=[0, 2, 1])).clip(-700.0, 700.0).expit()
        gradient = n.call("ReduceSum", (answers - mu) * weights, np.array([2]))
        curved = mu * (1.0 - mu) * weights
        diagonal = n.call("ReduceSum", curved, np.array([2]))
        level = n.call("ReduceMax", diagonal, np.array([1])) / float(k)
        step = solved(diagonal * np.eye(k) - curved + level + 1e-12 * np.eye(k), gradient, k)
        largest = n.call("Max", n.call("ReduceMax", n.call("Abs", step), np.array([1])), 1e-12)
        u = u + step * n.call("Min", n.call("Div", 2.0, largest), 1.0)
    return n.call("Softmax", u, axis=1)


def finished(graph: Graph, p: Tensor, classes: AnyArray) -> onnx.ModelProto:
    """The graph as a model: labels and probabilities are its outputs."""
    from onnx import TensorProto, checker, helper

    labels = classes.astype(np.int64) if classes.dtype.kind in "iub" else classes
    graph.named(p, "probabilities")
    graph.named(graph.call("Squeeze", p.argmax(), np.array([1])).of(labels), "label")
    kind = {"i": TensorProto.INT64, "f": TensorProto.DOUBLE}.get(labels.dtype.kind, TensorProto.STRING)
    outputs = [
        helper.make_tensor_value_info("label", kind, [None]),
        helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, [None, len(classes)]),
    ]
    whole = helper.make_graph(graph.nodes, "calibrant", graph.inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(whole, opset_imports=opsets, producer_name="calibrant", ir_version=IR_VERSION)
    checker.check_model(model)
    return model

"""Containers: whatever holds the numbers, the answer is the same."""

from __future__ import annotations

import re
from array import array

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant import as_predictions
from calibrant.data.convert import to_array

from ..versions import NUMPY

Y = [0, 1, 1, 0, 1]
P = [0.1, 0.9, 0.8, 0.25, 0.5]
P3 = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
NAMES = ["a", "b", "c"]
ROWS = {n: P3[:, i] for i, n in enumerate(NAMES)}


class ArrayOnly:
    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


class DlpackOnly:
    def __init__(self, values):
        self.values = np.asarray(values)

    def __dlpack__(self, **kwargs):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class Tensor:
    """A stand-in for a torch tensor that requires grad and lives on a GPU."""

    def __init__(self, values, *, grad=True, device="cuda", dtype="torch.float32"):
        self.values, self.grad, self.device, self.dtype = np.asarray(values), grad, device, dtype

    def detach(self):
        return Tensor(self.values, grad=False, device=self.device, dtype=self.dtype)

    def cpu(self):
        return Tensor(self.values, grad=self.grad, device="cpu", dtype=self.dtype)

    def float(self):
        return Tensor(self.values.astype(np.float32), grad=self.grad, device=self.device)

    def __array__(self, dtype=None, copy=None):
        if self.grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        if self.device != "cpu":
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


class OnTheGpu:
    """An array that NumPy may not read implicitly."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


VECTORS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda v: np.array(v, dtype=object),
    "masked": np.ma.array,
    "array module": lambda v: array("d" if isinstance(v[0], float) else "i", v),
    "memoryview": lambda v: memoryview(np.array(v)),
    "pandas": pd.Series,
    "pandas, odd index": lambda v: pd.Series(v, index=[9, 9, 3, 1, 0]),
    "pandas nullable": lambda v: pd.Series(v).convert_dtypes(),
    "pandas arrow": lambda v: pd.Series(v).convert_dtypes(dtype_backend="pyarrow"),
    "pandas index": pd.Index,
    "pandas frame": lambda v: pd.DataFrame({"v": v}),
    "polars": pl.Series,
    "polars frame": lambda v: pl.DataFrame({"v": v}),
    "pyarrow": pa.array,
    "pyarrow chunks": lambda v: pa.chunked_array([v[:2], v[2:]]),
    "pyarrow table": lambda v: pa.table({"v": v}),
    "__array__": ArrayOnly,
    "dlpack": DlpackOnly,
    "tensor": Tensor,
}


@pytest.mark.parametrize("make", VECTORS.values(), ids=VECTORS)
def test_vectors(make):
    p = as_predictions(make(Y), make(P), sample_weight=make([1.0, 2.0, 0.5, 1.0, 3.0]))
    assert p.probs.tolist() == P
    assert p.codes.astype(int).tolist() == Y
    assert p.weights.tolist() == [1.0, 2.0, 0.5, 1.0, 3.0]
    assert cal.calibration_error(make(Y), make(P)) == cal.calibration_error(Y, P)


MATRICES = {
    "lists": lambda m: m.tolist(),
    "list of arrays": list,
    "array": np.array,
    "pandas": lambda m: pd.DataFrame(m),
    "pandas named": lambda m: pd.DataFrame(m, columns=NAMES),
    "pandas objects": lambda m: pd.DataFrame(m, columns=NAMES).astype(object),
    "pandas arrow": lambda m: pd.DataFrame(m, columns=NAMES).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda m: pl.DataFrame(m, schema=NAMES),
    "pyarrow": lambda m: pa.table(ROWS),
    "pyarrow batch": lambda m: pa.record_batch(ROWS),
    "__array__": ArrayOnly,
    "dlpack": DlpackOnly,
    "tensor": Tensor,
}


@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_matrices(make):
    y = ["a", "b", "c", "a", "c"]
    p = as_predictions(y, make(P3))
    assert p.classes == ("a", "b", "c")
    assert p.probs.tolist() == P3.tolist()
    expected = cal.calibration_error(y, P3, notion="classwise")
    assert cal.calibration_error(y, make(P3), notion="classwise") == pytest.approx(expected, abs=1e-12)


TEXTS = {
    "list": list,
    "array": np.array,
    "objects": lambda v: np.array(v, dtype=object),
    "pandas": pd.Series,
    "pandas category": lambda v: pd.Series(v, dtype="category"),
    "pandas odd category": lambda v: pd.Series(pd.Categorical(v, categories=["z", "c", "b", "a"])),
    "pandas.Categorical": pd.Categorical,
    "pandas string": lambda v: pd.Series(v, dtype="string"),
    "polars": pl.Series,
    "polars categorical": lambda v: pl.Series(v, dtype=pl.Categorical),
    "polars enum": lambda v: pl.Series(v, dtype=pl.Enum(["c", "b", "a"])),
    "pyarrow": pa.array,
    "pyarrow dictionary": lambda v: pa.array(v).dictionary_encode(),
}
if NUMPY >= (2, 0):  # new there
    TEXTS["StringDType"] = lambda v: np.array(v, dtype=np.dtypes.StringDType())


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS)
def test_text_labels(make):
    p = as_predictions(make(["a", "c", "b", "a", "c"]), P3)
    assert p.classes == ("a", "b", "c")
    assert all(isinstance(c, str) for c in p.classes)
    assert p.codes.tolist() == [0, 2, 1, 0, 2]


@pytest.mark.parametrize("make", [lambda v: pd.Series(v, dtype="category"), pd.Categorical], ids=["series", "array"])
def test_categories_of_numbers_and_bools(make):
    assert as_predictions(make([0, 2, 1, 1, 2]), P3).codes.tolist() == [0, 2, 1, 1, 2]
    assert as_predictions(make([False, True, True, False, True]), P).classes == (False, True)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("y_prob", lambda: pd.Series([0.1, np.nan, 0.2, 0.3, 0.4])),
        ("y_prob", lambda: pl.Series([0.1, None, 0.2, 0.3, 0.4])),
        ("y_prob", lambda: pa.array([0.1, None, 0.2, 0.3, 0.4])),
        ("y_prob['p']", lambda: pd.DataFrame({"p": [0.1, None, 0.2, 0.3, 0.4]})),
        ("y_prob['b']", lambda: pl.DataFrame({"a": P, "b": [0.1, None, 0.2, 0.3, 0.4]})),
    ],
)
def test_missing_values_in_columns(name, make):
    with pytest.raises(ValueError, match=re.escape(f"{name} must have no missing values; row 1 is null")):
        as_predictions(Y, make())


def test_missing_labels_and_weights_in_columns():
    with pytest.raises(ValueError, match="y_true must have no missing values; row 2 is null"):
        as_predictions(pl.Series([0, 1, None, 0, 1]), P)
    with pytest.raises(ValueError, match="sample_weight must have no missing values; row 0 is null"):
        as_predictions(Y, P, sample_weight=pd.Series([None, 1, 1, 1, 1], dtype="Float64"))


def test_masked_values():
    with pytest.raises(ValueError, match="y_prob must have no missing values; row 3 is masked"):
        as_predictions(Y, np.ma.array(P, mask=[0, 0, 0, 1, 0]))
    with pytest.raises(ValueError, match="y_true must have no missing values; row 0 is masked"):
        as_predictions(np.ma.array(Y, mask=[1, 0, 0, 1, 0]), P)


@pytest.mark.parametrize("junk", ["0.5", b"0.5", {0: 0.5}, {0.5}, frozenset({0.5}), object(), (v for v in P)])
def test_what_is_no_array(junk):
    text = f"y_prob must be an array, a list, a data-frame column or frame, or a tensor; got {type(junk).__name__}"
    with pytest.raises(TypeError, match=re.escape(text)):
        as_predictions(Y, junk)


def test_probabilities_are_needed():
    for nothing in ((), (None,)):
        with pytest.raises(TypeError, match="y_prob must be given"):
            as_predictions(Y, *nothing)


def test_sparse_matrices():
    from scipy.sparse import csr_array, csr_matrix

    for make in (csr_array, csr_matrix):
        with pytest.raises(TypeError, match=r"y_prob must be dense; got a sparse csr_\w+: pass y_prob.toarray\(\)"):
            as_predictions(Y, make(P3))


def test_lazy_frames():
    with pytest.raises(TypeError, match=r"y_prob is a lazy frame \(polars.*LazyFrame\): collect it first"):
        as_predictions(Y, pl.LazyFrame(ROWS))


def test_frames_without_columns():
    with pytest.raises(ValueError, match="y_prob must have at least one column; the frame has none"):
        as_predictions(Y, pd.DataFrame(index=range(5)))


def test_columns_of_text_are_no_scores():
    with pytest.raises(TypeError, match=r"y_prob must hold real numbers; (got dtype|row 0 is '0.7')"):
        as_predictions(["a"] * 5, pd.DataFrame(ROWS).astype(str))


def test_arrays_out_of_reach():
    with pytest.raises(TypeError, match=r"y_prob must be readable by NumPy; .*OnTheGpu is not: Implicit conversion"):
        as_predictions(Y, OnTheGpu())


def test_bfloat16():
    scores = Tensor(np.array(P, dtype=np.float32), dtype="torch.bfloat16")
    assert as_predictions(Y, scores).probs.dtype == np.float32


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    scores = torch.tensor(P3, requires_grad=True)
    labels = torch.tensor([0, 1, 2, 0, 2])
    expected = cal.calibration_error([0, 1, 2, 0, 2], P3)
    assert cal.calibration_error(labels, scores) == expected
    assert as_predictions(labels, scores.to(torch.bfloat16)).probs.dtype == np.float32


def test_bfloat16_has_the_tolerances_of_its_own_precision():
    """Rows of a softmax in it sum to 1 within 2⁻⁸ (once refused); a score that it rounds off an edge is on the edge."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    rng = np.random.default_rng(0)
    exact = rng.dirichlet(np.ones(20), size=500)
    rounded = torch.tensor(exact).to(torch.bfloat16)
    assert 1e-3 < np.abs(rounded.double().numpy().sum(axis=1) - 1).max() < 2**-8
    codes = [int(rng.choice(20, p=row)) for row in exact]
    error = cal.calibration_error(codes, exact, labels=range(20))
    assert cal.calibration_error(codes, rounded, labels=range(20)) == pytest.approx(error, abs=0.01)
    with pytest.raises(ValueError, match=r"sum to 1 within sum_tolerance=0.08; row 0 sums to 0.89"):
        as_predictions(codes, 0.9 * rounded, labels=range(20))
    edges = torch.arange(1, 10).double() / 10
    curve = cal.reliability_curve([0, 1] * 4 + [0], edges.to(torch.bfloat16), estimator=cal.Binned(10))
    np.testing.assert_array_equal(curve.observed, [*([0, 1] * 4), 0, np.nan])


def test_clean_arrays_are_not_copied():
    scores, labels = np.array(P), np.array(Y)
    p = as_predictions(labels, scores)
    assert np.shares_memory(p.probs, scores)
    assert np.shares_memory(p.codes, labels)
    assert np.shares_memory(as_predictions([0, 1, 2, 0, 2], P3).probs, P3)


def test_times_in_lists_that_python_has_no_date_for_are_refused():
    times = pa.array([[2**60]] * 3, pa.list_(pa.timestamp("s"), 1))
    with pytest.raises(ValueError, match="times in the years 1 to 9999"):
        to_array(times, "time")

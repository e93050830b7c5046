"""Distribution shift of scores, and of features if given, between new rows and a reference."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..comparison.subgroups.membership import read_subgroups
from ..data.checks import called
from ..data.dependence import mid_ranks
from ..data.predictions import effective_size
from ..data.printing import equals, printable
from ..data.result import Result
from ..data.types import FloatArray, IntArray
from ..significance.result import holm

#: Number of rows below which levels are pooled.
_FEWEST = 5.0


@dataclass(frozen=True, repr=False)
class ColumnShift(Result):
    """Whether one column of new rows is distributed as in the reference.

    Attributes
    ----------
    name : str
        The column: ``"score"``, ``"score of …"`` for more than two classes, or the name of a feature.
    statistic : float
        Kolmogorov-Smirnov statistic, the largest difference of the distribution functions; for categories half the
        sum of absolute differences of their shares. In [0, 1].
    pvalue : float
        The p-value (null: the same distribution); for categories by Pearson's test.
    adjusted : float
        The p-value, adjusted for the number of columns (Holm).
    outside : float
        Share of the new rows with a value outside the range of the reference, or a category not in it.

    See Also
    --------
    calibrant.expected_performance : Computes it, in ``shifts``.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 0.8, 2000)
    >>> found = cal.expected_performance(rng.random(1000), reference=(rng.random(2000) < p, p), n_resamples=99)
    >>> bool(found.shifts[0].adjusted < 0.001), round(found.shifts[0].outside, 1)
    (True, 0.2)
    """

    _unpictured: ClassVar[str] = "No picture: a shift is two numbers."

    name: str
    statistic: float
    pvalue: float
    adjusted: float
    outside: float

    @property
    def summary(self) -> str:
        """Size of the shift, and the share of new rows outside the reference."""
        said = f"{printable(self.name)}: distributions differ by {self.statistic:.3f} (p {equals(self.adjusted)})"
        return f"{said}; {100 * self.outside:.3g} % of the new rows are outside the values of the reference."


class RowsOfSample(NamedTuple):
    """Weights of rows, whether the weights count repeats, and codes of groups."""

    weights: FloatArray
    counted: bool
    groups: IntArray | None

    def independent(self, rank: FloatArray) -> float:
        """Effective sample size of the mean rank, given groups."""
        size = effective_size(self.weights, len(self.weights), integral=self.counted)
        if self.groups is None:
            return size
        w = self.weights / self.weights.sum()
        off = w * (rank - w @ rank)
        between = float((np.bincount(self.groups, off) ** 2).sum())
        alone = float(off @ (rank - w @ rank)) / size
        return size if alone <= 0 else size / max(between / alone, 1.0)


class BothSamples(NamedTuple):
    """A column in both samples: codes of its ``size`` distinct values, ordered if the values are."""

    name: str
    reference: IntArray
    new: IntArray
    size: int
    ordered: bool

    def where(self, reference: IntArray, new: IntArray) -> BothSamples:
        """Select rows of both samples."""
        return self._replace(reference=self.reference[reference], new=self.new[new])


def shifts(reference: RowsOfSample, new: RowsOfSample, columns: list[BothSamples]) -> tuple[ColumnShift, ...]:
    """Test each column, and adjust p-values for their number."""
    found = [_shift(reference, new, column) for column in columns]
    adjusted = holm(np.array([one.pvalue for one in found]))
    return tuple(replace(one, adjusted=float(p)) for one, p in zip(found, adjusted, strict=True))


def of_scores(name: str, reference: FloatArray, new: FloatArray) -> BothSamples:
    """A column of scores."""
    values, codes = np.unique(np.concatenate([reference, new]), return_inverse=True)
    return BothSamples(name, codes[: len(reference)], codes[len(reference) :], values.size, ordered=True)


def read_features(features: Any, n_reference: int, n_new: int) -> Iterator[BothSamples]:
    """Check the ``features`` argument: columns of the same names, for the reference and for the new rows."""
    if not isinstance(features, (tuple, list)) or len(features) != 2:
        raise TypeError(f"features must be a pair, for the reference and the new rows; got {type(features).__name__}")
    both = []
    for i, n in enumerate((n_reference, n_new)):
        with called(by=f"features[{i}]"):
            both.append({one.name: one for one in read_subgroups(features[i], n)})
    if both[0].keys() != both[1].keys():
        apart = sorted(both[0].keys() ^ both[1].keys())
        raise ValueError(f"features must have the same columns for both samples; {apart[0]!r} is in only one")
    for name, one in both[0].items():
        other = both[1][name]
        values = {(type(v).__name__, v) for v in (*one.values, *other.values)}
        place = {key: i for i, key in enumerate(sorted(values, key=_order))}
        first, second = (np.array([place[type(v).__name__, v] for v in c.values])[c.codes] for c in (one, other))
        told = [v for _, v in values if v is not None]
        ordered = all(map(_is_number, told)) or all(isinstance(v, dt.date) for v in told)
        yield BothSamples(name, first, second, len(place), ordered)


def _order(key: tuple[str, Any]) -> tuple[bool, bool, Any]:
    """Sort key: missing values first, then numbers, then others by type and text."""
    kind, value = key
    number = _is_number(value)
    return value is not None, not number, value if number else f"{kind} {value}"


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _shift(reference: RowsOfSample, new: RowsOfSample, column: BothSamples) -> ColumnShift:
    each = ((column.reference, reference), (column.new, new))
    counts = [np.bincount(codes, rows.weights, minlength=column.size) for codes, rows in each]
    shares = [c / c.sum() for c in counts]
    rank = mid_ranks((counts[0] + counts[1])[None])[0]
    sizes = [rows.independent(rank[codes]) for codes, rows in each]
    statistic, pvalue = _of_numbers(shares, sizes) if column.ordered else _of_categories(shares, sizes)
    held = np.flatnonzero(counts[0] > 0)
    outside = np.ones(column.size, dtype=bool)
    outside[slice(held[0], held[-1] + 1) if column.ordered else held] = False
    return ColumnShift(column.name, statistic, pvalue, pvalue, float(shares[1][outside].sum()))


def _of_numbers(shares: list[FloatArray], rows: list[float]) -> tuple[float, float]:
    from scipy.special import kolmogorov

    largest = float(np.abs(np.cumsum(shares[0] - shares[1])).max())
    return largest, float(kolmogorov(largest * np.sqrt(rows[0] * rows[1] / (rows[0] + rows[1]))))


def _of_categories(shares: list[FloatArray], rows: list[float]) -> tuple[float, float]:
    from scipy.stats import chi2

    counts = np.array([s * n for s, n in zip(shares, rows, strict=True)])
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    rare = counts.sum(axis=0) < _FEWEST
    counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    return distance, float(chi2.sf(((counts - expected) ** 2 / expected).sum(), max(counts.shape[1] - 1, 1)))

"""`SegmentReport`: segments in which the model is miscalibrated beyond what is common to all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ...data.checks import check_int
from ...data.printing import (
    equals,
    half_width,
    known,
    nouns_of,
    number_of,
    printable_lines,
    pvalue_text,
    signed,
    text_table,
    with_ends,
)
from ...data.result import Paged, Picture, Result, Section
from ...data.types import AnyArray, Interval, Label
from ...measure.result import ReliabilityCurve
from .features import Condition, Feature, codes_of_rows, within

#: Most segments that a summary names, and most left-out features that a text names.
_NAMED, _LEFT = 3, 5
_WAYS = {
    "simulate": "searched in all rows; p-values and intervals by the same search on simulated outcomes",
    "split": "searched in one half of the rows; numbers, p-values (Holm) and intervals from the other",
}


@dataclass(frozen=True, eq=False, repr=False)
class Segment(Result):
    """Rows with common features on which the model was tested.

    Attributes
    ----------
    condition : str
        Condition that defines the rows, such as ``region is north and age ≥ 60``.
    label : object
        The class whose probability is evaluated; None for the confidence.
    n_samples : int
        Number of rows that the numbers are based on; after a split, those of the half that was not searched.
    base_rate, mean_probability : float
        Share of the class, and its mean probability (for confidences, accuracy and mean confidence).
    gap : float
        ``base_rate - mean_probability``, for the scores as given; negative if the class is over-predicted.
    gap_interval : Interval
        Interval of the gap, simultaneous for all segments that were searched.
    gap_beyond : float
        Observed minus expected at the same scores, by the recalibration map of all rows and the segments in ``beyond``;
        ``pvalue`` and ``adjusted`` test it.
    pvalue : float
        The p-value of the score test of an offset in the segment, as if the segment had been given in advance.
    adjusted : float
        The p-value, adjusted for the search.
    critical : float
        Half-width of the interval in standard errors; ``|z|`` must exceed it for a segment of this length.
    share : float
        This segment's share of the log-loss that recalibration of all rows and of all segments found would save; NaN
        for a segment that was not found.
    beyond : tuple of str
        Segments found before that share rows with this one.
    curve : ReliabilityCurve or None
        Reliability curve of the segment, for the plot; None for a segment that was not found.

    See Also
    --------
    calibrant.find_segments : Computes it, in ``segments``.
    calibrant.results.SegmentReport : The whole report.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(4000), rng.choice(["north", "south"], 4000)
    >>> y = rng.random(4000) < np.where(region == "south", p**1.5, p)
    >>> segment = cal.find_segments(y, p, {"region": region}).segments[0]
    >>> segment.condition, segment.adjusted
    ('region is south', 0.005)
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the report draws it."

    condition: str
    label: Label
    n_samples: int
    base_rate: float
    mean_probability: float
    gap: float
    gap_interval: Interval
    gap_beyond: float
    pvalue: float
    adjusted: float
    critical: float
    share: float
    beyond: tuple[str, ...] = ()
    curve: ReliabilityCurve | None = field(default=None, repr=False)

    @property
    def summary(self) -> str:
        """Direction of the miscalibration in the segment, and the gap of the scores as given."""
        low, high = self.gap_interval
        side = "more" if self.gap_beyond > 0 else "less"
        size = known(abs(self.gap_beyond), half_width(low, high))
        told = f"Where {self.condition}, outcomes are {side} frequent than at the same scores overall, by {size}"
        if self.beyond:
            told += f", beyond the effect of {' and '.join(map(repr, self.beyond))}"
        gap = with_ends(self.gap, self.gap_interval, signed)
        zero = ": the scores as given may be right there" if low <= 0 <= high else ""
        return f"{told} (adjusted p {equals(self.adjusted)}). Observed minus predicted is {gap}{zero}."


@dataclass(frozen=True, eq=False, repr=False)
class SegmentReport(Picture, Paged):
    """Segments in which the model is miscalibrated beyond the miscalibration common to all rows.

    Attributes
    ----------
    tested : tuple of Segment
        Segments that were tested, including those found, in the order of the search.
    confirm : str
        ``"simulate"`` or ``"split"``: how segments are distinguished from chance findings.
    features : tuple of str
        Features that were searched.
    left_out : dict
        Features that were left out, and the reasons.
    label : object
        The class whose gaps are reported; None for confidences, and for several classes (then see each segment).
    level : float
        Level of the intervals; adjusted p-values are compared with ``1 - level``.
    n_groups : int or None
        Number of groups of dependent rows; None if rows are independent.

    See Also
    --------
    calibrant.find_segments : Computes it.
    calibrant.plot.SegmentDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, age = rng.random(6000), rng.integers(18, 90, 6000)
    >>> y = rng.random(6000) < np.where(age >= 70, p**1.6, p)
    >>> found = cal.find_segments(y, p, {"age": age})
    >>> [segment.condition for segment in found.segments], int(found.mask(0).sum()) == int((age >= 70).sum())
    (['age ≥ 70'], True)
    >>> found.apply({"age": [50, 71]}).tolist()
    [[False], [True]]
    """

    display: ClassVar[str] = "SegmentDisplay"
    tested: tuple[Segment, ...]
    confirm: str
    features: tuple[str, ...]
    left_out: Mapping[str, str]
    notion: str
    label: Label
    level: float
    n_samples: int
    n_groups: int | None = None
    warnings: tuple[str, ...] = ()
    title: str = "Segments where the model is wrong"
    _rules: tuple[tuple[Condition, ...], ...] = field(default=(), repr=False)
    _coded: tuple[Feature, ...] = field(default=(), repr=False)
    _masks: tuple[AnyArray, ...] = field(default=(), repr=False)
    _given: int = field(default=0, repr=False)

    @property
    def _found(self) -> list[int]:
        return [i for i, one in enumerate(self.tested) if one.adjusted <= 1 - self.level]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Segments in which the model is miscalibrated according to adjusted p-values."""
        return tuple(self.tested[i] for i in self._found)

    def mask(self, i: int) -> AnyArray:
        """Mask of the given rows that are in a segment.

        Parameters
        ----------
        i : int
            Position in ``segments``.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        at = self._found[check_int("i", i, 0, max(len(self._found) - 1, 0))] if self._found else None
        if at is None:
            raise ValueError("no segment was found: there is no mask")
        return np.unpackbits(self._masks[at], count=self._given).astype(bool)

    def apply(self, X: Any) -> AnyArray:
        """Membership of rows in the segments.

        Parameters
        ----------
        X : array-like, mapping or data frame
            Features of new rows, with the same names as before.

        Returns
        -------
        ndarray of bool, shape (n, number of segments)
        """
        rules = [self._rules[i] for i in self._found]
        wanted = sorted({one.feature for rule in rules for one in rule})
        codes = codes_of_rows(self._coded, wanted, X)
        out = np.zeros((codes.shape[1], len(rules)), dtype=bool)
        for j, rule in enumerate(rules):
            out[:, j] = within(codes, rule)
        return out

    @property
    def summary(self) -> str:
        """The segments found, in words."""
        found = self.segments
        if not found:
            least = min((one.adjusted for one in self.tested), default=float("nan"))
            told = f" (smallest adjusted p {equals(least)})" if least == least else ""
            return f"No segment was found where the model is wrong beyond its overall miscalibration{told}."
        if len(found) == 1:
            return found[0].summary
        named = [f"{one.condition} ({signed(one.gap_beyond, half_width(*one.gap_interval))})" for one in found[:_NAMED]]
        more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        return (
            f"{len(found):,} segments were found where outcomes at the same scores differ from those overall: "
            f"{'; '.join(named)}{more}."
        )

    def _text(self) -> str:
        about = "" if self.label is None else f", {nouns_of(self.notion).of(self.label)}"
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        number = f"{self.n_samples:,} rows{groups}, {number_of(len(self.features), 'feature')}"
        head = f"{self.title}{about}: {number}, {100 * self.level:g} % intervals"
        return printable_lines("\n".join([head, *self._table(), *(f"  {text}" for text in self._said())]))

    def _table(self) -> list[str]:
        found = self.segments
        if not found:
            return []
        columns = {"segment": [self.named(one) for one in found]}
        columns |= {
            "rows": [f"{one.n_samples:,}" for one in found],
            "observed": [known(one.base_rate, 0.5 / one.n_samples**0.5) for one in found],
            "predicted": [known(one.mean_probability, 0.5 / one.n_samples**0.5) for one in found],
            "gap": [with_ends(one.gap, one.gap_interval, signed) for one in found],
            "beyond": [signed(one.gap_beyond, half_width(*one.gap_interval)) for one in found],
            "p adj.": [pvalue_text(one.adjusted) for one in found],
            "share": [f"{100 * one.share:.0f} %" for one in found],
        }
        return text_table(columns, ("share", "predicted", "observed", "rows"))

    def named(self, one: Segment) -> str:
        """Condition of a segment, preceded by its class if several are searched.

        Parameters
        ----------
        one : Segment
            One of ``tested``.
        """
        several = self.label is None and one.label is not None
        return f"{nouns_of(self.notion).named(one.label)}: {one.condition}" if several else one.condition

    def _said(self) -> list[str]:
        """Lines below the table."""
        out = [_WAYS[self.confirm]]
        if self.segments:
            out.append("gap: observed minus predicted; beyond: observed minus expected at the same scores")
        out += [self.named(one) for one in self.segments[_NAMED:]]  # which the summary does not, and a table may cut
        told = (one for one in self.segments if one.beyond)
        out += [f"{one.condition}: beyond the effect of {' and '.join(map(repr, one.beyond))}" for one in told]
        left = [f"{name} ({why})" for name, why in self.left_out.items()]
        more = f" and {len(left) - _LEFT:,} more" if len(left) > _LEFT else ""
        if left:
            out.append(f"left out: {', '.join(left[:_LEFT])}{more}")
        return [*out, *(f"note: {text}" for text in self.warnings)]

    def _sections(self) -> list[Section]:
        found = self.segments
        told: dict[str, Sequence[Any]] = {
            "segment": [self.named(one) for one in found],
            "rows": [one.n_samples for one in found],
            "observed": [one.base_rate for one in found],
            "predicted": [one.mean_probability for one in found],
            "gap": [one.gap for one in found],
            "gap_low": [one.gap_interval.low for one in found],
            "gap_high": [one.gap_interval.high for one in found],
            "gap beyond": [one.gap_beyond for one in found],
            "p, adjusted": [pvalue_text(one.adjusted) for one in found],
            "share": [one.share for one in found],
        }
        out = [Section("Segments", told, note="; ".join(self._said()))]
        if self.left_out:
            left = {"feature": [*self.left_out], "why": [*self.left_out.values()]}
            out.append(Section("Features left out", left, folded=True))
        return out

    def _columns(self) -> dict[str, Any]:
        found = self.segments
        plain = ("condition", "n_samples", "mean_probability", "base_rate", "gap")
        columns: dict[str, list[Any]] = {name: [getattr(one, name) for one in found] for name in plain}
        columns |= {f"gap_{end}": [getattr(one.gap_interval, end) for one in found] for end in ("low", "high")}
        columns |= {
            name: [getattr(one, name) for one in found] for name in ("pvalue", "adjusted", "gap_beyond", "share")
        }
        columns["beyond"] = ["; ".join(one.beyond) for one in found]
        if any(one.label != self.label for one in self.tested):
            columns["label"] = [one.label for one in found]
        return columns

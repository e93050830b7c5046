"""`find_segments`: the public function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np

from ...data.checks import check_choice, check_int, check_level, check_random_state, is_auto
from ...data.predictions import Predictions
from ...data.public_function import InputOptions, public_function
from ...data.types import AnyArray, Interval, RandomState
from ...data.validation import as_predictions
from ...measure.reliability import reliability_curve
from ...measure.result import ReliabilityCurve
from ...notions import ClassSpecific, Confidence, Notion, as_notion
from ...significance.result import few_groups
from .confirm import Options, Tested, fits, gains, simulate, split
from .features import Features, read_features
from .offsets import SegmentRows
from .segment_report import Segment, SegmentReport

#: Most conditions of a segment: four are hard to interpret together.
_MOST_TERMS = 4
_CONFIRM = ("auto", "simulate", "split")


@public_function(grouped=True)
def find_segments(
    y_true: Any,
    y_prob: Any = None,
    X: Any = None,
    *,
    max_terms: int = 3,
    min_rows: str | int = "auto",
    level: float = 0.95,
    confirm: str = "auto",
    max_rows: int | None = None,
    notion: str | Notion = "auto",
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> SegmentReport:
    r"""Find segments of rows in which the model is miscalibrated, by features; p-values allow for the search.

    A segment consists of the rows that meet up to three conditions, such as ``region is north and age ≥ 60``. A
    recalibration map c of all rows is fitted first (a polynomial logistic curve of the score, its degree chosen as by
    :func:`calibrant.significance.calibration_belt`), and a segment S is tested by the score statistic of an offset in
    the logit beyond it,

    .. math:: z = \sum_{i \in S} w_i (o_i - c_i) \Big/ \sqrt{\mathrm{Var}},

    where Var is the variance of the sum, reduced by the fit of the map. Miscalibration common to all rows is therefore
    not reported for every segment: :func:`calibrant.report` shows it.

    Parameters
    ----------
    X : array of shape (n, F), mapping, data frame, or list of columns
        Features: numbers, texts, categories, booleans, dates. Missing values are a separate value. With a data frame of
        labels and probabilities, names of its columns. If ``y_true`` is Predictions, pass ``X`` as a keyword.
    max_terms : int from 1 to 4, default 3
        Largest number of conditions of a segment.
    min_rows : "auto" or int, default "auto"
        Smallest number of rows in a segment, and outside it. The variance of its outcomes, :math:`\sum c (1 - c)`, is
        always at least 20 (10 in the searched half of a split): fewer rare outcomes cannot show anything.
    level : float, default 0.95
        Level of the intervals; adjusted p-values are compared with ``1 - level``.
    confirm : {"auto", "simulate", "split"}, default "auto"
        How to distinguish segments from chance findings. ``"simulate"``: all rows are searched, and the best segment is
        compared with those of 199 searches on outcomes drawn from c (for dependent rows, on residuals whose signs are
        flipped by whole groups), or of 99 beyond :math:`10^7` values of features. ``"split"``: half of the rows, or of
        the groups, is searched, and the segments found are tested on the other half. ``"auto"``: ``"simulate"`` up to
        :math:`10^7` values, which takes about a minute.
    max_rows : int, optional
        Largest number of rows that are searched: a random sample, of whole groups; by default all. With it, a data
        frame whose columns are given by name may be a lazy one of Polars, DuckDB, Dask or PySpark, whose engine draws
        the rows, not whole groups: only these are loaded into memory.
    notion : str or Notion, default "auto"
        The notion of calibration. With one problem per class (``"classwise"``), every class is searched, and p-values
        and intervals allow for all classes.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as visits of a patient (see :func:`calibrant.as_predictions`).

    Returns
    -------
    SegmentReport
        ``str(report)``, ``.segments``, ``.to_frame()``, ``.mask(i)``, ``.apply(X)``, ``.plot()``, ``.to_html()``,
        ``.to_dict()``.

    Raises
    ------
    ValueError, TypeError
        For invalid input.

    See Also
    --------
    calibrant.subgroup_calibration : Subgroups that are given in advance.
    calibrant.calibrators.SegmentCalibrator : Recalibrates the model in segments.
    calibrant.results.SegmentReport : The result, field by field.

    Notes
    -----
    Numbers are cut into 16 bins of about equally many rows, and the ends of the segments found are refined among 64; of
    a category, the 200 most frequent values are distinguished. Features that are constant, entirely missing, or
    different in nearly every row (texts), and those that determine the outcome, are left out, and listed in the report.
    A beam of ten segments of each length is extended by every condition; segments are ranked by z²/2 minus a penalty of
    their length: the mean rank of the best simulated segment, or for a split the logarithm of the number of segments.
    The best is added to the map as an offset, and the search is repeated until its best segment is not significant.

    The interval of a gap, observed minus predicted for the scores as given, is simultaneous for all segments that could
    have been found (after a split, for those that were tested): it is wide because the segment was selected. The
    interval of a segment found may contain 0: outcomes there differ from those at the same scores elsewhere, but the
    scores may be right there and wrong elsewhere. Both numbers are reported.

    False positives and power: benchmarks/coverage/segments.md. Cost: O(n F) for each parent in the beam, and n F bytes
    of memory; 200 times as long with ``"simulate"``.

    References
    ----------
    Hébert-Johnson et al. (2018), *Multicalibration: calibration for the (computationally-identifiable) masses*;
    Westfall & Young (1993), *Resampling-based multiple testing* (the largest statistic); Zhang & Neill (2016),
    *Identifying significant predictive bias in classifiers*; Holm (1979), *A simple sequentially rejective multiple
    test procedure*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(1)
    >>> p, age, region = rng.random(8000), rng.integers(18, 90, 8000), rng.choice(["north", "south"], 8000)
    >>> wrong = (region == "north") & (age >= 60)
    >>> y = rng.random(8000) < np.where(wrong, p**2, p)
    >>> found = cal.find_segments(y, p, {"age": age, "region": region})
    >>> [segment.condition for segment in found.segments]
    ['age ≥ 60 and region is north']
    >>> found.segments[0].gap_interval.high < 0
    True
    """
    check_choice("confirm", confirm, _CONFIRM)
    rows = 0 if is_auto(min_rows) else check_int("min_rows", min_rows, 1, instead="'auto' or ")
    options = Options(check_int("max_terms", max_terms, 1, _MOST_TERMS), rows, check_level(level))
    most = None if max_rows is None else check_int("max_rows", max_rows, 1, instead="None or ")
    # A stream of its own: rows are often simulated with the same seed, and draws would repeat what made them.
    rng = np.random.default_rng(check_random_state(random_state).integers(2**63, size=4))
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    if chosen.vector:
        raise ValueError(f"notion must have one score per problem; {chosen.name!r} has vectors: use 'classwise'")
    problems = list(_problems(chosen, p))
    several = len(problems) > 1
    names = [str(rows.label) if several else "" for rows in problems]
    happened = {name: (rows.at, rows.outcomes) for name, rows in zip(names, problems, strict=True)}
    features = read_features(X, p.n_given, happened)
    notes = [*features.notes]
    if most is not None and most < p.n_given:
        kept = _sample(p, most, rng)
        problems = [rows.some(kept[rows.at]) for rows in problems]
        notes.append(f"a random sample of {int(kept.sum()):,} rows was searched (max_rows)")
    way = confirm if confirm != "auto" else "simulate" if fits(features, problems) else "split"
    if p.groups is not None:
        notes += few_groups(p.n_groups)
    tested = (simulate if way == "simulate" else split)(features, problems, options, rng) if features.each else []
    if not features.each:
        notes.append("no feature is left to search")
    elif not tested:
        notes.append("nothing could be tested: outcomes are all equal or separated by the scores, or rows are too few")
    masks = [features.mask(one.conditions) for one in tested]
    return SegmentReport(
        tested=tuple(_segments(tested, masks, features, problems, options.level, (chosen, p))),
        confirm=way,
        features=tuple(one.name for one in features.each),
        left_out=dict(features.left_out),
        notion=chosen.name,
        label=None if several else problems[0].label,
        level=options.level,
        n_samples=p.n_samples,
        n_groups=None if p.groups is None else p.n_groups,
        warnings=tuple(notes),
        _rules=tuple(one.conditions for one in tested),
        _coded=features.each,
        _masks=tuple(np.packbits(mask) for mask in masks),
        _given=p.n_given,
    )


def _problems(notion: Notion, p: Predictions) -> Iterator[SegmentRows]:
    reduced: Any = notion.reduce(p)  # of one score: problems side by side
    together = p.together
    for target, problem in zip(notion.targets(p), reduced, strict=True):
        rows = np.arange(p.n_samples) if target.rows is None else np.asarray(target.rows)
        yield SegmentRows.of(
            problem, rows if p.given is None else p.given[rows], None if together is None else together[rows]
        )


def _sample(p: Predictions, most: int, rng: np.random.Generator) -> AnyArray:
    """Mask of the given rows that are kept: at random, whole groups as long as they fit."""
    unit = np.arange(p.n_given)
    if p.groups is not None:
        unit[np.arange(p.n_samples) if p.given is None else p.given] = p.groups
    order = rng.permutation(int(unit.max()) + 1)
    size = np.cumsum(np.bincount(unit, minlength=order.size)[order])
    return np.isin(unit, order[: max(1, int(np.searchsorted(size, most, side="right")))])


def _segments(
    tested: Sequence[Tested],
    masks: Sequence[AnyArray],
    features: Features,
    problems: Sequence[SegmentRows],
    level: float,
    about: tuple[Notion, Predictions],
) -> Iterator[Segment]:
    """Segments as they are reported."""
    found = [one.adjusted <= 1 - level for one in tested]
    total = float(gains(problems).sum()) + sum(
        max(one.gain, 0.0) for one, is_one in zip(tested, found, strict=True) if is_one
    )
    for i, one in enumerate(tested):
        observed, stated, beyond, error = map(float, one.numbers)
        gap, reach = observed - stated, float(one.reach) * error
        before = [j for j in range(i) if found[j] and tested[j].place == one.place and (masks[i] & masks[j]).any()]
        yield Segment(
            condition=features.said(one.conditions),
            label=problems[one.place].label,
            n_samples=one.n,
            base_rate=observed,
            mean_probability=stated,
            gap=gap,
            # An observed frequency lies in [0, 1].
            gap_interval=Interval(max(gap - reach, -stated), min(gap + reach, 1 - stated)),
            gap_beyond=beyond,
            pvalue=one.pvalue,
            adjusted=one.adjusted,
            critical=one.reach,
            share=max(one.gain, 0.0) / total if found[i] and total > 0 else float("nan"),
            beyond=tuple(features.said(tested[j].conditions) for j in before),
            curve=_curve(*about, masks[i], problems[one.place], level) if found[i] else None,
        )


def _curve(notion: Notion, p: Predictions, mask: AnyArray, rows: SegmentRows, level: float) -> ReliabilityCurve:
    """Reliability curve of the rows of a segment."""
    inside = mask[rows.at] if p.given is None else mask[p.given]
    if notion.per_class:
        notion = Confidence() if notion.splits else ClassSpecific(rows.label)
    some = p.subset(np.sort(rows.at[inside]) if p.given is None else np.flatnonzero(inside))
    return reliability_curve(some, notion=notion, level=level)

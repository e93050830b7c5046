"""`ModelComparison`: models on the same rows and their differences; a frozen result with accessors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ...data.checks import check_choice
from ...data.printing import (
    half_width,
    known,
    number_of,
    printable,
    pvalue_text,
    shorten,
    signed,
    text_table,
    text_width,
    with_ends,
)
from ...data.result import Paged, Picture, Result, Section, plain
from ...data.types import Interval
from ...measure.scoring_rules import brier_words

_ERRORS = {
    "calibration_error": "calibration error",
    "squared_calibration_error": "squared calibration error",
    "accuracy": "accuracy",
}
#: Most pairs that are printed per measure; of more, only those that differ.
_MOST_PAIRS = 15
#: Most characters of a name, and most models side by side in a table.
_WIDEST_NAME, _BESIDE = 28, 6
#: Characters of the longest measure, and of the text next to a pair.
_MEASURE, _NUMBERS = 28, 70


def measure_text(measure: str) -> str:
    """A measure in words: ``brier_miscalibration`` is "Brier score: miscalibration"."""
    if measure in _ERRORS:
        return _ERRORS[measure]
    score, _, part = (
        measure.partition("_") if measure.endswith(("_miscalibration", "_discrimination")) else (measure, "", "")
    )
    said = {"brier": "Brier score", "log-loss": "log-loss", "spherical": "spherical score"}.get(score, score)
    return f"{said}: {part}" if part else said


def higher_is_better(measure: str) -> bool:
    """Whether higher values of a measure are better: accuracy and discrimination; all others are losses."""
    return measure == "accuracy" or measure.endswith("_discrimination")


@dataclass(frozen=True, repr=False)
class ComparedModel(Result):
    """One model of a comparison.

    Attributes
    ----------
    name : str
        Name of the model.
    measures : mapping of str to float
        Value of each measure for this model, as given by :func:`calibrant.calibration_error` and
        :func:`calibrant.decompose`.

    See Also
    --------
    calibrant.compare_models : Computes it, in ``models``.
    calibrant.results.ModelComparison : The whole comparison.

    Examples
    --------
    >>> import calibrant as cal
    >>> a, b = [0.2, 0.7, 0.9, 0.4], [0.1, 0.9, 0.8, 0.2]
    >>> found = cal.compare_models([0, 1, 1, 0], {"a": a, "b": b}, n_resamples=100)
    >>> [(model.name, round(model.measures["brier"], 4)) for model in found.models]
    [('a', 0.075), ('b', 0.025)]
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the comparison draws it."

    name: str
    measures: Mapping[str, float]

    @property
    def summary(self) -> str:
        """The model's first measure, in words."""
        name, value = next(iter(self.measures.items()))
        return f"The {measure_text(name)} of {printable(self.name)} is {value:.4f}."

    def to_dict(self) -> dict[str, Any]:
        """The model's name and measures as a dictionary."""
        return {"name": self.name} | {k: plain(v) for k, v in self.measures.items()}


@dataclass(frozen=True, repr=False)
class Difference(Result):
    """Difference of one measure between two models on the same rows.

    Attributes
    ----------
    measure : str
        Name of the measure.
    model, other : str
        Names of the models.
    value : float
        The measure of ``model`` minus that of ``other``.
    corrected : float
        The difference corrected for the known bias of noise: the middle of the interval. Scores and accuracy have no
        such bias.
    se : float
        Standard error; for calibration errors, the mean of those below and above ``corrected``.
    interval : Interval
        Interval at the comparison's level; NaN where a value is not finite.
    pvalue : float
        Two-sided p-value (null: the models do not differ).
    adjusted : float
        The p-value, adjusted for the number of pairs.
    better : str or None
        The better model by this measure; None if ``adjusted`` is not below ``1 - level``.

    See Also
    --------
    calibrant.compare_models : Computes it, in ``differences``.
    calibrant.results.ModelComparison : The whole comparison; its method ``difference`` returns one.

    Examples
    --------
    >>> import calibrant as cal
    >>> a, b = [0.2, 0.7, 0.9, 0.4], [0.1, 0.9, 0.8, 0.2]
    >>> found = cal.compare_models([0, 1, 1, 0], {"a": a, "b": b}, n_resamples=100)
    >>> round(found.difference("brier", "a", "b").value, 4)
    0.05
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the comparison draws it."

    measure: str
    model: str
    other: str
    value: float
    corrected: float
    se: float
    interval: Interval
    pvalue: float
    adjusted: float = float("nan")
    better: str | None = None

    @property
    def summary(self) -> str:
        """The difference in words, and which of the models is better."""
        found = "they do not differ significantly" if self.better is None else f"{printable(self.better)} is better"
        pair = f"{printable(self.model)} minus that of {printable(self.other)}"
        return f"The {measure_text(self.measure)} of {pair} is {with_ends(self.value, self.interval, signed)}: {found}."


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Picture, Paged):
    """Result of :func:`calibrant.compare_models`.

    Attributes
    ----------
    models : tuple of ComparedModel
        The models, in the order given.
    differences : tuple of Difference
        Differences, measure by measure: every pair, or every model minus the reference.
    adjust : str
        How p-values are adjusted for the number of pairs.
    reference : str or None
        The model that all others are compared to; None for every pair.
    n_samples : int
        Number of rows, including those of weight 0.
    n_groups : int or None
        Number of groups treated as independent; None if rows are.
    warnings : tuple of str
        Reasons why intervals and p-values may be inaccurate; empty if there are none.

    See Also
    --------
    calibrant.compare_models : Computes it.
    calibrant.plot.ModelComparisonDisplay : Draws it.

    Examples
    --------
    >>> import calibrant as cal
    >>> a, b = [0.2, 0.7, 0.9, 0.4], [0.1, 0.9, 0.8, 0.2]
    >>> found = cal.compare_models([0, 1, 1, 0], {"a": a, "b": b}, n_resamples=100)
    >>> [model.name for model in found.models], found.n_samples
    (['a', 'b'], 4)
    """

    display: ClassVar[str] = "ModelComparisonDisplay"
    title: ClassVar[str] = "Models on the same rows"

    models: tuple[ComparedModel, ...]
    differences: tuple[Difference, ...]
    level: float
    adjust: str
    reference: str | None
    notion: str
    estimator: str
    n_samples: int
    n_groups: int | None
    warnings: tuple[str, ...] = field(default=())
    n_classes: int = 0

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures, in order."""
        return tuple(self.models[0].measures)

    def of(self, measure: str) -> tuple[Difference, ...]:
        """Differences of one measure; raises ValueError for an unknown measure.

        Parameters
        ----------
        measure : str
            Name of the measure.
        """
        check_choice("measure", measure, self.measures)
        return tuple(d for d in self.differences if d.measure == measure)

    def difference(self, measure: str, model: str, other: str) -> Difference:
        """Difference of a measure, ``model`` minus ``other``, in either order of the pair.

        Parameters
        ----------
        measure : str
            Name of the measure.
        model, other : str
            Names of the models.
        """
        for d in self.of(measure):
            if (d.model, d.other) == (model, other):
                return d
            if (d.model, d.other) == (other, model):
                low, high = d.interval
                turned = Interval(-high, -low)
                return replace(d, model=model, other=other, value=-d.value, corrected=-d.corrected, interval=turned)
        raise ValueError(f"{model!r} and {other!r} were not compared; compared models: {[m.name for m in self.models]}")

    def _text(self) -> str:
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        lines = [f"{len(self.models)} models on the same {self.n_samples:,} rows{groups}", ""]
        values = [self._values(measure) for measure in self.measures]
        told = {"": list(map(measure_text, self.measures))}
        names = self._names((text_width() - _MEASURE) // min(len(self.models), _BESIDE) - 2)
        models = list(zip(names, zip(*values, strict=True), strict=True))
        for start in range(0, len(models), _BESIDE):
            lines += text_table(told | dict(models[start : start + _BESIDE]))
        lines += ["", f"differences, with {100 * self.level:g} % intervals", *self._differences(), "", self._note()]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    def _names(self, width: int) -> list[str]:
        """Names of the models, shortened to a reasonable width."""
        return shorten([m.name for m in self.models], int(np.clip(width, 10, _WIDEST_NAME)))

    def _values(self, measure: str) -> list[str]:
        """A measure of each model, with the digits that intervals of differences allow."""
        widths = [w for d in self.of(measure) if (w := half_width(*d.interval)) > 0]
        spread = float(np.median(widths)) if widths else 0.5 / np.sqrt(self.n_samples)
        return [known(m.measures[measure], spread) for m in self.models]

    def _differences(self) -> list[str]:
        """Pairs measure by measure; of many, only those that differ."""
        names = dict(zip((m.name for m in self.models), self._names((text_width() - _NUMBERS) // 2), strict=True))
        shown = [
            [d for d in self.of(measure) if d.better is not None or len(self.of(measure)) <= _MOST_PAIRS]
            for measure in self.measures
        ]
        columns: dict[str, list[str]] = {head: [] for head in ("pair", "difference", "interval", "p", "better")}
        for d in chain(*shown):
            value, low, high = (signed(v, half_width(*d.interval)) for v in (d.value, *d.interval))
            told, adjusted = d.pvalue == d.pvalue, "" if d.adjusted == d.pvalue else f" ({pvalue_text(d.adjusted)})"
            columns["pair"].append(f"{names[d.model]} - {names[d.other]}")
            columns["difference"].append(value)
            columns["interval"].append(f"{low} to {high}" if told else "a score is infinite")
            columns["p"].append(pvalue_text(d.pvalue) + adjusted if told else "–")
            columns["better"].append("" if d.better is None else "first" if d.better == d.model else "second")
        head, *rows = text_table(columns, marks=[" "] * len(columns["pair"]))
        lines = [head]
        for measure, found in zip(self.measures, shown, strict=True):
            lines.append(f"{measure_text(measure)} ({'higher' if higher_is_better(measure) else 'lower'} is better)")
            lines += rows[: len(found)]
            del rows[: len(found)]
            if left := len(self.of(measure)) - len(found):
                lines.append(f"  {left} of {left + len(found)} pairs do not differ significantly")
        return lines

    def _note(self, where: str = "in brackets") -> str:
        pairs = len(self.of(self.measures[0]))
        note = "Differences are the first model minus the second. "
        if self.adjust != "none" and pairs > 1:
            adjusted = f"P-values {where} are adjusted for {pairs} pairs ({self.adjust.capitalize()})"
            note += f"{adjusted} and decide which pairs differ. "
        note += (
            "Intervals of calibration errors and of parts of scores are corrected for bias and need not contain "
            "the difference."
        )
        if self.n_classes and "brier" in self.measures:
            note += f" Brier scores are {brier_words(self.n_classes)}."
        if self.n_groups is not None:
            note += " Rows within a group are treated as dependent."
        return note

    @property
    def summary(self) -> str:
        """Which models are better calibrated than others, and what a proper score says otherwise."""
        measure = self.measures[0]
        values = {m.name: m.measures[measure] for m in self.models}
        first = self.reference if self.reference is not None else min(values, key=lambda name: values[name])

        def ranked(by: str) -> dict[str, str | None]:
            return {name: self.difference(by, first, name).better for name in values if name != first}

        found = ranked(measure)
        said = _better(first, found, "better calibrated than")
        if alike := [name for name, better in found.items() if better is None]:
            no = "no" if said else "There is no"
            said.append(f"{no} significant difference between {first} and {_listed(alike)}")
        summary = f"{'; '.join(said)} ({measure_text(measure)}, {self.n_samples:,} rows)."
        for score in self.measures:
            if f"{score}_miscalibration" not in self.measures:
                continue
            others = {name: better for name, better in ranked(score).items() if better not in (None, found[name])}
            if others:
                return f"{summary} By the {measure_text(score)}, {' and '.join(_better(first, others, 'better than'))}."
        return summary

    def _sections(self) -> list[Section]:
        columns: dict[str, list[Any]] = {"model": [m.name for m in self.models]}
        # Parts of scores and squares have their differences below.
        main = [k for k in self.measures if not k.startswith("squared") and ":" not in measure_text(k)]
        columns |= {measure_text(k): self._values(k) for k in main}
        out = [Section("Models", columns)]
        for k, measure in enumerate(self.measures):
            found = sorted(self.of(measure), key=lambda d: d.better is None)
            told: dict[str, list[Any]] = {
                "first minus second": [f"{d.model} − {d.other}" for d in found],
                "difference": [d.value for d in found],
                "low": [d.interval.low for d in found],
                "high": [d.interval.high for d in found],
                "p-value": [pvalue_text(d.adjusted) for d in found],
                "better": [d.better or "–" for d in found],
            }
            apart = sum(d.better is not None for d in found)
            name = f"Differences of the {measure_text(measure)}" if k == 0 else measure_text(measure)
            if k > 0:
                name += f" ({apart or 'none'} of {number_of(len(found), 'pair')} differ{'s' * (apart == 1)})"
            note = f"* the models differ at {1 - self.level:.3g}. {self._note('here')}" if k == 0 else ""
            out.append(Section(name, told, [d.better is not None for d in found], note, folded=k > 0))
        return out

    def _columns(self) -> dict[str, Any]:
        def column(name: str) -> list[Any]:
            return [getattr(d, name) for d in self.differences]

        columns = {name: column(name) for name in ("measure", "model", "other", "value", "corrected", "se")}
        columns |= {
            "low": [d.interval.low for d in self.differences],
            "high": [d.interval.high for d in self.differences],
        }
        return columns | {name: column(name) for name in ("pvalue", "adjusted", "better")}


def _better(first: str, found: Mapping[str, str | None], than: str) -> list[str]:
    """Clauses on which models are better than the first, and than which it is."""
    better = [name for name, one in found.items() if one == name]
    worse = [name for name, one in found.items() if one == first]
    said = [f"{_listed(better)} {'is' if len(better) == 1 else 'are'} {than} {first}"] if better else []
    return [*said, f"{first} is {than} {_listed(worse)}"] if worse else said


def _listed(names: list[str]) -> str:
    """A list of names in words."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

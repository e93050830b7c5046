"""Descriptions of parameters that many functions share, written once and inserted into the docstring of each."""

from __future__ import annotations

import inspect
import re
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class SharedParameters:
    """Descriptions of parameters for functions that do not describe them.

    ``rows`` describes ``y_true`` in functions that also take an Accumulator.

    Parameters
    ----------
    y_true : array-like of shape (n,), one-hot (n, K) or of several labels (n, L), or Predictions
        Observed labels; for two classes also shares in [0, 1] (k of n draws; see :func:`calibrant.as_predictions`).
        :class:`calibrant.Predictions`, returned by that function, replace ``y_true``, ``y_prob`` and all arguments that
        describe them.
    rows : array-like of shape (n,), one-hot (n, K) or of several labels (n, L), Predictions or Accumulator
        Observed labels; for two classes also shares in [0, 1] (k of n draws; see :func:`calibrant.as_predictions`).
        :class:`calibrant.Predictions`, or the sums of a :class:`calibrant.Accumulator`, replace
        ``y_true``, ``y_prob`` and all arguments that describe them.
    y_prob : array-like of shape (n,) or (n, K)
        Predicted probabilities. 1-D: those of ``pos_label``. 2-D: one column per class, in the order of ``labels``.
    notion : {"auto", "class-specific", "classwise", "multilabel", "ordinal", "confidence", "top-label", "canonical", \
"drawn-class"} or Notion, default "auto"
        The notion of calibration; ``"ordinal"`` is for ordered classes and takes each cumulative probability.
        ``"auto"``: the positive class for a 1-D ``y_prob``, ``"multilabel"`` if rows of ``y_true`` have several labels
        or none, else the confidence.
    estimator : "auto", str or Estimator, default "auto"
        The estimator of the calibration error. ``"auto"``: ``EmpiricalBayes()``; for the canonical notion
        :class:`calibrant.estimators.DirichletKernel` over residuals, debiased; for the drawn class
        ``SimplexBinned("cbrt")``.
    norm : float, default 1
        The power p ≥ 1 of the error, or inf for the maximum. Classes combine as ``(mean of p-th powers)^(1/p)``.
    level : float in (0, 1), default 0.95
        Level of the intervals.
    n_resamples : int, default 999
        Number of draws from the null distribution: sets of labels, or with ``groups`` random signs of whole groups'
        residuals. A test with a known null distribution draws only with ``groups``.
    random_state : int, Generator or None, default 0
        Seed or generator of the random draws; the same seed gives the same result.
    labels : sequence of K labels, optional
        The labels, in the order of the columns of probabilities. Default: the column names of a data frame if they are
        the labels, else the sorted unique labels; :func:`calibrant.as_predictions` has the details.
    pos_label : label, optional
        The label whose probability a 1-D input holds. Default: 1 for labels in {0, 1}, {-1, 1} or bool.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights, not all 0. Whole numbers stand for repeated rows, other weights are relative.
    sum_tolerance : float, optional
        Largest accepted ``|row sum - 1|`` of 2-D probabilities. Default: 1e-5 for float64, 1e-4 for float32, 1e-2 for
        float16, 8e-2 for bfloat16.
    from_logits : bool, default False
        Whether logits are passed in place of probabilities: log odds of ``pos_label`` (1-D), or softmax logits (2-D).
    groups : array-like of shape (n,), or name of a column, optional
        The group of each row, such as a prompt, a patient or an event. Rows of one group may depend on each other,
        groups are independent. Default: all rows are independent.
    group_average : {"micro", "macro"}, default "micro"
        ``"micro"``: rows have equal weight. ``"macro"``: groups do (weights are divided by their sum in the group).
    label, prob, weight : str, or list of str, optional
        Names of columns of a data frame that is passed first, in place of labels and probabilities: the columns of the
        labels, of the probabilities (a list has one column per class) and of the weights.
    candidates : mapping of str to Calibrator or its name, or list of names, optional
        Calibrators to choose from, from the simplest to the most flexible; by default those of
        :func:`calibrant.calibrators.default_candidates`.
    goal : {"log-loss", "brier", "calibration"}, default "log-loss"
        The criterion. The first two are proper scores: the log-loss counts probabilities of labels as at least 1e-6;
        the Brier score for two classes is ``(p - o)²``. ``"calibration"``: the error of
        :func:`calibrant.calibration_error` (of the second class for 1-D scores, else of the confidence), among
        candidates that worsen neither proper score by more than its standard error; among errors within one standard
        error of the smallest, the log-loss decides by the same rule.
    rule : {"average", "one-standard-error", "best"}, default "average"
        ``"average"``: candidates are weighted by their held-out losses, and their average is shrunk to the original
        scores (see :class:`calibrant.AutoCalibrator`). The others choose one candidate: the first whose loss is within
        one standard error of the smallest, or the one with the smallest. The standard error is that of the paired
        differences of rows, or of the calibration error itself. For ``goal="calibration"``, where averages would be
        under-confident, ``"average"`` is the one-standard-error rule.
    eps : float, default 1e-12
        Probabilities are clipped to [eps, 1 - eps] before their logarithms are taken.
    ax : matplotlib Axes, optional
        Axes to draw on; by default those of a new figure.
    """


def document(thing: T, *sources: Any, heading: str = "Parameters", instead: dict[str, str] | None = None) -> T:
    """Complete a docstring by taking missing descriptions from the first of ``sources`` that has them.

    The default source is :class:`SharedParameters`. Entries are put in the order of the signature. ``instead`` maps
    parameters to their names in a source. Without docstrings (``python -OO``) nothing happens.
    """
    if not thing.__doc__:
        return thing
    text = inspect.cleandoc(thing.__doc__)
    names, own = _names(thing), dict(_entries(text, heading))
    missing = set(names).difference(*own)
    for source in (sources or (SharedParameters,)) if missing else ():
        for known, entry in _entries(inspect.cleandoc(source.__doc__ or ""), heading).items():
            if taken := [name for name in names if name in missing and (instead or {}).get(name, name) in known]:
                own[tuple(taken)] = ", ".join(taken) + entry.removeprefix(", ".join(known))
                missing.difference_update(taken)
    place = {name: i for i, name in enumerate(names)}
    inside = "\n".join(own[known] for known in sorted(own, key=lambda known: place.get(known[0], len(names))))
    if found := _section(text, heading):
        text = text[: found.start] + inside + text[found.stop :]
    elif inside:
        first = re.search(r"^.+\n---+$", text, re.MULTILINE)
        before, after = (text[: first.start()], "\n\n" + text[first.start() :]) if first else (text, "")
        text = f"{before.rstrip()}\n\n{heading}\n{'-' * len(heading)}\n{inside}{after}"
    thing.__doc__ = text + "\n"
    return thing


class Documented:
    """Base of classes whose docstrings, and those of their methods, are completed from their bases."""

    #: Section of a class that describes its fields: "Attributes" for results.
    _fields_heading: ClassVar[str] = "Parameters"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        bases = cls.__mro__[1:-1]
        document(cls, *bases, SharedParameters, heading=cls._fields_heading)
        for name, method in list(vars(cls).items()):
            function = getattr(method, "__func__", method)
            if not name.startswith("_") and inspect.isfunction(function):
                document(function, *(vars(base)[name] for base in bases if name in vars(base)), SharedParameters)


def _names(thing: Any) -> list[str]:
    """Parameters of a function or a constructor; fields of what will be a dataclass, in the order of its signature."""
    thing = vars(thing).get("__init__", thing)
    if not isinstance(thing, type):
        code, given = (
            thing.__code__,
            getattr(thing, "__signature__", None),
        )  # inspect.signature() takes as long as all else
        names = given.parameters if given else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return [name for name in names if name not in ("self", "cls")]
    fields: dict[str, bool] = {}
    for base in reversed(thing.__mro__):
        by_name = False
        for name, kind in inspect.get_annotations(base).items():
            by_name |= "KW_ONLY" in str(kind)
            if name == name.strip("_") and "ClassVar" not in str(kind):
                fields[name] = by_name
    return sorted(fields, key=lambda name: fields[name])


def _section(text: str, heading: str) -> slice | None:
    """Where the entries of a section are."""
    head = re.search(rf"^{heading}\n-+\n", text, re.MULTILINE)
    if head is None:
        return None
    after = re.compile(r"\n\n\S.*\n---").search(text, head.end())
    return slice(head.end(), after.start() if after else len(text))


@lru_cache(16)  # sources are read again and again
def _entries(text: str, heading: str) -> dict[tuple[str, ...], str]:
    """Entries of a section, by the names that they describe."""
    found = _section(text, heading)
    entries = re.split(r"\n(?=\S)", text[found].rstrip()) if found else []
    return {tuple(re.split(r" :|\n", entry)[0].split(", ")): entry for entry in entries}

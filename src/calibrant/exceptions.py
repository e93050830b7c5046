"""Warnings of this package: each class names a cause that a user can settle; all derive from `CalibrantWarning`."""

from __future__ import annotations

__all__ = [
    "BandwidthWarning",
    "CalibrantWarning",
    "CensoringWarning",
    "ConvergenceWarning",
    "DependenceWarning",
    "LabelWarning",
    "PriorShiftWarning",
    "ScoreWarning",
    "UndefinedErrorWarning",
    "UnreadAnswersWarning",
]


def __dir__() -> list[str]:
    return list(__all__)


class CalibrantWarning(UserWarning):
    """Base class of every warning that calibrant emits.

    See Also
    --------
    calibrant.exceptions.LabelWarning : One of them.
    calibrant.exceptions.ScoreWarning : Another one.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import CalibrantWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", CalibrantWarning)  # none of them is shown in this block
    """


class LabelWarning(CalibrantWarning):
    """Labels can be matched to columns in two ways; the message says which was taken and how to settle it.

    See Also
    --------
    calibrant.as_predictions : Emits it; ``labels=`` settles it.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import LabelWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", LabelWarning)  # in this block it is an error
    """


class ScoreWarning(CalibrantWarning):
    """Scores can be read, but are probably not probabilities; the message names their likely kind.

    See Also
    --------
    calibrant.as_predictions : Emits it.

    Examples
    --------
    >>> import warnings, calibrant as cal
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     rows = cal.as_predictions([0, 1] * 10, [0.0, 1.0] * 10)  # predicted labels
    >>> found[0].category.__name__
    'ScoreWarning'
    """


class UndefinedErrorWarning(CalibrantWarning):
    """An estimator gives no number for the rows it was given, and NaN is returned; the message says which.

    See Also
    --------
    calibrant.calibration_error : Emits it.

    Examples
    --------
    >>> import warnings, calibrant as cal
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     value = cal.calibration_error([1], [0.5], estimator=cal.Binned(debias=True), norm=2)
    >>> value, found[-1].category.__name__
    (nan, 'UndefinedErrorWarning')
    """


class BandwidthWarning(CalibrantWarning):
    """A bandwidth rule could not be applied as asked; the message names the rule used instead.

    See Also
    --------
    calibrant.estimators.Density : An estimator that emits it.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import BandwidthWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", BandwidthWarning)  # it is not shown in this block
    """


class DependenceWarning(CalibrantWarning):
    """Rows that were taken as independent follow each other as if they were not; the message says how to settle it.

    See Also
    --------
    calibrant.report : Emits it, as :func:`calibrant.estimate` of shares does; ``groups=`` settles it.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import DependenceWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DependenceWarning)  # it is not shown in this block
    """


class ConvergenceWarning(CalibrantWarning):
    """An iteration ended before it had converged; the message says how far it came.

    See Also
    --------
    calibrant.calibrators.PlattScaling : A calibrator that emits it.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.calibrators import PlattScaling
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     fitted = PlattScaling(smoothing=False, shrinkage=0).fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    >>> found[0].category.__name__
    'ConvergenceWarning'
    """


class CensoringWarning(CalibrantWarning):
    """Weights of censored follow-up are biased by ties, or make intervals too short; the message says what helps.

    See Also
    --------
    calibrant.censoring_weights : Emits it.

    Examples
    --------
    >>> import warnings, calibrant as cal
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     y_true, weight = cal.censoring_weights([1, 1, 1, 2, 2, 3], [1, 1, 0, 1, 0, 0], horizon=2)
    >>> found[0].category.__name__
    'CensoringWarning'
    """


class PriorShiftWarning(CalibrantWarning):
    """More than base rates has changed between two samples; an estimate of the new base rates may be far off.

    See Also
    --------
    calibrant.estimate_prior : Emits it.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import PriorShiftWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", PriorShiftWarning)  # it is not shown in this block
    """


class UnreadAnswersWarning(CalibrantWarning):
    """Answers in a log have no confidence that can be read, or no verdict; the message counts them by the reason.

    See Also
    --------
    calibrant.llm.read : Emits it; ``.unread`` of its result has the counts.

    Examples
    --------
    >>> import warnings, pandas as pd
    >>> from calibrant import llm
    >>> table = pd.DataFrame({"confidence": ["90 %", "I cannot say.", "70 %"], "correct": [1, 0, 1]})
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     answers = llm.read(table)
    >>> str(found[0].message), answers.unread
    ('1 of 3 answers are left out: 1 refused', {'refused': 1})
    """

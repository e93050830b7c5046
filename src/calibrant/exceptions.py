"""Warnings of this package: one class per cause, each of which users can resolve; base class `CalibrantWarning`."""

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
    "WeightWarning",
]


def __dir__() -> list[str]:
    return list(__all__)


class CalibrantWarning(UserWarning):
    """Base class of all warnings that calibrant emits.

    See Also
    --------
    calibrant.exceptions.LabelWarning : Ambiguous labels.
    calibrant.exceptions.ScoreWarning : Scores that are probably not probabilities.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import CalibrantWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", CalibrantWarning)  # none of them is shown in this block
    """


class LabelWarning(CalibrantWarning):
    """Warning that labels match columns or scores in two ways; the message gives the one used, and how to choose.

    See Also
    --------
    calibrant.as_predictions : Emits it, as ``fit`` of calibrators does; ``labels=`` resolves the ambiguity.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import LabelWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", LabelWarning)  # in this block it is an error
    """


class ScoreWarning(CalibrantWarning):
    """Warning that scores are valid, but probably not probabilities; the message names their likely kind.

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
    """Warning that an estimate is undefined for the given rows, and NaN is returned; the message names the estimator.

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
    """Warning that a bandwidth rule could not be applied; the message names the rule used instead.

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
    """Warning that rows treated as independent seem to depend on their neighbours; the message says what to do.

    See Also
    --------
    calibrant.report : Emits it, as does :func:`calibrant.estimate` for shares; ``groups=`` resolves it.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import DependenceWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", DependenceWarning)  # it is not shown in this block
    """


class ConvergenceWarning(CalibrantWarning):
    """Warning that an iteration ended before convergence; the message says how far it came.

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
    """Warning that censoring weights are biased by ties, or make intervals too short; the message says what helps.

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
    """Warning that two samples differ in more than base rates, so that estimated base rates may be far from the truth.

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
    """Warning that answers in a log lack a readable confidence or a verdict; the message counts them by reason.

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
    ('1 of 3 answers left out: 1 refused', {'refused': 1})
    """


class WeightWarning(CalibrantWarning):
    """Warning that weights depend only on the label, as class weights do, where they are taken as unrelated to it.

    See Also
    --------
    calibrant.report : Emits it, as :func:`calibrant.estimate` and :func:`calibrant.calibration_test` do.
    calibrant.shift_prior : Probabilities for other base rates than those of the rows.

    Examples
    --------
    >>> import warnings
    >>> from calibrant.exceptions import WeightWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", WeightWarning)  # it is not shown in this block
    """

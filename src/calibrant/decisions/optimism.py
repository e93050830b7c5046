"""`optimism_corrected`: calibration measures of a model on the rows of its fit, minus their optimism there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.checks import called, check_int, check_level, check_random_state, check_resamples, received
from ..data.labels import check_label
from ..data.libraries import library_of
from ..data.progress import counted, working
from ..data.result import Measure, MeasuresDrawn, Table, with_origin
from ..data.types import AnyArray, FloatArray, Interval, Label, RandomState
from ..data.validation import read_labels, read_weights
from ..estimators import CellEstimator
from .clinical import ENDLESS, IDEALS, MEASURES, CalibrationMeasures, calibration_measures

#: Measures that noise moves up and down; distances only move up.
_SIGNED = ("observed_expected", "in_the_large", "intercept", "slope")
_TRIES = 1000


@dataclass(frozen=True, eq=False, repr=False)
class OptimismCorrected(MeasuresDrawn, Table):
    """Calibration measures of a model, estimated on its training rows and corrected for optimism.

    Attributes
    ----------
    apparent : mapping of name to float
        Measures of the model fitted to all rows, on these rows; names are those of :class:`CalibrationMeasures`.
    optimism : mapping of name to float
        Mean, over resamples, of a refitted model's measure on its resample minus its measure on all rows.
    corrected : mapping of name to float
        ``apparent - optimism``.
    intervals : mapping of name to Interval
        Intervals of the measures on new rows; for ``observed_expected``, ``in_the_large``, ``intercept``
        and ``slope``, and NaN without a finite estimate.
    n_resamples : int
        Number of resamples.
    label : object
        The class whose probability is evaluated.

    See Also
    --------
    calibrant.decisions.optimism_corrected : Computes it.
    calibrant.results.CalibrationMeasures : The same measures of rows that the model was not fitted to.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 8))
    >>> y = rng.random(100) < 1 / (1 + np.exp(-X[:, 0]))
    >>> found = cal.decisions.optimism_corrected(LogisticRegression(C=100.0), X, y, n_resamples=20)
    >>> found.corrected["slope"] < found.apparent["slope"]
    True
    """

    apparent: Mapping[str, float]
    optimism: Mapping[str, float]
    corrected: Mapping[str, float]
    intervals: Mapping[str, Interval]
    level: float
    n_resamples: int
    n_samples: int
    label: Label
    warnings: tuple[str, ...] = ()

    one_unit: ClassVar[bool] = False
    _blank: ClassVar[str] = "the bootstrap corrects distances, but gives no interval for them"

    def measured(self) -> list[Measure]:
        """Corrected measures; O:E and slope are ideally 1, the others 0."""
        nothing = (float("nan"), float("nan"))
        return [
            Measure(words, self.corrected[name], self.intervals.get(name, nothing), IDEALS.get(name, 0.0))
            for name, words in MEASURES.items()
        ]

    def _columns(self) -> dict[str, Any]:
        none = Interval(float("nan"), float("nan"))
        held = [self.intervals.get(name, none) for name in self.apparent]
        return {
            "measure": list(self.apparent),
            "apparent": list(self.apparent.values()),
            "optimism": list(self.optimism.values()),
            "corrected": list(self.corrected.values()),
            "low": [interval.low for interval in held],
            "high": [interval.high for interval in held],
        }

    def _seen(self) -> Mapping[str, Sequence[Any]]:
        return {**self._columns(), "ideal": [IDEALS.get(name, 0.0) for name in self.apparent]}

    @property
    def summary(self) -> str:
        """The slope on new rows and on training rows, in words."""
        return (
            f"On new rows the calibration slope is expected to be {self.corrected['slope']:.3g}, compared with "
            f"{self.apparent['slope']:.3g} on the training rows."
        )

    def _text(self) -> str:
        lines = [
            f"Calibration measures corrected for optimism, {self.n_samples:,} rows, {self.n_resamples} resamples, "
            f"{100 * self.level:g} % intervals",
            f"  {'':<26}{'apparent':>9}{'optimism':>10}{'corrected':>11}",
        ]
        for name, words in MEASURES.items():
            held = self.intervals.get(name)
            ends = "" if held is None else f"   ({held.low:.4g} to {held.high:.4g})"
            numbers = f"{self.apparent[name]:>9.4g}{self.optimism[name]:>10.3g}{self.corrected[name]:>11.4g}"
            lines.append(f"  {words:<26}{numbers}{ends}")
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def optimism_corrected(
    model: Any,
    X: Any,
    y: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    estimator: str | CellEstimator = "adaptive",
    level: float = 0.95,
    n_resamples: int = 200,
    n_jobs: int | None = 1,
    random_state: RandomState = 0,
) -> OptimismCorrected:
    r"""Calibration of a model on new rows, estimated from its training rows by Harrell's bootstrap.

    .. math:: \text{corrected} = M(f_D, D) - \frac1B \sum_b \big[ M(f_{D_b}, D_b) - M(f_{D_b}, D) \big]

    with M a measure of a model on rows, D all rows, and :math:`D_b` as many drawn from them with replacement, to which
    the whole model is refitted.

    Parameters
    ----------
    model : scikit-learn classifier
        With ``predict_proba``; clones of it are fitted. Include every step that uses the labels, such as feature
        selection (``Pipeline``); otherwise its optimism is missed.
    X : array-like, frame or sparse matrix of n rows
        Features of the training rows.
    y : array-like of shape (n,)
        Their labels, of two classes.
    pos_label : label, optional
        The positive class; by default the second of the model's ``classes_``.
    sample_weight : array-like of shape (n,), optional
        Weights for the measures, and for ``fit`` if the model takes weights. Rows are resampled regardless of weight.
    estimator : {"adaptive", "residual", "density"}, other name or estimator, default "adaptive"
        Estimator of the smooth curve behind the distances; see :func:`calibration_measures`.
    level : float in (0, 1), default 0.95
        Level of the intervals.
    n_resamples : int, default 200
        Number of resamples, each with a fit.
    n_jobs : int or None, default 1
        Number of processes; None for one per processor. The result does not depend on it.
    random_state : int, Generator or None, default 0
        Seed of the resamples; it does not affect the model's own.

    Returns
    -------
    OptimismCorrected
        ``.apparent``, ``.optimism`` and ``.corrected``, by the names of the measures, and ``.intervals``.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.calibration_measures : The same measures on rows that the model was not fitted to.
    calibrant.significance.calibration_belt : The belt of training rows (``devel="internal"``).

    Notes
    -----
    The slope of a logistic regression on its training rows is always 1; the corrected slope is below 1, as on new rows.
    Intervals are pivotal: ``apparent`` minus quantiles of the optimism over resamples, since the optimism of a resample
    is the error of its apparent measure. They are too narrow if the model memorises most of a small sample;
    benchmarks/coverage/optimism.md gives their coverage. Distances (ICI, E50, …) have no interval: noise biases them
    upwards, more so on resamples than on the original rows.

    A resample with one class only is replaced by another. If the model separates the outcomes of a resample, its slope
    and intercepts are infinite; they are left out, with a warning. A model that separates all its training rows, as a
    forest may, has NaN for them.

    Cost: ``n_resamples + 1`` fits, and twice as many predictions on all rows.

    References
    ----------
    Efron (1983); Harrell, Lee & Mark (1996), *Multivariable prognostic models*, Stat. Med. 15:361.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 12))
    >>> y = rng.random(150) < 1 / (1 + np.exp(-X[:, 0]))  # eleven features say nothing
    >>> found = cal.decisions.optimism_corrected(LogisticRegression(C=100.0), X, y, n_resamples=30)
    >>> bool(0.98 < found.apparent["slope"] < 1.02), bool(0.5 < found.corrected["slope"] < 0.9)
    (True, True)
    """
    from joblib import Parallel, cpu_count, delayed
    from sklearn.base import clone
    from sklearn.utils import check_consistent_length

    level, number = check_level(level), check_resamples(n_resamples)
    jobs = int(cpu_count()) if n_jobs is None else check_int("n_jobs", n_jobs, 1, instead="None or ")
    if not (hasattr(model, "fit") and hasattr(model, "predict_proba") and hasattr(model, "get_params")):
        raise TypeError(f"model must be a scikit-learn classifier with predict_proba; got {received(model)}")
    with called(y_true="y"):
        labels = read_labels(y)
    if X is None:
        raise TypeError("X must hold features, one row per label; got None")
    framed = hasattr(X, "__dataframe__")  # scikit-learn before 1.9 asks by that, which Polars deprecates
    check_consistent_length(range(len(X)) if framed else X, labels)
    weights = read_weights(sample_weight, len(labels))
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(f"y must hold two classes; got {len(classes)}")
    if weights is not None and len(np.unique(labels[weights > 0])) < 2:
        raise ValueError("sample_weight must be positive in some row of each class")
    positive = classes[1] if pos_label is None else pos_label
    check_label("pos_label", positive, classes.tolist())
    trial = _Trial(clone(model), X, labels, weights, classes, positive, estimator)
    everything = np.arange(len(labels))
    seeds = check_random_state(random_state).integers(2**63, size=number).tolist()
    with working("optimism_corrected"):
        apparent = trial.measures(trial.fitted(everything), everything)
        runs = Parallel(n_jobs=jobs, return_as="generator")(delayed(trial.optimism)(seed) for seed in seeds)
        table = np.array(list(counted(runs, "resamples", number)))
    ended = np.isfinite(table)
    known = ended.sum(axis=0)
    mean = np.divide(
        np.where(ended, table, 0.0).sum(axis=0), known, out=np.full(len(MEASURES), np.nan), where=known > 0
    )
    corrected = apparent - mean
    tail = (1 - level) / 2
    intervals = {}
    for i, name in enumerate(MEASURES):
        if name in _SIGNED:
            drawn = table[ended[:, i], i]
            several = drawn.size > 1 and bool(np.isfinite(apparent[i]))
            ends = apparent[i] - np.quantile(drawn, [1 - tail, tail]) if several else np.full(2, np.nan)
            # A mean of skewed optimisms can lie outside of their quantiles.
            intervals[name] = Interval(float(min(ends[0], corrected[i])), float(max(ends[1], corrected[i])))
    lost = number - int(known.min())
    warnings = [f"in {lost} of {number} resamples the model separates the rows; infinite measures are left out"]
    if not np.isfinite(apparent).all():
        warnings.append("the model separates all rows: its slope and intercepts are infinite")
    found = OptimismCorrected(
        apparent=_named(apparent),
        optimism=_named(mean),
        corrected=_named(corrected),
        intervals=intervals,
        level=level,
        n_resamples=number,
        n_samples=len(labels),
        label=positive.item() if isinstance(positive, np.generic) else positive,
        warnings=tuple(warnings if lost else warnings[1:]),
    )
    return with_origin(library_of(X, y), found)


@dataclass(frozen=True, eq=False)
class _Trial:
    """A model to be fitted, and all rows."""

    model: Any
    X: Any
    y: AnyArray
    weights: AnyArray | None
    classes: AnyArray
    positive: Any
    estimator: Any

    def fitted(self, rows: AnyArray) -> Any:
        """A clone, fitted to some rows."""
        from sklearn.base import clone
        from sklearn.utils._indexing import _safe_indexing
        from sklearn.utils.validation import has_fit_parameter

        given = {}
        if self.weights is not None and has_fit_parameter(self.model, "sample_weight"):
            given["sample_weight"] = self.weights[rows]
        return clone(self.model).fit(_safe_indexing(self.X, rows), self.y[rows], **given)

    def measures(self, model: Any, rows: AnyArray) -> FloatArray:
        """Measures of a fitted model on some rows; NaN where they are infinite."""
        from sklearn.utils._indexing import _safe_indexing

        column = list(model.classes_).index(self.positive)
        p = np.asarray(model.predict_proba(_safe_indexing(self.X, rows)))[:, column]
        m = calibration_measures(
            self.y[rows],
            p,
            labels=self.classes.tolist(),
            pos_label=self.positive,
            sample_weight=None if self.weights is None else self.weights[rows],
            estimator=self.estimator,
            level=None,
        )
        return _numbers(m)

    def optimism(self, seed: int) -> FloatArray:
        """Measures of a model on the resample of its fit, minus those on all rows."""
        from threadpoolctl import threadpool_limits

        rng, n = np.random.default_rng(seed), len(self.y)
        for _ in range(_TRIES):
            rows = rng.integers(n, size=n)
            seen = rows if self.weights is None else rows[self.weights[rows] > 0]
            if len(np.unique(self.y[seen])) == 2:
                break
        else:
            raise ValueError(f"y must hold enough rows of both classes to resample: {_TRIES} resamples had only one")
        with threadpool_limits(1):  # the number of threads must not change any sum's order
            model = self.fitted(rows)
            return np.asarray(self.measures(model, rows) - self.measures(model, np.arange(n)))


def _named(values: FloatArray) -> dict[str, float]:
    return dict(zip(MEASURES, map(float, values), strict=True))


def _numbers(m: CalibrationMeasures) -> FloatArray:
    values = {name: getattr(m, name) for name in MEASURES}
    if not (m.slope_se < ENDLESS and m.intercept_se < ENDLESS):
        values |= {"slope": np.nan, "intercept": np.nan}
    return np.array([float(v) for v in values.values()])

"""Calibration errors as metrics of other packages; each adapter imports its package only when it is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .data.validation import as_predictions
from .llm.answer import Answer, judged
from .llm.reading import as_answers
from .measure.estimation import calibration_error

__all__ = [
    "evaluate_metric",
    "evidently_metric",
    "harness_aggregation",
    "inspect_metric",
    "keras_callback",
    "mlflow_metric",
    "monai_metric",
    "scorers",
]


def __dir__() -> list[str]:
    return list(__all__)


def evaluate_metric(**options: Any) -> Any:
    """Calibration error of probabilities, as a metric of Hugging Face's ``evaluate``.

    Parameters
    ----------
    **options
        Options of :func:`calibrant.calibration_error`: ``labels``, ``pos_label``, ``notion``, ``estimator``, ``norm``.

    Returns
    -------
    evaluate.Metric
        The metric. ``compute(predictions=…, references=…)`` takes probabilities, (n,) or (n, K), and integer or string
        labels, and returns ``{"calibration_error": …}``; ``add_batch`` and ``evaluate.combine`` are supported.

    Raises
    ------
    ImportError
        If evaluate is not installed.

    See Also
    --------
    calibrant.llm.read : Reads logs after an evaluation, with intervals.

    Notes
    -----
    ``evaluate.load("calibration.py")`` loads it from a file with ``CalibrationError = type(evaluate_metric())``.
    Predictions are stored in float64. Cost: that of :func:`calibrant.calibration_error`.

    Examples
    --------
    >>> from calibrant.adapters import evaluate_metric
    >>> metric = evaluate_metric(estimator="binned:10")  # doctest: +SKIP
    """
    from datasets import Features, Sequence, Value
    from evaluate import Metric, MetricInfo

    shapes = Value("float64"), Sequence(Value("float64"))
    labels = Value("int64"), Value("string")
    kinds = [Features({"predictions": shape, "references": label}) for label in labels for shape in shapes]

    class CalibrationModule(Metric):  # type: ignore[misc]  # of evaluate
        def _info(self) -> Any:
            return MetricInfo(description="Calibration error", citation="", features=kinds)

        def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
            return {"calibration_error": calibration_error(references, predictions, **options)}

    return CalibrationModule()


def evidently_metric(classification: str = "default", **options: Any) -> Any:
    """Calibration error of the probabilities in the data definition, as a metric of Evidently.

    Parameters
    ----------
    classification : str, default "default"
        Name of the task in the data definition.
    **options
        Options of :func:`calibrant.calibration_error`: ``labels``, ``notion``, ``estimator``, ``norm``. Columns of
        probabilities are named after the labels, unless ``labels`` is given.

    Returns
    -------
    SingleValueMetric
        The metric, for ``Report([…])``, which computes it for the current data and for the reference.

    Raises
    ------
    ImportError
        If Evidently is not installed.

    See Also
    --------
    calibrant.estimate : The error with its interval.

    Notes
    -----
    The task needs ``prediction_probas``. Cost: that of :func:`calibrant.calibration_error`, twice with a reference.

    Examples
    --------
    >>> from calibrant.adapters import evidently_metric
    >>> metrics = [evidently_metric(estimator="binned:10")]  # doctest: +SKIP
    """
    from evidently.core.metric_types import SingleValueCalculation, SingleValueMetric

    class CalibrationValue(SingleValueMetric):  # type: ignore[misc]  # of Evidently
        task: str
        given: dict[str, Any]

    class CalibrationCalculation(SingleValueCalculation[CalibrationValue]):  # type: ignore[misc]  # of Evidently
        def display_name(self) -> str:
            return "Calibration error"

        def calculate(self, context: Any, current: Any, reference: Any) -> Any:
            task = context.data_definition.get_classification(self.metric.task)
            given = {"pos_label": getattr(task, "pos_label", None), **self.metric.given}
            frames = [data and data.as_dataframe() for data in (current, reference)]
            return tuple(
                None
                if f is None
                else self.result(calibration_error(f[task.target], f[task.prediction_probas], **given))
                for f in frames
            )

    return CalibrationValue(task=classification, given=options)


def harness_aggregation(**options: Any) -> Callable[[Iterable[tuple[Any, Any]]], float]:
    """Calibration error of the most probable options, as an aggregation of lm-evaluation-harness.

    Parameters
    ----------
    **options
        Options of :func:`calibrant.calibration_error`: ``estimator``, ``norm``.

    Returns
    -------
    callable
        A function of the pairs (correct option, probabilities of the options) that the harness's ``brier_score``
        returns per question; it returns the error. Questions may have any number of options.

    See Also
    --------
    calibrant.llm.read : Reads logs after the evaluation, with intervals.

    Notes
    -----
    In a task's file: ``metric_list: [{metric: brier_score, aggregation: !function calibration.ece}]``, next to a file
    ``calibration.py`` with ``ece = harness_aggregation()``. The harness prints the error under the name
    ``brier_score``. Cost: that of :func:`calibrant.calibration_error`.

    Examples
    --------
    >>> from calibrant.adapters import harness_aggregation
    >>> round(harness_aggregation(estimator="binned:1")([(0, [0.7, 0.3]), (1, [0.5, 0.3, 0.2])]), 12)
    0.1
    """

    def calibration(items: Iterable[tuple[Any, Any]]) -> float:
        rows = [(max(probs), bool(np.isin(np.argmax(probs), gold))) for gold, probs in items]
        return calibration_error([right for _, right in rows], [confidence for confidence, _ in rows], **options)

    return calibration


def inspect_metric(**options: Any) -> Any:
    """Calibration error of confidences in a scorer's ``metadata["confidence"]``, as a metric of inspect_ai.

    Parameters
    ----------
    **options
        Options of :func:`calibrant.calibration_error`: ``estimator``, ``norm``.

    Returns
    -------
    Metric
        The metric, for ``@scorer(metrics=[accuracy(), inspect_metric()])``. Epochs of a sample form a group. Unreadable
        answers are left out with one warning, as by :func:`calibrant.llm.read`.

    Raises
    ------
    ImportError
        If inspect_ai is not installed.

    See Also
    --------
    calibrant.llm.read : Reads logs after the evaluation, with intervals.

    Notes
    -----
    Cost: that of :func:`calibrant.calibration_error`.

    Examples
    --------
    >>> from calibrant.adapters import inspect_metric
    >>> metrics = [inspect_metric(estimator="binned:10")]  # doctest: +SKIP
    """
    from inspect_ai.scorer import metric

    @metric(name="calibration_error", scores="unreduced")  # type: ignore[untyped-decorator]  # of inspect_ai
    def calibration() -> Any:
        def error(scores: list[Any]) -> float:
            found = []
            for i, one in enumerate(scores):
                correct, fault = judged(one.score.value)
                said = (one.score.metadata or {}).get("confidence")
                name = i if one.sample_id is None else one.sample_id
                found.append(Answer(id=name, correct=correct, fault=fault, scored="" if said is None else said))
            return calibration_error(as_answers(found), **options)

        return error

    return calibration()


def keras_callback(x: Any, y: Any, **options: Any) -> Any:
    """Calibration error of held-out rows at the end of each epoch, as a callback of Keras.

    Parameters
    ----------
    x : array, or what ``model.predict`` takes
        Held-out inputs.
    y : array
        Their classes, (n,), or (n, …) for pixels.
    **options
        Options of :func:`calibrant.calibration_error`: ``notion``, ``estimator``, ``norm``, ``from_logits``.

    Returns
    -------
    keras.callbacks.Callback
        The callback. It logs ``val_calibration_error`` for the history and for later callbacks, such as
        ``EarlyStopping``. The last axis of the model's output has the classes, or one probability.

    Raises
    ------
    ImportError
        If Keras is not installed.

    See Also
    --------
    calibrant.torch.CalibrationError : A metric for torch and Lightning.

    Notes
    -----
    Cost per epoch: a prediction of ``x``, and that of :func:`calibrant.calibration_error`.

    Examples
    --------
    >>> from calibrant.adapters import keras_callback
    >>> callbacks = [keras_callback(x_val, y_val, estimator="binned:10")]  # doctest: +SKIP
    """
    import keras

    class EpochCalibration(keras.callbacks.Callback):  # type: ignore[misc]  # of Keras
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            probs = self.model.predict(x, verbose=0)
            probs = probs[..., 0] if probs.shape[-1] == 1 else np.moveaxis(probs, -1, 1)
            logs["val_calibration_error"] = calibration_error(y, probs, **options)

    return EpochCalibration()


def mlflow_metric(*columns: str, **options: Any) -> Any:
    """Calibration error of one column of probabilities, or of one per class, as a metric of MLflow's evaluation.

    Parameters
    ----------
    *columns
        Columns of the data, or of the model's output, with the probability of each class. Their names must be
        Python identifiers, and are the labels unless ``labels`` is given. By default the predictions themselves are the
        probability of the positive class.
    **options
        Options of :func:`calibrant.calibration_error`: ``labels``, ``pos_label``, ``notion``, ``estimator``, ``norm``.

    Returns
    -------
    EvaluationMetric
        The metric, for ``mlflow.models.evaluate(…, extra_metrics=[…])``, which logs it as ``calibration_error``.

    Raises
    ------
    ImportError
        If MLflow is not installed.

    See Also
    --------
    calibrant.report : ``mlflow.log_metrics(report.scalars())`` logs all numbers of a report.

    Notes
    -----
    With ``model_type="classifier"``, MLflow passes classes as predictions; name the columns in this case. It tries a
    metric on the first row before it uses all rows, so labels cannot be inferred: give columns, ``labels`` or
    ``pos_label`` if labels are not 0 and 1.
    Cost: that of :func:`calibrant.calibration_error`.

    Examples
    --------
    >>> from calibrant.adapters import mlflow_metric
    >>> metrics = [mlflow_metric("cat", "dog", "owl", estimator="binned:10")]  # doctest: +SKIP
    """
    from inspect import Parameter, Signature

    import pandas as pd
    from mlflow.models import make_metric

    names = columns or ("predictions",)

    def calibration(*given: Any) -> float:
        *probs, y = map(np.asarray, given)  # whole columns, even beside the first row of the others
        frame = pd.DataFrame({name: one[: len(y)] for name, one in zip(names, probs, strict=True)})
        return calibration_error(y, frame if columns[1:] else frame[names[0]], **options)

    wanted = [Parameter(name, Parameter.POSITIONAL_ONLY) for name in (*names, "targets")]
    calibration.__signature__ = Signature(wanted)  # type: ignore[attr-defined]  # MLflow reads what it is to pass
    return make_metric(eval_fn=calibration, greater_is_better=False, name="calibration_error")


def monai_metric(*, ignore_index: int | None = None, **options: Any) -> Any:
    """Calibration error of the confidences of all pixels, or voxels, as a metric of MONAI.

    Parameters
    ----------
    ignore_index : int, optional
        Label of pixels to leave out.
    **options
        Options of :func:`calibrant.calibration_error`: ``notion``, ``estimator``, ``norm``.

    Returns
    -------
    CumulativeIterationMetric
        The metric. It takes probabilities ``y_pred`` (B, K, …) and classes ``y`` (B, …) or (B, 1, …); ``aggregate()``
        returns the error of all batches.

    Raises
    ------
    ImportError
        If MONAI is not installed.

    See Also
    --------
    calibrant.torch.CalibrationError : The same for torchmetrics, in constant memory.

    Notes
    -----
    MONAI keeps the rows of all batches, K + 1 numbers per pixel. Cost: that of
    :func:`calibrant.calibration_error`.

    Examples
    --------
    >>> from calibrant.adapters import monai_metric
    >>> metric = monai_metric(ignore_index=255, estimator="binned:10")  # doctest: +SKIP
    """
    import torch
    from monai.metrics import CumulativeIterationMetric

    class PixelCalibration(CumulativeIterationMetric):  # type: ignore[misc]  # MONAI has no types here
        def _compute_tensor(self, y_pred: Any, y: Any = None, **_: Any) -> Any:
            probs = y_pred.movedim(1, -1).flatten(0, -2).double()
            rows = torch.cat([probs, y.reshape(-1, 1).double()], dim=1)
            return rows if ignore_index is None else rows[rows[:, -1] != ignore_index]

        def aggregate(self) -> float:
            rows = self.get_buffer().numpy(force=True)
            k = rows.shape[1] - 1
            return calibration_error(as_predictions(rows[:, k].astype(int), rows[:, :k], labels=range(k)), **options)

    return PixelCalibration()


class _Scored:
    """A measure as scikit-learn calls it: 1-D probabilities are those of the last label, whatever labels are."""

    def __init__(self, measure: Callable[..., float]) -> None:
        self.measure = measure
        self.__name__ = measure.__name__

    def __call__(self, y_true: Any, y_prob: Any, **options: Any) -> float:
        both = options.get("labels")
        both = np.unique(y_true) if both is None else both
        if np.ndim(y_prob) == 1 and len(both) == 2:
            options = {"pos_label": both[1]} | options
        return self.measure(y_true, y_prob, **options)


def scorers(**options: Any) -> dict[str, Any]:
    """Calibration errors as scorers for scikit-learn's ``scoring=``.

    Parameters
    ----------
    **options
        Options of :func:`calibrant.calibration_error` that its two relatives share: ``labels``, ``pos_label``,
        ``notion``. ``pos_label`` is by default the last of two labels, as in ``classes_``.

    Returns
    -------
    dict of str to scorer
        ``neg_calibration_error`` (:func:`calibrant.calibration_error`), ``neg_expected_calibration_error`` (15 bins of
        equal width) and ``neg_squared_calibration_error`` (without the bias of noise), all from ``predict_proba`` and
        negated, since scikit-learn maximises scores.

    See Also
    --------
    calibrant.expected_calibration_error : One of them, with other bins.

    Notes
    -----
    Pass all of them (``scoring=scorers(), refit="neg_calibration_error"``) or one. scikit-learn's names cannot
    be extended: those for ``scoring="…"`` are fixed when it is imported. Cost: O(1).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant.adapters import scorers
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> one = scorers()["neg_expected_calibration_error"]
    >>> bool(-0.1 < cross_val_score(GaussianNB(), X, y, scoring=one).mean() < -0.03)
    True
    """
    from sklearn.metrics import make_scorer

    from .measure.ece import expected_calibration_error, squared_calibration_error

    return {
        f"neg_{one.__name__}": make_scorer(
            _Scored(one), response_method="predict_proba", greater_is_better=False, **options
        )
        for one in (calibration_error, expected_calibration_error, squared_calibration_error)
    }

"""Calibrators by short name, and the default candidates of a choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sklearn.base import clone

from ..data.checks import check_choice, check_int, check_names
from .base import EPS, Calibrator, calibrator_of
from .combined import Composed
from .crossval import AVERAGE
from .gaussian_process import GaussianProcessCalibrator
from .histogram import BayesianBinning, HistogramBinning
from .inputs import INPUTS, CalibrationSample
from .linear import DirichletCalibration, MatrixScaling, VectorScaling
from .logistic import BetaCalibration, PlattScaling, QuadraticLogit
from .monotone import IsotonicCalibrator, RocHullCalibrator, VennAbers
from .multiclass import OneVsRest, for_classes
from .near_isotonic import NearIsotonic
from .spline import CurveCalibrator, OrderPreserving, SplineCalibrator
from .temperature import EndSmoothing, EnsembleTemperatureScaling, Identity, TemperatureScaling


def default_candidates(n_classes: int, kind: str = "probability") -> dict[str, Calibrator]:
    """Candidates of ``"auto"``, from the simplest to the most flexible.

    Except for margins, the first is the identity. With scores of exactly 0 or 1, ``"auto"`` adds :class:`EndSmoothing`.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    kind : {"probability", "logit", "margin"}, default "probability"
        The kind of the scores.

    Returns
    -------
    dict of str to Calibrator
        The unfitted calibrators by name.

    See Also
    --------
    calibrant.calibrators.select_calibrator : Chooses one of them, or averages several.
    calibrant.calibrators.named_calibrator : One calibrator by its name.

    Examples
    --------
    >>> from calibrant.calibrators import default_candidates
    >>> list(default_candidates(2))
    ['identity', 'temperature', 'ensemble-temperature', 'platt', 'beta', 'quadratic', 'spline', 'isotonic']
    """
    check_int("n_classes", n_classes, 2)
    check_choice("kind", kind, INPUTS)
    return {name: named_calibrator(name, n_classes) for name in _default_names(n_classes, kind)}


def _default_names(n_classes: int, kind: str) -> list[str]:
    probabilities = kind != "margin"
    if n_classes == 2:
        names = ["platt", "beta", "quadratic", "spline", "isotonic"]
        if not probabilities:
            return [name for name in names if name != "beta"]
        return ["identity", "temperature", "ensemble-temperature", *names]
    if not probabilities:
        return ["temperature", "vector", "matrix", "isotonic"]
    # Dirichlet calibration is no better than a matrix that is shrunk by n and K, and by far the slowest.
    return ["identity", "temperature", "ensemble-temperature", "vector", "matrix", "pooled-isotonic", "isotonic"]


def _pooled_isotonic() -> Calibrator:
    return OneVsRest(IsotonicCalibrator(), shared=True)


def _composed() -> Calibrator:
    return Composed([EnsembleTemperatureScaling(), _pooled_isotonic()])


#: Calibrators by short name; binary ones are applied one-vs-rest to more than two classes.
NAMED: Mapping[str, Callable[[], Calibrator]] = {
    "identity": Identity,
    "end-smoothing": EndSmoothing,
    "temperature": TemperatureScaling,
    "ensemble-temperature": EnsembleTemperatureScaling,
    "platt": PlattScaling,
    "beta": BetaCalibration,
    "quadratic": QuadraticLogit,
    "vector": VectorScaling,
    "matrix": MatrixScaling,
    "dirichlet": DirichletCalibration,
    "dirichlet-1": partial(DirichletCalibration, "odir", 1.0),
    "dirichlet-0.01": partial(DirichletCalibration, "odir", 0.01),
    "spline": SplineCalibrator,
    "gaussian-process": GaussianProcessCalibrator,
    "order-preserving": OrderPreserving,
    "histogram": HistogramBinning,
    "i-max": partial(HistogramBinning, 15, "i-max"),
    "bayesian-binning": BayesianBinning,
    "curve": CurveCalibrator,
    "isotonic": IsotonicCalibrator,
    "roc-hull": RocHullCalibrator,
    "near-isotonic": NearIsotonic,
    "pooled-isotonic": _pooled_isotonic,
    "composed": _composed,
    "venn-abers": VennAbers,
}


def named_calibrator(name: str, n_classes: int) -> Calibrator:
    """Make an unfitted calibrator by its short name.

    Parameters
    ----------
    name : str
        A name such as ``"temperature"``, ``"beta"`` or ``"isotonic"``; the error for an unknown name lists all.
    n_classes : int
        Number of classes. With more than two, a binary calibrator is applied one-vs-rest.

    Returns
    -------
    Calibrator
        The calibrator.

    Raises
    ------
    ValueError
        For an unknown name.

    See Also
    --------
    calibrant.calibrators.default_candidates : The default candidates.

    Examples
    --------
    >>> from calibrant.calibrators import named_calibrator
    >>> named_calibrator("beta", 3)
    OneVsRest(calibrator=BetaCalibration())
    """
    check_int("n_classes", n_classes, 2)
    return for_classes(NAMED[check_choice("the name of a calibrator", name, NAMED)](), n_classes)


def candidates_for(
    sample: CalibrationSample, candidates: Mapping[str, str | Calibrator] | Sequence[str] | None
) -> dict[str, Calibrator]:
    """Candidates for a sample, by default or as given and checked, with its labels and kind of scores."""
    if candidates is None:
        tried = default_candidates(sample.n_classes, sample.scores.kind)
        if sample.scores.at_ends(EPS):
            tried = {"identity": tried.pop("identity"), "end-smoothing": EndSmoothing()} | tried
    else:
        named = dict(zip(candidates, candidates, strict=True)) if isinstance(candidates, (list, tuple)) else candidates
        given = check_names("candidates", named, (str, Calibrator), "calibrators or their names")
        if AVERAGE in given:
            raise ValueError(f"candidates must not be called {AVERAGE!r}, the name of their average")
        k = sample.n_classes
        tried = {name: for_classes(calibrator_of(one, k), k) for name, one in given.items()}
    classes = list(sample.classes)
    return {k: clone(c).set_params(input=sample.scores.kind, labels=classes) for k, c in tried.items()}

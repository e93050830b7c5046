"""A map for each subgroup of rows, shrunk to the common one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..data.convert import to_array
from ..data.progress import working
from ..data.types import AnyArray, FloatArray, IntArray
from ..exceptions import CalibrantWarning
from .base import EPS, Calibrator, check_calibrator, fitted_to, parameter
from .deviations import Effects, SubgroupRows, contrasts, fit_effects
from .inputs import CalibrationSample, Scores, read_sample, read_scores
from .logistic import PlattScaling
from .newton import Solution
from .prior import share_of
from .saved_state import STEPS, Field, Fitted, Names, Number, Numbers
from .temperature import TemperatureScaling, softmax

_MISSING, _ALL = "(missing)", "(all)"


def _check_column(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
        raise TypeError(f"{name} must be the name or the number of a column of features, or None; got {value!r}")


@dataclass(eq=False, repr=False)
class SubgroupCalibrator(Calibrator):
    r"""A map for each subgroup, shrunk to the common one: repairs what :func:`calibrant.subgroup_calibration` finds.

    The common calibrator gives logits :math:`z = \log q`; those of subgroup g are

    .. math:: z + a_g (z - c) + \gamma_g, \qquad a_g \sim N(\bar a, \sigma_a^2),\;
        \gamma_{gk} \sim N(\bar\gamma_k, \sigma_\gamma^2), \; \sum_k \gamma_{gk} = 0

    with c the mean of z: for two classes a slope and a shift of the log odds. How much subgroups differ, σ, is learnt
    from all of them (empirical Bayes), and decides how far a subgroup may leave the others: by little where it has few
    rows, or where subgroups hardly differ. A subgroup that was not seen has the common map (with the mean effects).

    Parameters
    ----------
    calibrator : Calibrator, optional
        The common map, of as many classes as scores have; default :class:`PlattScaling` for two and
        :class:`TemperatureScaling` for more.
    by : str or int, optional
        Column of a model's features that names the subgroup, for use in :class:`CalibratedModel`. Otherwise subgroups
        go to ``fit`` and ``predict_proba`` as ``by=``.
    input, labels
        As :class:`TemperatureScaling`; they replace those of ``calibrator``.

    Attributes
    ----------
    common_ : fitted calibrator
    subgroups_ : ndarray of shape (G,)
        Names of subgroups as text, sorted; ``"(all)"`` alone where none were given.
    weights_ : ndarray of shape (G,)
        Weight of the rows of each.
    slopes_ : ndarray of shape (G,)
        :math:`a_g`.
    shifts_ : ndarray of shape (G, K)
        :math:`\gamma_g`; for two classes the shift of the log odds is the second minus the first.
    mean_slope_, mean_shift_ : float, ndarray of shape (K,)
        Of a subgroup that was not seen.
    slope_sd_, shift_sd_ : float
        How much subgroups differ: :math:`\sigma_a, \sigma_\gamma`.
    centre_ : ndarray of shape (K,)
        c.
    gradient_norm_, n_iter_
        As :class:`PlattScaling`, of the posterior mode.

    Notes
    -----
    Values of ``by`` are compared as text: 1, 1.0 and "1" are one subgroup; None and NaN are a subgroup of their own. A
    subgroup of one row is safe. σ² are posterior means, with a prior probability of a quarter that there is none, under
    likelihoods that are taken as normal around each subgroup's mode: with a handful of rows a subgroup they come out
    too small, and maps nearer to the common one than they might be. Eight rows more, of labels that the common map
    expects, keep fits finite (as ``shrinkage="auto"``). ``benchmarks/coverage/subgroup_maps.md`` has it beside a map
    for each subgroup alone, and the common one. Cost that of the common calibrator, some thirty passes of O(n K²), and
    O(G K³).

    References
    ----------
    Morris (1983), *Parametric empirical Bayes inference*; Breslow & Clayton (1993), *Approximate inference in
    generalized linear mixed models*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import SubgroupCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p, site = rng.random(3000), rng.choice(["north", "south", "west"], 3000)
    >>> odds = p / (1 - p) * np.where(site == "west", 3, 1)  # one subgroup has three times the odds that are stated
    >>> fitted = SubgroupCalibrator().fit(p, rng.random(3000) < odds / (1 + odds), by=site)
    >>> fitted.predict_proba([0.5, 0.5], by=["north", "west"])[:, 1].round(1).tolist()
    [0.5, 0.8]
    """

    calibrator: Calibrator | None = parameter(None, partial(check_calibrator, optional=True))
    by: str | int | None = parameter(None, _check_column)

    _state: ClassVar[Mapping[str, Field]] = {
        "common_": Fitted(),
        "subgroups_": Names(("G",)),
        "weights_": Numbers(("G",), 0),
        "slopes_": Numbers(("G",)),
        "shifts_": Numbers(("G", "K")),
        "mean_slope_": Number(),
        "mean_shift_": Numbers(("K",)),
        "slope_sd_": Number(0),
        "shift_sd_": Number(0),
        "centre_": Numbers(("K",)),
        **STEPS,
    }

    def fit(self, scores: Any, y: Any, sample_weight: Any = None, by: Any = None) -> Self:
        """Fit the common map and the subgroups' deviations.

        Parameters
        ----------
        scores, y, sample_weight
            As :meth:`Calibrator.fit`.
        by : array-like of shape (n,), optional
            Subgroup of each row; without it all rows are one, and the map is the common one.
        """
        sample = read_sample(self, scores, y, sample_weight, self.input, self.labels)
        names = None if by is None else _names_of(by, len(y))
        if names is not None and sample_weight is not None:
            names = names[np.asarray(sample_weight, dtype=np.float64) > 0]
        with working("SubgroupCalibrator.fit"):
            return self._fit_checked(sample, names=names)

    def _fit_sample(self, sample: CalibrationSample, by: Any = None, **more: Any) -> Self:
        """As :meth:`fit`, of rows that were judged already; ``by`` has the subgroups of these rows."""
        return super()._fit_sample(sample, names=None if by is None else _names_of(by, len(sample.codes)))

    def predict_proba(self, scores: Any, by: Any = None) -> FloatArray:
        """Calibrated probabilities, (n, K), float64, in the order of ``classes_``.

        ``by`` has the subgroup of each row; without it rows have the map of a subgroup that was not seen, with a
        CalibrantWarning where there were several in ``fit``.
        """
        check_is_fitted(self)
        read = read_scores(self, scores, self.input)
        return self._probabilities_of(read, by=by)

    def _probabilities_of(self, scores: Scores, by: Any = None, **more: Any) -> FloatArray:
        """As :meth:`predict_proba`, of scores that were judged already."""
        if by is not None:
            return self._of_subgroups(scores, self._places(_names_of(by, scores.n_rows)))
        if len(self.subgroups_) > 1:
            warnings.warn(
                "SubgroupCalibrator was fitted to subgroups and is given none: rows have the common map; pass by=",
                CalibrantWarning,
                stacklevel=3,
            )
        return self._probabilities(scores)

    def predict(self, scores: Any, by: Any = None) -> AnyArray:
        """Most probable class of each row; the first of equals."""
        return np.asarray(self.classes_[self.predict_proba(scores, by).argmax(axis=1)])

    def _from_features(self, X: Any) -> dict[str, Any]:
        """The subgroups of rows of features, where ``by`` names a column."""
        return {} if self.by is None else {"by": _safe_indexing(X, self.by, axis=1)}

    def _fit(self, sample: CalibrationSample, names: AnyArray | None = None) -> None:
        default = PlattScaling() if sample.n_classes == 2 else TemperatureScaling()
        self.common_ = fitted_to(default if self.calibrator is None else self.calibrator, sample)
        k = sample.n_classes
        q = self.common_._probabilities_of(sample.scores)
        if names is None:
            self.subgroups_, self.weights_ = np.array([_ALL]), np.array([sample.total])
            found = Effects(np.zeros(k), np.zeros((1, k)), 0.0, 0.0, Solution(np.zeros(0), 0.0, 0.0, 0, True))
            self.centre_: FloatArray = np.zeros(k)
        else:
            self.subgroups_, codes = np.unique(names, return_inverse=True)
            self.weights_ = np.bincount(codes, sample.weights)
            targets = np.eye(k)[sample.codes]
            targets += share_of("auto", sample) * (q - targets)
            rows, self.centre_ = SubgroupRows.of(_logits(q), targets, sample.weights, codes)
            found = fit_effects(rows)
        self.slopes_, self.shifts_ = found.each[:, 0], found.each[:, 1:] @ contrasts(k)
        self.mean_slope_, self.mean_shift_ = float(found.mean[0]), found.mean[1:] @ contrasts(k)
        self.slope_sd_, self.shift_sd_ = found.slope_sd, found.shift_sd
        self._keep(found.solution, warn=not found.solution.converged)

    def _probabilities(self, scores: Scores) -> FloatArray:
        return self._of_subgroups(scores, np.full(scores.n_rows, -1))

    def _of_subgroups(self, scores: Scores, places: IntArray) -> FloatArray:
        """By the place of each row's subgroup; -1 for none that was seen."""
        slopes = np.append(self.slopes_, self.mean_slope_)[places]
        shifts = np.vstack([self.shifts_, self.mean_shift_])[places]
        z = _logits(self.common_._probabilities_of(scores))
        return softmax(z + slopes[:, None] * (z - self.centre_) + shifts)

    def _places(self, names: AnyArray) -> IntArray:
        at = np.minimum(np.searchsorted(self.subgroups_, names), len(self.subgroups_) - 1)
        return np.where(self.subgroups_[at] == names, at, -1)


def _logits(q: FloatArray) -> FloatArray:
    """Logarithms of probabilities, of mean 0 over classes."""
    z = np.log(np.maximum(q, EPS))
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def _names_of(by: Any, n: int) -> AnyArray:
    """Subgroups as text, one a row."""
    values, _ = to_array(by, "by")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"by must hold the subgroup of each of {n} rows; got shape {values.shape}")
    if values.dtype.kind == "O":
        listed = values.tolist()
        try:
            text = {value: _text(value) for value in dict.fromkeys(listed)}
        except TypeError:
            raise TypeError(f"by must hold values that can name a subgroup, such as text; got {listed[0]!r}") from None
        return np.array(list(map(text.__getitem__, listed)), dtype=str)
    known, place = np.unique(values, return_inverse=True)
    return np.array([_text(value) for value in known.tolist()], dtype=str)[place.reshape(-1)]


def _text(value: Any) -> str:
    if value is None or value != value:
        return _MISSING
    if isinstance(value, (bool, float)) and value == value // 1:
        value = int(value)
    return str(value)

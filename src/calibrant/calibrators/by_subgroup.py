r"""Calibration maps per subgroup of rows, shrunk towards a common map.

The model is a multinomial logistic one with random effects, fitted by empirical Bayes. Subgroup g has logits
:math:`z + a_g (z - c) + C \gamma_g`, z the common logarithms of probabilities, c their mean and C the K - 1 orthonormal
contrasts of classes. Effects :math:`\theta_g = (a_g, \gamma_g)` are normal around their mean, with one standard
deviation for slopes and one for contrasts (the names of classes do not matter), and the mean is normal around 0 with
the same ones: if subgroups do not differ, the common map remains.

References
----------
Breslow & Clayton (1993), *Approximate inference in generalized linear mixed models*; Morris (1983), *Parametric
empirical Bayes inference*; Harville (1977) on restricted likelihood.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import helmert
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..data.checks import received
from ..data.convert import to_array
from ..data.fields import Field, Names, Number, Numbers
from ..data.progress import working
from ..data.types import AnyArray, FloatArray, IntArray
from ..exceptions import CalibrantWarning
from .base import EPS, STEPS, WITHOUT_SUBGROUPS, Calibrator, Fitted, check_calibrator, fitted_to, parameter
from .inputs import CalibrationSample, Scores, read_sample, read_scores
from .logistic import PlattScaling
from .newton import Curvature, Solution, minimise
from .temperature import TemperatureScaling, softmax

_MISSING, _ALL = "(missing)", "(all)"
#: Grids of standard deviations: of slopes relative to the common slope, and of contrasts of logits.
_SLOPES = np.concatenate([[0.0], np.geomspace(0.02, 1.0, 12)])
_SHIFTS = np.concatenate([[0.0], np.geomspace(0.02, 3.0, 14)])
_ROUNDS = 12
_ROUNDING = 1e-13
#: Changes of standard deviations up to this count as none.
_SAME = 1e-3
#: Prior probability that a standard deviation is 0, for each of the two.
_NONE = 0.25


def _check_column(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (str, int))):
        raise TypeError(
            f"{name} must be the name or the number of a column of features, or None; got {received(value)}"
        )


@dataclass(eq=False, repr=False)
class SubgroupCalibrator(Calibrator):
    r"""A calibration map for each subgroup, shrunk towards a common map.

    The common calibrator gives logits :math:`z = \log q`; those of subgroup g are

    .. math:: & z + a_g (z - c) + \gamma_g, \\
        & a_g \sim N(\bar a, \sigma_a^2),\; \gamma_{gk} \sim N(\bar\gamma_k, \sigma_\gamma^2), \; \sum_k \gamma_{gk} = 0

    with c the mean of z; for two classes, these are a slope and a shift of the log odds. The variation between
    subgroups, σ, is estimated from all of them (empirical Bayes) and determines the shrinkage: a subgroup stays close
    to the common map if it has few rows or if subgroups hardly differ. Unseen subgroups have the mean effects.

    Parameters
    ----------
    calibrator : Calibrator, optional
        The common map, for as many classes as the scores have; by default :class:`PlattScaling` for two and
        :class:`TemperatureScaling` for more. Its ``input`` and ``labels`` are replaced by those given here.
    by : str or int, optional
        Column of a model's features that names the subgroup, within :class:`CalibratedModel`. Outside of it,
        subgroups are passed to ``fit`` and ``predict_proba`` as ``by=``.

    Attributes
    ----------
    common_ : fitted calibrator
        The common map.
    subgroups_ : ndarray of shape (G,)
        Names of subgroups as text, sorted; only ``"(all)"`` if none were given.
    weights_ : ndarray of shape (G,)
        Total weight of the rows of each subgroup.
    slopes_ : ndarray of shape (G,)
        The slopes :math:`a_g`.
    shifts_ : ndarray of shape (G, K)
        The shifts :math:`\gamma_g`; for two classes the shift of the log odds is the second minus the first.
    mean_slope_, mean_shift_ : float, ndarray of shape (K,)
        Effects of an unseen subgroup.
    slope_sd_, shift_sd_ : float
        Variation between subgroups: :math:`\sigma_a, \sigma_\gamma`.
    centre_ : ndarray of shape (K,)
        The mean c of z.
    gradient_norm_, n_iter_ : float, int
        Largest component of the gradient where the search for the posterior mode ended, and number of iterations.

    See Also
    --------
    calibrant.subgroup_calibration : Whether subgroups need separate maps.
    calibrant.calibrators.SegmentCalibrator : The same for segments found by a search.
    calibrant.CalibratedModel : Passes the column of subgroups on.

    Notes
    -----
    Values of ``by`` are compared as text: 1, 1.0 and "1" are one subgroup; None and NaN form their own subgroup. A
    subgroup may have a single row. The estimates of σ² are posterior means, with prior probability 1/4 of σ = 0 and
    likelihoods approximated as normal around each subgroup's mode. With a handful of rows per subgroup they are too
    small, and the maps too close to the common map. Eight pseudo-rows, with the labels expected by the common map, keep
    fits finite (as ``shrinkage="auto"``). ``benchmarks/coverage/subgroup_maps.md`` compares it with separate maps and
    with the common map. Cost: that of the common calibrator, about thirty passes of O(n K²), and O(G K³).

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

    calibrator: str | Calibrator | None = parameter(None, partial(check_calibrator, optional=True))
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
        by : array-like of shape (n,), optional
            Subgroup of each row; without it all rows form one subgroup, with the common map.
        """
        sample = read_sample(self, scores, y, sample_weight)
        names = None if by is None else _names_of(by, len(y))
        if names is not None and sample.given is not None:
            names = names[sample.given]
        with working("SubgroupCalibrator.fit"):
            return self._fit_checked(sample, names=names)

    def _fit_sample(self, sample: CalibrationSample, by: Any = None, **more: Any) -> Self:
        """As :meth:`fit`, for checked rows; ``by`` has the subgroups of these rows."""
        return super()._fit_sample(sample, names=None if by is None else _names_of(by, len(sample.codes)))

    def predict_proba(self, scores: Any, by: Any = None) -> FloatArray:
        """Calibrated probabilities, (n, K), float64, in the order of ``classes_``.

        Parameters
        ----------
        by : array-like of shape (n,), optional
            Subgroup of each row; without it the map of an unseen subgroup is used, with a CalibrantWarning if there
            were several in ``fit``.
        """
        check_is_fitted(self)
        read = read_scores(self, scores, self.input)
        return self._probabilities_of(read, by=by)

    def _probabilities_of(self, scores: Scores, by: Any = None, **more: Any) -> FloatArray:
        """As :meth:`predict_proba`, for checked scores."""
        if by is not None:
            return self._of_subgroups(scores, self._places(_names_of(by, scores.n_rows)))
        if len(self.subgroups_) > 1:
            warnings.warn(
                f"{WITHOUT_SUBGROUPS} but got none: the common map is used; pass by=",
                CalibrantWarning,
                stacklevel=3,
            )
        return self._probabilities(scores)

    def predict(self, scores: Any, by: Any = None) -> AnyArray:
        """Most probable class of each row; the first in case of ties.

        Parameters
        ----------
        by : array-like of shape (n,), optional
            Subgroup of each row; without it the map of an unseen subgroup is used.
        """
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
            targets += sample.prior_share("auto") * (q - targets)
            rows, self.centre_ = SubgroupRows.of(_logits(q), targets, sample.weights, codes)
            found = fit_effects(rows)
        self.slopes_, self.shifts_ = found.each[:, 0], found.each[:, 1:] @ contrasts(k)
        self.mean_slope_, self.mean_shift_ = float(found.mean[0]), found.mean[1:] @ contrasts(k)
        self.slope_sd_, self.shift_sd_ = found.slope_sd, found.shift_sd
        self._keep(found.solution, warn=not found.solution.converged)

    def _probabilities(self, scores: Scores) -> FloatArray:
        return self._of_subgroups(scores, np.full(scores.n_rows, -1))

    def _of_subgroups(self, scores: Scores, places: IntArray) -> FloatArray:
        """Probabilities by the index of each row's subgroup; -1 for an unseen one."""
        slopes = np.append(self.slopes_, self.mean_slope_)[places]
        shifts = np.vstack([self.shifts_, self.mean_shift_])[places]
        z = _logits(self.common_._probabilities_of(scores))
        return scores.kept_inside(softmax(z + slopes[:, None] * (z - self.centre_) + shifts), EPS)

    def _places(self, names: AnyArray) -> IntArray:
        at = np.minimum(np.searchsorted(self.subgroups_, names), len(self.subgroups_) - 1)
        return np.where(self.subgroups_[at] == names, at, -1)


def _logits(q: FloatArray) -> FloatArray:
    """Logarithms of probabilities, with mean 0 over classes."""
    z = np.log(np.maximum(q, EPS))
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def _names_of(by: Any, n: int) -> AnyArray:
    """Subgroup of each row, as text."""
    values, _ = to_array(by, "by")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"by must have one value per row ({n}); got shape {values.shape}")
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


@dataclass(frozen=True, eq=False)
class SubgroupRows:
    """Rows sorted by subgroup.

    Attributes
    ----------
    z : ndarray of shape (n, K)
        Common logits.
    u : ndarray of shape (n, K)
        The same, centred; slopes multiply these.
    targets : ndarray of shape (n, K)
    weights : ndarray of shape (n,)
    start : ndarray of shape (G,)
        First row of each subgroup.
    """

    z: FloatArray
    u: FloatArray
    targets: FloatArray
    weights: FloatArray
    start: IntArray

    @classmethod
    def of(
        cls, z: FloatArray, targets: FloatArray, weights: FloatArray, subgroups: AnyArray
    ) -> tuple[SubgroupRows, FloatArray]:
        """Sort rows by their subgroups, 0 … G - 1 without gaps; also returns the mean c, (K,)."""
        order = np.argsort(subgroups, kind="stable")
        start = np.flatnonzero(np.diff(subgroups[order], prepend=-1))
        centre = np.asarray(weights @ z / weights.sum())
        return cls(z[order], z[order] - centre, targets[order], weights[order], start), centre

    def likelihood(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood of effects (G, K), its gradient, and its negative Hessian (G, K, K)."""
        n_rows = np.diff(self.start, append=len(self.z))
        spread = contrasts(self.z.shape[1])
        logits = self.z + self.u * np.repeat(theta[:, :1], n_rows, axis=0)
        logits += np.repeat(theta[:, 1:] @ spread, n_rows, axis=0)
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        total = chance.sum(axis=1, keepdims=True)
        chance /= total
        value = float(self.weights @ ((self.targets * logits).sum(axis=1) - np.log(total[:, 0])))
        off = self.weights[:, None] * (self.targets - chance)
        slope = np.add.reduceat((off * self.u).sum(axis=1), self.start)
        gradient = np.column_stack([slope, np.add.reduceat(off, self.start) @ spread.T])
        mass = self.weights[:, None] * chance
        middle = (chance * self.u).sum(axis=1)
        k = self.z.shape[1]
        whole = np.empty((len(self.start), k, k))
        for c in range(k):  # covariances of one class with all
            whole[:, c] = -np.add.reduceat(mass[:, [c]] * chance, self.start)
        whole[:, np.arange(k), np.arange(k)] += np.add.reduceat(mass, self.start)
        curvature = np.empty_like(whole)
        curvature[:, 1:, 1:] = spread @ whole @ spread.T
        crossed = np.add.reduceat(mass * (self.u - middle[:, None]), self.start) @ spread.T
        curvature[:, 0, 1:] = curvature[:, 1:, 0] = crossed
        curvature[:, 0, 0] = np.add.reduceat((mass * (self.u - middle[:, None]) ** 2).sum(axis=1), self.start)
        return value, gradient, curvature


def contrasts(k: int) -> FloatArray:
    """Orthonormal contrasts of K classes, (K - 1, K)."""
    return np.asarray(helmert(k))


@dataclass(frozen=True, eq=False)
class Effects:
    """Deviations of subgroups.

    Attributes
    ----------
    mean : ndarray of shape (K,)
        Slope and contrasts.
    each : ndarray of shape (G, K)
    slope_sd, shift_sd : float
    solution : Solution
        End of the fit of the modes; the objective is minus the penalised log-likelihood, divided by the total weight.
        Its iterations are those of all rounds.
    """

    mean: FloatArray
    each: FloatArray
    slope_sd: float
    shift_sd: float
    solution: Solution


def fit_effects(rows: SubgroupRows) -> Effects:
    """Posterior modes of effects, with variances at their approximate posterior means.

    The likelihood of each subgroup is approximated as normal around its current mode, variances are averaged over a
    grid, and modes are refitted, until convergence. Cost: about thirty passes of O(n K²), and grids of O(G K³).
    """
    k, n_subgroups = rows.z.shape[1], len(rows.start)
    x: FloatArray = np.zeros((1 + n_subgroups) * k)
    sds, taken = np.array([0.1, 0.3]), 0
    for _ in range(_ROUNDS):
        t = _spread_of(sds, k)
        found = _modes(rows, x, t)
        taken += found.n_iter
        theta = t * (found.x[:k] + found.x[k:].reshape(-1, k))
        _, gradient, curvature = rows.likelihood(theta)
        chosen = _chosen(curvature, np.einsum("gij,gj->gi", curvature, theta) + gradient)
        x = found.x
        if np.abs(chosen - sds).max() <= _SAME:
            break
        new = _spread_of(chosen, k)
        x = x * np.tile(np.divide(t, new, out=np.zeros(k), where=new > 0), 1 + n_subgroups)
        sds = chosen
    t = _spread_of(sds, k)
    found = _modes(rows, x, t)
    m, v = found.x[:k], found.x[k:].reshape(-1, k)
    found = replace(found, n_iter=taken + found.n_iter)
    return Effects(t * m, t * (m + v), float(sds[0]), float(sds[1]), found)


def _chosen(curvature: FloatArray, pull: FloatArray) -> FloatArray:
    """Roots of the posterior means of both variances, given normal likelihoods."""
    k = curvature.shape[1]
    pairs = np.array([(a, b) for a in _SLOPES for b in _SHIFTS])
    log_weight = np.array([_evidence(curvature, pull, _spread_of(pair, k)) for pair in pairs])
    for column, tried in ((0, _SLOPES), (1, _SHIFTS)):
        log_weight += np.log(np.where(pairs[:, column] > 0, (1 - _NONE) / (len(tried) - 1), _NONE))
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(np.sqrt(weight @ pairs**2 / weight.sum()))


def _spread_of(sds: FloatArray, k: int) -> FloatArray:
    return np.concatenate([[sds[0]], np.full(k - 1, sds[1])])


def _marginal(curvature: FloatArray, pull: FloatArray, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """From normal likelihoods, effects integrated out: precisions W (G, K, K), ``W · estimate``, log|I + tHt|."""
    inner = curvature * t**2
    # Beside enormous weights the identity would be lost, and the matrix would become singular.
    inner += np.eye(len(t)) * (1 + _ROUNDING * np.abs(inner).max(axis=(1, 2), keepdims=True))
    both = np.linalg.solve(inner, np.concatenate([curvature, pull[..., None]], axis=2))
    return both[..., :-1], both[..., -1], np.linalg.slogdet(inner)[1]


def _centre(precision: FloatArray, weighted: FloatArray, t: FloatArray) -> tuple[FloatArray, float]:
    """The mean effect in standard units, and the log-determinant of its posterior precision."""
    total = np.eye(len(t)) + t[:, None] * precision.sum(axis=0) * t
    return np.asarray(np.linalg.solve(total, t * weighted.sum(axis=0))), float(np.linalg.slogdet(total)[1])


def _evidence(curvature: FloatArray, pull: FloatArray, t: FloatArray) -> float:
    """Log-evidence, up to a constant, with all effects integrated out of normal likelihoods with these curvatures."""
    precision, weighted, logdets = _marginal(curvature, pull, t)
    m, logdet = _centre(precision, weighted, t)
    mean = t * m
    off = pull - curvature @ mean
    # t² (I + H t²)⁻¹ is symmetric: the gain by moving each subgroup from the mean to its mode.
    gain = float(np.einsum("gi,gi->", off, t**2 * (weighted - precision @ mean)))
    level = float(mean @ pull.sum(axis=0) - 0.5 * mean @ curvature.sum(axis=0) @ mean)
    return level + 0.5 * (gain - float(m @ m) - float(logdets.sum()) - logdet)


def _modes(rows: SubgroupRows, start: FloatArray, t: FloatArray) -> Solution:
    """Concatenated standard effects m and v of the largest penalised likelihood; the effects are ``t (m + v)``.

    The objective is minus the penalised log-likelihood, divided by the total weight.
    """
    k, total = len(t), float(rows.weights.sum())

    def objective(x: FloatArray, curved: bool) -> tuple[float, FloatArray, Curvature]:
        m, v = x[:k], x[k:].reshape(-1, k)
        theta = t * (m + v)
        value, gradient, curvature = rows.likelihood(theta)
        slope = np.concatenate([m - t * gradient.sum(axis=0), (v - t * gradient).ravel()])

        def step(_gradient: FloatArray) -> FloatArray:
            pull = np.einsum("gij,gj->gi", curvature, theta) + gradient
            precision, weighted, _logdets = _marginal(curvature, pull, t)
            new_m, _logdet = _centre(precision, weighted, t)
            return np.concatenate([new_m, (t * (weighted - precision @ (t * new_m))).ravel()]) - x

        return (0.5 * float(x @ x) - value) / total, slope / total, step

    return minimise(objective, start)

"""Example predictions: synthetic problems with known calibration errors, and models of scikit-learn's data sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from .data.checks import check_choice, check_int, check_number, check_random_state, fold_seed, received
from .data.types import AnyArray, FloatArray, Label, RandomState

__all__ = [
    "Sample",
    "load_breast_cancer_predictions",
    "load_digits_predictions",
    "load_even_digits_predictions",
    "make_scores",
    "make_survey",
    "survey_distorted",
    "survey_posterior",
    "survey_restored",
    "survey_true_map",
    "true_map",
]


def __dir__() -> list[str]:
    return list(__all__)


_MAPS = ("calibrated", "overconfident", "underconfident", "shifted", "wavy")


@dataclass(frozen=True, eq=False)
class Sample:
    """Labels and predictions of a data set, with the exact calibration error if it is known.

    Attributes
    ----------
    y_true : ndarray of shape (n,)
        Observed labels.
    y_prob : ndarray of shape (n,) or (n, K)
        Predicted probabilities: of the positive class, or one column per class.
    labels : tuple of labels
        The labels, in column order.
    truth : float
        The exact L1 calibration error; NaN if it is unknown.
    description : str
        Description of the data.

    See Also
    --------
    calibrant.datasets.make_scores : Samples with a known calibration error.
    calibrant.datasets.load_digits_predictions : Predictions of a model on real data.

    Examples
    --------
    >>> from calibrant.datasets import make_scores
    >>> sample = make_scores(1000, "calibrated", random_state=0)
    >>> sample.y_prob.shape, sample.truth
    ((1000,), 0.0)
    """

    y_true: AnyArray
    y_prob: FloatArray
    labels: tuple[Label, ...]
    truth: float
    description: str


def true_map(scores: FloatArray, kind: str) -> FloatArray:
    """Map of scores to outcome frequencies in :func:`make_scores`: logistic, a shift in logit space, or a sine.

    Parameters
    ----------
    scores : ndarray
        Scores in [0, 1].
    kind : {"calibrated", "overconfident", "underconfident", "shifted", "wavy"}
        The map.

    Returns
    -------
    ndarray of the shape of ``scores``
        ``P(outcome | score)``.

    See Also
    --------
    calibrant.datasets.make_scores : Samples from these maps.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.datasets import true_map
    >>> true_map(np.array([0.1, 0.5, 0.9]), "overconfident").round(2).tolist()
    [0.25, 0.5, 0.75]
    """
    from scipy.special import expit, logit

    check_choice("kind", kind, _MAPS)
    scores = _numbers("scores", scores, most=1.0)
    if kind == "calibrated":
        return scores
    if kind == "wavy":
        return np.asarray(np.clip(scores + 0.1 * np.sin(3 * np.pi * scores) * 4 * scores * (1 - scores), 0, 1))
    slope, shift = {"overconfident": (0.5, 0.0), "underconfident": (2.0, 0.0), "shifted": (1.0, -0.7)}[kind]
    return np.asarray(expit(slope * logit(scores) + shift))


def make_scores(
    n_samples: int,
    kind: str = "overconfident",
    *,
    a: float = 1.0,
    b: float = 1.0,
    random_state: RandomState = None,
) -> Sample:
    r"""Binary predictions with Beta(a, b) scores and a known map to outcomes.

    .. math:: s \sim Beta(a, b), \quad o \sim Bernoulli(g(s)), \quad truth = E\,|g(s) - s|

    Parameters
    ----------
    n_samples : int
        Number of rows.
    kind : {"calibrated", "overconfident", "underconfident", "shifted", "wavy"}, default "overconfident"
        The map g; see :func:`true_map`.
    a, b : float, default 1
        Parameters of the Beta distribution of scores.
    random_state : int, Generator or None, default None
        Seed or generator; with None every call draws differently.

    Returns
    -------
    Sample
        The sample; its ``truth`` is computed by quadrature, to about 1e-8.

    See Also
    --------
    calibrant.datasets.true_map : The map g.
    calibrant.datasets.make_survey : The synthetic cases of a survey, with two or three classes.

    Examples
    --------
    >>> from calibrant.datasets import make_scores
    >>> round(make_scores(10, "overconfident", random_state=0).truth, 4)
    0.0966
    """
    rng = check_random_state(random_state)
    for name, value in (("a", a), ("b", b)):
        check_number(name, value, above=0, most=1e6)
    scores = rng.beta(a, b, check_int("n_samples", n_samples, 1))
    outcomes = (rng.random(n_samples) < true_map(scores, kind)).astype(np.int64)
    return Sample(outcomes, scores, (0, 1), _truth(kind, a, b), f"{kind}, Beta({a:g}, {b:g}) scores")


def _numbers(name: str, values: Any, *, least: float = 0.0, most: float) -> FloatArray:
    """Check numbers within limits."""
    try:
        found = np.asarray(values)
        whole = found.astype(np.float64) if found.dtype.kind in "biufO" else None
    except Exception:  # of whatever library the values are
        whole = None
    if whole is None or not ((least <= whole) & (whole <= most)).all():
        raise ValueError(f"{name} must be numbers between {least:g} and {most:g}; got {received(values)}")
    return np.asarray(whole)


def _of_three(name: str, values: Any) -> FloatArray:
    """Check probabilities of three classes, (n, 3)."""
    found = _numbers(name, values, most=1.0)
    if found.ndim != 2 or found.shape[1] != 3 or not (found.max(axis=1) > 0.1).all():
        raise ValueError(f"{name} must be probabilities of three classes, (n, 3); got shape {found.shape}")
    return found


@cache
def _truth(kind: str, a: float, b: float) -> float:
    """``E|g(s) - s|`` over the quantiles of s: midpoints of 2·10⁵ steps of equal probability."""
    from scipy.special import betaincinv

    grid = betaincinv(a, b, (np.arange(200_000) + 0.5) / 200_000)
    return float(np.abs(true_map(grid, kind) - grid).mean())


#: The survey's classes: halves of normal distributions (mean, variance) of one feature; the third has only one.
_SURVEY = (((64.0, 1280.0), (-4.0, 960.0)), ((4.0, 980.0), (-72.0, 1024.0)), ((0.0, 8.0), (0.0, 8.0)))
_SURVEY_SLOPES = {"underconfident": 0.01, "overconfident": 0.05}
_SURVEY_WEIGHTS = np.array([1.6, 0.6, 1.0])
_SURVEY_CASES = (*_SURVEY_SLOPES, "three-class", "network")
#: Classes in the network's two features: means, and factors of the covariances (their products with transposes).
_PLANE_MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.6, 1.7]])
_PLANE_FACTORS = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.2, 0.0], [0.4, 0.7]], [[0.8, 0.0], [-0.4, 1.1]]])
_NETWORK_ROWS = 300


def survey_posterior(x: Any, n_classes: int = 2) -> FloatArray:
    """Posterior ``P(class | x)`` of the synthetic cases of Silva Filho et al., with equal priors.

    Class 1 is half N(64, 1280) and half N(-4, 960), class 2 half N(4, 980) and half N(-72, 1024), class 3 N(0, 8)
    (mean and variance). With two classes the last column is class 1, which high x, and so high scores, indicate.

    Parameters
    ----------
    x : array-like of shape (n,)
        Values of the single feature.
    n_classes : {2, 3}, default 2
        Number of classes.

    Returns
    -------
    ndarray of shape (n, n_classes)
        One row of probabilities for each value.

    See Also
    --------
    calibrant.datasets.make_survey : Samples of these cases.

    Examples
    --------
    >>> from calibrant.datasets import survey_posterior
    >>> survey_posterior([0, 100]).round(3).tolist()
    [[0.476, 0.524], [0.017, 0.983]]
    """
    check_choice("n_classes", n_classes, (2, 3))
    logs = _survey_log_densities(_numbers("x", x, least=-1e100, most=1e100))[:, :n_classes]
    density = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior = density / density.sum(axis=1, keepdims=True)
    return np.asarray(posterior[:, ::-1] if n_classes == 2 else posterior)


def survey_true_map(scores: Any, case: str) -> FloatArray:
    """Map of scores to ``P(class 1 | score)`` in the survey's two-class cases.

    The scores are ``1 / (1 + exp(-a x))``, clipped to [1e-5, 1 - 1e-5]: beyond, where samples do not occur, the far
    tails of the distributions reverse the map.

    Parameters
    ----------
    scores : array-like
        Scores in [0, 1].
    case : {"underconfident", "overconfident"}
        The case, which determines a.

    Returns
    -------
    ndarray of the shape of ``scores``
        ``P(class 1 | score)``.

    See Also
    --------
    calibrant.datasets.make_survey : Samples of these cases.

    Examples
    --------
    >>> from calibrant.datasets import survey_true_map
    >>> survey_true_map([0.2, 0.8], "overconfident").round(3).tolist()
    [0.447, 0.597]
    """
    from scipy.special import logit

    check_choice("case", case, _SURVEY_SLOPES)
    s = np.clip(_numbers("scores", scores, most=1.0), 1e-5, 1 - 1e-5)
    return survey_posterior(logit(s) / _SURVEY_SLOPES[case])[:, 1]


def make_survey(n_samples: int, case: str = "overconfident", *, random_state: RandomState = None) -> Sample:
    """The synthetic cases of Silva Filho et al., *Classifier calibration: a survey*: two or three classes.

    Parameters
    ----------
    n_samples : int
        Number of rows.
    case : {"underconfident", "overconfident", "three-class", "network"}, default "overconfident"
        The first two: scores ``1 / (1 + exp(-a x))`` with a = 0.01 and 0.05. ``"three-class"``: true probabilities made
        too sharp, and too high for one class (:func:`survey_distorted`; the survey's own scores are not published).
        ``"network"``: scores of a neural network on new rows, in place of the survey's own network, which is not
        published either. The classes are normal in two features; the network is scikit-learn's, with 16 hidden units,
        and always the same, fitted to 300 rows.
    random_state : int, Generator or None, default None
        Seed or generator; with None every call draws differently.

    Returns
    -------
    Sample
        The sample, with labels 1 and 0, or 0, 1 and 2; ``truth`` is known by quadrature for two classes, NaN for three.

    See Also
    --------
    calibrant.datasets.survey_posterior : The true posterior.
    calibrant.datasets.survey_true_map : The true calibration map for two classes.
    calibrant.datasets.make_scores : Samples with a map of your choice.

    Examples
    --------
    >>> from calibrant.datasets import make_survey
    >>> round(make_survey(10, "underconfident", random_state=0).truth, 6)
    0.11216
    """
    from scipy.special import expit

    check_choice("case", case, _SURVEY_CASES)
    check_int("n_samples", n_samples, 1)
    rng = check_random_state(random_state)
    if case == "network":
        x, code = _plane_rows(n_samples, rng)
        return Sample(code, _network().predict_proba(x), (0, 1, 2), float("nan"), "a neural network's three classes")
    n_classes = 3 if case == "three-class" else 2
    code = rng.integers(n_classes, size=n_samples)
    mean, variance = np.moveaxis(np.array(_SURVEY)[code, rng.integers(2, size=n_samples)], -1, 0)
    x = mean + np.sqrt(variance) * rng.standard_normal(n_samples)
    if n_classes == 3:
        scores = survey_distorted(survey_posterior(x, 3))
        return Sample(code, scores, (0, 1, 2), float("nan"), "the survey's three classes")
    scores = np.asarray(expit(_SURVEY_SLOPES[case] * x))
    return Sample(1 - code, scores, (0, 1), _survey_truth(case), f"the survey's two classes, {case}")


def _plane_rows(n_samples: int, rng: np.random.Generator) -> tuple[FloatArray, AnyArray]:
    """Two features and the class of each row."""
    code = rng.integers(3, size=n_samples)
    noise = rng.standard_normal((n_samples, 2))
    return _PLANE_MEANS[code] + np.einsum("nij,nj->ni", _PLANE_FACTORS[code], noise), code


@cache
def _network() -> Any:
    """A network that overfits its few rows, and so is over-confident on others."""
    from sklearn.neural_network import MLPClassifier

    x, code = _plane_rows(_NETWORK_ROWS, np.random.default_rng(0))
    return MLPClassifier((16,), solver="lbfgs", alpha=1e-3, max_iter=5000, max_fun=100_000, random_state=0).fit(x, code)


def _survey_log_densities(x: Any) -> FloatArray:
    """Log density of each class, (n, 3)."""
    x = np.asarray(x, dtype=np.float64).reshape(-1, 1, 1)
    mean, variance = np.moveaxis(np.array(_SURVEY), -1, 0)
    logs = -0.5 * ((x - mean) ** 2 / variance + np.log(2 * np.pi * variance))
    return np.asarray(np.logaddexp.reduce(logs, axis=-1) - np.log(2))


def survey_distorted(posterior: Any) -> FloatArray:
    """Distort true probabilities into the scores of the survey's three classes.

    They are squared, weighted by 1.6, 0.6 and 1, and normalised.

    Parameters
    ----------
    posterior : array-like of shape (n, 3)
        True probabilities.

    Returns
    -------
    ndarray of shape (n, 3)
        The scores.

    See Also
    --------
    calibrant.datasets.survey_restored : The inverse.
    calibrant.datasets.make_survey : Samples with these scores (``"three-class"``).

    Examples
    --------
    >>> from calibrant.datasets import survey_distorted
    >>> survey_distorted([[0.5, 0.3, 0.2]]).round(3).tolist()
    [[0.81, 0.109, 0.081]]
    """
    scores = _of_three("posterior", posterior) ** 2 * _SURVEY_WEIGHTS
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def survey_restored(scores: Any) -> FloatArray:
    """Restore the true probabilities of the survey's three classes from their scores.

    Parameters
    ----------
    scores : array-like of shape (n, 3)
        Scores returned by :func:`survey_distorted`.

    Returns
    -------
    ndarray of shape (n, 3)
        True probabilities.

    See Also
    --------
    calibrant.datasets.survey_distorted : The inverse.

    Examples
    --------
    >>> from calibrant.datasets import survey_distorted, survey_restored
    >>> survey_restored(survey_distorted([[0.5, 0.3, 0.2]])).round(3).tolist()
    [[0.5, 0.3, 0.2]]
    """
    posterior = np.sqrt(_of_three("scores", scores) / _SURVEY_WEIGHTS)
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


@cache
def _survey_truth(case: str) -> float:
    """``E|P(class 1 | s) - s|`` by the trapezoid rule; the integrand is smooth except where the gap changes sign."""
    x = np.linspace(-500, 500, 2_000_001)
    density = np.exp(_survey_log_densities(x)[:, :2]).mean(axis=1)
    scores = 1 / (1 + np.exp(-_SURVEY_SLOPES[case] * x))
    return float(trapezoid(density * np.abs(survey_posterior(x)[:, 1] - scores), x))


def load_breast_cancer_predictions(model: Any = None, *, random_state: int = 0) -> Sample:
    """Held-out predictions of a model (default: Gaussian naive Bayes) on scikit-learn's breast-cancer data.

    The model is trained on half of the 569 rows; ``y_prob`` is the probability of ``"malignant"`` on the other half.

    Parameters
    ----------
    model : scikit-learn classifier, optional
        The model to train; by default Gaussian naive Bayes.
    random_state : int, default 0
        Seed of the split into halves.

    Returns
    -------
    Sample
        285 rows of two classes; ``truth`` is NaN.

    See Also
    --------
    calibrant.datasets.load_digits_predictions : Ten classes.
    calibrant.datasets.load_even_digits_predictions : Two classes, more rows.

    Examples
    --------
    >>> from calibrant.datasets import load_breast_cancer_predictions
    >>> sample = load_breast_cancer_predictions()
    >>> sample.y_prob.shape, sample.labels
    ((285,), ('benign', 'malignant'))
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB

    data = load_breast_cancer()
    names = np.asarray(data.target_names)[data.target]
    y, classes, matrix, kind = _held_out(data.data, names, GaussianNB() if model is None else model, random_state)
    column = list(classes).index("malignant")
    return Sample(y, matrix[:, column], classes, float("nan"), f"{kind} on breast cancer")


def load_even_digits_predictions(model: Any = None) -> Sample:
    """Held-out predictions of a model (default: naive Bayes) on whether a handwritten digit is even.

    All 1797 of scikit-learn's digits, by five-fold cross-validation; ``y_prob`` is the probability of ``"even"``. The
    default, Bernoulli naive Bayes on dark and light pixels, treats neighbouring pixels as independent evidence, and so
    is over-confident at both ends.

    Parameters
    ----------
    model : scikit-learn classifier, optional
        The model to train; by default Bernoulli naive Bayes.

    Returns
    -------
    Sample
        1797 rows of two classes; ``truth`` is NaN.

    See Also
    --------
    calibrant.datasets.load_digits_predictions : Ten classes.
    calibrant.datasets.load_breast_cancer_predictions : Two classes, fewer rows.

    Examples
    --------
    >>> from calibrant.datasets import load_even_digits_predictions
    >>> sample = load_even_digits_predictions()
    >>> sample.y_prob.shape, sample.labels
    ((1797,), ('even', 'odd'))
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.naive_bayes import BernoulliNB

    data = load_digits()
    model = BernoulliNB(binarize=8) if model is None else model
    y = np.where(data.target % 2 == 0, "even", "odd")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    matrix = cross_val_predict(model, data.data, y, cv=folds, method="predict_proba")
    kind = f"{type(model).__name__} on handwritten digits, even or odd"
    return Sample(y, matrix[:, 0], ("even", "odd"), float("nan"), kind)


def load_digits_predictions(model: Any = None, *, random_state: int = 0) -> Sample:
    """Held-out predictions of a model (default: Gaussian naive Bayes) on scikit-learn's digits, ten classes.

    Parameters
    ----------
    model : scikit-learn classifier, optional
        The model to train; by default Gaussian naive Bayes.
    random_state : int, default 0
        Seed of the split into halves.

    Returns
    -------
    Sample
        899 rows of ten classes; ``truth`` is NaN.

    See Also
    --------
    calibrant.datasets.load_even_digits_predictions : Whether the digit is even.
    calibrant.datasets.load_breast_cancer_predictions : Two classes, fewer rows.

    Examples
    --------
    >>> from calibrant.datasets import load_digits_predictions
    >>> load_digits_predictions().y_prob.shape
    (899, 10)
    """
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import GaussianNB

    data = load_digits()
    y, classes, matrix, kind = _held_out(data.data, data.target, GaussianNB() if model is None else model, random_state)
    return Sample(y, matrix, classes, float("nan"), f"{kind} on handwritten digits")


def _held_out(x: AnyArray, y: AnyArray, model: Any, seed: int) -> tuple[AnyArray, tuple[Label, ...], FloatArray, str]:
    from sklearn.model_selection import train_test_split

    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.5, stratify=y, random_state=fold_seed(seed))
    model.fit(train_x, train_y)
    return test_y, tuple(model.classes_.tolist()), model.predict_proba(test_x), type(model).__name__

r"""Distribution of the belt's statistic under calibration, given the degree that forward selection stopped at.

Each likelihood-ratio statistic of the selection is chi-squared with one degree of freedom and independent of the
others; that the degree rose from 1 to m says that m - 1 of them exceeded a threshold k. So the statistic of degree m
against "intercept 0, slope 1, all else 0" is

.. math:: T_m = \chi^2_2 + \sum_{j=2}^m X_j, \qquad X_j \sim \chi^2_1 \mid \chi^2_1 > k

(Nattino, Finazzi & Bertolini 2014). With q the probability that χ²₁ exceeds k, and φ, Φ of the normal distribution,

.. math:: P(T_1 > t) &= e^{-t/2} \\
          P(T_2 > t) &= \frac1q \Big( 2\Phi(-\sqrt t) + \sqrt{2/\pi}\, e^{-t/2} (\sqrt t - \sqrt k) \Big) \\
          P(T_m > t) &= \frac1q \Big( 2\Phi(-r) + \int_{\sqrt k}^{r} 2 \varphi(y)\, P(T_{m-1} > t - y^2)\, dy \Big),
          \quad r^2 = t - (m - 2) k

and 1 below ``(m - 1) k``. The integrand is smooth, so Gauss–Legendre nodes give it to some 13 digits.

Where the model is a logistic regression fitted to the same rows, intercept and slope of its logits are 0 and 1 there:
the selection starts at degree 2, whose statistic is one chi-squared variable that no threshold has chosen,

.. math:: T_m = \chi^2_1 + \sum_{j=3}^m X_j, \qquad P(T_2 > t) = 2\Phi(-\sqrt t)

(Nattino, Finazzi & Bertolini 2016), and the same integral leads from m - 1 to m.
"""

from __future__ import annotations

import numpy as np

from ...data.types import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def survival(t: float, degree: int, selection: float, first: int = 1) -> float:
    """``P(T > t)`` under calibration, given the degree; ``selection`` is the level of the selection's tests.

    ``first``: the degree it started from, 1 or (rows that a logistic model was fitted to) 2.
    """
    return float(_survival(np.array([float(t)]), degree, first, threshold(selection), 1 - selection)[0])


def quantile(level: float, degree: int, selection: float, first: int = 1) -> float:
    """The statistic that calibrated models of this degree stay below with probability ``level``."""
    from scipy.optimize import brentq

    wanted = np.log1p(-level)
    low = (degree - first) * threshold(selection)
    high = low + 10.0
    while np.log(survival(high, degree, selection, first)) > wanted:
        high += 20.0
    return float(brentq(lambda t: np.log(survival(t, degree, selection, first)) - wanted, low, high, xtol=1e-12))


def threshold(selection: float) -> float:
    """Statistic, chi-squared with one degree of freedom, that a test at the level ``selection`` must exceed."""
    from scipy.special import ndtri

    return float(ndtri((1 + selection) / 2) ** 2)


def _survival(t: FloatArray, degree: int, first: int, k: float, q: float) -> FloatArray:
    from scipy.special import ndtr

    steps = degree - first
    out = np.ones(t.shape)
    above = t > steps * k
    s = t[above]
    if degree == 1:
        out[above] = np.exp(-s / 2)
    elif steps == 0:
        out[above] = 2 * ndtr(-np.sqrt(s))
    elif degree == 2:
        root = np.sqrt(s)
        out[above] = (2 * ndtr(-root) + np.sqrt(2 / np.pi) * np.exp(-s / 2) * (root - np.sqrt(k))) / q
    else:
        start, end = np.sqrt(k), np.sqrt(s - (steps - 1) * k)
        # Of one variable the inner distribution rises like a root at its end; with angles for nodes it is smooth there
        # too.
        half = (end - start)[..., None] / 2
        y, slope = _places(start, half)
        inner = _survival(s[..., None] - y**2, degree - 1, first, k, q)
        density = 2 * np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
        out[above] = (2 * ndtr(-end) + (half * _WEIGHTS * slope * density * inner).sum(axis=-1)) / q
    return np.minimum(out, 1.0)


def _places(start: float, half: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes between ``start`` and ``start + 2 half``, dense towards the ends, and the derivative of their places."""
    angle = np.pi / 2 * _NODES
    return start + half * (1 + np.sin(angle)), np.asarray(np.pi / 2 * np.cos(angle))

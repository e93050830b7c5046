r"""Law of the belt's statistic under calibration, given the degree that forward selection stopped at.

Each likelihood-ratio statistic of the selection is chi-squared with one degree of freedom and independent of the
others; that the degree rose from 1 to m says that m - 1 of them exceeded a threshold k. So the statistic of degree m
against "intercept 0, slope 1, all else 0" is

.. math:: T_m = \chi^2_2 + \sum_{j=2}^m X_j, \qquad X_j \sim \chi^2_1 \mid \chi^2_1 > k

(Nattino, Finazzi & Bertolini 2014). With q the probability that χ²₁ exceeds k, and φ, Φ of the normal law,

.. math:: P(T_1 > t) &= e^{-t/2} \\
          P(T_2 > t) &= \frac1q \Big( 2\Phi(-\sqrt t) + \sqrt{2/\pi}\, e^{-t/2} (\sqrt t - \sqrt k) \Big) \\
          P(T_m > t) &= \frac1q \Big( 2\Phi(-r) + \int_{\sqrt k}^{r} 2 \varphi(y)\, P(T_{m-1} > t - y^2)\, dy \Big),
          \quad r^2 = t - (m - 2) k

and 1 below ``(m - 1) k``. The integrand is smooth, so Gauss–Legendre nodes give it to some 13 digits.
"""

from __future__ import annotations

import numpy as np

from ....data.types import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def survival(t: float, degree: int, selection: float) -> float:
    """``P(T > t)`` under calibration, given the degree; ``selection`` is the level of the selection's tests."""
    return float(_survival(np.array([float(t)]), degree, threshold(selection), 1 - selection)[0])


def quantile(level: float, degree: int, selection: float) -> float:
    """The statistic that calibrated models of this degree stay below with probability ``level``."""
    from scipy.optimize import brentq

    wanted = np.log1p(-level)
    low = (degree - 1) * threshold(selection)
    high = low + 10.0
    while np.log(survival(high, degree, selection)) > wanted:
        high += 20.0
    return float(brentq(lambda t: np.log(survival(t, degree, selection)) - wanted, low, high, xtol=1e-12))


def threshold(selection: float) -> float:
    """Statistic, chi-squared with one degree of freedom, that a test at the level ``selection`` must exceed."""
    from scipy.special import ndtri

    return float(ndtri((1 + selection) / 2) ** 2)


def _survival(t: FloatArray, degree: int, k: float, q: float) -> FloatArray:
    from scipy.special import ndtr

    least = (degree - 1) * k
    out = np.ones(t.shape)
    above = t > least
    s = t[above]
    if degree == 1:
        out[above] = np.exp(-s / 2)
    elif degree == 2:
        root = np.sqrt(s)
        out[above] = (2 * ndtr(-root) + np.sqrt(2 / np.pi) * np.exp(-s / 2) * (root - np.sqrt(k))) / q
    else:
        start, end = np.sqrt(k), np.sqrt(s - (degree - 2) * k)
        half = (end - start)[..., None] / 2
        y = start + half * (1 + _NODES)
        inner = _survival(s[..., None] - y**2, degree - 1, k, q)
        density = 2 * np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
        out[above] = (2 * ndtr(-end) + (half * _WEIGHTS * density * inner).sum(axis=-1)) / q
    return np.minimum(out, 1.0)

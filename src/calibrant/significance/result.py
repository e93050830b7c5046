"""`TestResult`: what every test returns; and p-values corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..data.printing import equals
from ..data.result import Picture
from ..data.types import FloatArray


@dataclass(frozen=True, repr=False)
class TestResult(Picture):
    """Result of a hypothesis test.

    Attributes
    ----------
    statistic : float
    pvalue : float
        Probability, if the null hypothesis is true, of a statistic at least as extreme.
    null : str
        The null hypothesis, in words.
    name : str
    df : float or None
        Degrees of freedom, where the statistic has a chi-squared distribution.
    details : mapping of str to float
        What else was found, such as a slope and its standard error.
    warnings : tuple of str
        Why the p-value may be off; empty where nothing is known against it.
    n_samples : int
    draws : ndarray of shape (R,) or None
        Statistics of labels drawn under the null hypothesis, where the p-value was found among such. ``plot()`` shows
        them, or the chi-squared distribution, beside the statistic.
    """

    display: ClassVar[str] = "NullDistributionDisplay"

    __test__: ClassVar[bool] = False  # its name would make pytest collect it

    statistic: float
    pvalue: float
    null: str
    name: str
    n_samples: int
    df: float | None = None
    details: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    draws: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def least_pvalue(self) -> float:
        """The smallest p-value that so many draws can give; 0 where none were drawn."""
        return 0.0 if self.draws is None else 1 / (self.draws.size + 1)

    def __str__(self) -> str:
        df = "" if self.df is None else f", df {self.df:g}"
        p = equals(self.pvalue, self.least_pvalue)
        lines = [f"{self.name}: statistic {self.statistic:.4g}{df}, p {p}", f"null: {self.null}"]
        lines += [f"{name}: {value:.4g}" for name, value in self.details.items()]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def holm(pvalues: FloatArray) -> FloatArray:
    """Holm's step-down correction: rejects any true hypothesis with probability at most α. NaN stays, uncounted."""
    out: FloatArray = np.full(pvalues.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    steps = (order.size - np.arange(order.size)) * pvalues[order]
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out


def benjamini_hochberg(pvalues: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's step-up correction, of the share of rejections that are false. NaN stays, uncounted."""
    from scipy.stats import false_discovery_control

    out: FloatArray = np.full(pvalues.shape, np.nan)
    known = ~np.isnan(pvalues)
    if known.any():
        out[known] = false_discovery_control(pvalues[known])
    return out

"""`TestResult`, which every test returns, and corrections of p-values for multiple testing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..data.printing import equals, number_of
from ..data.result import Picture
from ..data.types import AnyArray, FloatArray

#: Warning of a result where the null hypothesis is false, whatever the p-value of its statistic.
IMPOSSIBLE = "outcomes with predicted probability 0, which cannot occur in a draw"
#: With up to this many groups no p-value is below 0.05.
_TOO_FEW = 5


def least_pvalue(n_groups: AnyArray | int) -> Any:
    """``2^(1 - G)``, the probability that the residuals of G independent groups all have the same sign by chance."""
    return np.minimum(2.0 ** (1 - np.asarray(n_groups, dtype=np.float64)), 1.0)


def few_groups(n_groups: int) -> tuple[str, ...]:
    """A warning if there are too few groups for significance at the 5 % level."""
    if n_groups > _TOO_FEW:
        return ()
    least = float(least_pvalue(n_groups))
    number = number_of(n_groups, "group")
    return (f"too few groups to test at 5 %: with {number} no p-value can be below {least:.4g}",)


@dataclass(frozen=True, repr=False)
class TestResult(Picture):
    """Result of a hypothesis test.

    Attributes
    ----------
    statistic : float
        The statistic of the test.
    pvalue : float
        Probability, if the null hypothesis is true, of a statistic at least as extreme.
    null : str
        The null hypothesis, in words.
    name : str
        The test, and how its p-value is computed.
    df : float or None
        Degrees of freedom of the null distribution, if it is a chi-squared or Student's t distribution.
    details : mapping of str to float
        Further numbers, such as a slope and its standard error.
    warnings : tuple of str
        Reasons why the p-value may be inaccurate; empty if there are none.
    n_groups : int or None
        Number of groups G on whose sums or signs the p-value is based: it is then at least ``2^(1 - G)``. None for
        independent rows.
    draws : ndarray of shape (R,) or None
        Statistics of the draws under the null hypothesis, if the p-value is based on draws. ``plot()`` shows them, or
        the chi-squared distribution, with the statistic.

    See Also
    --------
    calibrant.calibration_test : A test that returns it.
    calibrant.plot.NullDistributionDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> found = cal.significance.cumulative_test(rng.random(500) < p**2, p)
    >>> bool(found.pvalue < 0.001), found.n_samples
    (True, 500)
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
    n_groups: int | None = None

    def __post_init__(self) -> None:
        if self.n_groups is None:
            return
        object.__setattr__(self, "pvalue", float(np.maximum(self.pvalue, least_pvalue(self.n_groups))))
        object.__setattr__(self, "warnings", (*self.warnings, *few_groups(self.n_groups)))

    @property
    def least_pvalue(self) -> float:
        """The smallest p-value possible with this many draws or groups; 0 for independent rows without draws."""
        of_draws = 0.0 if self.draws is None else 1 / (self.draws.size + 1)
        return of_draws if self.n_groups is None else max(of_draws, float(least_pvalue(self.n_groups)))

    @property
    def summary(self) -> str:
        """Whether there is evidence against the null hypothesis."""
        p = equals(self.pvalue, self.least_pvalue)
        if self.pvalue != self.pvalue:
            return f"Nothing could be tested ({self.null})."
        if any(text.startswith(IMPOSSIBLE) for text in self.warnings):
            return f"An outcome with predicted probability 0 rules out the null hypothesis that {self.null} (p {p})."
        if self.pvalue <= 0.05:
            return f"There is evidence against the null hypothesis that {self.null} (p {p})."
        return f"There is no evidence against the null hypothesis that {self.null} (p {p})."

    def _text(self) -> str:
        df = "" if self.df is None else f", df {self.df:g}"
        lines = [f"{self.name}: statistic {self.statistic:.4g}{df}"]
        said = {name.replace("_", " "): value for name, value in self.details.items()}
        lines += [f"{name}: {value:.4g}" for name, value in said.items()]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def holm(pvalues: FloatArray) -> FloatArray:
    """Holm's step-down correction, which controls the family-wise error rate; NaN is kept and not counted."""
    out: FloatArray = np.full(pvalues.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    steps = (order.size - np.arange(order.size)) * pvalues[order]
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out


def benjamini_hochberg(pvalues: FloatArray) -> FloatArray:
    """Benjamini and Hochberg's step-up correction of the false discovery rate; NaN is kept and not counted."""
    from scipy.stats import false_discovery_control

    out: FloatArray = np.full(pvalues.shape, np.nan)
    known = ~np.isnan(pvalues)
    if known.any():
        out[known] = false_discovery_control(pvalues[known])
    return out

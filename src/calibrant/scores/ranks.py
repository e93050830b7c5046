"""`rank_models`: average ranks of models over several data sets, with the tests of Friedman and Nemenyi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_bool, check_level, check_list, received
from ..data.convert import to_array
from ..data.public_function import public_function
from ..data.result import Picture, Table
from ..data.types import AnyArray, FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class ModelRanks(Picture, Table):
    """Ranks of models over data sets, and which models differ.

    Attributes
    ----------
    models : tuple of str
        Names of the models, in the order of the table.
    average_ranks : ndarray of shape (k,)
        Mean rank of each model; 1 is best, and models that tie share the mean of their ranks.
    ranks : ndarray of shape (N, k)
        Ranks on each data set.
    friedman, friedman_pvalue : float
        Friedman's chi-squared statistic, corrected for ties, for the hypothesis that all models are alike, and its
        p-value with k - 1 degrees of freedom. NaN if all models tie on all data sets.
    iman_davenport, iman_davenport_pvalue : float
        Iman and Davenport's F, with k - 1 and (k - 1)(N - 1) degrees of freedom: less conservative. Infinite if the
        order of the models is the same on every data set; its p-value is then the probability of that by chance, 1/k!
        for every data set but the first (more if models tie).
    critical_difference : float
        Average ranks that differ by at least this are significantly different (Nemenyi), at ``level`` for all pairs.
    pvalues : ndarray of shape (k, k)
        Nemenyi's p-value of each pair, already adjusted for all pairs.
    indistinguishable : tuple of tuples of str
        Largest sets of models, best first, in which no two differ; a model may be in several, or in none.
    level : float
        Level of the critical difference.
    lower_is_better : bool
        Whether lower scores are better.
    n_sets : int
        Number of data sets.

    See Also
    --------
    calibrant.scores.rank_models : Computes them.
    calibrant.plot.CriticalDifferenceDisplay : Draws them.

    Examples
    --------
    >>> import calibrant as cal
    >>> ranks = cal.scores.rank_models([[0.1, 0.2], [0.2, 0.3], [0.1, 0.4]])
    >>> ranks.models, ranks.average_ranks.tolist()
    (('model 1', 'model 2'), [1.0, 2.0])
    """

    display: ClassVar[str] = "CriticalDifferenceDisplay"

    models: tuple[str, ...]
    average_ranks: FloatArray
    ranks: FloatArray
    friedman: float
    friedman_pvalue: float
    iman_davenport: float
    iman_davenport_pvalue: float
    critical_difference: float
    pvalues: FloatArray
    indistinguishable: tuple[tuple[str, ...], ...]
    level: float
    lower_is_better: bool
    n_sets: int

    @property
    def order(self) -> tuple[int, ...]:
        """Positions of the models, best first."""
        return tuple(int(i) for i in np.argsort(self.average_ranks, kind="stable"))

    @property
    def summary(self) -> str:
        """The best model, and those that do not differ from it."""
        best = self.order[0]
        alike = [
            self.models[i]
            for i in self.order[1:]
            if self.average_ranks[i] - self.average_ranks[best] < self.critical_difference
        ]
        said = f"{self.models[best]} has the best average rank ({self.average_ranks[best]:.2f})"
        if not alike:
            return f"{said} and differs significantly from every other model."
        return f"{said}; it does not differ significantly from {', '.join(alike)}."

    def _text(self) -> str:
        width = max(len("model"), *(len(m) for m in self.models))
        best, share = self.order[0], round(100 * (1 - self.level), 6)
        lines = [
            f"{len(self.models)} models on {self.n_sets} data sets; rank 1 is the "
            f"{'lowest' if self.lower_is_better else 'highest'} score",
            f"Friedman chi-squared {self.friedman:.4g}, p = {self.friedman_pvalue:.3g}; "
            f"Iman-Davenport F {self.iman_davenport:.4g}, p = {self.iman_davenport_pvalue:.3g}",
            f"critical difference of average ranks {self.critical_difference:.3f} (Nemenyi, {share:g} %)",
            "",
            f"{'model':<{width}}{'average rank':>14}{'p against the best':>20}",
        ]
        for i in self.order:
            p = "" if i == best else f"{self.pvalues[best, i]:.3g}"
            lines.append(f"{self.models[i]:<{width}}{self.average_ranks[i]:>14.3f}{p:>20}".rstrip())
        lines.append("")
        lines += [f"not significantly different: {', '.join(models)}" for models in self.indistinguishable] or [
            "every pair of models differs"
        ]
        return "\n".join(lines)

    def _columns(self) -> dict[str, Any]:
        return {
            "model": [self.models[i] for i in self.order],
            "average_rank": [float(self.average_ranks[i]) for i in self.order],
            "pvalue_against_best": [float(self.pvalues[self.order[0], i]) for i in self.order],
        }


@public_function()
def rank_models(
    scores: Any, *, models: Sequence[str] | None = None, lower_is_better: bool = True, level: float = 0.95
) -> ModelRanks:
    r"""Compare models over several data sets by their ranks (Friedman 1937; Nemenyi 1963; Demšar 2006).

    .. math:: & \chi^2_F = \frac{12 N}{k (k+1)} \Big(\sum_j R_j^2 - \frac{k (k+1)^2}{4}\Big) \Big/
        \Big(1 - \frac{\sum (t^3 - t)}{N k (k^2 - 1)}\Big), \\
        & F_F = \frac{(N-1)\,\chi^2_F}{N (k-1) - \chi^2_F}, \\
        & \mathrm{CD} = q_\alpha \sqrt{\frac{k (k+1)}{6N}}

    for k models on N data sets, :math:`R_j` their average ranks, t the sizes of ties, and :math:`q_\alpha` the quantile
    of the studentised range of k means with infinite degrees of freedom, divided by √2.

    Parameters
    ----------
    scores : array-like of shape (N, k), mapping of names to N scores, or data frame
        One row per data set, one column per model: a calibration error, a score, a loss. Only their order within a row
        matters.
    models : sequence of k names, optional
        Names of the models of an array; default ``model 1``, ``model 2``, ….
    lower_is_better : bool, default True
        Whether lower scores are better.
    level : float in (0, 1), default 0.95
        Level of the critical difference, for all pairs jointly.

    Returns
    -------
    ModelRanks
        ``.average_ranks``, ``.critical_difference`` and ``.indistinguishable`` models; ``.plot()`` draws them.

    Raises
    ------
    ValueError, TypeError
        For fewer than two models or data sets, scores that are missing or infinite, or columns that are not numbers.

    See Also
    --------
    calibrant.compare_models : Models on the rows of one data set.
    calibrant.plot.CriticalDifferenceDisplay : Plots the ranks.

    Notes
    -----
    Data sets are the units, and must be independent; for models on one data set see :func:`calibrant.compare_models`.
    Nemenyi's test does not take Friedman's into account: check the latter first. It is conservative, the more so with
    ties. Demšar's paper does not correct the chi-squared statistic for ties; without ties, both agree. Both
    distributions are for many data sets: with few, chi-squared and F are approximate, and if all agree on one order, so
    that F is infinite, :math:`(1/k!)^{N-1}` is exact. Cost O(N k log k + k²).

    References
    ----------
    Demšar (2006), *Statistical comparisons of classifiers over multiple data sets*; Iman & Davenport (1980).

    Examples
    --------
    >>> import calibrant as cal
    >>> a, b, c = [0.1, 0.2, 0.1, 0.3], [0.2, 0.3, 0.2, 0.4], [0.3, 0.1, 0.3, 0.5]
    >>> ranks = cal.scores.rank_models({"a": a, "b": b, "c": c})
    >>> ranks.average_ranks.tolist(), round(ranks.friedman, 3), ranks.indistinguishable
    ([1.25, 2.25, 2.5], 3.5, (('a', 'b', 'c'),))
    """
    from scipy.stats import chi2, f, rankdata, studentized_range

    table, names = _table(scores, models)
    lower_is_better, level = check_bool("lower_is_better", lower_is_better), check_level(level)
    n, k = table.shape
    ranks = np.asarray(rankdata(table if lower_is_better else -table, axis=1), dtype=np.float64)
    average = ranks.mean(axis=0)
    statistic = _friedman(ranks)
    rest = n * (k - 1) - statistic
    # The order is the same on every data set: what is left is rounding.
    certain = rest <= 1e-9 * n * (k - 1)
    ratio = float("inf") if certain else float((n - 1) * statistic / rest)
    scale = float(np.sqrt(k * (k + 1) / (6 * n)))
    cd = float(studentized_range.ppf(level, k, np.inf)) / np.sqrt(2) * scale
    distance = np.abs(average[:, None] - average[None])
    pvalues = np.clip(studentized_range.sf(distance * np.sqrt(2) / scale, k, np.inf), 0.0, 1.0)
    return ModelRanks(
        models=names,
        average_ranks=average,
        ranks=ranks,
        friedman=statistic,
        friedman_pvalue=float(chi2.sf(statistic, k - 1)),
        iman_davenport=ratio,
        iman_davenport_pvalue=_agreement(ranks) if certain else float(f.sf(ratio, k - 1, (k - 1) * (n - 1))),
        critical_difference=float(cd),
        pvalues=pvalues,
        indistinguishable=_indistinguishable(average, float(cd), names),
        level=level,
        lower_is_better=lower_is_better,
        n_sets=n,
    )


def _table(scores: Any, models: Sequence[str] | None) -> tuple[FloatArray, tuple[str, ...]]:
    """Scores (N, k), checked, and the names of the models."""
    columns: Sequence[Any] | None
    if isinstance(scores, Mapping):
        columns = list(scores)
        each = [np.asarray(to_array(v, f"scores[{name!r}]")[0]) for name, v in scores.items()]
        lengths = {v.shape for v in each}
        if len(lengths) > 1 or any(v.ndim != 1 for v in each):
            raise ValueError(
                f"scores must have the same number of values for every model; got shapes {sorted(lengths)}"
            )
        table = np.column_stack(each) if each else np.empty((0, 0))
    else:
        table, columns = to_array(scores, "scores")
    if table.ndim != 2:
        raise ValueError(f"scores must be a table, data sets × models; got {table.ndim}-D")
    if table.dtype.kind not in "iufb":
        table = _numbers(table, columns)
    n, k = table.shape
    if k < 2 or n < 2:
        raise ValueError(f"scores must hold at least 2 models on 2 data sets; got {k} on {n}")
    bad = np.argwhere(~np.isfinite(table))
    if bad.size:
        row, column = bad[0]
        raise ValueError(f"scores must be finite: row {row}, column {column} is {table[row, column]}")
    if models is not None:
        models = check_list("models", models, wanted := f"{k} names, one per column of scores")
        if len(models) != k:
            raise ValueError(f"models must be {wanted}; got {received(models)}")
        columns = models
    named = tuple(f"model {j + 1}" for j in range(k)) if columns is None else tuple(map(str, columns))
    if len(set(named)) < k:
        raise ValueError(f"names of models must differ; got {list(named)}")
    return table.astype(np.float64), named


def _numbers(table: AnyArray, columns: Sequence[Any] | None) -> FloatArray:
    """A table of objects as numbers; TypeError names the column that holds something else."""
    out = np.empty(table.shape)
    for j in range(table.shape[1]):
        try:
            out[:, j] = table[:, j].astype(np.float64)
        except (TypeError, ValueError):
            name = j if columns is None else repr(columns[j])
            raise TypeError(f"scores must be numbers; column {name} is not: leave out the names of data sets") from None
    return out


def _friedman(ranks: FloatArray) -> float:
    """Friedman's chi-squared from sums of squares of ranks, which account for ties; NaN if all models tie.

    SciPy's ``friedmanchisquare`` needs three models or more; there the two agree.
    """
    n, k = ranks.shape
    middle = (k + 1) / 2
    spread = float(((ranks - middle) ** 2).sum())
    if spread == 0:
        return float("nan")
    return float(n * n * (k - 1) * ((ranks.mean(axis=0) - middle) ** 2).sum() / spread)


def _agreement(ranks: FloatArray) -> float:
    """Probability that all data sets have the ranks of the first, if all orders of those are equally probable."""
    from scipy.special import gammaln

    n, k = ranks.shape
    ties = np.unique(ranks[0], return_counts=True)[1]
    orders = gammaln(k + 1) - gammaln(ties + 1).sum()
    return float(np.exp(-(n - 1) * orders))


def _indistinguishable(average: FloatArray, cd: float, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Longest runs of models, in the order of their ranks, whose ends do not differ."""
    order = np.argsort(average, kind="stable")
    r = average[order]
    found: list[tuple[str, ...]] = []
    reached = 0
    for first in range(len(r)):
        last = int(np.searchsorted(r, r[first] + cd, side="left"))  # those before it are nearer than cd
        if last > reached and last - first > 1:
            found.append(tuple(names[i] for i in order[first:last]))
        reached = max(reached, last)
    return tuple(found)

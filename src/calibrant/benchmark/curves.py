"""Estimators that are compared: the paper's 15 curves, and ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from ..data.checks import check_choice, check_names, check_type
from ..estimators import (
    AdaptiveKernel,
    BetaKernel,
    Binned,
    CrossFit,
    Cumulative,
    Density,
    EmpiricalBayes,
    Estimator,
    Isotonic,
    Parametric,
    ResidualKernel,
    Smooth,
    Sweep,
)
from .config import MODES
from .pool import NORMS

E = TypeVar("E")


#: Description of the allowed values.
_ENTRIES = "estimators such as Binned(15), or entries"


@dataclass(frozen=True)
class Entry:
    """One estimator of a run.

    Parameters
    ----------
    estimator : Estimator
        The estimator, for one score per row.
    norm : {1, 2}, default 1
        Norm of the error that it estimates, and of the truth it is compared with.
    shared_bandwidth : bool, default False
        Whether all classes are smoothed with the bandwidth of class 0, as in the authors' code. For :class:`Density`
        only.

    See Also
    --------
    calibrant.benchmark.run : Takes entries or estimators.
    calibrant.benchmark.paper_curves : The paper's entries.

    Examples
    --------
    >>> from calibrant import Binned
    >>> from calibrant.benchmark import Entry
    >>> Entry(Binned(10), norm=2).norm
    2.0
    """

    estimator: Estimator
    norm: float = 1.0
    shared_bandwidth: bool = False

    def __post_init__(self) -> None:
        check_type("estimators", self.estimator, Estimator, _ENTRIES)
        if "scalar" not in self.estimator._serves:
            raise ValueError(f"estimators must support the notions confidence and classwise; got {self.estimator!r}")
        object.__setattr__(self, "norm", check_choice("norm of an entry", float(self.norm), NORMS))
        if self.shared_bandwidth and not isinstance(self.estimator, Density):
            raise ValueError(f"shared_bandwidth needs a Density estimator; got {self.estimator!r}")

    @property
    def definition(self) -> str:
        """Description of the entry, which changes whenever the entry does."""
        shared = ", shared bandwidth" if self.shared_bandwidth else ""
        return f"{self.estimator!r}, norm {self.norm:g}{shared}"


Entries = dict[str, Entry]
_STRATEGIES = {"l": ("uniform", False), "a": ("quantile", False), "c": ("uniform", True), "ac": ("quantile", True)}


def paper_curves(mode: str = "corrected") -> Entries:
    """The 15 curves of the paper's Figure 2: {l, a, c, ac} × {10, 30, √N bins} and d × {Silverman, 0.1, 0.033}.

    Parameters
    ----------
    mode : {"corrected", "as-published"}, default "corrected"
        ``"corrected"``: true linear mapping, uniform bins over [0, 1], densities mirrored at the ends of the notion's
        domain, a bandwidth for each class. ``"as-published"``: the linear mapping as printed; for confidence l on [0,
        1] and c on [1/K, 1]; Silverman's bandwidth of class 0 for all classes; the remainder of rows that quantile
        bins cannot share evenly in the last bin.

    Returns
    -------
    dict of str to Entry
        The estimators, by the paper's names.

    See Also
    --------
    calibrant.benchmark.run : Evaluates them, and your own estimators.

    Examples
    --------
    >>> from calibrant.benchmark import paper_curves
    >>> list(paper_curves())[:4], len(paper_curves())
    (['l10', 'l30', 'lsqrt', 'a10'], 15)
    """
    published = check_choice("mode", mode, MODES) == "as-published"
    linear = "linear-as-printed" if published else "linear"
    entries: Entries = {}
    for name, (strategy, shares) in _STRATEGIES.items():
        span = "domain" if published and name == "c" else "unit"
        strategy += "-as-published" if published and strategy == "quantile" else ""
        bins: tuple[int | str, ...] = (10, 30, "sqrt")
        for n_bins in bins:
            entries[f"{name}{n_bins}"] = Entry(Binned(n_bins, strategy, linear if shares else "hard", span=span))
    entries["d-silverman"] = Entry(Density("silverman", "triweight"), shared_bandwidth=published)
    entries["d0.1"] = Entry(Density(0.1, "triweight"))
    entries["d0.033"] = Entry(Density(0.033, "triweight"))
    return entries


#: The paper's curves, corrected.
PAPER_CURVES: Mapping[str, Entry] = paper_curves()

#: Estimators compared with the paper's. To add one, add a line.
OURS: dict[str, Entry] = {
    "empirical-bayes": Entry(EmpiricalBayes()),
    "residual-rank": Entry(ResidualKernel()),
    "residual-rank-debiased": Entry(ResidualKernel(debias=True)),
    "residual-score": Entry(ResidualKernel(space="score")),
    "binned15": Entry(Binned(15)),
    "binned15-debiased": Entry(Binned(15, debias=True)),
    "asqrt-debiased": Entry(Binned("sqrt", "quantile", debias=True)),
    "binned15-l2": Entry(Binned(15), norm=2),
    "binned15-l2-debiased": Entry(Binned(15, debias=True), norm=2),
    "asqrt-l2": Entry(Binned("sqrt", "quantile"), norm=2),
    "asqrt-l2-debiased": Entry(Binned("sqrt", "quantile", debias=True), norm=2),
    "residual-rank-l2": Entry(ResidualKernel(), norm=2),
    "smooth": Entry(Smooth()),
    "sweep": Entry(Sweep()),
    "isotonic": Entry(Isotonic()),
    "cumulative-ks": Entry(Cumulative("ks")),
    "cumulative-kuiper": Entry(Cumulative("kuiper")),
    "adaptive": Entry(AdaptiveKernel()),
    "beta-kernel": Entry(BetaKernel()),
    "parametric-logistic": Entry(Parametric("logistic")),
    "parametric-beta": Entry(Parametric("beta")),
    "parametric-quadratic": Entry(Parametric("quadratic")),
    "crossfit": Entry(CrossFit()),
}


def as_entries(estimators: Mapping[str, Estimator | Entry]) -> Entries:
    """Check the ``estimators`` argument: a mapping of names to estimators or entries."""
    return named_entries(estimators, Entry)


def named_entries(estimators: Mapping[str, Estimator | E], kind: type[E]) -> dict[str, E]:
    """Convert estimators to entries of a class, by name."""
    given = check_names("estimators", estimators, (kind, Estimator), _ENTRIES)
    return {name: e if isinstance(e, kind) else kind(e) for name, e in given.items()}  # type: ignore[call-arg]  # entries take one

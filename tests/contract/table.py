"""The table of estimators. To put a new estimator under every law of the contract, add one row."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import calibrant as cal
from calibrant import Binned, EmpiricalBayes
from calibrant.estimators import (
    AdaptiveKernel,
    BetaKernel,
    CellEstimator,
    CrossFit,
    Cumulative,
    Density,
    DirichletKernel,
    Estimator,
    Isotonic,
    Parametric,
    ResidualKernel,
    SimplexBinned,
    Smooth,
    Sweep,
)

from .naive import Sample, adaptive, binned, density, rank_residual, residual, simplex
from .naive_bayes import empirical_bayes
from .naive_dirichlet import dirichlet
from .naive_models import beta_kernel, crossfit, kernel_power, left_out, parametric, rank_debiased
from .naive_order import cumulative, isotonic, smooth, sweep

INF = float("inf")
EDGES = (0.0, 0.1, 0.35, 0.6, 0.9, 1.0)


@dataclass(frozen=True)
class Row:
    """One part and what the laws need to know of it.

    ``twin`` is a second implementation, ``twin(sample, norm) -> errorᵖ``, written without looking at the first;
    it agrees within ``close``. ``noise`` bounds the error read on 40 000 calibrated samples, ``bias`` the distance
    from the truth, beyond sampling, on 40 000 samples that are not calibrated; ``leak`` is what a kernel makes of
    a model that is always certain. ``cancels``: errors of opposite sign cancel, as in a single bin.
    ``worst``: what it reads of a model that is always certain, and wrong, of two classes at once.
    ``mergeable``: summaries of pieces of a sample merge to that of the whole.
    """

    estimator: Estimator
    twin: Callable[[Sample, float], float]
    norms: tuple[float, ...] = (1, 2, 3, INF)
    close: float = 1e-10
    noise: float = 0.012
    bias: float = 0.006
    leak: float = 1e-9
    signed: bool = False
    mergeable: bool = True
    cancels: bool = False
    worst: float = 1.0

    @property
    def twin_rows(self) -> int:
        """Rows that the second implementation is given: fewer where it reads every pair of rows in Python."""
        slow = isinstance(self.estimator, DirichletKernel) or self.estimator == BetaKernel("loo")
        return 60 if slow else 120

    def serves(self, notion: str) -> bool:
        if notion == "drawn-class":
            return "drawn" in self.estimator._serves and getattr(self.estimator, "debias", None) != "cross"
        return ("vector" if notion in VECTOR_NOTIONS else "scalar") in self.estimator._serves

    def slow(self, notion: str) -> bool:
        """Whether it is costly, and the notion has several problems, each read as a single one is."""
        searches = self.estimator == Smooth() or getattr(self.estimator, "bandwidth", None) in ("isj", "loo")
        costly = searches or isinstance(self.estimator, (AdaptiveKernel, DirichletKernel))
        return costly and notion in ("classwise", "top-label")

    def many(self, notion: str) -> int:
        """Samples of a large sample: fewer where the cost grows with their square."""
        return 10_000 if notion in VECTOR_NOTIONS and isinstance(self.estimator, DirichletKernel) else 40_000

    @property
    def intervals(self) -> bool:
        """Whether `estimate` is tried: of the others it draws many samples, or they have no interval."""
        debias = getattr(self.estimator, "debias", None)
        return self.cells or isinstance(self.estimator, SimplexBinned) or debias == "cross"

    @property
    def cells(self) -> bool:
        """Whether it works on a summary of the sample, and so gives intervals and curves."""
        return isinstance(self.estimator, CellEstimator)

    def __str__(self) -> str:
        return re.sub(r" at 0x[0-9a-f]+", "", repr(self.estimator))  # the same name in every process


ROWS = [
    # ECE_l, ECE_a, ECE_c, ECE_ac
    Row(Binned(), binned(15)),
    Row(Binned(15, "quantile"), binned(15, "quantile"), mergeable=False),
    Row(Binned(15, mapping="linear"), binned(15, mapping="linear")),
    Row(Binned(15, "quantile", "linear"), binned(15, "quantile", "linear"), mergeable=False),
    Row(Binned(15, "quantile-as-published"), binned(15, "quantile-as-published"), mergeable=False),
    Row(
        Binned("sqrt", "quantile-as-published", "linear-as-printed"),
        binned("sqrt", "quantile-as-published", "linear-as-printed"),
        noise=0.04,
        bias=0.012,
        mergeable=False,
    ),
    Row(Binned(15, mapping="linear-as-printed"), binned(15, mapping="linear-as-printed"), bias=0.012),
    Row(Binned(15, "quantile", "linear-as-printed"), binned(15, "quantile", "linear-as-printed"), mergeable=False),
    # numbers of bins from the data, and edges from the user
    Row(Binned("sqrt"), binned("sqrt"), noise=0.03, bias=0.012, mergeable=False),
    Row(Binned("sqrt", "quantile"), binned("sqrt", "quantile"), noise=0.04, bias=0.012, mergeable=False),
    Row(Binned("cbrt", "quantile", "linear"), binned("cbrt", "quantile", "linear"), mergeable=False),
    Row(Binned(EDGES), binned(EDGES), bias=0.03),
    Row(Binned(EDGES, mapping="linear"), binned(EDGES, mapping="linear"), bias=0.04),
    Row(Binned(10, span="domain"), binned(10, span="domain")),
    Row(Binned(1), binned(1), bias=0.2, cancels=True),
    # debiased
    Row(Binned(debias=True), binned(15, debias=True), norms=(1, 2), signed=True),
    Row(
        Binned("sqrt", "quantile", debias=True),
        binned("sqrt", "quantile", debias=True),
        norms=(1, 2),
        noise=0.025,
        signed=True,
        mergeable=False,
    ),
    Row(Binned(15, mapping="linear", debias=True), binned(15, mapping="linear", debias=True), (1, 2), signed=True),
    Row(Binned(debias="brocker"), binned(15, debias=True), norms=(1, 2), signed=True),
    Row(Binned(40, debias="kumar"), binned(40, debias="kumar"), norms=(1, 2), signed=True),
    # models
    Row(Parametric(), parametric(), close=1e-6, leak=0.04, worst=0.98),
    Row(Parametric("beta"), parametric("beta"), close=1e-6, leak=0.04, worst=0.98),
    Row(Parametric("quadratic", 0), parametric("quadratic", 0.0), close=1e-6, leak=1e-5),
    Row(CrossFit(), crossfit(), (1, 2), signed=True, mergeable=False),
    Row(CrossFit("logistic"), crossfit("logistic"), (1, 2), close=1e-8, signed=True, mergeable=False),
    Row(CrossFit("histogram", 3), crossfit("histogram", 3), (1, 2), signed=True, mergeable=False),
    Row(BetaKernel(), beta_kernel(), close=1e-4, noise=0.02),
    Row(BetaKernel(0.05), beta_kernel(0.05), close=1e-4, noise=0.05),  # wide, so it leaks at a confidence's lower end
    Row(BetaKernel("loo"), beta_kernel("loo"), noise=0.02),
    Row(BetaKernel(form="second"), beta_kernel(form="second"), close=1e-4, noise=0.02),
    Row(BetaKernel(0.02, form="second"), beta_kernel(0.02, "second"), close=1e-4, noise=0.03, leak=1e-6),
    # densities
    Row(Density(), density("silverman"), (1, 2), close=2e-4, noise=0.02, bias=0.01, leak=0.2),
    Row(Density("scott"), density("scott"), (1, 2), close=2e-4, noise=0.02, bias=0.01, leak=0.2),
    Row(Density("isj"), density("isj"), (1, 2), close=3e-3, noise=0.03, bias=0.015, leak=0.2),
    Row(Density(0.05, "triweight"), density(0.05, "triweight"), (1, 2), close=2e-4, noise=0.02, leak=0.05),
    Row(Density(0.05, "epanechnikov"), density(0.05, "epanechnikov"), (1, 2), close=2e-4, noise=0.02, leak=0.05),
    Row(Density(0.05, "cosine"), density(0.05, "cosine"), (1, 2), close=2e-4, noise=0.02, leak=0.05),
    Row(Density(lambda x, w: 0.07), density(0.07), (1, 2), close=2e-4, noise=0.03, bias=0.01, leak=0.07),
    # residuals, over ranks and over scores
    Row(ResidualKernel(), rank_residual(), (1, 2), close=5e-3, noise=0.02, leak=0.1),
    Row(ResidualKernel(0.1), rank_residual(0.1), (1, 2), close=5e-3, bias=0.02, leak=0.1),
    Row(ResidualKernel(0.1, kernel="cosine"), rank_residual(0.1, "cosine"), (1, 2), close=5e-3, bias=0.02, leak=0.1),
    Row(ResidualKernel(space="score"), residual("folded"), (1, 2), close=2e-4, noise=0.02, leak=0.01),
    Row(ResidualKernel("isj", "score"), residual("isj"), (1, 2), close=1e-2, noise=0.03, bias=0.015, leak=0.1),
    Row(ResidualKernel(0.05, "score", "triweight"), residual(0.05, "triweight"), (1, 2), close=2e-4, leak=1e-6),
    # bandwidths by the likelihood of the outcomes, and noise taken off
    Row(Density("loo"), left_out(residual=False), (1, 2), close=1e-2, noise=0.03, bias=0.015, leak=0.2),
    Row(ResidualKernel("loo", "score"), left_out(residual=True), (1, 2), close=1e-2, noise=0.02, bias=0.05, leak=0.3),
    Row(
        ResidualKernel(0.1, "score", "triweight", debias=True),
        kernel_power(0.1, residual=True, kernel="triweight", debias=True),
        (1, 2),
        close=1e-3,
        bias=0.02,
        leak=0.02,
    ),
    Row(ResidualKernel(0.1, debias=True), rank_debiased(0.1), (1, 2), close=5e-3, bias=0.02, leak=0.1),
    Row(AdaptiveKernel(), adaptive(), (1, 2), close=1e-2, noise=0.02, leak=0.1),
    # the order of scores, and smECE
    Row(Smooth(), smooth(), (1, 2), close=2e-5, leak=1e-4, worst=0.4561),
    Row(Smooth(0.05), smooth(0.05), (1, 2), close=2e-5, leak=1e-4),
    Row(Sweep(), sweep(), cancels=True),
    Row(Sweep("uniform"), sweep("uniform"), cancels=True),
    Row(Isotonic(), isotonic(), noise=0.014, worst=0.5),
    Row(Cumulative(), cumulative(), bias=0.06, worst=0.5),  # gaps of both signs cancel
    Row(Cumulative("kuiper"), cumulative("kuiper"), bias=0.06, worst=0.5),
    # Bayes: never reads 0, and a sample of 100 does not convince it of the worst
    Row(EmpiricalBayes(), empirical_bayes, (1, 2, 3, INF), close=4e-3, noise=0.018, leak=0.25),
    # canonical
    Row(SimplexBinned(), simplex(5), noise=0.05, bias=0.03, mergeable=False),
    Row(SimplexBinned("sqrt"), simplex("sqrt"), noise=0.12, bias=0.08, mergeable=False),
    Row(SimplexBinned("cbrt"), simplex("cbrt"), noise=0.05, bias=0.05, mergeable=False),
    Row(SimplexBinned(20, "row"), simplex(20, "row"), noise=0.1, bias=0.06, leak=1e-9, mergeable=False),
    Row(SimplexBinned(1), simplex(1), noise=0.02, bias=0.4, mergeable=False, cancels=True),
    Row(DirichletKernel(0.05), dirichlet(0.05), noise=0.16, bias=0.13, mergeable=False),
    Row(
        DirichletKernel(0.02, "query", "ratio"),
        dirichlet(0.02, "query", "ratio"),
        noise=0.12,
        bias=0.1,
        mergeable=False,
    ),
    Row(
        DirichletKernel(debias="cross", residual=True),
        dirichlet("auto", "data", "cross", residual=True),
        (1, 2),
        noise=0.05,
        bias=0.02,
        signed=True,
        mergeable=False,
    ),
    Row(
        DirichletKernel(orientation="query", debias="cross", residual=True),
        dirichlet("auto", "query", "cross", residual=True),
        (1, 2),
        noise=0.05,
        bias=0.02,
        signed=True,
        mergeable=False,
    ),
]

#: Notions, and the truth of each on ``laws.miscalibrated`` as a multiple of its strength (see there).
SCALAR_NOTIONS = {
    "class-specific": (cal.notions.ClassSpecific("b"), 16 / 81),
    "classwise": (cal.notions.Classwise(), 16 / 81),
    "confidence": (cal.notions.Confidence(), 5 / 18),
    "top-label": (cal.notions.TopLabel(), 5 / 18),
}
VECTOR_NOTIONS = {
    "canonical": (cal.notions.Canonical(), 16 / 27),
    # 3 E[(s + t (1/3 - s)) |1/3 - s|] for s of density 2 (1 - s) and the strength t = 0.6
    "drawn-class": (cal.notions.DrawnClass(), 3 * (0.4 * 37 / 486 + 0.6 / 3 * 16 / 81)),
}

NOTIONS = SCALAR_NOTIONS | VECTOR_NOTIONS
CASES = [(row, name) for row in ROWS for name in NOTIONS if row.serves(name)]

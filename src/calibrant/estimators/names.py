"""Estimators by name, such as ``"binned:15:quantile"``, as accepted by commands and functions."""

from __future__ import annotations

from typing import Any

from ..data.checks import received
from .adaptive import AdaptiveKernel
from .base import Estimator
from .beta import BetaKernel
from .binned import STRATEGIES, Binned
from .crossfit import CrossFit
from .density import Density
from .dirichlet import DirichletKernel
from .empirical_bayes import EmpiricalBayes
from .isotonic import Cumulative, Isotonic
from .kernel_error import KernelCalibrationError
from .parametric import Parametric
from .residual import ResidualKernel
from .simplex import SimplexBinned
from .smooth import Smooth
from .sweep import Sweep

#: Names, with the parameters given after colons, in this order.
NAMES: dict[str, tuple[type[Estimator], tuple[str, ...]]] = {
    "adaptive": (AdaptiveKernel, ()),
    "beta-kernel": (BetaKernel, ("bandwidth",)),
    "binned": (Binned, ("n_bins",)),
    "cross-fit": (CrossFit, ()),
    "cumulative": (Cumulative, ("statistic",)),
    "density": (Density, ("bandwidth", "kernel")),
    "dirichlet-kernel": (DirichletKernel, ("bandwidth",)),
    "empirical-bayes": (EmpiricalBayes, ()),
    "isotonic": (Isotonic, ()),
    "kernel": (KernelCalibrationError, ()),
    "parametric": (Parametric, ("family",)),
    "residual": (ResidualKernel, ("space",)),
    "simplex-binned": (SimplexBinned, ("n_bins",)),
    "smooth": (Smooth, ("bandwidth",)),
    "sweep": (Sweep, ()),
}
#: Words for kinds of bins, allowed in any position.
_OF_BINS: dict[str, dict[str, Any]] = {
    **{name: {"strategy": name} for name in STRATEGIES},
    **{name: {"mapping": name} for name in ("hard", "linear", "linear-as-printed")},
    "debias": {"debias": True},
}


def as_estimator(estimator: str | Estimator, auto: Estimator) -> Estimator:
    """Check an ``estimator`` argument: an estimator, a name, or ``"auto"``, which stands for ``auto``."""
    if isinstance(estimator, str):
        return auto if estimator == "auto" else estimator_named(estimator)
    if not isinstance(estimator, Estimator):
        hint = f": {estimator.__name__}()?" if isinstance(estimator, type) and issubclass(estimator, Estimator) else ""
        raise TypeError(
            f"estimator must be 'auto', a name or an estimator such as Binned(15); got {received(estimator)}{hint}"
        )
    return estimator


def estimator_named(text: str) -> Estimator:
    """Return the estimator with the given name; ValueError, listing the names, for unknown ones.

    Examples
    --------
    >>> from calibrant.estimators.names import estimator_named
    >>> estimator_named("density:scott:triweight")
    Density(bandwidth='scott', kernel='triweight')
    >>> estimator_named("binned:sqrt:quantile").strategy
    'quantile'
    """
    name, *parts = text.split(":")
    kind, parameters = NAMES.get(name, (None, ()))
    if kind is None:
        raise ValueError(
            f"estimator must be 'auto', an estimator such as Binned(15), or a name such as 'binned:15' or "
            f"'density:scott:triweight' (names: {', '.join(map(repr, NAMES))}); got {received(text)}"
        )
    options: dict[str, Any] = {}
    free = list(parameters)
    for part in parts:
        if kind is Binned and part in _OF_BINS:
            if options.keys() & _OF_BINS[part].keys():
                raise ValueError(f"estimator must give its {next(iter(_OF_BINS[part]))} only once; got {text!r}")
            options |= _OF_BINS[part]
        elif free:
            options[free.pop(0)] = _value(part)
        else:
            raise ValueError(f"estimator {name!r} takes at most {len(parameters)} value(s); got {received(text)}")
    return kind(**options)


def _value(text: str) -> Any:
    """Parse a whole number, a number, or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

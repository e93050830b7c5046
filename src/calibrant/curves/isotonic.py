"""The isotonic (CORP) reliability curve: a step function with one value for each distinct score."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Isotonic
from ..errors.isotonic import isotonic_fit
from ..errors.runs import Runs
from ..problem import Problem
from ..results import ReliabilityCurve


def is_isotonic(method: Any) -> bool:
    """Whether a ``method`` argument asks for the isotonic curve."""
    return isinstance(method, Isotonic) or (isinstance(method, str) and method in ("isotonic", "corp"))


def isotonic_curve(problem: Problem, *, notion: str, level: float | None) -> ReliabilityCurve:
    """Curve of one problem; steps lie midway between neighbouring scores. Cost O(n log n)."""
    if level is not None:
        raise ValueError(f"level must be None for method 'isotonic', which has no band; got {level!r}")
    low, high = problem.domain
    runs = Runs.of(problem)
    edges = np.concatenate([[low], runs.middles, [high]]) if runs.size else np.array([low, high])
    scores = runs.scores if runs.size else np.array([np.nan])
    observed = isotonic_fit(runs.mean, runs.weight) if runs.size else np.array([np.nan])
    total = float(runs.weight.sum())
    count = runs.weight * (problem.effective_size / total) if runs.size else np.zeros(1)
    width = np.diff(edges)
    density = np.divide(count, width * count.sum(), out=np.zeros_like(count), where=(count > 0) & (width > 0))
    none = np.full(scores.shape, np.nan)
    return ReliabilityCurve(
        scores=scores,
        observed=observed,
        lower=none,
        upper=none,
        median=none,
        density=density,
        count=count,
        edges=edges,
        level=None,
        label=problem.label,
        notion=notion,
        method=repr(Isotonic()),
        n_samples=problem.n_samples,
    )

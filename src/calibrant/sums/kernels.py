"""Smoothing kernels as data. Every kernel is symmetric with standard deviation 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..data.types import FloatArray


@dataclass(frozen=True)
class Kernel:
    """A kernel: its (unnormalised) profile at ``u`` standard deviations and its half-width in them."""

    profile: Callable[[FloatArray], FloatArray]
    support: float


def _polynomial(power: int) -> Kernel:
    """``(1 - (u/a)²)^power`` on [-a, a]; its variance is ``a² / (2 power + 3)``, so ``a = √(2 power + 3)``."""
    a = float(np.sqrt(2 * power + 3))
    return Kernel(lambda u: np.clip(1 - (u / a) ** 2, 0, None) ** power, a)


def _cosine() -> Kernel:
    """``cos(π u / 2a)`` on [-a, a]; its variance is ``a² (1 - 8/π²)``."""
    a = float(1 / np.sqrt(1 - 8 / np.pi**2))
    return Kernel(lambda u: np.where(np.abs(u) < a, np.cos(np.pi / 2 * np.clip(u / a, -1, 1)), 0.0), a)


#: Kernel names and their kernels. The bandwidth is the kernel's standard deviation, for every kernel.
KERNELS: Mapping[str, Kernel] = MappingProxyType(
    {
        # exp(-u²/2) is below 1e-16 of its peak beyond 8.6 standard deviations.
        "gaussian": Kernel(lambda u: np.exp(-0.5 * u * u), 8.6),
        "epanechnikov": _polynomial(1),
        "triweight": _polynomial(3),
        "cosine": _cosine(),
    }
)

"""Calibration losses as modules; ``forward(logits, target)`` and ``ignore_index``, as PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import ClassVar, cast

from torch import Tensor, nn

from . import functional


@dataclass(eq=False, repr=False)
class _Loss(nn.Module):
    """A function of logits and targets with its parameters, which are the fields of a subclass."""

    _function: ClassVar[Callable[..., Tensor]]

    def __post_init__(self) -> None:
        super().__init__()
        #: Arguments of the function; ``weight`` multiplies its value.
        self._options = [f.name for f in fields(self) if f.name != "weight"]

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar; (N,) with ``reduction="none"``."""
        value = type(self)._function(logits, target, **{name: getattr(self, name) for name in self._options})
        return cast(Tensor, getattr(self, "weight", 1.0) * value)

    def extra_repr(self) -> str:
        """The parameters."""
        return ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))


@dataclass(eq=False, repr=False)
class DirichletKernelLoss(_Loss):
    """``weight`` times :func:`.functional.dirichlet_kernel_error`. KDE-XE is cross-entropy plus this.

    Parameters
    ----------
    bandwidth, norm, orientation, debias, residual, notion
        See :func:`.functional.dirichlet_kernel_error`; the defaults are the published estimator. ``"auto"`` is made for
        measuring: for a batch it is so wide that the penalty hardly acts. Choose 0.001 or so on validation rows.
    weight : float, default 1.0
        λ; Popordanoska et al. (2022) take 0.001 to 0.2.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import DirichletKernelLoss
    >>> z, y = torch.randn(64, 4, generator=torch.Generator().manual_seed(0)), torch.arange(64) % 4
    >>> kde_xe = torch.nn.CrossEntropyLoss()(z, y) + DirichletKernelLoss(0.001, weight=0.1)(z, y)
    """

    _function = staticmethod(functional.dirichlet_kernel_error)
    bandwidth: float | str = "auto"
    norm: float = 1
    orientation: str = "data"
    debias: str | None = None
    _: KW_ONLY
    residual: bool = False
    notion: str = "canonical"
    weight: float = 1.0
    ignore_index: int = -100

    def __post_init__(self) -> None:
        super().__post_init__()
        functional.check_dirichlet(self.bandwidth, self.norm, self.orientation, self.debias, self.residual, self.notion)


@dataclass(eq=False, repr=False)
class MMCELoss(_Loss):
    """``weight`` times :func:`.functional.mmce`."""

    _function = staticmethod(functional.mmce)
    bandwidth: float = 0.4
    _: KW_ONLY
    squared: bool = False
    weight: float = 1.0
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class FocalLoss(_Loss):
    """:func:`.functional.focal_loss`; by default with the schedule FL-53."""

    _function = staticmethod(functional.focal_loss)
    gamma: float | str = "fl-53"
    reduction: str = "mean"
    _: KW_ONLY
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class SoftBinnedECELoss(_Loss):
    """``weight`` times :func:`.functional.soft_binned_ece`."""

    _function = staticmethod(functional.soft_binned_ece)
    n_bins: int = 15
    temperature: float = 0.01
    norm: float = 2
    _: KW_ONLY
    weight: float = 1.0
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class BrierLoss(_Loss):
    """:func:`.functional.brier_loss`."""

    _function = staticmethod(functional.brier_loss)
    reduction: str = "mean"
    _: KW_ONLY
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class BrierSharpnessLoss(_Loss):
    """:func:`.functional.brier_sharpness`, equation 6 of Popordanoska et al. (2022).

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import BrierSharpnessLoss
    >>> z, y = torch.randn(64, 4, generator=torch.Generator().manual_seed(0)), torch.arange(64) % 4
    >>> loss = BrierSharpnessLoss(gamma=0.5)(z, y)
    """

    _function = staticmethod(functional.brier_sharpness)
    gamma: float = 0.1
    bandwidth: float | str = "auto"
    orientation: str = "data"
    debias: str | None = "square"
    _: KW_ONLY
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class DCALoss(_Loss):
    """``weight`` times :func:`.functional.dca`, to be added to cross-entropy (Liang et al., 2020: 1 to 25)."""

    _function = staticmethod(functional.dca)
    _: KW_ONLY
    weight: float = 1.0
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class ConfidencePenaltyLoss(_Loss):
    """``weight`` times :func:`.functional.confidence_penalty`, to be added to cross-entropy (Pereyra et al.: 0.1)."""

    _function = staticmethod(functional.confidence_penalty)
    reduction: str = "mean"
    _: KW_ONLY
    weight: float = 0.1
    ignore_index: int = -100

"""Calibration losses as modules; ``forward(logits, target)`` and ``ignore_index``, as PyTorch's own."""

from __future__ import annotations

from torch import Tensor, nn

from . import functional


class DirichletKernelLoss(nn.Module):
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

    def __init__(
        self,
        bandwidth: float | str = "auto",
        norm: float = 1,
        orientation: str = "data",
        debias: str | None = None,
        *,
        residual: bool = False,
        notion: str = "canonical",
        weight: float = 1.0,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        functional.check_dirichlet(bandwidth, norm, orientation, debias, residual, notion)
        self.bandwidth = bandwidth
        self.norm = norm
        self.orientation = orientation
        self.debias = debias
        self.residual = residual
        self.notion = notion
        self.weight = weight
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar."""
        return self.weight * functional.dirichlet_kernel_error(
            logits,
            target,
            self.bandwidth,
            self.norm,
            self.orientation,
            self.debias,
            residual=self.residual,
            notion=self.notion,
            ignore_index=self.ignore_index,
        )


class MMCELoss(nn.Module):
    """``weight`` times :func:`.functional.mmce`."""

    def __init__(
        self, bandwidth: float = 0.4, *, squared: bool = False, weight: float = 1.0, ignore_index: int = -100
    ) -> None:
        super().__init__()
        self.bandwidth = bandwidth
        self.squared = squared
        self.weight = weight
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar."""
        return self.weight * functional.mmce(
            logits, target, self.bandwidth, squared=self.squared, ignore_index=self.ignore_index
        )


class FocalLoss(nn.Module):
    """:func:`.functional.focal_loss`; by default with the schedule FL-53."""

    def __init__(self, gamma: float | str = "fl-53", reduction: str = "mean", *, ignore_index: int = -100) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.gamma = gamma
        self.reduction = reduction

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar, or (N,) with ``reduction="none"``."""
        return functional.focal_loss(logits, target, self.gamma, self.reduction, ignore_index=self.ignore_index)


class SoftBinnedECELoss(nn.Module):
    """``weight`` times :func:`.functional.soft_binned_ece`."""

    def __init__(
        self,
        n_bins: int = 15,
        temperature: float = 0.01,
        norm: float = 2,
        *,
        weight: float = 1.0,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.n_bins = n_bins
        self.temperature = temperature
        self.norm = norm
        self.weight = weight

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar."""
        return self.weight * functional.soft_binned_ece(
            logits, target, self.n_bins, self.temperature, self.norm, ignore_index=self.ignore_index
        )


class BrierLoss(nn.Module):
    """:func:`.functional.brier_loss`."""

    def __init__(self, reduction: str = "mean", *, ignore_index: int = -100) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar, or (N,) with ``reduction="none"``."""
        return functional.brier_loss(logits, target, self.reduction, ignore_index=self.ignore_index)


class BrierSharpnessLoss(nn.Module):
    """:func:`.functional.brier_sharpness`, equation 6 of Popordanoska et al. (2022).

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import BrierSharpnessLoss
    >>> z, y = torch.randn(64, 4, generator=torch.Generator().manual_seed(0)), torch.arange(64) % 4
    >>> loss = BrierSharpnessLoss(gamma=0.5)(z, y)
    """

    def __init__(
        self,
        gamma: float = 0.1,
        bandwidth: float | str = "auto",
        orientation: str = "data",
        debias: str | None = "square",
        *,
        ignore_index: int = -100,
    ) -> None:
        super().__init__()
        self.gamma = gamma
        self.bandwidth = bandwidth
        self.orientation = orientation
        self.debias = debias
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar."""
        return functional.brier_sharpness(
            logits,
            target,
            self.gamma,
            self.bandwidth,
            self.orientation,
            self.debias,
            ignore_index=self.ignore_index,
        )


class DCALoss(nn.Module):
    """``weight`` times :func:`.functional.dca`, to be added to cross-entropy (Liang et al., 2020: 1 to 25)."""

    def __init__(self, *, weight: float = 1.0, ignore_index: int = -100) -> None:
        super().__init__()
        self.weight = weight
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar."""
        return self.weight * functional.dca(logits, target, ignore_index=self.ignore_index)


class ConfidencePenaltyLoss(nn.Module):
    """``weight`` times :func:`.functional.confidence_penalty`, to be added to cross-entropy (Pereyra et al.: 0.1)."""

    def __init__(self, reduction: str = "mean", *, weight: float = 0.1, ignore_index: int = -100) -> None:
        super().__init__()
        self.reduction = reduction
        self.weight = weight
        self.ignore_index = ignore_index

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar, or (N,) with ``reduction="none"``."""
        return self.weight * functional.confidence_penalty(
            logits, target, self.reduction, ignore_index=self.ignore_index
        )

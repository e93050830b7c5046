"""Calibration losses as modules, with ``forward(logits, target)`` and ``ignore_index`` as PyTorch's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import ClassVar, cast

from torch import Tensor, nn

from ..data.docs import document
from . import functional


@dataclass(eq=False, repr=False)
class _Loss(nn.Module):
    """A function of logits and targets with its parameters, which are the fields of a subclass.

    Parameters
    ----------
    weight : float, default 1.0
        Factor of the value, for adding it to the cross-entropy.
    """

    _function: ClassVar[Callable[..., Tensor]]

    def __init_subclass__(cls) -> None:
        document(cls, cls._function, _Loss)

    def __post_init__(self) -> None:
        super().__init__()
        #: Arguments of the function; ``weight`` multiplies its value.
        self._options = [f.name for f in fields(self) if f.name != "weight"]

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Scalar; of the shape of ``target`` with ``reduction="none"``.

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits of a batch.
        target : Tensor of shape (N,) or (N, d1, …)
            Indices of the observed classes.
        """
        value = type(self)._function(logits, target, **{name: getattr(self, name) for name in self._options})
        return cast(Tensor, getattr(self, "weight", 1.0) * value)

    def extra_repr(self) -> str:
        """The parameters."""
        return ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))


@dataclass(eq=False, repr=False)
class DirichletKernelLoss(_Loss):
    """:func:`.functional.dirichlet_kernel_error` times ``weight``; KDE-XE is cross-entropy plus this.

    Parameters
    ----------
    weight : float, default 1.0
        The factor λ; Popordanoska et al. (2022) use 0.001 to 0.2.

    See Also
    --------
    calibrant.estimators.DirichletKernel : The estimator.
    calibrant.torch.BrierSharpnessLoss : The Brier score with its calibration part emphasised.

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
    """The maximum mean calibration error (:func:`.functional.mmce`) times ``weight``.

    See Also
    --------
    calibrant.estimators.KernelCalibrationError : The estimator.
    calibrant.torch.SoftBinnedECELoss : Bins instead of kernels.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import MMCELoss
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> round(MMCELoss()(z, y).item(), 3)
    0.381
    """

    _function = staticmethod(functional.mmce)
    bandwidth: float = 0.4
    _: KW_ONLY
    squared: bool = False
    weight: float = 1.0
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class FocalLoss(_Loss):
    """The focal loss (:func:`.functional.focal_loss`), by default with the schedule FL-53.

    See Also
    --------
    calibrant.torch.ConfidencePenaltyLoss : Another loss against overconfidence.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import FocalLoss
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> bool(FocalLoss(0)(z, y) == torch.nn.CrossEntropyLoss()(z, y)), round(FocalLoss()(z, y).item(), 3)
    (True, 0.564)
    """

    _function = staticmethod(functional.focal_loss)
    gamma: float | str = "fl-53"
    reduction: str = "mean"
    _: KW_ONLY
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class SoftBinnedECELoss(_Loss):
    """The soft-binned ECE (:func:`.functional.soft_binned_ece`) times ``weight``.

    See Also
    --------
    calibrant.Binned : The estimator with hard bins.
    calibrant.torch.MMCELoss : Kernels instead of bins.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import SoftBinnedECELoss
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> round(SoftBinnedECELoss()(z, y).item(), 3)
    0.381
    """

    _function = staticmethod(functional.soft_binned_ece)
    n_bins: int = 15
    temperature: float = 0.01
    norm: float = 2
    _: KW_ONLY
    weight: float = 1.0
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class BrierLoss(_Loss):
    """The Brier score (:func:`.functional.brier_loss`).

    See Also
    --------
    calibrant.brier_score : The score for arrays.
    calibrant.torch.BrierSharpnessLoss : With its calibration part emphasised.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import BrierLoss
    >>> BrierLoss()(torch.zeros(2, 2), torch.tensor([0, 1])).item()
    0.5
    """

    _function = staticmethod(functional.brier_loss)
    reduction: str = "mean"
    _: KW_ONLY
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class BrierSharpnessLoss(_Loss):
    """:func:`.functional.brier_sharpness`, equation 6 of Popordanoska et al. (2022).

    See Also
    --------
    calibrant.torch.BrierLoss : The Brier score only.
    calibrant.torch.DirichletKernelLoss : The calibration error only.

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
    """The difference between confidence and accuracy (:func:`.functional.dca`) times ``weight``.

    It is added to cross-entropy (Liang et al., 2020: 1 to 25 times).

    See Also
    --------
    calibrant.torch.ConfidencePenaltyLoss : Another penalty on confidence.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import DCALoss
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> round(DCALoss()(z, y).item(), 3)
    0.381
    """

    _function = staticmethod(functional.dca)
    _: KW_ONLY
    weight: float = 1.0
    ignore_index: int = -100


@dataclass(eq=False, repr=False)
class ConfidencePenaltyLoss(_Loss):
    """The confidence penalty (:func:`.functional.confidence_penalty`) times ``weight``.

    It is added to cross-entropy (Pereyra et al., 2017: 0.1 times).

    Parameters
    ----------
    weight : float, default 0.1
        Factor of the value, for adding it to the cross-entropy.

    See Also
    --------
    calibrant.torch.FocalLoss : Another loss against overconfidence.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import ConfidencePenaltyLoss
    >>> round(ConfidencePenaltyLoss(weight=1.0)(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)
    -0.6931
    """

    _function = staticmethod(functional.confidence_penalty)
    reduction: str = "mean"
    _: KW_ONLY
    weight: float = 0.1
    ignore_index: int = -100

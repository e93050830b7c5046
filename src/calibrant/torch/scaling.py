"""Post-hoc calibrators as modules on logits: fitted to their optimum, then a layer like any other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..calibrators import Calibrator, DirichletCalibration, MatrixScaling, TemperatureScaling, VectorScaling
from ..data.checks import check_int, check_positive, check_type
from ._checks import check_classes, check_dense, check_pair, flattened, rows_that_count


class Scaler(nn.Module, ABC):
    """Base class: ``forward`` maps logits to calibrated logits, ``fit`` finds the parameters.

    Logits have the classes in dimension 1, as in :func:`torch.nn.functional.cross_entropy`: (N, K) or
    (N, K, d1, …).
    """

    gradient_norm: float
    n_iter: int

    def fit(self, logits: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100) -> Self:
        """Find the parameters that minimise the cross-entropy of held-out logits.

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits of rows that the network was not trained on; on any device, of any floating dtype.
        target : Tensor of shape (N,) or (N, d1, …)
            Classes 0 … K - 1.
        weight : Tensor of the shape of ``target``, optional
            Non-negative weights of rows.
        ignore_index : int, default -100
            Rows with this target are ignored.

        Returns
        -------
        self
            With ``gradient_norm`` and ``n_iter`` of the fit. A :class:`.ConvergenceWarning` is issued if there is no
            optimum.

        Raises
        ------
        ValueError, TypeError
            For logits that are not finite, targets out of range, and mismatched shapes.
        """
        rows, codes, w = _rows(logits, target, weight, ignore_index)
        k = rows.shape[1]
        fitted = self._calibrator(k).fit(rows, codes, w)
        self._take(fitted, logits)
        self.gradient_norm, self.n_iter = fitted.gradient_norm_, fitted.n_iter_
        return self

    @torch.no_grad()
    def predict_proba(self, logits: Tensor) -> Tensor:
        """Calibrated probabilities, of the shape of ``logits``, without gradients (``softmax(self(logits), 1)`` has).

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits.
        """
        check_classes(logits)
        return torch.softmax(self(logits), dim=1)

    @abstractmethod
    def _calibrator(self, k: int) -> Calibrator:
        """The core's calibrator to fit."""

    @abstractmethod
    def _take(self, fitted: Any, like: Tensor) -> None:
        """Copy the parameters of a fitted calibrator."""


class TemperatureScaler(Scaler):
    r"""Logits divided by one temperature: :math:`z \mapsto z / T` (Guo et al. 2017).

    Parameters
    ----------
    temperature : float, default 1.0
        Initial temperature, before :meth:`fit`.
    shrinkage : "auto" or float, default "auto"
        Number of rows that shrink T towards 1, as in :class:`calibrant.calibrators.TemperatureScaling`; 0 minimises the
        cross-entropy exactly.

    See Also
    --------
    calibrant.TemperatureScaling : The same for arrays.
    calibrant.torch.VectorScaler : A factor and a shift for each class.

    Notes
    -----
    The optimum is that of :class:`calibrant.calibrators.TemperatureScaling` with ``input="logit"``: Newton's method on
    1/T, in which the cross-entropy is convex, about ten passes over the logits on the CPU. T is a parameter and is
    saved with ``state_dict``. It is inf, and all probabilities are equal, if logits are unrelated or inversely related
    to labels.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import TemperatureScaler
    >>> draw = torch.Generator().manual_seed(0)
    >>> z = torch.randn(5000, 10, generator=draw)
    >>> y = torch.distributions.Categorical(logits=z).sample()
    >>> scaler = TemperatureScaler().fit(3 * z, y)  # three times too confident
    >>> bool(abs(scaler.temperature - 3) < 0.2)
    True
    """

    def __init__(self, temperature: float = 1.0, shrinkage: Any = "auto") -> None:
        super().__init__()
        self.shrinkage = shrinkage
        check_positive("temperature", temperature)
        self.temperature = nn.Parameter(torch.tensor(float(temperature)))

    def forward(self, logits: Tensor) -> Tensor:
        """Calibrated logits.

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits.
        """
        return logits / self.temperature

    def extra_repr(self) -> str:
        """The temperature."""
        return f"temperature={float(self.temperature.detach()):.4g}"

    def _calibrator(self, k: int) -> Calibrator:
        return TemperatureScaling(shrinkage=self.shrinkage, input="logit", labels=range(k))

    def _take(self, fitted: Any, like: Tensor) -> None:
        self.temperature = _parameter(fitted.temperature_, like)


class _ClassScaler(Scaler):
    """Base class of scalers with factors ``weight`` and shifts ``bias`` of a number of classes."""

    weight: nn.Parameter
    bias: nn.Parameter

    def __init__(self, weight: Tensor, shrinkage: Any) -> None:
        super().__init__()
        self.shrinkage = shrinkage
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(len(weight)))

    def extra_repr(self) -> str:
        """Number of classes and shrinkage."""
        return f"n_classes={self.bias.numel()}, shrinkage={self.shrinkage!r}"

    @abstractmethod
    def _core(self, **options: Any) -> Calibrator:
        """The core's calibrator with these options and its own."""

    def _calibrator(self, k: int) -> Calibrator:
        if k != self.bias.numel():
            raise ValueError(f"logits must have n_classes={self.bias.numel()} classes in dimension 1; got {k}")
        return self._core(input="logit", labels=range(k), shrinkage=self.shrinkage)

    def _take(self, fitted: Any, like: Tensor) -> None:
        self.weight, self.bias = _parameter(fitted.coef_, like), _parameter(fitted.intercept_, like)


class VectorScaler(_ClassScaler):
    r"""A factor and a shift for each class: :math:`z_k \mapsto w_k z_k + b_k` (Guo et al. 2017).

    Parameters
    ----------
    n_classes : int
        Number K of classes.
    shrinkage : "auto" or float, default "auto"
        How strongly factors are shrunk towards one temperature, and shifts towards 0, as in
        :class:`calibrant.calibrators.VectorScaling`, whose optimum is computed.

    See Also
    --------
    calibrant.calibrators.VectorScaling : The same for arrays.
    calibrant.torch.TemperatureScaler : One factor for all classes.
    calibrant.torch.MatrixScaler : A factor for each pair of classes.

    Notes
    -----
    Factors start at 1 and shifts at 0; both are parameters, saved with ``state_dict``.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import VectorScaler
    >>> draw = torch.Generator().manual_seed(0)
    >>> z = torch.randn(5000, 4, generator=draw)
    >>> y = torch.distributions.Categorical(logits=z).sample()
    >>> scaled = VectorScaler(4).fit(3 * z, y)(3 * z)  # three times too confident
    >>> bool((scaled - z).abs().mean() < 0.2)
    True
    """

    def __init__(self, n_classes: int, shrinkage: Any = "auto") -> None:
        super().__init__(torch.ones(check_int("n_classes", n_classes, 2)), shrinkage)

    def forward(self, logits: Tensor) -> Tensor:
        """Calibrated logits.

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits.
        """
        check_classes(logits, self.bias.numel())
        shape = (1, -1) + (1,) * (logits.ndim - 2)
        return logits * self.weight.view(shape) + self.bias.view(shape)

    def _core(self, **options: Any) -> Calibrator:
        return VectorScaling(**options)


class MatrixScaler(_ClassScaler):
    r"""A matrix and a shift: :math:`z \mapsto W z + b` (Guo et al. 2017).

    Parameters
    ----------
    n_classes : int
        Number K of classes.
    shrinkage : "auto" or float, default "auto"
        How strongly the matrix is shrunk towards temperature scaling, as in
        :class:`calibrant.calibrators.MatrixScaling`, whose optimum is computed; 0: as published.

    See Also
    --------
    calibrant.calibrators.MatrixScaling : The same for arrays.
    calibrant.torch.VectorScaler : The diagonal only.
    calibrant.torch.DirichletScaler : The same map of log-probabilities, with other penalties.

    Notes
    -----
    The matrix starts as the identity, shifts at 0; both are parameters, saved with ``state_dict``. Logits and
    parameters of different precision are multiplied in the wider one. The fit runs on the CPU: O(n K⁴) per step, or
    about a hundred times O(n K²) beyond 25 classes.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import MatrixScaler
    >>> draw = torch.Generator().manual_seed(0)
    >>> z = torch.randn(5000, 4, generator=draw)
    >>> y = torch.distributions.Categorical(logits=z).sample()
    >>> scaled = MatrixScaler(4).fit(3 * z, y)(3 * z)  # three times too confident
    >>> bool((scaled - z).abs().mean() < 0.2)
    True
    """

    def __init__(self, n_classes: int, shrinkage: Any = "auto") -> None:
        super().__init__(torch.eye(check_int("n_classes", n_classes, 2)), shrinkage)

    def forward(self, logits: Tensor) -> Tensor:
        """Calibrated logits.

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits.
        """
        check_classes(logits, self.bias.numel())
        wide, last = torch.promote_types(logits.dtype, self.weight.dtype), logits.ndim - 1
        rows = logits.movedim(1, last).to(wide)  # -1 would be exported to ONNX as it is, which onnxruntime refuses
        return nn.functional.linear(rows, self.weight.to(wide), self.bias.to(wide)).movedim(last, 1)

    def _core(self, **options: Any) -> Calibrator:
        return MatrixScaling(**options)


class DirichletScaler(MatrixScaler):
    r"""Dirichlet calibration: :math:`z \mapsto W \log \operatorname{softmax}(z) + b` (Kull et al. 2019).

    Parameters
    ----------
    n_classes : int
        Number K of classes.
    penalty : {"odir", "l2"}, default "odir"
        Whether off-diagonal elements and shifts, or all elements, are penalised; see
        :class:`calibrant.calibrators.DirichletCalibration`, whose optimum is computed.
    strength : float, default 1e-3
        The penalty λ ≥ 0 on the mean log-loss.
    intercept_strength : float or None, default None
        The penalty μ of the shifts; None: λ.
    shrinkage : float or "auto", default "auto"
        Number of rows of the prior in addition to the penalty; 0: as published.

    See Also
    --------
    calibrant.calibrators.DirichletCalibration : The same for arrays.
    calibrant.torch.MatrixScaler : The same map of logits, shrunk towards temperature scaling.

    Notes
    -----
    As for :class:`MatrixScaler`; log-probabilities are those of a softmax over dimension 1.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import DirichletScaler
    >>> draw = torch.Generator().manual_seed(0)
    >>> z = torch.randn(5000, 4, generator=draw)
    >>> y = torch.distributions.Categorical(logits=z).sample()
    >>> scaler = DirichletScaler(4).fit(3 * z, y)  # three times too confident
    >>> bool((scaler.predict_proba(3 * z) - torch.softmax(z, dim=1)).abs().mean() < 0.03)
    True
    """

    def __init__(
        self,
        n_classes: int,
        penalty: str = "odir",
        strength: float = 1e-3,
        intercept_strength: float | None = None,
        *,
        shrinkage: Any = "auto",
    ) -> None:
        super().__init__(n_classes, shrinkage)
        self.penalties: dict[str, Any] = {
            "penalty": penalty,
            "strength": strength,
            "intercept_strength": intercept_strength,
        }

    def forward(self, logits: Tensor) -> Tensor:
        """Calibrated logits.

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits.
        """
        check_classes(logits, self.bias.numel())
        return super().forward(torch.log_softmax(logits, dim=1))

    def extra_repr(self) -> str:
        """Number of classes, shrinkage and penalties."""
        return f"{super().extra_repr()}, " + ", ".join(f"{name}={value!r}" for name, value in self.penalties.items())

    def _core(self, **options: Any) -> Calibrator:
        return DirichletCalibration(**self.penalties, **options)


def _parameter(values: Any, like: Tensor) -> nn.Parameter:
    """A parameter on the device of the logits; half precision would round the fitted value."""
    dtype = like.dtype if like.dtype in (torch.float32, torch.float64) else torch.float32
    return nn.Parameter(torch.as_tensor(values, dtype=dtype, device=like.device))


def _rows(logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Any, Any, Any]:
    """Arrays (n, K), (n,) and (n,) or None of the rows that count."""
    check_pair("logits", logits, target, "(N, K) or (N, K, d1, …)")
    check_type("weight", weight, (Tensor, type(None)), "a Tensor or None")
    if weight is not None:
        check_dense("weight", weight)
        if weight.shape != target.shape:
            raise ValueError(f"weight must have the shape of target, {tuple(target.shape)}; got {tuple(weight.shape)}")
    codes = target.detach().reshape(-1)
    used = rows_that_count(codes, logits.shape[1], ignore_index)
    flat, codes = flattened(logits.detach())[used], codes[used]
    if codes.numel() == 0:
        raise ValueError("there are no rows to fit: target is empty or all ignore_index")
    w = None if weight is None else weight.detach().reshape(-1)[used].cpu().double().numpy()
    flat = flat if flat.dtype in (torch.float32, torch.float64) else flat.float()
    return flat.cpu().numpy(), codes.cpu().numpy().astype(np.int64), w

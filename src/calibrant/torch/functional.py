"""Differentiable calibration errors of logits, for training; the same values as the NumPy core.

Logits have the classes in dimension 1, as in :func:`torch.nn.functional.cross_entropy`: (N, K), or (N, K, d1, …) with
targets (N, d1, …), each position a row. All take ``ignore_index``, as PyTorch's own losses do: rows with this target
are ignored, averages are over the others (0 if there are none), and ``reduction="none"`` gives 0 for them. Any other
target outside 0 … K - 1 raises ValueError. A class with logits of -inf has probability 0, and the kernels take the
logarithm of a probability to be at least -10⁴.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from torch.utils.checkpoint import checkpoint

from ..data.checks import check_bool, check_choice, check_int, check_number, check_positive, received
from ..data.docs import document
from ..estimators import DirichletKernel
from ..estimators.dirichlet import auto
from ..estimators.simplex_kernel import LEAST
from ._checks import check_pair, flattened, rows_that_count
from ._kernel import TILE, NeighbourMeans, around, log_probabilities

REDUCTIONS = ("mean", "sum", "none")
NOTIONS = ("canonical", "classwise", "confidence")


def dirichlet_kernel_error(
    logits: Tensor,
    target: Tensor,
    bandwidth: float | str = "auto",
    norm: float = 1,
    orientation: str = "data",
    debias: str | None = None,
    *,
    residual: bool = False,
    notion: str = "canonical",
    ignore_index: int = -100,
) -> Tensor:
    r"""``errorᵖ`` of :class:`.DirichletKernel`, differentiable in the logits; the canonical notion by default.

    .. math:: \frac1n \sum_j \lVert \hat E_j - f_j \rVert_p^p, \qquad f = \mathrm{softmax}(z)

    Parameters
    ----------
    logits : Tensor of shape (N, K) or (N, K, d1, …)
        Logits of a batch.
    target : Tensor of shape (N,) or (N, d1, …)
        Indices of the observed classes.
    bandwidth : float or "auto", default "auto"
        The bandwidth h > 0 of the kernels. ``"auto"`` is meant for estimation: for a batch it is so wide that a penalty
        has little effect; choose about 0.001 on validation rows.
    norm : float, default 1
        The power p ≥ 1 of the error, finite. The p-th power is returned: a root has no gradient at 0.
    orientation : {"data", "query"}, default "data"
        Which of two vectors a kernel is centred on; see :class:`calibrant.estimators.DirichletKernel`.
    debias : None, "ratio", "square" or "cross", default None
        Which bias is subtracted; see :class:`calibrant.estimators.DirichletKernel`. None: the published estimator.
    residual : bool, default False
        Whether residuals are smoothed instead of outcomes.
    notion : {"canonical", "classwise", "confidence"}, default "canonical"
        Whole vectors; each class against the rest, averaged over classes (the literature's marginal error is the sum);
        or the largest probability, and whether it was correct (its top-label error). The last two use Beta kernels.
    ignore_index : int, default -100
        Rows with this target are ignored.

    Returns
    -------
    Tensor
        Scalar, in float32 at least, also under autocast. 0 for a single sample. Debiased values can be negative.

    See Also
    --------
    calibrant.estimators.DirichletKernel : The estimator.
    calibrant.torch.DirichletKernelLoss : The same as a module.

    Notes
    -----
    Cost O(N² K) (``"confidence"``: O(N²)), memory O(N K) and a few tiles of 2¹⁹ weights: tiles are recomputed in the
    backward pass. Only with ``create_graph=True``, for second derivatives, are all N² weights held. Samples without an
    unbiased square (a single neighbour outweighs all others) are left out, as in the core. Unbiased squares are
    computed in float64, because in float32 their gradients would be rounding errors.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import dirichlet_kernel_error
    >>> z, y = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1])
    >>> bool(dirichlet_kernel_error(z, y, 0.1) > 0)
    True
    """
    p = check_dirichlet(bandwidth, norm, orientation, debias, residual, notion)
    kernel = DirichletKernel(bandwidth, orientation, debias, residual)
    given, target, _ = _valid_rows(logits, target, ignore_index)
    n, k = given.shape
    with torch.autocast(given.device.type, enabled=False):
        if n < 2:
            return _nothing(given)
        logits, target = _in_float64(given, target) if p == 2 and debias in ("square", "cross") else (given, target)
        logs = log_probabilities(logits)[0]
        if notion == "canonical":
            return _as(given, _kernel_power(logs, one_hot(target, k), kernel, p))
        classes = [logs.argmax(dim=1)] if notion == "confidence" else [torch.full_like(target, c) for c in range(k)]
        powers = [_kernel_power(_against_rest(logs, c), (target == c)[:, None], kernel, p) for c in classes]
        return _as(given, torch.stack(powers).mean())


def _in_float64(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in float64, for squares of which one weight is nearly all; on the CPU where the device has no float64."""
    return (logits.cpu().double(), target.cpu()) if logits.is_mps else (logits.double(), target)


def _as(given: Tensor, value: Tensor) -> Tensor:
    """A value on the device of the logits, in their dtype, or float32 if that is less precise."""
    return value.to(torch.promote_types(given.dtype, torch.float32)).to(given.device)


def _against_rest(logs: Tensor, chosen: Tensor) -> Tensor:
    """Logarithms of the probability of a class of each row and of all others together, (N, 2); none rounded to 0."""
    at = chosen[:, None]
    return torch.cat([logs.gather(1, at), logs.scatter(1, at, -torch.inf).logsumexp(dim=1, keepdim=True)], dim=1)


def _kernel_power(logs: Tensor, outcome: Tensor, kernel: DirichletKernel, p: float) -> Tensor:
    """``errorᵖ`` of vectors (N, K) with these logarithms; outcomes (N, m) are one-hot, or of the first m classes."""
    (n, k), debias, residual = logs.shape, kernel.debias, kernel.residual
    every = logs.exp()
    probs = every[:, : outcome.shape[1]]
    outcome = outcome.to(probs.dtype)
    cross = outcome - probs
    values = cross if residual else outcome
    second = None if debias is None else values if debias == "ratio" else values.square()
    h = _width(kernel.bandwidth, n, k, squares=debias in ("square", "cross") and p == 2)
    near = around(logs, every, values, h, kernel.orientation, second)
    gap = near.mean if residual else near.mean - probs
    if near.second is None:
        return _power(gap, p).sum(dim=1).mean()
    if debias == "ratio":
        m = max(n - 1, 2)
        return _power(gap - m / (m - 1) * (near.mean * near.concentration[:, None] - near.second), p).sum(dim=1).mean()
    if p == 1:
        return (gap.detach().sign() * cross).sum(dim=1).mean()
    square, known = _unbiased_square(near)
    if not residual:
        square = square - 2 * near.mean * probs + probs.square()
    terms = (square if debias == "square" else 2 * gap * cross - square).sum(dim=1)
    return torch.where(known, terms, torch.zeros_like(terms)).sum() / known.sum().clamp(min=1)


def _unbiased_square(near: NeighbourMeans) -> tuple[Tensor, Tensor]:
    """``(Ê² - Σw²y) / (1 - Σw²)``, (N, K), and where it exists; needs squares."""
    known = ~(1 - near.concentration <= LEAST)  # NaN remains NaN
    rest = torch.where(known, 1 - near.concentration, torch.ones_like(near.concentration))[:, None]
    return (near.mean.square() - (0 if near.second is None else near.second)) / rest, known


def _width(bandwidth: float | str, n: int, k: int, *, squares: bool) -> float:
    return float(auto(n, k, squares=squares) if isinstance(bandwidth, str) else bandwidth)


def brier_sharpness(
    logits: Tensor,
    target: Tensor,
    gamma: float = 0.1,
    bandwidth: float | str = "auto",
    orientation: str = "data",
    debias: str | None = "square",
    *,
    ignore_index: int = -100,
) -> Tensor:
    r"""Brier score plus γ times the sharpness ``E‖E[y | f]‖²``: the Brier score with its calibration part emphasised.

    .. math:: \frac1n \sum_j \lVert y_j - f_j \rVert^2 + \gamma\, \frac1n \sum_j \widehat{\lVert E[y | f_j] \rVert^2}

    The Brier score is the squared canonical error plus ``1 - E‖E[y | f]‖²``. So Brier + λ · squared error is, up to a
    constant, 1 + λ times this with ``γ = λ / (1 + λ)``: a model is not rewarded for overconfidence.

    Parameters
    ----------
    gamma : float, default 0.1
        The factor γ ≥ 0; values from 1 on correspond to no λ.
    debias : {None, "square", "cross"}, default "square"
        How ``‖E[y | f]‖²`` is estimated from Ê of the other rows: ``Ê²``, which counts noise as sharpness; its unbiased
        square ``(Ê² - Σw²y) / (1 - Σw²)`` (with the correct denominator, not that printed in eq. 7); or ``2 Ê·y`` minus
        that, whose smoothing error is of second order.

    Returns
    -------
    Tensor
        Scalar, in float32 at least; 0 without rows and the Brier score for one row. In [0, 2 + γ] with ``debias=None``.

    See Also
    --------
    calibrant.torch.BrierSharpnessLoss : The same as a module.

    Notes
    -----
    Cost, memory and precision as of :func:`dirichlet_kernel_error`. The ``‖mean y‖²`` of the class frequencies is part
    of the sharpness here and has no gradient; :attr:`calibrant.results.Estimate.details` excludes it.

    References
    ----------
    Popordanoska, Sayer & Blaschko (2022), eq. 6.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import brier_loss, brier_sharpness
    >>> z, y = torch.tensor([[2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1])
    >>> bool(torch.isclose(brier_sharpness(z, y, 0.0), brier_loss(z, y)))
    True
    """
    check_choice("debias", debias, (None, "square", "cross"))
    check_dirichlet(bandwidth, 2, orientation, debias, residual=False)
    gamma = check_number("gamma", gamma, least=0)
    score = brier_loss(logits, target, ignore_index=ignore_index)
    given, target, _ = _valid_rows(logits, target, ignore_index)
    n, k = given.shape
    if n < 2:
        return score
    with torch.autocast(given.device.type, enabled=False):
        logits, target = (given, target) if debias is None else _in_float64(given, target)
        logs, probs = log_probabilities(logits)
        outcome = one_hot(target, k).to(probs.dtype)
        h = _width(bandwidth, n, k, squares=debias is not None)
        near = around(logs, probs, outcome, h, orientation, None if debias is None else outcome)
        if debias is None:
            return score + gamma * near.mean.square().sum(dim=1).mean()
        square, known = _unbiased_square(near)
        terms = (square if debias == "square" else 2 * near.mean * outcome - square).sum(dim=1)
        sharpness = torch.where(known, terms, torch.zeros_like(terms)).sum() / known.sum().clamp(min=1)
        return score + gamma * _as(given, sharpness)


def mmce(
    logits: Tensor, target: Tensor, bandwidth: float = 0.4, *, squared: bool = False, ignore_index: int = -100
) -> Tensor:
    r"""Maximum mean calibration error of the confidences, ``√(1/n² Σ_ij e^(-|c_i - c_j|/ν) (r_i - c_i)(r_j - c_j))``.

    c is the largest probability, r whether it was correct, ν the bandwidth. The value equals that of
    ``KernelCalibrationError(bandwidth=0.4, statistic="biased")`` for the notion ``"confidence"``. If the square is
    below 1e-12 the root has gradient 0; ``squared=True`` returns the square. Cost O(N²), memory O(N) and a tile.

    Parameters
    ----------
    bandwidth : float, default 0.4
        The bandwidth ν > 0 of the kernel.
    squared : bool, default False
        Whether the square is returned, which has a gradient everywhere.

    Returns
    -------
    Tensor
        Scalar.

    See Also
    --------
    calibrant.torch.MMCELoss : The same as a module.

    References
    ----------
    Kumar, Sarawagi & Jain (2018), *Trainable calibration measures for neural networks from kernel mean embeddings*.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import mmce
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> round(mmce(z, y).item(), 3)
    0.381
    """
    check_positive("bandwidth", bandwidth)
    check_bool("squared", squared)
    logits, target, _ = _valid_rows(logits, target, ignore_index)
    with torch.autocast(logits.device.type, enabled=False):
        if logits.shape[0] == 0:
            return _nothing(logits)
        confidence, predicted = log_probabilities(logits)[1].max(dim=1)
        residual = (predicted == target).to(confidence.dtype) - confidence
        n = confidence.shape[0]
        step = max(1, TILE // max(n, 1))
        total = confidence.new_zeros(())
        for start in range(0, n, step):
            rows = (confidence[start : start + step], residual[start : start + step], confidence, residual, bandwidth)
            if torch.is_grad_enabled() and n > step:
                total = total + checkpoint(_mmce_tile, *rows, use_reentrant=False)
            else:
                total = total + _mmce_tile(*rows)
        square = total / n**2
    return square if squared else torch.where(square > 1e-12, square, square.detach()).clamp(min=0).add(1e-24).sqrt()


def _mmce_tile(c: Tensor, r: Tensor, every_c: Tensor, every_r: Tensor, bandwidth: float) -> Tensor:
    return r @ (torch.exp(-(c[:, None] - every_c).abs() / bandwidth) @ every_r)


def focal_loss(
    logits: Tensor,
    target: Tensor,
    gamma: float | str = "fl-53",
    reduction: str = "mean",
    *,
    ignore_index: int = -100,
) -> Tensor:
    """Focal loss ``-(1 - p)^γ log p`` of the probability p of the target class.

    ``gamma="fl-53"``: γ = 5 for samples with p < 0.2, else 3 (Mukhoti et al., 2020, *Calibrating deep neural networks
    using focal loss*); a number ≥ 0 for every sample (Lin et al., 2017). 0 is cross-entropy.

    Parameters
    ----------
    gamma : float ≥ 0 or "fl-53", default "fl-53"
        The exponent γ; 0 is cross-entropy. ``"fl-53"``: 5 for samples with p < 0.2, else 3.

    Returns
    -------
    Tensor
        Scalar; of the shape of ``target`` with ``reduction="none"``.

    See Also
    --------
    calibrant.torch.FocalLoss : The same as a module.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import focal_loss
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> focal_loss(z, y, reduction="none").shape
    torch.Size([2])
    """
    check_choice("reduction", reduction, REDUCTIONS)
    if not isinstance(gamma, str) or gamma != "fl-53":
        check_number("gamma", gamma, least=0, instead="'fl-53' or ")
    logits, target, place = _valid_rows(logits, target, ignore_index)
    with torch.autocast(logits.device.type, enabled=False):
        if logits.dtype not in (torch.float32, torch.float64):
            logits = logits.float()
        log_p = -cross_entropy(logits, target, reduction="none")
        p = log_p.exp()
        power: Tensor | float = torch.where(p.detach() < 0.2, 5.0, 3.0) if isinstance(gamma, str) else float(gamma)
        # 1 - p without cancellation; its 0-th power is 1 where p is 1, and has no slope.
        rest = (-torch.expm1(log_p)).clamp(min=torch.finfo(p.dtype).tiny)
        return _reduce(-(rest**power) * log_p, reduction, place)


def soft_binned_ece(
    logits: Tensor,
    target: Tensor,
    n_bins: int = 15,
    temperature: float = 0.01,
    norm: float = 2,
    *,
    ignore_index: int = -100,
) -> Tensor:
    r"""Soft-binned ECE of the confidences: bins share each sample by its distance from their centres.

    .. math:: \Big(\sum_b \frac{S_b}{n} |A_b - C_b|^p\Big)^{1/p}, \qquad
        u_{ib} = \mathrm{softmax}_b\big(-(c_i - \xi_b)^2 / T\big)

    with ``S_b = Σ_i u_ib`` and the shared means A of the outcome and C of the confidence; ξ are the centres of
    ``n_bins`` equal bins. T → 0 gives the binned ECE. If the sum is below 1e-12 the root has gradient 0.

    Parameters
    ----------
    n_bins : int, default 15
        Number of bins.
    temperature : float, default 0.01
        Softness T > 0 of the bins.
    norm : float, default 2
        The power p ≥ 1 of the error.

    Returns
    -------
    Tensor
        Scalar in [0, 1].

    See Also
    --------
    calibrant.torch.SoftBinnedECELoss : The same as a module.

    References
    ----------
    Karandikar et al. (2021), *Soft calibration objectives for neural networks*.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import soft_binned_ece
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> round(soft_binned_ece(z, y).item(), 3)
    0.381
    """
    p = check_number("norm", norm, least=1)
    check_int("n_bins", n_bins, 1)
    check_positive("temperature", temperature)
    logits, target, _ = _valid_rows(logits, target, ignore_index)
    with torch.autocast(logits.device.type, enabled=False):
        if logits.shape[0] == 0:
            return _nothing(logits)
        confidence, predicted = log_probabilities(logits)[1].max(dim=1)
        right = (predicted == target).to(confidence.dtype)
        centres = (torch.arange(n_bins, device=logits.device, dtype=confidence.dtype) + 0.5) / n_bins
        share = torch.softmax(-(confidence[:, None] - centres).square() / temperature, dim=1)
        size = share.sum(dim=0)
        gap = (share * (right - confidence)[:, None]).sum(dim=0) / size.clamp(min=torch.finfo(size.dtype).tiny)
        total = (size / confidence.shape[0] * _power(gap, p)).sum()
    return total if p == 1 else torch.where(total > 1e-12, total, total.detach()).add(1e-24) ** (1 / p)


def brier_loss(logits: Tensor, target: Tensor, reduction: str = "mean", *, ignore_index: int = -100) -> Tensor:
    """Brier score ``Σ_c (f_c - y_c)²`` of softmax rows, in [0, 2].

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}, default "mean"
        How rows are combined: by their mean, by their sum, or not at all.

    Returns
    -------
    Tensor
        Scalar; of the shape of ``target`` with ``reduction="none"``.

    See Also
    --------
    calibrant.torch.BrierLoss : The same as a module.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import brier_loss
    >>> brier_loss(torch.zeros(2, 2), torch.tensor([0, 1])).item()
    0.5
    """
    check_choice("reduction", reduction, REDUCTIONS)
    logits, target, place = _valid_rows(logits, target, ignore_index)
    with torch.autocast(logits.device.type, enabled=False):
        probs = log_probabilities(logits)[1]
        return _reduce((probs - one_hot(target, probs.shape[1])).square().sum(dim=1), reduction, place)


def dca(logits: Tensor, target: Tensor, *, ignore_index: int = -100) -> Tensor:
    """Difference between confidence and accuracy of a batch, ``|1/n Σ c_i - 1/n Σ r_i|``, in [0, 1].

    c is the largest probability, r whether it was correct (which has no gradient): calibration in the large of the
    confidences. If both means are equal, the value and its gradient are 0. Cost O(N K).

    Returns
    -------
    Tensor
        Scalar in [0, 1].

    See Also
    --------
    calibrant.torch.DCALoss : The same as a module.

    References
    ----------
    Liang, Zhang, Wang & Jacobs (2020), *Improved trainable calibration method for neural networks on medical imaging
    classification*: cross-entropy plus 1 to 25 times this.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import dca
    >>> z, y = torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 1])
    >>> round(dca(z, y).item(), 3)
    0.381
    """
    logits, target, _ = _valid_rows(logits, target, ignore_index)
    with torch.autocast(logits.device.type, enabled=False):
        if logits.shape[0] == 0:
            return _nothing(logits)
        confidence, predicted = log_probabilities(logits)[1].max(dim=1)
        return (confidence - (predicted == target).to(confidence.dtype)).mean().abs()


def confidence_penalty(logits: Tensor, target: Tensor, reduction: str = "mean", *, ignore_index: int = -100) -> Tensor:
    """Negative entropy of softmax rows, ``Σ_c f_c log f_c``, in [-log K, 0]: a penalty on confidence.

    The target only determines which rows are ignored. Cost O(N K).

    Returns
    -------
    Tensor
        Scalar; of the shape of ``target`` with ``reduction="none"``.

    See Also
    --------
    calibrant.torch.ConfidencePenaltyLoss : The same as a module.

    References
    ----------
    Pereyra, Tucker, Chorowski, Kaiser & Hinton (2017), *Regularizing neural networks by penalizing confident output
    distributions*: cross-entropy plus 0.1 (or more) times this.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch.functional import confidence_penalty
    >>> round(confidence_penalty(torch.zeros(2, 2), torch.tensor([0, 1])).item(), 4)
    -0.6931
    """
    check_choice("reduction", reduction, REDUCTIONS)
    logits, target, place = _valid_rows(logits, target, ignore_index)
    with torch.autocast(logits.device.type, enabled=False):
        logs, probs = log_probabilities(logits)
        return _reduce((probs * logs).sum(dim=1), reduction, place)


def _power(gap: Tensor, p: float) -> Tensor:
    return gap.abs() if p == 1 else gap.square() if p == 2 else gap.abs() ** p


def _reduce(values: Tensor, reduction: str, place: Place) -> Tensor:
    if reduction == "none":
        if place.valid is not None:
            values = values.new_zeros(place.valid.shape).masked_scatter(place.valid, values)
        return values.reshape(place.shape)
    return values.sum() if reduction == "sum" or not values.shape[0] else values.mean()


def _nothing(logits: Tensor) -> Tensor:
    """0 with gradient 0, for a batch without rows to learn from."""
    return log_probabilities(logits)[0].sum() * 0.0


def check_dirichlet(
    bandwidth: float | str,
    norm: float,
    orientation: str,
    debias: str | None,
    residual: bool,
    notion: str = "canonical",
) -> float:
    """Check the arguments as the core does; bandwidths selected from data are not for training."""
    if isinstance(bandwidth, str) and bandwidth != "auto":
        raise ValueError(f"bandwidth must be 'auto' or a number in [1e-12, 1e3]; got {received(bandwidth)}")
    check_choice("notion", notion, NOTIONS)
    norm = check_number("norm", norm, least=1)
    DirichletKernel(bandwidth, orientation, debias, residual)._check_norm(norm)
    return norm


class Place(NamedTuple):
    """Shape of the targets that rows come from, and which of these count (None: all)."""

    shape: torch.Size
    valid: Tensor | None


def _valid_rows(logits: Tensor, target: Tensor, ignore_index: int) -> tuple[Tensor, Tensor, Place]:
    """Rows (n, K) and classes (n,) where the target is a class, and their place, after checking the arguments.

    A compiled graph has fixed shapes: there every target must be a class, which is asserted in it.
    """
    check_pair("logits", logits, target, "(N, K) or (N, K, d1, …)")
    check_int("ignore_index", ignore_index, -(2**63), 2**63 - 1)
    shape, k = target.shape, logits.shape[1]
    logits, target = flattened(logits), target.reshape(-1).long()
    if torch.compiler.is_compiling():
        known = ((target >= 0) & (target < k)).all()
        message = f"target must lie in 0 … {k - 1} in a compiled graph: leave out ignored rows beforehand"
        torch._assert_async(known, message)
        return logits, target, Place(shape, None)
    valid = rows_that_count(target, k, ignore_index)
    if bool(valid.all()):
        return logits, target, Place(shape, None)
    return logits[valid], target[valid], Place(shape, valid)


for _loss in (brier_loss, brier_sharpness, confidence_penalty, dca, focal_loss, mmce, soft_binned_ece):
    document(_loss, dirichlet_kernel_error, brier_loss)

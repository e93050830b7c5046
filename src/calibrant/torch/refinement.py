"""`Refinement`: the part of a validation loss that recalibration does not remove, for early stopping."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torchmetrics import Metric
from torchmetrics.utilities.distributed import gather_all_tensors

from ..data.checks import check_choice, check_int, check_type
from ._checks import check_pair, flattened, rows_that_count
from .functional import brier_loss
from .scaling import Scaler, TemperatureScaler

_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"log-loss": cross_entropy, "brier": brier_loss}


class LossParts(NamedTuple):
    """A mean loss, its part after a scaler, and the part removed by it; ``loss = refinement + calibration``."""

    loss: Tensor
    refinement: Tensor
    calibration: Tensor


class Refinement(Metric):
    """Validation loss minus its calibration part: the loss after a scaler was fitted to the same rows.

    A network's validation loss has its minimum where overconfidence begins, often long before discrimination stops
    improving. If a temperature is fitted after training anyway, the epoch to keep is that of the smallest refinement,
    not of the smallest loss (Berta et al. 2025).

    Parameters
    ----------
    scaler : Scaler, optional
        The map whose fit removes the calibration part; default :class:`TemperatureScaler`. It is fitted to the rows on
        which it is then evaluated: with K² parameters and few rows, it takes noise for miscalibration.
    loss : {"log-loss", "brier"}, default "log-loss"
        Mean cross-entropy, or Brier score ``Σ_c (f_c - y_c)²``, both for the fit that minimises cross-entropy.
    ignore_index : int or None, default -100
        Rows with this target are ignored.
    **kwargs
        Options of :class:`torchmetrics.Metric`.

    See Also
    --------
    calibrant.torch.CalibrationError : The calibration error by an estimator of your choice.
    calibrant.torch.TemperatureScaler : The scaler to fit after training.
    calibrant.decompose : Parts of a mean score of probabilities.

    Notes
    -----
    The state is all logits and targets, float32 or float64. Cost of ``compute``: the fit, about ten passes over the
    logits on the CPU for a temperature. With the log-loss, refinement is at most the loss, since the scaler can be the
    identity.

    References
    ----------
    Berta, Holzmüller, Jordan & Bach (2025), *Rethinking early stopping: refine, then calibrate*, arXiv:2501.19195.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import Refinement
    >>> draw = torch.Generator().manual_seed(0)
    >>> z = torch.randn(5000, 4, generator=draw)
    >>> y = torch.distributions.Categorical(logits=z).sample()
    >>> metric = Refinement()
    >>> metric.update(3 * z, y)  # three times too confident
    >>> loss, refinement, calibration = metric.parts()
    >>> bool(torch.isclose(metric.compute(), refinement)), bool(calibration > 0.4)
    (True, True)
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    logits: list[Tensor]
    target: list[Tensor]
    _found: LossParts

    def __init__(
        self, scaler: Scaler | None = None, loss: str = "log-loss", *, ignore_index: int | None = -100, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_type("scaler", scaler, (Scaler, type(None)), "a Scaler or None")
        self.scaler = TemperatureScaler() if scaler is None else scaler
        self.loss = check_choice("loss", loss, _LOSSES)
        self.ignore_index = None if ignore_index is None else check_int("ignore_index", ignore_index, -(2**63))
        self.add_state("logits", default=[], dist_reduce_fx="cat")
        self.add_state("target", default=[], dist_reduce_fx="cat")

    def update(self, logits: Tensor, target: Tensor) -> None:
        """Add a batch of validation rows.

        Parameters
        ----------
        logits : Tensor of shape (N, K) or (N, K, d1, …)
            Logits of a batch.
        target : Tensor of shape (N,) or (N, d1, …)
            Indices of the observed classes.
        """
        check_pair("logits", logits, target, "(N, K) or (N, K, d1, …)")
        k, codes = logits.shape[1], target.detach().reshape(-1).long()
        before = self.logits[0].shape[1] if isinstance(self.logits, list) and self.logits else k
        if k < 2 or k != before:
            raise ValueError(
                f"logits must have {'at least 2' if k == before else before} classes in dimension 1 per batch; got {k}"
            )
        used = rows_that_count(codes, k, self.ignore_index)
        rows = flattened(logits.detach())[used]
        if not torch.isfinite(rows).all():
            raise ValueError("logits must be finite")
        self.logits.append(rows if rows.dtype in (torch.float32, torch.float64) else rows.float())
        self.target.append(codes[used])

    def compute(self) -> Tensor:
        """Mean loss after the scaler's fit; NaN before the first row."""
        self._found = self._fitted()
        return self._found.refinement

    def parts(self) -> LossParts:
        """Mean loss of all rows, those of all processes included, its refinement and its calibration part.

        Returns
        -------
        LossParts
            ``loss``, ``refinement`` and ``calibration``, scalars; NaN before the first row.
        """
        self.compute()
        return self._found

    def _fitted(self) -> LossParts:
        # Lists, which torchmetrics makes a tensor of all processes.
        logits, target = (torch.cat(v) if isinstance(v, list) and v else v for v in (self.logits, self.target))
        if not isinstance(logits, Tensor) or not isinstance(target, Tensor) or not len(target):
            nothing = torch.full((), torch.nan, device=self.device)
            return LossParts(nothing, nothing, nothing)
        with torch.no_grad():
            scaled = deepcopy(self.scaler).fit(logits, target)(logits)
            loss, refinement = (_LOSSES[self.loss](z, target) for z in (logits, scaled))
        return LossParts(loss, refinement, loss - refinement)

    def _sync_dist(self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None) -> None:
        """As torchmetrics does, with states of the others' type and width in a process without rows."""
        group = process_group or self.process_group
        own = [self.logits[0].shape[1], self.logits[0].dtype == torch.float64] if self.logits else [0, 0]
        each = dist_sync_fn(torch.tensor(own, device=self.device), group=group)
        k, wide = torch.stack(each).amax(dim=0).tolist()
        about: dict[str, Any] = {"dtype": torch.float64 if wide else torch.float32, "device": self.device}
        self.logits = [z.to(about["dtype"]) for z in self.logits] or [torch.empty((0, k), **about)]
        self.target = self.target or [torch.empty(0, dtype=torch.int64, device=self.device)]
        super()._sync_dist(dist_sync_fn, process_group)

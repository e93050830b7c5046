"""A streaming metric: sums over bins or grid nodes, so that batches, devices and processes add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from ..data.checks import check_choice, check_norm
from ..estimators import Binned, CellEstimator, EmpiricalBayes, Estimator
from ..estimators.names import as_estimator
from ..estimators.norm import combine
from ..sums import BinMoments, Bins, Grid
from ..sums.edges import EDGE_UNITS, Edges
from ..sums.grid import GRID_CELLS, GridMoments
from ._checks import check_pair, check_probabilities
from ._kernel import log_probabilities

NOTIONS = ("confidence", "classwise", "class-specific")


class CalibrationError(Metric):
    """Calibration error of a stream of batches, the same number as :func:`calibrant.calibration_error` of all rows.

    Parameters
    ----------
    estimator : "auto" or Estimator, default "auto"
        ``"auto"``: :class:`calibrant.EmpiricalBayes`. Any estimator that works on counts on a grid (``EmpiricalBayes``,
        ``Density``, ``ResidualKernel``, ``AdaptiveKernel``), or :class:`calibrant.Binned` with fixed edges and hard
        mapping.
    notion : {"confidence", "classwise", "class-specific"}, default "confidence"
        ``"class-specific"``: of the positive class of 1-D probabilities.
    num_classes : int, optional
        K; required except for ``"class-specific"``.
    norm : float, default 1
        The power p ≥ 1 of the error, or inf for the maximum.
    from_logits : bool, default False
        ``update`` gets logits: rows of a softmax, or log odds in 1-D.
    **kwargs
        Options of :class:`torchmetrics.Metric`.

    See Also
    --------
    calibrant.Accumulator : The same of arrays.
    calibrant.calibration_error : The error of all rows at once.

    Notes
    -----
    The state is one float64 tensor of sums, (problems, 2 or 3, nodes), that is added over batches and over processes
    (``dist_reduce_fx="sum"``): its size does not depend on the number of rows. Scores are float32 or float64; half
    precision becomes float32. Cost of an update: one pass on the device; ``compute`` runs on the CPU.

    Examples
    --------
    >>> import torch
    >>> from calibrant import Binned
    >>> from calibrant.torch import CalibrationError
    >>> ece = CalibrationError(Binned(15), num_classes=3)
    >>> ece.update(torch.tensor([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]]), torch.tensor([0, 2]))
    >>> round(ece.compute().item(), 3)
    0.4
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    sums: Tensor
    samples: Tensor

    def __init__(
        self,
        estimator: str | Estimator = "auto",
        notion: str = "confidence",
        num_classes: int | None = None,
        norm: float = 1,
        *,
        from_logits: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("notion", notion, NOTIONS)
        if notion != "class-specific" and (not isinstance(num_classes, int) or num_classes < 2):
            raise ValueError(f"num_classes must be an int >= 2 for the notion {notion!r}; got {num_classes!r}")
        self.estimator = _resolved(estimator)
        self.notion = notion
        self.num_classes = 2 if num_classes is None else num_classes
        self.norm = check_norm(norm)
        self.from_logits = from_logits
        self.domain = (1 / self.num_classes if notion == "confidence" else 0.0, 1.0)
        self.named_sums = _sums_named(self.estimator, self.domain)
        problems = self.num_classes if notion == "classwise" else 1
        self.add_state("sums", default=self.named_sums.empty(problems), dist_reduce_fx="sum")
        self.add_state("samples", default=torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def set_dtype(self, dst_type: Any) -> CalibrationError:
        """Sums stay float64: in less, large counts stop growing.

        Parameters
        ----------
        dst_type : torch.dtype
            Not used.
        """
        return self

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: probabilities (N, K) or (N,), or logits, and class indices (N,).

        Parameters
        ----------
        preds : Tensor of shape (N, K) or (N,)
            Probabilities, or logits.
        target : Tensor of shape (N,)
            Indices of the observed classes.
        """
        scores, outcomes, eps = self._problems(preds, target)
        for k in range(scores.shape[0]):
            self.sums[k] += self.named_sums.of(scores[k], outcomes[k], eps)
        self.samples += scores.shape[1]

    def compute(self) -> Tensor:
        """The calibration error, float64; NaN before the first row."""
        sums, n = self.sums.cpu().numpy(), int(self.samples.item())
        powers = self.estimator.read(self.named_sums.read(sums, n), self.norm) if n else np.array([np.nan])
        value = combine(powers, [1 / len(powers)] * len(powers), self.norm, "power", self.notion == "classwise")
        return torch.tensor(value, dtype=torch.float64, device=self.sums.device)

    def _problems(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor, float]:
        """Scores and outcomes of every problem, (P, N), and the rounding unit of the original scores."""
        single = self.notion == "class-specific"
        check_pair("preds", preds, target, "(N,)" if single else f"(N, {self.num_classes})", boolean=True)
        if not single and preds.shape[1] != self.num_classes:
            raise ValueError(f"preds must have num_classes={self.num_classes} columns; got {preds.shape[1]}")
        target = target.long()
        if preds.shape[0] and not 0 <= int(target.min()) <= int(target.max()) < self.num_classes:
            raise ValueError(
                f"target must lie in 0 … {self.num_classes - 1}; got {int(target.min())} to {int(target.max())}"
            )
        eps = float(torch.finfo(preds.dtype).eps)
        preds = preds.detach()
        if self.from_logits:
            if not torch.isfinite(preds).all():
                raise ValueError("preds must be finite logits")
            preds = torch.sigmoid(preds.double()) if single else log_probabilities(preds)[1]
        else:
            check_probabilities("preds", preds)
            preds = preds if preds.dtype in (torch.float32, torch.float64) else preds.float()
        if single:
            return preds[None], target[None].double(), eps
        if self.notion == "classwise":
            every = torch.arange(self.num_classes, device=target.device)
            return preds.T.contiguous(), (target == every[:, None]).double(), eps
        confidence, predicted = preds.max(dim=1)
        return confidence[None], (predicted == target)[None].double(), eps


def _resolved(estimator: str | Estimator) -> CellEstimator:
    """Judge the estimator."""
    chosen = as_estimator(estimator, EmpiricalBayes())
    if not isinstance(chosen, CellEstimator):
        raise ValueError(f"estimator must work on grid counts or be Binned with fixed edges; got {estimator!r}")
    return chosen


def _sums_named(estimator: CellEstimator, domain: tuple[float, float]) -> _Grids | _Bins:
    """Sums of a size that rows do not change, as the estimator names them."""
    needs = estimator._needs(domain)
    if isinstance(needs, Grid):
        return _Grids(domain)
    if isinstance(needs, Bins) and needs.mapping == "hard":
        return _Bins(needs.edges)
    if isinstance(estimator, Binned):
        raise ValueError(f"estimator must have fixed edges and hard mapping to be streamed; got {estimator!r}")
    raise ValueError(
        "estimator must work on grid counts (EmpiricalBayes, Density, ResidualKernel, AdaptiveKernel, Smooth) or be "
        f"Binned with fixed edges and hard mapping; got {estimator!r}"
    )


@dataclass(frozen=True)
class _Grids:
    """Linear-binned counts of all samples and of the positives: what `Grid` names."""

    domain: tuple[float, float]

    def empty(self, problems: int) -> Tensor:
        return torch.zeros((problems, 2, GRID_CELLS + 1), dtype=torch.float64)

    def read(self, sums: Any, n: int) -> GridMoments:
        total = np.full(len(sums), float(n))
        return GridMoments(*self.domain, sums[:, 0], sums[:, 1], total, total, np.full(len(sums), n))

    def of(self, scores: Tensor, outcomes: Tensor, eps: float) -> Tensor:
        low, high = self.domain
        position = ((scores.double() - low) * (GRID_CELLS / (high - low))).clamp(0, GRID_CELLS)
        cell = position.long()
        offset = position - cell
        rows = []
        for weight in (torch.ones_like(outcomes), outcomes):
            moved = weight * offset
            at = torch.bincount(cell, weight - moved, minlength=GRID_CELLS + 1)
            above = torch.bincount(cell, moved, minlength=GRID_CELLS + 1)
            at[1:] += above[:-1]
            rows.append(at)
        return torch.stack(rows)


@dataclass(frozen=True)
class _Bins:
    """Samples, sums of scores and of outcomes a bin: what `Bins` names."""

    edges: Edges

    def empty(self, problems: int) -> Tensor:
        return torch.zeros((problems, 3, self.edges.n_bins), dtype=torch.float64)

    def read(self, sums: Any, n: int) -> BinMoments:
        weight, score, outcome = sums[:, 0], sums[:, 1], sums[:, 2]
        return BinMoments(self.edges, "hard", weight, score, outcome, weight, weight, np.full(len(sums), n))

    def of(self, scores: Tensor, outcomes: Tensor, eps: float) -> Tensor:
        edges, n_bins = self.edges, self.edges.n_bins
        if edges.uniform:
            low, high = float(edges.values[0]), float(edges.values[-1])
            factor = n_bins / (high - low)
            # As the core does, in the scores' own precision: a rounding error above an edge lies on it.
            position = scores * factor if low == 0 else ((scores - low) * factor).clamp(0, n_bins)
            slot = (position + (1 - min(EDGE_UNITS * eps * factor, 0.5))).long()
        else:
            limits = torch.as_tensor(edges.limits(eps), device=scores.device)
            slot = torch.searchsorted(limits, scores.double(), side="left") + 1
        slot = slot.clamp(1, n_bins) - 1
        double = scores.double()
        parts = (torch.ones_like(double), double, outcomes)
        return torch.stack([torch.bincount(slot, part, minlength=n_bins) for part in parts])

"""A streaming metric, from sums over bins or grid nodes that add up over batches, devices and processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from ..data.checks import check_choice, check_int, check_norm, check_random_state, received
from ..data.types import FloatArray, RandomState
from ..estimators import Estimator
from ..estimators.norm import combine, roots
from ..measure.curve_from_sums import CurveSpec
from ..measure.result import ReliabilityCurve
from ._checks import check_pair, check_probabilities, flattened, rows_that_count
from ._kernel import log_probabilities
from ._sums import added, as_double, as_pair, resolved, sums_named

_AVERAGES = {"multilabel": "macro", "multilabel:micro": "micro", "multilabel:weighted": "weighted"}
NOTIONS = ("confidence", "classwise", "class-specific", *_AVERAGES)
#: Meaning of each number of the state "problem".
_PROBLEM = ("notion", "num_classes", "number of bins (0: a grid)", "edges of bins (their checksum)")
_DTYPES = {name: value for value in (torch.float32, torch.float64) for name in (value, str(value), str(value)[6:])}


def _one_problem(stacked: Tensor) -> Tensor:
    """The problem (4,) that states share, of (W, 4); ValueError where they differ."""
    for name, values in zip(_PROBLEM, zip(*stacked.tolist(), strict=True), strict=True):
        if len(set(values)) > 1:
            told = [repr(NOTIONS[v]) if name == "notion" else str(v) for v in dict.fromkeys(values)]
            raise ValueError(f"states must have the same {name} to be added or loaded; got {' and '.join(told)}")
    return stacked[0]


class CalibrationError(Metric):
    """Calibration error of a stream of batches, equal to :func:`calibrant.calibration_error` of all rows.

    Parameters
    ----------
    estimator : "auto" or Estimator, default "auto"
        ``"auto"``: :class:`calibrant.EmpiricalBayes`. Any estimator that works on counts on a grid (``EmpiricalBayes``,
        ``Density``, ``ResidualKernel``, ``AdaptiveKernel``), or :class:`calibrant.Binned` with fixed edges and hard
        mapping.
    notion : str, default "confidence"
        ``"confidence"``; ``"classwise"``; ``"class-specific"``: for the positive class of probabilities (N,) or (N, d1,
        …), each position a row; or ``"multilabel"``, ``"multilabel:weighted"`` and ``"multilabel:micro"``: for rows
        with any number of K labels, as in :class:`calibrant.notions.Multilabel`, except that ``EmpiricalBayes`` treats
        the entries of ``"multilabel:micro"`` as independent rows.
    num_classes : int, optional
        K, the number of classes or of labels; required except for ``"class-specific"``.
    norm : float, default 1
        The power p ≥ 1 of the error, or inf for the maximum.
    from_logits : bool, default False
        Whether ``update`` takes logits: of a softmax, or log odds of the positive class or of each of several labels.
    ignore_index : int or None, default -100
        Rows with this target are ignored, as in PyTorch's losses; it may be one of the classes. None: every row counts.
        For rows with several labels, entries are ignored individually.
    average : {"power", "mean", "max", None}, default "power"
        For ``"classwise"``: how the errors of classes are combined, as in :class:`calibrant.notions.Classwise`. None:
        ``compute`` returns the error of each class, or of each of several labels, (K,).
    **kwargs
        Options of :class:`torchmetrics.Metric`.

    See Also
    --------
    calibrant.Accumulator : The same for arrays.
    calibrant.calibration_error : The error of all rows at once.
    calibrant.torch.Refinement : The part of a loss that a scaler does not remove.

    Notes
    -----
    The state is one tensor of sums, (2, problems, 2 or 3, nodes), added over batches and over processes: its size does
    not depend on the number of rows. Each sum is a pair of numbers, the second the rounding error of the first, in
    float64. After ``set_dtype(torch.float32)``, or on a device without float64 (``.to("mps")``), pairs and all
    arithmetic of ``update`` are float32, and the error agrees with that of float64 to 1e-6. ``.half()``,
    ``.to(torch.float16)`` and the like do not change the state. Scores are float32 or float64; half precision becomes
    float32. Cost of an update: one pass on the device; ``compute`` runs on the CPU.

    The curve, the picture and ``samples`` are those of the rows of all processes, as the error is: ask for them in each
    process, or after ``compute``, whose sums they then use. ``load_state_dict`` and ``merge_state`` raise ValueError
    for the state of another notion, number of classes or kind of bins.

    ``CalibrationError(Binned(15), "class-specific")`` is torchmetrics' ``BinaryCalibrationError``, and
    ``CalibrationError(Binned(15), num_classes=K)`` its ``MulticlassCalibrationError``, with norms 1, 2 and inf for
    ``"l1"``, ``"l2"`` and ``"max"``, and ``from_logits=True`` where it detects logits automatically (batch by batch: it
    treats logits that happen to lie in [0, 1] as probabilities). They agree to 1e-6 unless a score lies on the edge of
    a bin: bins here are closed on the right, (0.2, 0.3], and theirs on the left, [0.2, 0.3), with a separate bin for
    scores of exactly 1.

    Examples
    --------
    >>> import torch
    >>> from calibrant import Binned
    >>> from calibrant.torch import CalibrationError
    >>> ece = CalibrationError(Binned(15), num_classes=3)
    >>> ece.update(torch.tensor([[0.8, 0.1, 0.1], [0.3, 0.6, 0.1]]), torch.tensor([0, 2]))
    >>> round(ece.compute().item(), 3)
    0.4

    Pixels of two images, one of them unlabelled; an error per class:

    >>> logits, labels = torch.zeros(2, 3, 4, 4), torch.ones(2, 4, 4, dtype=torch.int64)
    >>> labels[0, 0, 0] = 255
    >>> pixels = CalibrationError(Binned(15), "classwise", 3, from_logits=True, ignore_index=255, average=None)
    >>> pixels.update(logits, labels)
    >>> pixels.compute().round(decimals=3).tolist(), pixels.samples
    ([0.333, 0.667, 0.333], 31)
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    sums: Tensor
    rows: Tensor
    problem: Tensor
    _seen: tuple[FloatArray, int]

    def __init__(
        self,
        estimator: str | Estimator = "auto",
        notion: str = "confidence",
        num_classes: int | None = None,
        norm: float = 1,
        *,
        from_logits: bool = False,
        ignore_index: int | None = -100,
        average: str | None = "power",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("notion", notion, NOTIONS)
        if notion != "class-specific" and (not isinstance(num_classes, int) or num_classes < 2):
            raise ValueError(f"num_classes must be an int >= 2 for the notion {notion!r}; got {received(num_classes)}")
        self.several = notion in _AVERAGES
        self.each = notion == "classwise" or (self.several and _AVERAGES[notion] != "micro")
        whole = ("power", "mean", "max") if notion == "classwise" else ("power",)
        check_choice("average", average, (*whole, None) if self.each else whole)
        self.estimator = resolved(estimator)
        self.notion = notion
        self.num_classes = 2 if num_classes is None else num_classes
        self.norm = check_norm(norm)
        self.from_logits = from_logits
        self.ignore_index = (
            None if ignore_index is None else check_int("ignore_index", ignore_index, -(2**63), 2**63 - 1)
        )
        self.average = average
        self.domain = (1 / self.num_classes if notion == "confidence" else 0.0, 1.0)
        self.named_sums = sums_named(self.estimator, self.domain)
        problems = self.num_classes if self.each else 1
        shared = "multilabel" if self.several and self.each else notion  # weights come later
        problem = torch.tensor([NOTIONS.index(shared), self.num_classes, *self.named_sums.identity])
        self.add_state("problem", default=problem, dist_reduce_fx=_one_problem)  # first: refused before sums are added
        self.add_state("sums", default=self.named_sums.empty(problems), dist_reduce_fx=added)
        self.add_state("rows", default=torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    @property
    def samples(self) -> int:
        """Number of rows added, in all processes; exchanged as for ``compute``."""
        return self._whole()[1]

    def set_dtype(self, dst_type: Any) -> CalibrationError:
        """Store sums as pairs of numbers of another type; return the metric.

        Parameters
        ----------
        dst_type : torch.float32 or torch.float64
            ValueError for others: half precision cannot represent the counts.
        """
        dtype = _DTYPES.get(dst_type)
        if dtype is None:
            raise ValueError(f"dst_type must be torch.float32 or torch.float64; got {received(dst_type)}")
        defaults: dict[str, Any] = self._defaults
        self.sums, defaults["sums"] = as_pair(self.sums, dtype), as_pair(defaults["sums"], dtype)
        self._computed = None
        if self._forward_cache is not None:
            self._forward_cache = self._forward_cache.to(dtype)
        return self

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        """Move to a device; the type changes only if the device has no float64."""
        try:
            fn(self.sums.new_zeros(()))
        except TypeError:  # what torch raises for float64 on mps
            self.set_dtype(torch.float32)
        defaults: dict[str, Any] = self._defaults
        sums, empty = self.sums, defaults["sums"]
        moved = super()._apply(fn, *args, **kwargs)
        if self.sums.dtype != sums.dtype:
            self.sums, defaults["sums"] = sums.to(self.sums.device), empty.to(self.sums.device)
        return moved

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch of probabilities or logits and class indices.

        Parameters
        ----------
        preds : Tensor of shape (N, K), (N, K, d1, …), or for ``"class-specific"`` (N,), (N, d1, …)
            Probabilities, or logits.
        target : Tensor of shape (N,) or (N, d1, …), of several labels as ``preds``
            Indices of the observed classes; 0 or 1 for each of several labels.
        """
        scores, outcomes, eps = (self._labels if self.several else self._classes)(preds, target)
        for k, (score, outcome) in enumerate(zip(scores, outcomes, strict=True)):
            self.named_sums.add(self.sums[:, k], score, outcome, eps)
        self.rows += flattened(preds).shape[0] if self.several else scores[0].shape[0]

    def compute(self) -> Tensor:
        """The calibration error, or with ``average=None`` that of each class, (K,); NaN before the first row."""
        sums, _ = self._whole()
        powers = self._powers()
        value: Any = roots(powers, self.norm)
        if self.average is not None:
            shares = np.ones(len(powers))
            if self.notion == "multilabel:weighted" and sums[:, -1].any():  # by how often a row has the label
                shares = sums[:, -1].sum(axis=-1)
            value = combine(powers, (shares / shares.sum()).tolist(), self.norm, self.average, not self.several)
        return torch.tensor(value, dtype=self.sums.dtype, device=self.sums.device)

    def reliability_curve(
        self, *, level: float | None = None, random_state: RandomState = 0
    ) -> ReliabilityCurve | dict[int, ReliabilityCurve]:
        """Observed frequency at every score: one curve, or one per class or label.

        Parameters
        ----------
        level : float in (0, 1), optional
            Level of a band; default no band.
        random_state : int, Generator or None, default 0
            Seed or generator of the band's draws.

        Returns
        -------
        ReliabilityCurve or dict
            As :func:`calibrant.reliability_curve` of all rows with this estimator, those of all processes included;
            ValueError before the first row.
        """
        sums, n = self._whole()
        if not n:
            raise ValueError("no rows were added yet")
        spec = CurveSpec(self.estimator, self.notion.partition(":")[0], level, check_random_state(random_state))
        every = self.named_sums.read(sums)
        if self.each:
            return {k: spec.of_sums(every[k], k) for k in range(self.num_classes)}
        return spec.of_sums(every[0], 1 if self.notion == "class-specific" else None)

    def plot(self, val: Tensor | Sequence[Tensor] | None = None, ax: Any = None) -> tuple[Any, Any]:
        """Reliability diagram of all rows, or values over steps, as torchmetrics draws them; needs matplotlib.

        Parameters
        ----------
        val : Tensor or sequence of Tensor, optional
            Results of ``compute`` or of calls, which are drawn instead of the diagram:
            :meth:`torchmetrics.MetricCollection.plot` passes them.
        ax : Axes, optional
            Axes to draw on; default a new figure.

        Returns
        -------
        figure, axes
            An array of axes if classes have panels: those with the largest errors, at most nine.
        """
        if val is not None:
            return self._plot(val, ax)
        from ..plot import ReliabilityDisplay
        from ..plot.diagram import MAX_PANELS, diagrams_at_hand

        found = self.reliability_curve(level=0.95)
        curves = list(found.values()) if isinstance(found, dict) else [found]
        worst = np.argsort(-self._powers(), kind="stable")[:MAX_PANELS]
        drawn = ReliabilityDisplay([diagrams_at_hand(curves[k])[0][0] for k in worst], None).plot(ax)
        return drawn.figure_, drawn.ax_

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        given = state_dict.get(f"{prefix}problem", self.problem)
        _one_problem(torch.stack([given.cpu(), self.problem.cpu()]))
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._computed = None

    def _whole(self) -> tuple[FloatArray, int]:
        """Sums and rows of all processes: those that ``compute`` used, if nothing was added since."""
        if self._computed is None:
            mine = self._to_sync and not self._is_synced
            with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=mine, should_unsync=mine):
                self._seen = as_double(self.sums), int(self.rows)
        return self._seen

    def _powers(self) -> FloatArray:
        """The p-th power of the error of each problem; NaN before its first row."""
        read = self.named_sums.read(self._whole()[0])
        out, some = np.full(len(read), np.nan), np.flatnonzero(read.n_samples > 0)
        if some.size:
            out[some] = self.estimator.read(read[some], self.norm)
        return out

    def _labels(self, preds: Tensor, target: Tensor) -> tuple[list[Tensor], list[Tensor], float]:
        """As :meth:`_classes`, for rows with several labels."""
        k, dtype = self.num_classes, self.sums.dtype
        check_pair("preds", preds, target, "(N, …)", boolean=True)
        if preds.ndim < 2 or preds.shape[1] != k:
            raise ValueError(f"preds must have shape (N, {k}) or (N, {k}, d1, …); got {tuple(preds.shape)}")
        preds, target = flattened(preds.detach()), flattened(target).long()
        valid = rows_that_count(target.reshape(-1), 2, self.ignore_index).reshape(target.shape)
        eps = float(torch.finfo(preds.dtype).eps)
        if self.from_logits and not torch.isfinite(preds[valid]).all():
            raise ValueError("preds must be finite logits")
        preds = torch.sigmoid(preds.to(dtype)) if self.from_logits else preds
        check_probabilities("preds", preds[valid])
        preds = preds if preds.dtype in (torch.float32, torch.float64) else preds.float()
        if dtype == torch.float32:
            preds, eps = preds.float(), max(eps, float(torch.finfo(dtype).eps))
        if not self.each:
            return [preds[valid]], [target[valid].to(dtype)], eps
        columns = [valid[:, j] for j in range(k)]
        return (
            [preds[rows, j] for j, rows in enumerate(columns)],
            [target[rows, j].to(dtype) for j, rows in enumerate(columns)],
            eps,
        )

    def _classes(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor, float]:
        """Scores and outcomes of every problem, (P, N), and the rounding unit of the scores used."""
        single, dtype = self.notion == "class-specific", self.sums.dtype
        k = self.num_classes
        check_pair("preds", preds, target, "(N, …)" if single else f"(N, {k}) or (N, {k}, d1, …)", boolean=True)
        if not single and preds.shape[1] != k:
            raise ValueError(f"preds must have num_classes={k} columns; got {preds.shape[1]}")
        preds, target = preds.detach(), target.reshape(-1).long()
        preds = preds.reshape(-1) if single else flattened(preds)
        valid = rows_that_count(target, k, self.ignore_index)
        if not bool(valid.all()):
            preds, target = preds[valid], target[valid]
        eps = float(torch.finfo(preds.dtype).eps)
        if self.from_logits:
            if not torch.isfinite(preds).all():
                raise ValueError("preds must be finite logits")
            preds = torch.sigmoid(preds.to(dtype)) if single else log_probabilities(preds)[1]
        else:
            check_probabilities("preds", preds)
            preds = preds if preds.dtype in (torch.float32, torch.float64) else preds.float()
        if dtype == torch.float32:
            preds, eps = preds.float(), max(eps, float(torch.finfo(dtype).eps))
        if single:
            return preds[None], target[None].to(dtype), eps
        if self.notion == "classwise":
            every = torch.arange(k, device=target.device)
            return preds.T.contiguous(), (target == every[:, None]).to(dtype), eps
        confidence, predicted = preds.max(dim=1)
        return confidence[None], (predicted == target)[None].to(dtype), eps

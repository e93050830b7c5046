"""`CalibrationMonitor`: a sequential test, valid after every row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_bool
from ..data.dependence import group_codes, group_keys, joined_groups, read_groups
from ..data.predictions import Predictions
from ..data.printing import equals
from ..data.result import Drawn, short
from ..data.types import AnyArray
from ..data.validation import as_predictions
from ..notions import Notion
from ..significance.evalue import SequentialBets, exp_of, whole_outcomes
from ..significance.result import TestResult

#: Updates whose e-value is kept to be drawn; an even number, so that the last one stays where half of them go.
_MOST_LOOKS = 511


class CalibrationMonitor(Drawn):
    """Sequential test of calibration by betting, on rows as they arrive (:func:`evalue_test`).

    Under calibration the probability that the e-value ever reaches 1/α is at most α, no matter when and how often you
    look: an alarm at :attr:`pvalue` ≤ 0.01 is false for at most one monitor in a hundred over its whole life, not for
    one look in a hundred. The result does not depend on how rows are divided into batches.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        The positive class, the confidence, ``ClassSpecific``, or ``"classwise"``, for which the classes' e-values are
        averaged.
    labels : sequence of K labels, optional
        The labels, in the order of the columns of ``y_prob``; by default those of the first batch, for all later ones.
    pos_label : label, optional
        The label that a 1-D ``y_prob`` is the probability of; by default as the first batch has it.
    sum_tolerance : float, optional
        Largest accepted ``|row sum - 1|`` of a 2-D ``y_prob``, in every batch.
    from_logits : bool, default False
        Whether ``y_prob`` contains logits, in every batch.

    See Also
    --------
    calibrant.significance.evalue_test : The same test of rows that are all there.
    calibrant.Accumulator : The calibration error of rows as they arrive.
    calibrant.plot.MonitorDisplay : Draws the e-value.

    Notes
    -----
    The null hypothesis is that, given all earlier rows, each label follows its predicted probability; so a label must
    not be known when its probability is predicted. Rows of one group (``groups=`` of :meth:`update`) are one bet: all
    rows of a group must be in one batch. The state (sums in 512 cells a problem) does not grow with the number of rows
    and can be pickled. To detect a change after a long calibrated period, start a new monitor from time to time: an old
    one must first regain its losses in that period.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> monitor = cal.CalibrationMonitor()
    >>> for day in range(20):
    ...     p = rng.random(300)
    ...     if monitor.update(rng.random(300) < 0.2 + 0.6 * p, p).pvalue <= 0.01:
    ...         break
    >>> day < 10, monitor.e_max > 100
    (True, True)
    """

    display: ClassVar[str] = "MonitorDisplay"

    def __init__(
        self,
        *,
        notion: str | Notion = "auto",
        labels: Sequence[Any] | None = None,
        pos_label: Any = None,
        sum_tolerance: float | None = None,
        from_logits: bool = False,
    ) -> None:
        self.notion = notion
        self.labels = labels
        self.pos_label = pos_label
        self.sum_tolerance = sum_tolerance
        self.from_logits = check_bool("from_logits", from_logits)
        self._columns = False
        self._bets = SequentialBets(notion)
        self._groups: AnyArray | None = None
        self._history: list[tuple[int, float]] = []

    @property
    def summary(self) -> str:
        """Whether there is evidence of miscalibration so far."""
        found = "evidence" if self.pvalue <= 0.05 else "no evidence"
        return (
            f"There is {found} of miscalibration after {self.n_samples:,} rows: the e-value reached "
            f"{short(self.e_max)} (p {equals(self.pvalue)} at any time)."
        )

    def _shown(self) -> Iterable[tuple[str, Any]]:
        names = ("n_samples", "e_value", "e_max", "pvalue", "notion", "labels")
        return ((name, getattr(self, name)) for name in names)

    @property
    def history(self) -> tuple[tuple[int, float], ...]:
        """Rows seen and the logarithm of the e-value after updates; of many updates, some."""
        return tuple(self._history)

    @property
    def n_samples(self) -> int:
        """Number of rows seen, without those of weight 0."""
        return self._bets.n_samples

    @property
    def e_value(self) -> float:
        """Current e-value: the wealth from betting with an initial 1."""
        return exp_of(self._bets.log_e)

    @property
    def e_max(self) -> float:
        """Largest e-value so far."""
        return exp_of(self._bets.log_max)

    @property
    def pvalue(self) -> float:
        """``1 / e_max``: valid at any time."""
        return float(np.exp(-self._bets.log_max))

    def update(self, y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, groups: Any = None) -> TestResult:
        """Bet on further rows, in the order given, and return the result so far.

        ``groups`` say which rows belong together (see :func:`calibrant.as_predictions`): each is bet on at its first
        row, and a group seen in an earlier batch raises ValueError.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Predictions
            Observed labels of the batch; :class:`calibrant.Predictions` replace all arguments.
        y_prob : array-like of shape (n,) or (n, K)
            Their probabilities, predicted before the labels were known.
        sample_weight : array-like of shape (n,), optional
            Weights, which are exponents of the bets; see :func:`calibrant.significance.evalue_test`.
        groups : array-like of shape (n,), optional
            The group of each row (see :func:`calibrant.as_predictions`): each group is bet on at its first row, and one
            that was seen in an earlier batch raises ValueError.
        """
        if isinstance(y_true, Predictions):
            p = as_predictions(y_true, y_prob, sample_weight=sample_weight, groups=groups)
            before = (None if self.labels is None else tuple(self.labels), self.pos_label)
            now = (p.classes, None if p.positive is None else p.classes[p.positive])
            for name, settled, given in zip(("labels", "pos_label"), before, now, strict=True):
                if settled is not None and given != settled:
                    raise ValueError(f"batches must have the same {name}: {settled!r} before, {given!r} now")
            return self._bet(p, None if p.groups is None else np.empty(0, np.uint64))
        p = as_predictions(
            y_true,
            y_prob,
            labels=self.labels,
            pos_label=self.pos_label,
            sample_weight=sample_weight,
            sum_tolerance=self.sum_tolerance,
            from_logits=self.from_logits,
        )
        if groups is None:
            return self._bet(p, None)
        # A batch may be a single group, as a day is.
        codes = group_codes(np.asarray(read_groups(groups, p.n_samples)))
        return self._bet(replace(p, groups=codes), group_keys(groups))

    def _bet(self, p: Predictions, keys: AnyArray | None) -> TestResult:
        """Bet on predictions, whose groups have these hashes."""
        p = whole_outcomes(p, "a CalibrationMonitor")
        seen = keys if self._bets.n_bets == 0 else joined_groups(self._groups, keys)
        if self._columns and p.positive is not None:
            raise ValueError("y_prob must have one column per class, as in the first batch; got one column")
        found = self._bets.bet(p)
        # Nothing is kept of rows that were refused above.
        self._columns, self.labels = p.positive is None, p.classes
        self.pos_label = None if p.positive is None else p.classes[p.positive]
        self._groups = seen
        self._history.append((self.n_samples, float(self._bets.log_e)))
        if len(self._history) > _MOST_LOOKS:  # every other one, and the last
            self._history = self._history[1::2]
        return found

"""`CalibrationMonitor`: a sequential test, valid after every row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..calibrators.saving import from_dict, to_dict
from ..data.checks import check_bool, check_int, check_level
from ..data.dependence import group_codes, group_keys, joined_groups, read_groups
from ..data.predictions import Predictions
from ..data.printing import Audience, equals, number_of, time_text, without_middle
from ..data.result import Drawn, jsonable, short
from ..data.types import AnyArray
from ..data.validation import as_predictions
from ..data.writing import digest, write_text
from ..notions import ClassSpecific, Notion
from ..significance.evalue import SequentialBets, exp_of, whole_outcomes
from ..significance.result import TestResult
from .awaited import Awaited, names_of
from .periods import read_time, written_time
from .row_times import RowTimes
from .start_mixture import StartMixture

#: Updates whose e-value is kept for plots; odd, so that the last one is kept when every other one is dropped.
_MOST_LOOKS = 511


#: Format named in a saved state.
_FORMAT = "calibrant monitor 1"


class CalibrationMonitor(Drawn):
    r"""Sequential test of calibration for rows as they arrive, valid after every row.

    If rows are calibrated, at most one monitor in twenty ever raises an alarm within its ``horizon``, no matter when
    and how often you look. Bets on alternatives begin at every row, so that a change is detected soon after it occurs,
    however long the rows before were calibrated. The result does not depend on how rows are divided into batches.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        The positive class, the confidence, ``ClassSpecific``, or ``"classwise"``, for which the classes' e-values are
        averaged.
    horizon : int or None, default 100000
        Number of rows for which the monitor runs: bets begin at each with equal weight. A change after them is detected
        late or never (:attr:`horizon_over`). None: no limit, with decreasing weights of later bets; a change is then
        detected later, unless it is among the first 8,000 rows.
    level : float in (0, 1), default 0.95
        An alarm is raised if the e-value reaches ``1 / (1 - level)``.
    labels : sequence of K labels, optional
        The labels, in the order of the columns of ``y_prob``; by default those of the first batch.
    pos_label : label, optional
        The label that a 1-D ``y_prob`` refers to; by default that of the first batch.
    sum_tolerance : float, optional
        Largest accepted ``|row sum - 1|`` of a 2-D ``y_prob``, in every batch.
    from_logits : bool, default False
        Whether ``y_prob`` contains logits, in every batch.
    max_open : int, default 100000
        Maximum number of predictions that await their label (:meth:`expect`); beyond it the oldest expire.

    See Also
    --------
    calibrant.calibration_over_time : When calibration changed, from complete data, with an interval.
    calibrant.significance.evalue_test : Another e-value, for complete data.
    calibrant.Accumulator : The calibration error of rows as they arrive.
    calibrant.plot.MonitorDisplay : Draws the e-value.

    Notes
    -----
    The null hypothesis is that, given all earlier rows, each label follows its predicted probability; so a label must
    not be known when its probability is predicted. If labels arrive late, rows are ordered by when the label is
    observed; the guarantee fails if the delay depends on the label, as for loans that default early.

    Alternatives have log-odds :math:`a + b \operatorname{logit} s`: eight offsets a up to ± 1.2, and six slopes b
    from 0.5 to 2. A bet on each begins at every row, with a part w of the wealth:

    .. math:: R_\theta \leftarrow (R_\theta + w_n) \frac{q_\theta(y_n)}{p(y_n)}, \qquad
        e = \operatorname{mean}_\theta R_\theta + 1 - \textstyle\sum w,

    with w = 1/N for a horizon N, else ``v(n - 1) - v(n)`` with ``v(n) = 1 / (1 + log(1 + n / 1000))``. It is a
    nonnegative martingale starting at 1 if labels follow their probabilities, so it ever reaches 1/α with probability
    at most α (Ville). Rows of one group (``groups=`` of :meth:`update`) are one bet: all rows of a group must be in one
    batch. The state does not grow with the number of rows, except for hashes of groups. Cost: 14 likelihood ratios per
    row. Detection delays: docs/monitoring.md.

    References
    ----------
    Shin, Ramdas & Rinaldo (2024), *E-detectors: a nonparametric framework for sequential change detection*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> monitor = cal.CalibrationMonitor()
    >>> for day in range(100):
    ...     p = rng.random(100)
    ...     y = rng.random(100) < (p if day < 60 else 0.7 * p)
    ...     if monitor.update(y, p, time=np.full(100, day)) and monitor.alarm:
    ...         break
    >>> day < 66, 55 < monitor.since < 66
    (True, True)
    """

    display: ClassVar[str] = "MonitorDisplay"

    def __init__(
        self,
        *,
        notion: str | Notion = "auto",
        horizon: int | None = 100_000,
        level: float = 0.95,
        labels: Sequence[Any] | None = None,
        pos_label: Any = None,
        sum_tolerance: float | None = None,
        from_logits: bool = False,
        max_open: int = 100_000,
    ) -> None:
        self.notion = notion
        self.horizon = None if horizon is None else check_int("horizon", horizon, 1)
        self.level = check_level(level)
        self.labels = labels
        self.pos_label = pos_label
        self.sum_tolerance = sum_tolerance
        self.from_logits = check_bool("from_logits", from_logits)
        #: Whether advice in :attr:`status` names methods or options of the command.
        self.audience = Audience.PYTHON
        #: Monitors ended by :meth:`reset`: number of rows, whether each raised an alarm, and since when.
        self.past: list[dict[str, Any]] = []
        self._awaited = Awaited(check_int("max_open", max_open, 1))
        self._times = RowTimes()
        self._calibrator: Any = None
        self._columns = False
        self._file: dict[str, str] = {}  # the file of the state, and the digest of its content
        self._begin()

    def _begin(self) -> None:
        """Start with an e-value of 1."""
        start = partial(StartMixture, self.horizon)
        self._bets = SequentialBets(self.notion, start, "e-value of bets that begin at every row")
        self._groups: AnyArray | None = None
        self._history: list[tuple[int, float, Any]] = []
        self._times = RowTimes(self._times.last)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has reached ``1 / (1 - level)`` since the last reset."""
        return bool(self._bets.log_max >= -np.log1p(-self.level))

    @property
    def _bettors(self) -> list[StartMixture]:
        return cast(list[StartMixture], self._bets.bettors)

    @property
    def since(self) -> Any:
        """Time of the last row before the change, or the number of rows before it; None without an alarm.

        Estimated from the best-fitting alternative. If only some times are kept, it is the last of these before.
        """
        if not self.alarm:
            return None
        rows = max(self._bettors, key=lambda one: float(np.max(one.won - one.lowest))).since
        return rows if self._times.last is None else self._times.at(rows)

    @property
    def last_time(self) -> Any:
        """Time of the last row with a time."""
        return self._times.last

    @property
    def since_text(self) -> str:
        """:attr:`since` in words."""
        since = self.since
        return "" if since is None else f"row {since:,}" if self.last_time is None else time_text(since)

    @property
    def horizon_over(self) -> bool:
        """Whether the horizon is over: no more bets begin, and a later change is detected late or never."""
        return self.horizon is not None and self._bets.n_bets >= self.horizon

    @property
    def horizon_text(self) -> str:
        """:attr:`horizon_over` in words, with advice; empty if it is False."""
        if not self.horizon_over:
            return ""
        advice = self.audience.names("call reset()", "add --horizon none, with --state also --reset,")
        return f"The horizon of {self.horizon:,} rows is over: {advice} to look for later changes."

    @property
    def status(self) -> str:
        """Whether there is an alarm, since when, and with which evidence."""
        rows, once = number_of(self.n_samples, "row"), 1 - self.level
        if self.alarm:
            said = f"Alarm: no longer calibrated, since about {self.since_text}. After {rows} the e-value has "
            said += f"reached {short(self.e_max)} (p {equals(self.pvalue)} at any time)."
        else:
            said = f"No alarm in {rows}: the e-value is {short(self.e_value)}, and reached {short(self.e_max)}."
        if self.past:
            said += (
                f" This is monitor {len(self.past) + 1:,}: chances of a false alarm add up to "
                f"{min(once * (len(self.past) + 1), 1):.2g} at most."
            )
        return said + f" {self.horizon_text}".rstrip() + self._awaited.status

    @property
    def summary(self) -> str:
        """The :attr:`status`."""
        return self.status

    def report(self) -> dict[str, Any]:
        """State for JSON: status, alarm, rows, e-values, p-value, horizon, open predictions and past monitors."""
        of_bets = ("n_samples", "e_value", "e_max", "pvalue", "horizon", "horizon_over", "level")
        found = {name: jsonable(getattr(self, name)) for name in ("status", "alarm", "since", *of_bets)}
        return found | {"open": len(self._awaited), "expired": self._awaited.expired, "past": list(self.past)}

    def _shown(self) -> Iterable[tuple[str, Any]]:
        names = ("n_samples", "alarm", "since", "e_value", "e_max", "pvalue", "notion", "labels")
        return ((name, getattr(self, name)) for name in names)

    @property
    def history(self) -> tuple[tuple[int, float], ...]:
        """Number of rows and log e-value after updates; a subset if there are many updates."""
        return tuple((n, log_e) for n, log_e, _ in self._history)

    @property
    def _look_times(self) -> tuple[Any, ...]:
        """Time of the first row, then of the last row at each entry of :attr:`history`; empty if one has no time.

        Times with a zone are by the clock of the last row.
        """
        times = (self._times.at(0), *(time for *_, time in self._history))
        zone = getattr(times[-1], "tzinfo", None)
        if len(times) == 1 or None in times:
            return ()
        return times if zone is None else tuple(time.astimezone(zone).replace(tzinfo=None) for time in times)

    @property
    def n_samples(self) -> int:
        """Number of rows seen, without those with weight 0."""
        return self._bets.n_samples

    @property
    def e_value(self) -> float:
        """Current e-value: the wealth from betting with an initial wealth of 1."""
        return exp_of(self._bets.log_e)

    @property
    def e_max(self) -> float:
        """Largest e-value so far."""
        return exp_of(self._bets.log_max)

    @property
    def pvalue(self) -> float:
        """Anytime-valid p-value, ``1 / e_max``."""
        return float(np.exp(-self._bets.log_max))

    def reset(self, calibrator: Any = None) -> None:
        """Restart with an e-value of 1, as after recalibration, keeping the last time and open predictions.

        False alarm probabilities add up over monitors; :attr:`status` reports their sum.

        Parameters
        ----------
        calibrator : fitted calibrator, optional
            Applied to all later probabilities before they are tested, including those of open predictions.
        """
        if calibrator is not None:
            check_is_fitted(calibrator)
            if self.from_logits:
                raise ValueError(
                    "calibrator is for probabilities, and this monitor takes logits: calibrate them beforehand"
                )
        self.past.append({"n_samples": self.n_samples, "alarm": self.alarm, "since": jsonable(self.since)})
        self._calibrator = calibrator
        self._begin()

    def expect(self, key: Any, y_prob: Any, *, time: Any = None) -> None:
        """Store predictions whose labels arrive later.

        Parameters
        ----------
        key : hashable, or sequence of n
            Key of each prediction; a key that is already open raises ValueError.
        y_prob : float, or array-like of shape (n,) or (n, K)
            Predicted probabilities; for a single key a number, or a list of K.
        time : date, datetime or number, optional
            Time at which the predictions were made.
        """
        self._awaited.add(key, y_prob, time, logits=self.from_logits)

    def observe(self, key: Any, y_true: Any, *, time: Any = None) -> TestResult:
        """Update with the labels of predictions stored by :meth:`expect`, in the order given.

        Parameters
        ----------
        key : hashable, or sequence of n
            Keys; one that is not open raises ValueError, and nothing is changed.
        y_true : label, or array-like of shape (n,)
            Observed labels.
        time : date, datetime or number, optional
            Time at which the labels were observed.
        """
        names, many = names_of(key)
        labels = list(y_true) if many else [y_true]
        if len(labels) != len(names) or len(set(names)) < len(names):
            raise ValueError(
                f"y_true must have one label per key ({len(names)}), and keys must differ; got {len(labels)}"
            )
        scores = self._awaited.scores(names)
        alone = not many and isinstance(scores[0], float)  # a lone row takes the short way
        found = self.update(y_true, scores[0], time=time) if alone else self.update(labels, scores, time=time)
        self._awaited.remove(names)
        return found

    def save(self, path: str | PathLike[str], *, force: bool = True) -> None:
        """Write the state to a JSON file, whose size does not grow with the number of rows.

        Parameters
        ----------
        path : str or path
            The file; it is written atomically.
        force : bool, default True
            Whether an existing file is replaced.

        Raises
        ------
        ValueError
            For groups, a notion object other than ``ClassSpecific``, or keys other than strings and integers.
        FileExistsError
            If the file was changed since this monitor was loaded from it, or saved to it: the rows that another monitor
            added would be lost. Load it again, and repeat the update.
        """
        if self._groups is not None and self._groups.size:
            raise ValueError(
                "a monitor with groups cannot be saved as JSON, as all of them would have to be stored: pickle it"
            )
        notion = self.notion
        if not isinstance(notion, str) and not isinstance(notion, ClassSpecific):
            raise ValueError(
                f"a monitor of notion {notion!r} cannot be saved as JSON: pass the name of a notion, or pickle it"
            )
        state = {
            "format": _FORMAT,
            "notion": notion if isinstance(notion, str) else {"class-specific": jsonable(notion.label)},
            **{name: jsonable(getattr(self, name)) for name in _SETTINGS},
            "labels": None if self.labels is None else [jsonable(v) for v in self.labels],
            "pos_label": jsonable(self.pos_label),
            "columns": self._columns,
            "n_samples": self.n_samples,
            "n_bets": self._bets.n_bets,
            "log_e": _written(self._bets.log_e),
            "log_max": _written(self._bets.log_max),
            "bettors": [one.to_dict() for one in self._bettors],
            "history": [[n, _written(value), *written_time(time)] for n, value, time in self._history],
            "times": self._times.to_list(),
            "awaited": self._awaited.to_dict(),
            "past": self.past,
            "calibrator": None if self._calibrator is None else to_dict(self._calibrator),
        }
        text, file = json.dumps(state, allow_nan=False) + "\n", os.path.realpath(path)
        write_text(Path(path), text, force=force, before=self._file.get(file))
        self._file[file] = digest(text.encode())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> CalibrationMonitor:
        """Load a monitor written by :meth:`save`.

        Parameters
        ----------
        path : str or path
            The file.

        Raises
        ------
        ValueError
            If the file is not a saved monitor, or is of another version.
        """
        try:
            content = Path(path).read_bytes()
            state = json.loads(content.decode())
            if not isinstance(state, dict) or state.get("format") != _FORMAT:
                raise ValueError(f"its format is not {_FORMAT!r}")
            notion = state["notion"]
            found = cls(
                notion=notion if isinstance(notion, str) else ClassSpecific(notion["class-specific"]),
                labels=state["labels"],
                pos_label=state["pos_label"],
                **{name: state[name] for name in _SETTINGS},
            )
            found._columns = bool(state["columns"])
            bets = found._bets
            bets.n_samples, bets.n_bets = int(state["n_samples"]), int(state["n_bets"])
            bets.log_e, bets.log_max = float(state["log_e"]), float(state["log_max"])
            bets.bettors = list(map(StartMixture.from_dict, state["bettors"]))
            found._history = [(int(n), float(value), read_time(*kind)) for n, value, *kind in state["history"]]
            found._times = RowTimes.from_list(state["times"])
            found._awaited = Awaited.from_dict(state["awaited"])
            found.past = list(state["past"])
            found._calibrator = None if state["calibrator"] is None else from_dict(state["calibrator"])
            if not (bets.log_max >= 0 and bets.log_e <= bets.log_max):
                raise ValueError("its numbers contradict each other")
            found._file = {os.path.realpath(path): digest(content)}
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            what = f"{type(error).__name__} {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"{path} is not a saved monitor: {without_middle(str(what), 150)}") from error
        return found

    def update(
        self, y_true: Any, y_prob: Any = None, *, time: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> TestResult:
        """Bet on further rows, in the order given, and return the result so far.

        ``groups`` identify dependent rows (see :func:`calibrant.as_predictions`): each group is one bet, placed at its
        first row, and a group seen in an earlier batch raises ValueError.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Predictions
            Observed labels of the batch; :class:`calibrant.Predictions` replace all arguments.
        y_prob : array-like of shape (n,) or (n, K)
            Their probabilities, predicted before the labels were known. A single row may be a label and a number.
        time : array-like of shape (n,), or one time, optional
            When labels were observed: dates, datetimes or numbers that do not decrease within or between batches.
        sample_weight : array-like of shape (n,), optional
            Weights, used as exponents of the bets; see :func:`calibrant.significance.evalue_test`.
        groups : array-like of shape (n,), optional
            The group of each row (see :func:`calibrant.as_predictions`): each group is one bet, placed at its first
            row, and a group seen in an earlier batch raises ValueError.
        """
        if sample_weight is None and groups is None and isinstance(y_prob, float) and isinstance(y_true, int):
            found = self._one(y_true, y_prob, time)
            if found is not None:
                return found
        if isinstance(y_prob, (int, float, np.number)) and not isinstance(y_true, Predictions):
            y_true, y_prob = [y_true], [y_prob]
        if self._calibrator is not None:
            if isinstance(y_true, Predictions):
                y_true = replace(y_true, probs=self._repaired(y_true.probs))
            else:
                y_prob = self._repaired(y_prob)
        n = y_true.n_given if isinstance(y_true, Predictions) else len(y_true) if hasattr(y_true, "__len__") else 0
        times, before = self._times.read(time, n), self._bets.n_bets
        result = self._update(y_true, y_prob, sample_weight, groups)
        if times:
            # Rows in groups, and those of weight 0, are no bets of their own: of their times the last one is known.
            alone = self._bets.n_bets - before == times[-1][0]
            self._times.keep([(before + n, t) for n, t in times] if alone else [(self._bets.n_bets, times[-1][1])])
        self._look()
        return result

    def _repaired(self, y_prob: Any) -> Any:
        """Probabilities after recalibration."""
        scores = np.asarray(y_prob, dtype=np.float64)
        after = np.asarray(self._calibrator.predict_proba(scores))
        return after[:, 1] if scores.ndim == 1 and after.ndim == 2 else after

    def _one(self, label: int, score: float, time: Any) -> TestResult | None:
        """Fast path for one binary row after the first batch; None if the row needs the general path."""
        bets = self._bets
        plain = (
            len(bets.bettors) == 1
            and not self._columns
            and tuple(self.labels or ()) == (0, 1)
            and self.pos_label == 1
            and self._groups is None
            and self._calibrator is None
            and not self.from_logits
            and 0.0 <= score <= 1.0
            and label in (0, 1)
            and isinstance(self.notion, str)
            and self.notion in ("auto", "class-specific")
        )
        if not plain:
            return None
        times = self._times.read(time, 1)
        bets.log_e = self._bettors[0].one(score, happened=bool(label))
        bets.log_max = max(bets.log_max, bets.log_e)
        bets.n_samples, bets.n_bets = bets.n_samples + 1, bets.n_bets + 1
        if times:
            self._times.keep([(bets.n_bets, times[-1][1])])
        self._look()
        return bets.result(_POSITIVE)

    def _look(self) -> None:
        """Store the e-value for plots, with the time of the last row."""
        self._history.append((self.n_samples, float(self._bets.log_e), self._times.last))
        if len(self._history) > _MOST_LOOKS:  # every other one, and the last
            self._history = self._history[1::2]

    def _update(self, y_true: Any, y_prob: Any, sample_weight: Any, groups: Any) -> TestResult:
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
        """Bet on predictions; ``keys`` are the hashes of their groups."""
        p = whole_outcomes(p, "a CalibrationMonitor")
        seen = keys if self._bets.n_bets == 0 else joined_groups(self._groups, keys)
        if self._columns and p.positive is not None:
            raise ValueError("y_prob must have one column per class, as in the first batch; got one column")
        found = self._bets.bet(p)
        # Nothing is kept of rows that were refused above.
        self._columns, self.labels = p.positive is None, p.classes
        self.pos_label = None if p.positive is None else p.classes[p.positive]
        self._groups = seen
        return found


_SETTINGS = ("horizon", "level", "sum_tolerance", "from_logits")
_POSITIVE = ClassSpecific()


def _written(value: float) -> float | str:
    """Convert a number to a value that JSON supports."""
    return value if np.isfinite(value) else str(value)

"""What a comparison of calibrators says in words: the choice, before and after, what is left, what rows can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data.digits import half_width, known
from ..measure.result import Estimate

if TYPE_CHECKING:
    from .comparison import CalibratorComparison, ComparedCalibrator

_SCORES = {"log-loss": "log-loss", "brier": "Brier score", "calibration": "calibration error"}
#: Standard errors within which a change is noise.
_NOISE = 2.0
#: Half the width of an interval from which rows are said to leave much open.
_WIDE = 0.02


def verdict_of(c: CalibratorComparison) -> tuple[str, ...]:
    """A few sentences; see :attr:`CalibratorComparison.verdict`."""
    row = c.row(c.chosen)
    parts = (_choice(c, row), _change(c, row), _gain(c, row), _trade(c, row), _rows(c))
    return tuple(part for part in parts if part)


def _choice(c: CalibratorComparison, row: ComparedCalibrator) -> str:
    score = _SCORES[c.goal]
    least = min(c.rows, key=lambda one: one.difference)
    above = f"({row.difference:.2g} ± {row.se:.2g} above {least.name})"
    if row.difference <= 0:
        why = f"its cross-validated {score} is the least"
    elif c.goal == "calibration":
        why = f"its cross-validated log-loss is the best of those whose {score} is about the least {above}"
    else:
        why = f"the simplest whose cross-validated {score} is within one standard error of the least {above}"
    return f"Leave the probabilities alone: {why}." if _alone(c) else f"Use {row.name}: {why}."


def _alone(c: CalibratorComparison) -> bool:
    return c.chosen == "identity"


def _change(c: CalibratorComparison, row: ComparedCalibrator) -> str:
    """Before and after, by what reports of these probabilities say."""
    before, after = None if c.before is None else c.before.headline, _after(c, row)
    if _alone(c):
        status = "evidence of miscalibration" if after.interval.low > 0 else "no evidence of miscalibration"
        return f"Their calibration error is {_with_interval(after)}: {status}."
    came = "" if before is None else f"from {known(before.value, _spread(before))} "
    end = "still miscalibrated" if after.interval.low > 0 else "no evidence of miscalibration is left"
    return f"Of rows held out the calibration error goes {came}to {_with_interval(after)}: {end}."


def _after(c: CalibratorComparison, row: ComparedCalibrator) -> Estimate:
    """Of the choice, with the interval of its report where there is one, whose test decides."""
    if _alone(c) and c.before is not None:
        return c.before.headline
    return c.after.headline if c.shown == c.chosen else row.error


def _gain(c: CalibratorComparison, row: ComparedCalibrator) -> str:
    """What the proper score gains, and whether that is more than noise."""
    score = _score(c)
    if _alone(c) or row.gain != row.gain:
        return ""
    said = _with_error(row.gain, row.gain_se)
    if abs(row.gain) <= _NOISE * row.gain_se:
        return f"The change of the {score} ({'−' if row.gain > 0 else '+'}{said}) is within its noise."
    return f"The {score} {'falls' if row.gain > 0 else 'rises'} by {said}."


def _trade(c: CalibratorComparison, row: ComparedCalibrator) -> str:
    """Who is better calibrated than the choice, if anybody is beyond doubt, and what that costs."""
    after = _after(c, row)
    better = [one for one in c.rows if one is not row and _beats(one.error, after)]
    if not better:
        again = "to repair" if _alone(c) else "to repair once more"
        return f"No other is better calibrated beyond doubt: {again} gains nothing." if after.interval.low > 0 else ""
    one = min(better, key=lambda other: other.error.value)
    noise = " (within its noise)" if abs(one.cost) <= _NOISE * one.cost_se else ""
    price = f"for {'+' if one.cost >= 0 else '−'}{_with_error(one.cost, one.cost_se)} {_score(c)}{noise}"
    how = "" if c.goal == "calibration" else f": the goal calibration ({c.asked.option('goal')}) weighs that"
    return f"{one.name} reaches {_with_interval(one.error)} {price}{how}."


def _beats(one: Estimate, other: Estimate) -> bool:
    """Each value lies outside of the other's interval; or at half the other's, which is evidence, there is none."""
    apart = one.interval.high < other.value and one.value < other.interval.low
    clear = other.interval.low > 0 and not one.interval.low > 0
    return apart or (clear and one.value <= other.value / 2)


def _rows(c: CalibratorComparison) -> str:
    """What so few rows leave open."""
    half = _spread(c.after.headline)
    if not half > _WIDE:
        return ""
    return f"{c.n_samples:,} rows leave the calibration error open by ± {half:.2g}: smaller gains need more rows."


def _score(c: CalibratorComparison) -> str:
    return _SCORES["log-loss" if c.goal == "calibration" else c.goal]


def _with_interval(one: Estimate) -> str:
    low, high = (known(end, _spread(one)) for end in one.interval)
    return f"{known(one.value, _spread(one))} ({low} to {high})"


def _spread(one: Estimate) -> float:
    return half_width(*one.interval)


def _with_error(value: float, se: float) -> str:
    return f"{known(abs(value), se)} ± {known(se, se)}"

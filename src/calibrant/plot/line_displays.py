"""Displays of lines on one axes: curves of models, a calibration belt, a test statistic and its null distribution."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from matplotlib.patches import Patch

from ..data.checks import check_type
from ..data.printing import equals
from ..decisions.clinical import decision_curve
from ..decisions.selective import risk_coverage
from ..scores.murphy import brier_curve, murphy_curve
from ..significance import TestResult
from ..significance.belt import CalibrationBelt, calibration_belt
from .base import Display, draw_grid, one_axes
from .fitting import draw_legend, is_small
from .style import IDENTITY_COLOR, STYLES, class_text, digits_of, percent_text, plain_text, plain_texts, style_of

#: With more curves than this the legend is next to the axes.
_MANY = 6
#: Coverage above which the risk axis contains the whole curve: below it, few rows give 0 or 1.
_SETTLED = 0.05
#: Extent of the net benefit axis below "treat none", as a share of that of the best curve above.
_BELOW = 0.25
#: Characters per line of the text below a belt, and maximum number of bars of a null distribution.
_WIDTH, _MOST_BINS = 72, 40


class CurveDisplay(Display):
    """Curves of one model, or of several named models, on one axes; subclasses define the rest.

    ``line`` names the attributes of a curve on the x and y axes, ``label`` is its entry in the legend, formatted with
    its name and the curve.
    """

    #: Name of a single curve in the legend.
    only: ClassVar[str] = "model"
    #: Function that makes a curve from labels and probabilities.
    curve_function: ClassVar[Callable[..., Any]]
    line: ClassVar[tuple[str, str]]
    label: ClassVar[str] = "{name}"
    axis_texts: ClassVar[tuple[str, str]]
    #: Width of a new figure in inches, and position of the legend of few curves.
    width: ClassVar[float] = 5.8
    legend: ClassVar[str] = "best"

    def __init__(self, curves: Mapping[str, Any]) -> None:
        if not curves:
            raise ValueError("curves must map names to curves, at least one; got none")
        self.curves = dict(curves)

    @classmethod
    def of(cls, result: Any) -> Self:
        """Create a display of the curve of one model."""
        if getattr(result, "display", None) != cls.__name__:
            raise TypeError(
                f"{cls.__name__} draws the result of {cls.curve_function.__name__}(); got {type(result).__name__}"
            )
        return cls({cls.only: result})

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any = None, *, ax: Any = None, **options: Any) -> Self:
        """Compute and draw the curves.

        Parameters
        ----------
        y_true : array-like, Predictions, or mapping of names to Predictions
            Observed labels; Predictions of one model, or of several, replace both arguments.
        y_prob : array-like, or mapping of names to array-likes, optional
            Probabilities of one model, or of several for the same rows.
        **options
            Passed to the function that makes a curve.
        """
        if y_prob is None and isinstance(y_true, Mapping):
            rows = {name: (predictions, None) for name, predictions in y_true.items()}
        else:
            several = y_prob if isinstance(y_prob, Mapping) else {cls.only: y_prob}
            rows = {name: (y_true, probs) for name, probs in several.items()}
        if not rows:
            raise ValueError("y_prob must hold the probabilities of at least one model; got none")
        drawn: Any = cls({str(name): cls.curve_function(*pair, **options) for name, pair in rows.items()})
        return cast(Self, drawn.plot(ax))

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or on a new figure."""
        many = len(self.curves) > _MANY
        ax = one_axes(ax, 8.0 if many else self.width, 4.2)
        curves = list(self.curves.values())
        self._draw_beside(ax, curves)
        for i, (name, curve) in enumerate(zip(plain_texts(self.curves), curves, strict=True)):
            style = style_of(i)
            x, y = (getattr(curve, of) for of in self.line)
            ax.plot(
                x,
                y,
                color=style.color,
                linestyle=style.linestyle,
                marker=style.marker if len(x) == 1 else None,
                linewidth=1.7,
                zorder=3,
                label=self.label.format(name=name.lstrip("_"), curve=curve, digits=_digits(curve)),
            )
            self._draw_with(ax, curve, style.color)
        ax.set(xlabel=self.axis_texts[0], ylabel=self.axis_texts[1])
        self._set_limits(ax, curves)
        if hasattr(curves[0], "label"):
            ax.set_title(f"Acting on {class_text(curves[0].label)}", fontsize=10)
        draw_grid(ax)
        outside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
        draw_legend(ax, *ax.get_legend_handles_labels(), **(outside if many else {"loc": self.legend}))
        return self._drawn(ax)

    def _draw_beside(self, ax: Any, curves: list[Any]) -> None:
        """Draw references for the curves."""

    def _draw_with(self, ax: Any, curve: Any, color: str) -> None:
        """Draw the rest of a curve, in addition to its line."""

    def _set_limits(self, ax: Any, curves: list[Any]) -> None:
        """Set the limits."""


class RiskCoverageDisplay(CurveDisplay):
    """Risk–coverage curves; lower is better.

    The dashed line is the risk of an uninformative confidence; with a single model, the dotted one is that of the
    best order of its rows, with all errors last.

    Attributes
    ----------
    curves : dict of str to RiskCoverage
        The curves, by the names of the models.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.decisions.risk_coverage : Computes a curve.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.RiskCoverageDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Coverage: share of rows accepted'
    """

    curve_function = staticmethod(risk_coverage)
    line = ("coverage", "risk")
    label = "{name}, AURC {curve.aurc:.3g}"
    axis_texts = ("Coverage: share of rows accepted", "Error rate of these rows")

    def _draw_beside(self, ax: Any, curves: list[Any]) -> None:
        if len(curves) == 1:
            error = curves[0].error_rate
            at = np.linspace(max(1 - error, 1e-9), 1, 101)
            best = np.append(0.0, at), np.append(0.0, 1 - (1 - error) / at)
            ax.plot(*best, color="0.5", linestyle=":", linewidth=1.3, zorder=2, label="best order")

    def _draw_with(self, ax: Any, curve: Any, color: str) -> None:
        ax.axhline(curve.error_rate, color=color, linestyle=(0, (4, 2)), linewidth=0.9, alpha=0.6, zorder=1)

    def _set_limits(self, ax: Any, curves: list[Any]) -> None:
        top = max(float(c.risk[c.coverage >= _SETTLED].max()) for c in curves)
        ax.set(xlim=(0, 1), ylim=(0, min(1.15 * top, 1.02) if top > 0 else 0.05))


class DecisionCurveDisplay(CurveDisplay):
    """Decision curves, with always acting and never acting for reference; higher is better.

    Net benefit decreases to minus infinity where many are treated at high thresholds, so the axis ends a quarter of its
    height below 0: curves that leave the axes there are worse than never acting.

    Attributes
    ----------
    curves : dict of str to DecisionCurve
        The curves, by the names of the models.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.decision_curve : Computes a curve.
    calibrant.plot.CostDisplay : The cost at every threshold, for given costs of errors.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.DecisionCurveDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Decision threshold'
    """

    curve_function = staticmethod(decision_curve)
    line = ("thresholds", "net_benefit")
    axis_texts = ("Decision threshold", "Net benefit")
    legend = "upper right"

    def _draw_beside(self, ax: Any, curves: list[Any]) -> None:
        always = curves[0].thresholds, curves[0].treat_all
        ax.axhline(0.0, color="0.45", linewidth=1.0, zorder=1, label="act never")
        ax.plot(*always, color="0.6", linestyle=(0, (4, 2)), linewidth=1.2, zorder=1.5, label="act always")

    def _set_limits(self, ax: Any, curves: list[Any]) -> None:
        top = max(float(np.max(v)) for v in (curves[0].treat_all, *(c.net_benefit for c in curves)))
        top = top if top > 0 else 0.05
        low, high = (float(end([end(c.thresholds) for c in curves])) for end in (np.min, np.max))
        margin = 0.03 * (high - low)
        whole = high - low > 0.8 or low == high  # most of it: all of it
        ax.set_xlim((0.0, 1.0) if whole else (max(low - margin, 0.0), min(high + margin, 1.0)))
        ax.set_ylim(-_BELOW * top, 1.06 * top)


class MurphyDisplay(CurveDisplay):
    """Murphy diagram: the mean elementary score against the decision threshold; lower is better.

    Attributes
    ----------
    curves : dict of str to MurphyCurve
        The curves, by the names of the models.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.scores.murphy_curve : Computes a curve.
    calibrant.plot.BrierCurveDisplay : The same, with the recalibrated scores.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.MurphyDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_xlabel()
    'Decision threshold'
    """

    only = "forecast"
    curve_function: ClassVar[Callable[..., Any]] = staticmethod(murphy_curve)
    line = ("thresholds", "scores")
    axis_texts = ("Decision threshold", "Mean elementary score")
    width = 5.4

    def _draw_beside(self, ax: Any, curves: list[Any]) -> None:
        x, base_rate = curves[0].thresholds, curves[0].base_rate
        ax.fill_between(x, base_rate, color="0.93", linewidth=0, zorder=0.5, label="better than the base rate")
        ax.plot(x, base_rate, color="0.6", linewidth=1.0, zorder=1, label="base rate")

    def _set_limits(self, ax: Any, curves: list[Any]) -> None:
        ax.set(xlim=(0, 1))
        ax.set_ylim(bottom=0)


class BrierCurveDisplay(MurphyDisplay):
    """Brier curves: expected loss against the cost proportion, with the Brier score as area below; lower is better.

    Thin lines are the same scores after isotonic recalibration, the least loss of any thresholds on these rows: the gap
    between the lines is the loss due to miscalibration at these costs.

    Attributes
    ----------
    curves : dict of str to BrierCurve
        The curves, by the names of the models.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.scores.brier_curve : Computes a curve.
    calibrant.plot.MurphyDisplay : The same at thresholds of your choice.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.plot.BrierCurveDisplay.from_predictions(y, {"model": p})
    >>> display.ax_.get_legend().get_texts()[2].get_text()
    'model: area 0.137'
    """

    only = "model"
    curve_function = staticmethod(brier_curve)
    label = "{name}: area {curve.brier_score:.{digits}f}"
    axis_texts = ("Cost proportion, and threshold", "Expected loss")
    recalibrated: bool = True

    def plot(self, ax: Any = None, *, recalibrated: bool = True) -> Self:
        """Draw on given axes, or on a new figure.

        Parameters
        ----------
        recalibrated : bool, default True
            Draw the recalibrated curves too.
        """
        self.recalibrated = recalibrated
        return super().plot(ax)

    def _draw_with(self, ax: Any, curve: Any, color: str) -> None:
        if self.recalibrated:
            text = f"recalibrated: area {curve.refinement:.{_digits(curve)}f}"
            ax.plot(curve.thresholds, curve.recalibrated, color=color, linewidth=0.9, zorder=2.5, label=text)


def _digits(curve: Any) -> int:
    """Decimals of areas under Brier curves."""
    return digits_of(curve.refinement, curve.brier_score) if hasattr(curve, "refinement") else 3


class CalibrationBeltDisplay(Display):
    """Calibration belt: its confidence levels (the widest is lightest), the diagonal, and where the belt excludes it.

    Attributes
    ----------
    belt : CalibrationBelt
        The belt.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.significance.calibration_belt : Computes the belt.
    calibrant.ReliabilityDisplay : A smooth curve with its band.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> display = cal.plot.CalibrationBeltDisplay.from_predictions(rng.random(500) < p, p)
    >>> display.ax_.get_ylabel()
    'Observed frequency'
    """

    def __init__(self, belt: CalibrationBelt) -> None:
        self.belt: CalibrationBelt = check_type("belt", belt, CalibrationBelt, "a CalibrationBelt")

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any = None, *, ax: Any = None, **options: Any
    ) -> CalibrationBeltDisplay:
        """Draw the belt.

        Parameters
        ----------
        y_true : array-like of shape (n,), or Predictions
            Observed labels; Predictions replace both arguments.
        y_prob : array-like of shape (n,) or (n, K)
            Predicted probabilities.
        **options
            Passed to :func:`calibrant.significance.calibration_belt`.
        """
        return cls(calibration_belt(y_true, y_prob, **options)).plot(ax)

    def plot(self, ax: Any = None) -> CalibrationBeltDisplay:
        """Draw on given axes, or on a new figure."""
        ax = one_axes(ax, 5.2, 5.6)
        belt, color = self.belt, style_of(0).color
        alpha = 1 - 0.45 ** (1 / len(belt.levels))  # the area of all levels is as dark for any number of them
        handles: list[Any] = []
        for i in reversed(range(len(belt.levels))):  # the widest first, so that the others lie on it
            ends = belt.lower[i], belt.upper[i]
            ax.fill_between(belt.scores, *ends, color=color, alpha=alpha, linewidth=0, zorder=2)
            seen = 1 - (1 - alpha) ** (len(handles) + 1)
            handles.append(Patch(color=color, alpha=seen, linewidth=0, label=f"{percent_text(belt.levels[i])} belt"))
        text = f"degree {belt.degree}"
        handles += ax.plot(belt.scores, belt.fitted, color=color, linewidth=1.4, zorder=3, label=text)
        ax.plot([0, 1], [0, 1], color=IDENTITY_COLOR, linewidth=1.0, linestyle=(0, (4, 3)), zorder=2.5)
        confidence = belt.label is None
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.set_xlabel("Confidence" if confidence else f"Predicted probability of {class_text(belt.label)}")
        ax.set_ylabel("Accuracy" if confidence else "Observed frequency")
        pvalue = "p < 0.001" if belt.pvalue < 0.001 else f"p = {belt.pvalue:.3f}"
        ax.set_title(f"{belt.n_samples:,} rows, test of calibration: {pvalue}", fontsize=10)
        draw_grid(ax)
        draw_legend(ax, handles, [str(handle.get_label()) for handle in handles])
        if not is_small(ax):
            place = {"transform": ax.transAxes, "ha": "center", "va": "top"}
            ax.text(0.5, -0.14, self.words, fontsize=8, color="0.25", linespacing=1.4, **place)
        return self._drawn(ax)

    @property
    def words(self) -> str:
        """Where each belt excludes the diagonal, one or more lines per level."""
        texts = [f"{percent_text(level)} belt: {self.belt.where(level)}" for level in self.belt.levels]
        return "\n".join(line for text in texts for line in textwrap.wrap(text, _WIDTH))


class NullDistributionDisplay(Display):
    """Test statistic (line) and its distribution under calibration: draws, or chi-squared.

    The part at least as large as the statistic, whose share is the p-value, is darker (Silva Filho et al. 2023, Figure
    21).

    Attributes
    ----------
    result : TestResult
        The result of the test.
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.calibration_test : A test that has draws.
    calibrant.significance.TestResult : Its ``plot()`` makes this display.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> display = cal.calibration_test(rng.random(200) < p, p, random_state=0).plot()
    >>> display.ax_.get_xlabel()
    'statistic under calibration, 999 draws'
    """

    def __init__(self, result: TestResult) -> None:
        self.result: TestResult = check_type("result", result, TestResult, "a TestResult")
        if result.draws is None and result.df is None:
            raise ValueError(f"this test has neither draws nor a chi-squared distribution to show: {result.name}")
        if not np.isfinite(result.statistic):
            raise ValueError(f"the statistic is {result.statistic}: there is nothing to compare with the draws")

    def plot(self, ax: Any = None) -> NullDistributionDisplay:
        """Draw on given axes, or on a new figure."""
        r = self.result
        ax = one_axes(ax, 5.4, 4.2)
        (self._draw_chi_squared if r.draws is None else self._draw_draws)(ax, STYLES[0].color)
        ax.axvline(r.statistic, color="0.15", linewidth=1.6)
        ax.margins(y=0.12)
        ax.set_ylim(bottom=0)
        left = r.statistic > np.mean(ax.get_xlim())
        ax.annotate(
            f"observed: {r.statistic:.3g}\np {equals(r.pvalue, r.least_pvalue)}",
            (r.statistic, 0.97),
            xycoords=ax.get_xaxis_transform(),
            xytext=(-6 if left else 6, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
            bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5},
        )
        # The name of the estimator or test, without parameters and draws.
        ax.set_title(plain_text(re.sub(r"\(\w+=.*?\)|, \d.*", "", r.name), 60), fontsize=10)
        return self._drawn(ax)

    def _draw_draws(self, ax: Any, color: str) -> None:
        """Draw bars, with an edge at the statistic, so that whole bars lie beyond it."""
        statistic, draws = self.result.statistic, np.asarray(self.result.draws)
        known = draws[np.isfinite(draws)]
        low, high = min(known.min(), statistic), max(known.max(), statistic)
        step = (high - low) / int(np.clip(np.sqrt(known.size) * 1.5, 5, _MOST_BINS)) or 1.0
        first, last = np.ceil((statistic - low) / step), np.ceil((high - statistic) / step)
        edges = statistic + step * np.arange(-first, last + 1)
        counts = np.histogram(known, edges)[0] if len(edges) > 1 else np.array([])
        beyond = edges[:-1] >= statistic - 1e-9 * step
        for part, alpha in ((~beyond, 0.35), (beyond, 0.9)):
            ax.bar(edges[:-1][part], counts[part], step, align="edge", color=color, alpha=alpha, linewidth=0)
        ax.set_xlabel(f"statistic under calibration, {draws.size:,} draws")
        ax.set_ylabel("draws")

    def _draw_chi_squared(self, ax: Any, color: str) -> None:
        from scipy.stats import chi2

        statistic, df = self.result.statistic, float(self.result.df or 1)
        x = np.linspace(0, max(chi2.ppf(0.999, df), 1.1 * statistic), 400)[1:]
        density = chi2.pdf(x, df)
        ax.plot(x, density, color=color)
        ax.fill_between(x, density, color=color, alpha=0.2, linewidth=0)
        ax.fill_between(x, density, where=x >= statistic, color=color, alpha=0.8, linewidth=0)
        ax.set_xlabel(f"statistic under calibration: chi-squared, df {df:g}")
        ax.set_ylabel("density")

"""`CalibrationMapDisplay`: maps of calibrators, over the reliability diagram of the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..calibrators.base import Calibrator, in_column_order, predict_unnamed
from ..data.checks import check_names
from ..data.public_function import public_function
from ..data.types import FloatArray, RandomState
from .axes import is_own, points_from, strip_of
from .base import Display, draw_grid, one_axes
from .figure import arrange_single
from .fitting import draw_legend, strip_below
from .panels import BELOW
from .reliability_display import ReliabilityDisplay
from .style import IDENTITY_COLOR, STYLES, font_scale, plain_texts, style_of

_NODES = 2001
_TRUE, _PERFECT = "true map", "perfect calibration"
#: The dark grey of the scores' own diagram leaves the colours to the maps.
_OWN = "0.25"
_DARK = 4  # the style that looks like it, which no map gets then


class CalibrationMapDisplay(Display):
    """Calibration maps: calibrated probability (vertical) against the score (horizontal).

    Where a map passes through the bins of the reliability diagram, it recalibrates the scores; where it does not, it is
    not flexible enough, or was fitted to too few rows. Build one with :meth:`from_calibrators`.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Scores at which the maps are drawn.
    maps : dict of str to ndarray of shape (m,)
        The maps, by the names of the calibrators.
    intervals : dict of str to ndarray of shape (m, 2)
        Intervals of calibrators that have one: :class:`calibrant.calibrators.VennAbers`.
    truth : ndarray of shape (m,) or None
        The true map, if it is known.
    diagram : ReliabilityDisplay or None
        The diagram of the scores themselves.
    ax_, figure_ : Axes, Figure
        The axes and the figure, once drawn.

    See Also
    --------
    calibrant.plot.SimplexMapDisplay : The map of a calibrator of three classes.
    calibrant.compare_calibrators : Compare calibrators by scores and calibration errors.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from calibrant.calibrators import BetaCalibration, IsotonicCalibrator
    >>> from calibrant.datasets import make_scores
    >>> data = make_scores(500, "overconfident", random_state=0)
    >>> fitted = [c.fit(data.y_prob, data.y_true) for c in (BetaCalibration(), IsotonicCalibrator())]
    >>> display = cal.plot.CalibrationMapDisplay.from_calibrators(fitted, data.y_true, data.y_prob)
    >>> list(display.maps)
    ['BetaCalibration', 'IsotonicCalibrator']
    """

    def __init__(
        self,
        scores: FloatArray,
        maps: Mapping[str, FloatArray],
        *,
        intervals: Mapping[str, FloatArray] | None = None,
        truth: FloatArray | None = None,
        diagram: ReliabilityDisplay | None = None,
    ) -> None:
        self.scores = scores
        self.maps = dict(maps)
        self.intervals = dict(intervals or {})
        self.truth = truth
        self.diagram = diagram

    @classmethod
    @public_function()
    def from_calibrators(
        cls,
        calibrators: Any,
        y_true: Any = None,
        scores: Any = None,
        *,
        truth: Callable[[FloatArray], Any] | None = None,
        sample_weight: Any = None,
        ax: Any = None,
        histogram: str | None = "auto",
        legend: bool = True,
        random_state: RandomState = 0,
    ) -> CalibrationMapDisplay:
        """Draw the maps of fitted calibrators.

        Parameters
        ----------
        calibrators : calibrator, sequence of them, or mapping of names to them
            Fitted calibrators of two classes and 1-D probabilities.
        y_true, scores, sample_weight : optional
            Labels and 1-D probabilities whose reliability diagram is drawn below the maps.
        truth : callable, optional
            ``P(second class | score)`` for an array of scores, if it is known.
        histogram : {"auto", "inside", "below", "above", None}, default "auto"
            Position of the histogram of the scores; see :meth:`ReliabilityDisplay.plot`.
        legend : bool, default True
            Whether to draw a legend.
        random_state : int, Generator or None, default 0
            Seed or generator of the diagram's band.

        Raises
        ------
        TypeError, ValueError
            If a calibrator is not fitted or not for 1-D probabilities, or if labels are passed without scores.
        """
        named = _named(calibrators)
        nodes = np.linspace(0, 1, _NODES)
        maps, intervals = {}, {}
        for name, one in named.items():
            pair = np.column_stack([1 - nodes, nodes])
            scores_of = nodes if one.n_features_in_ == 1 else in_column_order(one, pair)
            maps[name] = predict_unnamed(one, scores_of)[:, 1]
            if one._draws_interval:
                intervals[name] = np.asarray(predict_unnamed(one, scores_of, "predict_interval"))
        if (y_true is None) != (scores is None):
            raise ValueError("y_true and scores must be passed together: the diagram of the scores needs both")
        diagram = None
        if y_true is not None:
            labels = list(next(iter(named.values())).classes_)
            diagram = ReliabilityDisplay.from_predictions(
                y_true,
                scores,
                labels=labels,
                pos_label=labels[1],
                sample_weight=sample_weight,
                ax=ax,
                histogram=histogram,
                legend=legend,
                random_state=random_state,
                name="scores",
                line_kwargs={"color": _OWN, "linewidth": 1.2},
            )
        known = None if truth is None else np.asarray(truth(nodes), dtype=np.float64)
        return cls(nodes, maps, intervals=intervals, truth=known, diagram=diagram).plot(ax, legend=legend)

    def plot(self, ax: Any = None, *, legend: bool = True) -> CalibrationMapDisplay:
        """Draw the maps on the diagram's axes, or on given or new ones.

        Parameters
        ----------
        legend : bool, default True
            Whether to draw a legend.
        """
        panel = one_axes(ax, 4.8, 4.8) if self.diagram is None else self.diagram.ax_
        if self.diagram is None:
            panel.plot([0, 1], [0, 1], color=IDENTITY_COLOR, linewidth=1.1, zorder=1.5, label=_PERFECT)
            panel.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal", xlabel="Score", ylabel="Probability")
            draw_grid(panel)
        if self.truth is not None:
            panel.plot(self.scores, self.truth, color="black", linewidth=3.2, alpha=0.28, zorder=5.5, label=_TRUE)
        texts = plain_texts(self.maps)
        for i, (name, values) in enumerate(self.maps.items()):
            style = style_of(i if self.diagram is None or i < _DARK else i + 1 + (i - _DARK) // (len(STYLES) - 1))
            look: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle, "linewidth": 1.8}
            if name in self.intervals:
                ends = self.intervals[name].T
                panel.fill_between(self.scores, *ends, color=style.color, alpha=0.25, linewidth=0, zorder=5.6)
            panel.plot(self.scores, values, zorder=6, label=texts[i].lstrip("_"), **look)
        self.ax_, self.figure_ = panel, panel.figure
        if legend:
            self._legend()
        return self if is_own(self.figure_) else self._drawn(panel)

    def _legend(self) -> None:
        """Draw the entries of the diagram, then those of truth and maps."""
        present = self.ax_.get_legend()
        handles = [] if present is None else list(present.legend_handles)
        texts = [] if present is None else [text.get_text() for text in present.get_texts()]
        names = {_TRUE, _PERFECT, *(text.lstrip("_") for text in plain_texts(self.maps))}
        lines = [line for line in self.ax_.lines if str(line.get_label()) in names]
        handles += lines
        texts += [str(line.get_label()) for line in lines]
        if self.diagram is None or not is_own(self.figure_):
            draw_legend(self.ax_, handles, texts)
            return
        place = {"loc": "upper left", "frameon": False, "ncols": 2, "columnspacing": 1.2, "fontsize": 8}
        anchor = {
            "bbox_to_anchor": (0.02, -BELOW * font_scale()),
            "bbox_transform": points_from(self.ax_, 0.0, across_figure=True),
        }
        self.ax_.legend(handles, texts, handlelength=2.2, alignment="left", **place, **anchor)
        arrange_single(self.figure_, self.ax_, strip=strip_of(self.ax_) is not None and strip_below(self.ax_) is None)


def _named(calibrators: Any) -> dict[str, Calibrator]:
    """Check the ``calibrators`` argument."""
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(calibrators, Mapping):
        named: dict[str, Any] = {}
        for one in [calibrators] if isinstance(calibrators, Calibrator) else calibrators:
            name = type(one).__name__
            same = sum(key == name or key.startswith(f"{name} ") for key in named)
            named[name if not same else f"{name} {same + 1}"] = one
        calibrators = named
    if not calibrators:
        raise ValueError("calibrators must hold at least one fitted calibrator; got none")
    found = check_names("calibrators", calibrators, Calibrator, "fitted calibrators of this package")
    for name, one in found.items():
        check_is_fitted(one)
        if len(one.classes_) != 2:
            raise ValueError(
                f"a calibration map needs a calibrator of two classes; {name!r} has {len(one.classes_)}: "
                "use SimplexMapDisplay for three"
            )
        if one.input != "probability":
            raise ValueError(f"a calibration map is drawn over probabilities; {name!r} takes input={one.input!r}")
    return found

"""What displays have in common: they hold a result that is at hand, and draw it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, cast

from .response import each_model
from .style import GRID_COLOR, Style, plain_text, style_of

#: With more curves than these the legend stands beside the axes.
_MANY = 6


class Display:
    """Base of displays. A subclass holds what it draws, and defines ``plot``."""

    #: Whether the figure's size follows from what is drawn, so that it cannot be drawn on given axes.
    sizes_its_figure: ClassVar[bool] = False

    @classmethod
    def of(cls, result: Any) -> Self:
        """Hold a result; nothing is drawn."""
        kind: Any = cls  # each display says what it holds
        return cast(Self, kind(result))

    @classmethod
    def from_result(cls, result: Any, ax: Any = None, **options: Any) -> Self:
        """Draw a result that is at hand; what ``result.plot()`` does.

        Parameters
        ----------
        result
            What the display draws.
        ax : Axes, optional
            Where to draw; default a new figure.
        **options
            Passed to :meth:`plot`.
        """
        if ax is not None and cls.sizes_its_figure:
            raise TypeError(
                f"{cls.__name__} draws on a figure of its own, whose size follows from what it shows: omit ax"
            )
        drawn: Any = cls.of(result)
        return cast(Self, drawn.plot(*(() if ax is None else (ax,)), **options))


class CurveDisplay(Display, ABC):
    """Curves of one model, or of several by their names, on one axes."""

    #: What one curve is called in the legend, where it has no name.
    only: ClassVar[str]
    #: What makes a curve of labels and probabilities.
    made_by: ClassVar[Callable[..., Any]]
    axis_texts: ClassVar[tuple[str, str]]
    #: Width of a new figure in inches, and where the legend of few curves stands.
    width: ClassVar[float] = 5.8
    legend: ClassVar[str] = "best"
    ax_: Any
    figure_: Any

    def __init__(self, curves: Mapping[str, Any]) -> None:
        if not curves:
            raise ValueError("curves must hold at least one curve, by its name; got none")
        self.curves = dict(curves)

    @classmethod
    def of(cls, result: Any) -> Self:
        """Hold the curve of one model."""
        if getattr(result, "display", None) != cls.__name__:
            raise TypeError(f"{cls.__name__} draws what {cls.made_by.__name__}() gives; got {type(result).__name__}")
        return cls({cls.only: result})

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any = None, *, ax: Any = None, **options: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        y_true : array-like, Predictions, or mapping of names to Predictions
        y_prob : array-like, or mapping of names to array-likes, optional
            Probabilities of one model, or of several for the same rows.
        ax : Axes, optional
        **options
            Passed to the function that makes a curve.
        """
        several = each_model(y_true, y_prob, cls.only)
        drawn: Any = cls({str(name): cls.made_by(*rows, **options) for name, rows in several.items()})
        return cast(Self, drawn.plot(ax))

    def plot(self, ax: Any = None) -> Self:
        """Draw on given axes, or on a new figure."""
        import matplotlib.pyplot as plt

        many = len(self.curves) > _MANY
        if ax is None:
            ax = plt.subplots(figsize=(8.0 if many else self.width, 4.2), layout="constrained")[1]
        self._draw_beside(ax)
        for i, (name, curve) in enumerate(self.curves.items()):
            self._draw_curve(ax, plain_text(name).lstrip("_"), curve, style_of(i))
        ax.set(xlabel=self.axis_texts[0], ylabel=self.axis_texts[1])
        self._set_limits(ax)
        ax.grid(color=GRID_COLOR, linewidth=0.8)
        ax.set_axisbelow(True)
        outside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
        ax.legend(fontsize=8, framealpha=0.85, **(outside if many else {"loc": self.legend}))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_beside(self, ax: Any) -> None:
        """What curves are compared with."""

    @abstractmethod
    def _draw_curve(self, ax: Any, name: str, curve: Any, style: Style) -> None:
        """One curve, with its entry in the legend."""

    def _set_limits(self, ax: Any) -> None:
        """Limits, and a title."""

    def _draw_line(self, ax: Any, x: Any, y: Any, style: Style, name: str) -> None:
        """A curve; of a single point its marker."""
        ax.plot(
            x,
            y,
            color=style.color,
            linestyle=style.linestyle,
            marker=style.marker if len(x) == 1 else None,
            linewidth=1.7,
            zorder=3,
            label=name,
        )

"""`ReliabilityDisplay`: reliability diagrams in the style of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Unpack, cast

import numpy as np

from ..data.checks import check_bool, is_auto, received
from ..data.docs import document
from ..data.labels import check_label
from ..data.notebook import for_page
from ..data.public_function import InputOptions, public_function
from ..data.types import Label, RandomState
from ..data.validation import as_predictions
from ..data.writing import write_page
from ..estimators import Binned, CellEstimator, Estimator, Isotonic
from ..measure.result import Estimate
from ..notions import ClassSpecific, Notion
from .axes import claim, classes_on, given_axes, is_own, match, new_axes, panels_of, place_of
from .base import Display
from .diagram import Diagram, diagrams_at_hand, diagrams_of, page_of_diagrams, rest_in_words
from .figure import arrange_grid, arrange_single
from .fitting import fit
from .panels import draw_panel
from .scale import check_scale
from .style import class_texts, plain_text


class ReliabilityDisplay(Display):
    """Reliability diagram: observed frequency over predicted probability, with the calibration error.

    Build one with :meth:`from_predictions` or :meth:`from_estimator`. The object stores only data; :meth:`plot`
    draws them and computes nothing.

    Parameters
    ----------
    diagrams : sequence of Diagram
        One per panel, worst first.
    estimate : Estimate or None
        Overall calibration error with its interval; None if unknown.
    name : str, optional
        Name of the model in the legend.

    Attributes
    ----------
    diagrams : tuple of Diagram
        Curves, bins, histograms and estimates as drawn.
    estimate : Estimate or None
        Overall calibration error with its interval.
    name : str or None
        Name of the model.
    ax_ : Axes, or ndarray of Axes
        The axes drawn on; an array if there are several panels. Pass it as ``ax`` to another display.
    axes_ : ndarray of Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    See Also
    --------
    calibrant.reliability_curve : The curve as numbers.
    calibrant.report : Its ``plot()`` makes this display.
    calibrant.plot.CalibrationMapDisplay : Maps of calibrators on the diagram.

    Examples
    --------
    >>> import calibrant as cal
    >>> import matplotlib; matplotlib.use("Agg")
    >>> y, p = [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]
    >>> display = cal.ReliabilityDisplay.from_predictions(y, p, name="model", random_state=0)
    >>> display.ax_.get_xlabel()
    'Predicted probability of class 1'
    """

    def __init__(self, diagrams: Sequence[Diagram], estimate: Estimate | None, *, name: str | None = None) -> None:
        if not diagrams:
            raise ValueError("diagrams must hold at least one Diagram; got none")
        self.diagrams = tuple(diagrams)
        self.estimate = estimate
        self.name = name

    @property
    def classes(self) -> tuple[Label, ...]:
        """Classes of the panels, in the order drawn; ``(None,)`` for a confidence diagram."""
        return tuple(d.label for d in self.diagrams)

    @property
    def summary(self) -> str:
        """One sentence on the classes that have no panel; empty when every class has one."""
        return "" if self.estimate is None else rest_in_words(self.estimate, self.classes)

    @classmethod
    def of(cls, result: Any, classes: Sequence[Label] | None = None) -> ReliabilityDisplay:
        """Create a display of a result without drawing it; raise ValueError if it has no curve.

        Parameters
        ----------
        result : Estimate, ReliabilityCurve, Report or Accumulator
            The result to draw.
        classes : sequence of labels, optional
            The :attr:`classes` of another display, whose panels a report is to be added to.
        """
        return cls(*diagrams_at_hand(result, classes))

    @classmethod
    @public_function(grouped=True)
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any = None,
        *,
        notion: str | Notion = "auto",
        estimator: str | Estimator = "auto",
        curve: str | CellEstimator | Isotonic = "auto",
        band: str = "confidence",
        bins: Any = "auto",
        n_bins: int | None = None,
        strategy: str | None = None,
        classes: Sequence[Label] | None = None,
        level: float = 0.95,
        n_resamples: int = 400,
        name: str | None = None,
        ref_line: bool = True,
        ax: Any = None,
        random_state: RandomState = 0,
        scale: str | None = None,
        histogram: str | None = "auto",
        legend: bool = True,
        color: Any = None,
        title: str | None = None,
        line_kwargs: Mapping[str, Any] | None = None,
        **inputs: Unpack[InputOptions],
    ) -> ReliabilityDisplay:
        """Draw the diagram of labels and probabilities.

        Parameters
        ----------
        notion : str or Notion, default "auto"
            The notion of calibration: by default the positive class for a 1-D ``y_prob``, else the confidence.
            ``"classwise"`` and ``"top-label"`` draw one panel per class, at most nine, largest error first.
        estimator : "auto", str or Estimator, default "auto"
            Estimator of the number in the legend. ``"auto"``: that of :func:`calibrant.estimate`, or ``curve`` where
            it is ``"binned"`` or an estimator.
        curve : {"auto", "adaptive", "residual", "density", "binned", "isotonic"} or an estimator, default "auto"
            How the curve is estimated; see :func:`calibrant.reliability_curve`, whose default is the same.
            ``"isotonic"`` is the CORP diagram.
        band : {"confidence", "consistency", "simultaneous", "clopper-pearson"}, default "confidence"
            Meaning of band and bars. They cover, in this order: the true frequency at each score; curve and bins of a
            calibrated model (around the diagonal); the true frequency at all scores simultaneously; the same as the
            first, by exact intervals of the bins instead of Wilson's. See :func:`calibrant.reliability_curve`.
        bins : "auto", int, Binned or None, default "auto"
            Bins drawn with the curve, as markers whose area shows the number of samples, with intervals.
            ``"auto"``: ten bins over the domain, of equal width, or of equal mass on probability paper (fewer below 100
            samples), or those of ``curve``.
        n_bins, strategy : int and {"uniform", "quantile"}, optional
            Draw the curve of scikit-learn's ``CalibrationDisplay`` instead of ``curve``: the observed frequency of each
            of ``n_bins`` bins (default 5), of equal width (the default) or mass, against its mean score.
        classes : sequence of labels, optional
            Classes to draw, in this order, instead of the worst ones. On axes that already show classes, the same
            classes are drawn.
        n_resamples : int, default 400
            Number of resamples for the band and the interval.
        name : str, optional
            Name of the model.
        ax : Axes or array of Axes, optional
            Axes to draw on; if they have a diagram, the model is added to it. Default: a new figure.
        random_state : int, Generator or None, default 0
            Seed or generator of the draws. The error and its interval are those of ``calibrant.estimate`` with the
            same ``random_state``.

        Returns
        -------
        ReliabilityDisplay
            The display, drawn.

        Raises
        ------
        ValueError, TypeError
            For invalid input; for the canonical notion, which has no curve.
        """
        if n_bins is not None or strategy is not None:
            if not is_auto(curve):
                raise ValueError(f"n_bins and strategy must not be given together with curve; got {received(curve)}")
            curve = Binned(5 if n_bins is None else n_bins, "uniform" if strategy is None else strategy)
        predictions = as_predictions(y_true, y_prob, **inputs)
        diagrams, total = diagrams_of(
            predictions,
            notion=notion,
            estimator=estimator,
            curve=curve,
            band=band,
            bins=bins,
            classes=classes_on(ax) if classes is None else classes,
            level=level,
            n_resamples=n_resamples,
            random_state=random_state,
            paper=check_scale(scale, ax),
        )
        look = {"histogram": histogram, "legend": legend, "color": color, "title": title, "line_kwargs": line_kwargs}
        return cls(diagrams, total, name=name).plot(ax, scale=scale, ref_line=ref_line, **look)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        notion: str | Notion = "auto",
        pos_label: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Draw the diagram of a fitted classifier on test data.

        Parameters
        ----------
        estimator : fitted classifier
            Classifier with ``predict_proba`` and ``classes_``.
        X, y : array-like
            Test data, not the training data.
        notion : str or Notion, default "auto"
            ``"auto"``: the positive class of a binary classifier, else the confidence.
        pos_label : label, optional
            Positive class of a binary classifier; default ``classes_[1]``.
        name : str, optional
            Name of the model; default: the name of the estimator's class.
        **options
            Other arguments of :meth:`from_predictions` and :meth:`plot`.

        Returns
        -------
        ReliabilityDisplay

        Examples
        --------
        >>> import calibrant as cal
        >>> import matplotlib; matplotlib.use("Agg")
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = GaussianNB().fit(X[::2], y[::2])
        >>> display = cal.ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], random_state=0)
        >>> display.name
        'GaussianNB'
        """
        y_prob, labels, positive = _response_of(estimator, X, notion, pos_label)
        return cls.from_predictions(
            y,
            y_prob,
            notion=notion,
            labels=labels,
            pos_label=positive,
            name=type(estimator).__name__ if name is None else name,
            **options,
        )

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the diagram as an interactive, self-contained part of a web page; needs the extra ``html``.

        It is the diagram of the report's page (:meth:`Report.to_html`), with a menu of the panels. Paste one or several
        into any page, or open the file as it is. It has a light and a dark mode, its style and script are confined to
        it, names are escaped, and nothing is loaded.

        Parameters
        ----------
        path : path, optional
            File to write as well; it is written completely or not at all.

        Returns
        -------
        str
        """
        with for_page():
            still = type(self)(self.diagrams[:1], self.estimate, name=self.name).plot().to_svg()
        return write_page(page_of_diagrams(self.diagrams, self.estimate, self.name, still), path)

    @public_function()
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        scale: str | None = None,
        histogram: str | None = "auto",
        legend: bool = True,
        color: Any = None,
        title: str | None = None,
        line_kwargs: Mapping[str, Any] | None = None,
        ref_line: bool = True,
    ) -> ReliabilityDisplay:
        """Draw the diagrams.

        Parameters
        ----------
        ax : Axes or array of Axes, optional
            Axes to draw on. If they have a diagram, the model is added in the next style. A single axes is divided if
            there are several panels. Default: a new figure.
        name : str, optional
            Name of the model; default :attr:`name`.
        scale : {"linear", "logit", "probit"}, optional
            Scale of both axes. Probability paper (``"logit"``, ``"probit"``) spreads the ends near 0 and 1, to
            distinguish small probabilities; it runs from .001 to .999, or as far as 1e-6 and 1 - 1e-6 if scores or bins
            lie further out. Bins beyond its ends, such as 0 or 1, are arrowheads on the edge, where band and bars end
            too, and the histogram's end bars contain the scores beyond. A smooth curve is flat within its bandwidth of
            the ends: rely on the bins or ``curve="isotonic"``. Default: that of the axes, else ``"linear"``.
        histogram : {"auto", "inside", "below", "above", None}, default "auto"
            Position of the histogram of scores: along the lower edge inside the axes, below them within the space that
            the axes had, above them (outside that space), or none. ``"auto"``: inside given axes, whose titles and
            neighbours stay unchanged, if their shorter side is at least 200 points; above in a new figure.
        legend : bool, default True
            Whether to draw a legend.
        color : matplotlib colour, optional
            Colour of curve, band and bins; default: the next of calibrant's colours.
        title : str, optional
            Title of the axes, or of the figure if it has several panels.
        line_kwargs : mapping, optional
            Properties of the curve's line; ``color``, ``linestyle`` and ``marker`` also apply to its band and bins.
        ref_line : bool, default True
            Whether to draw the diagonal of perfect calibration.

        Returns
        -------
        ReliabilityDisplay
            The display, with ``ax_``, ``axes_`` and ``figure_`` set.
        """
        check_scale(scale, ax)
        name = self.name if name is None else name
        n = len(self.diagrams)
        axes = new_axes(n) if ax is None else given_axes(ax, n)
        pairs = match(axes, self.classes)
        several = len(pairs) > 1
        names = class_texts(self.classes, notion=self.diagrams[0].notion)
        for panel, i in pairs:
            draw_panel(
                panel,
                self.diagrams[i],
                name=name,
                histogram=histogram,
                legend=legend,
                small=several and is_own(panel.figure),
                below=is_own(panel.figure),
                options={**({} if color is None else {"color": color}), **(line_kwargs or {})},
                scale=scale,
                ref_line=check_bool("ref_line", ref_line),
            )
            claim(panel, self.diagrams[i].label)
            if several:
                panel.set_title(names[i], fontsize=9)
        self.axes_ = np.array([panel for panel, _ in pairs], dtype=object)
        self.figure_ = self.axes_[0].figure
        if not is_own(self.figure_):
            fit(*self.axes_)
        self.ax_ = self.axes_ if several else self.axes_[0]
        if title is not None:
            (self.figure_.suptitle if several else self.ax_.set_title)(plain_text(title, 200))
        if is_own(self.figure_) and several:
            key = self.diagrams[0]
            arrange_grid(self.figure_, panels_of(self.figure_), key, self.estimate, name, self.summary, legend=legend)
        elif is_own(self.figure_) and len(self.figure_.axes) == 1:
            arrange_single(self.figure_, self.ax_, strip=place_of(histogram, self.ax_) == "above")
        return self


document(cast(Any, ReliabilityDisplay.from_predictions).__func__, ReliabilityDisplay.plot)


def _response_of(estimator: Any, X: Any, notion: str | Notion, pos_label: Label) -> tuple[Any, list[Label], Label]:
    """Probabilities, labels and positive label of a classifier, as scikit-learn's displays choose them.

    For a binary classifier and a notion of one class, the probability of ``pos_label`` (default ``classes_[1]``);
    otherwise the matrix.
    """
    predict = getattr(estimator, "predict_proba", None)
    classes = getattr(estimator, "classes_", None)
    if predict is None or classes is None:
        missing = "predict_proba" if predict is None else "classes_ (is it fitted?)"
        raise TypeError(f"estimator must be a fitted classifier with predict_proba; {estimator!r} has no {missing}")
    labels = [c.item() if isinstance(c, np.generic) else c for c in classes]
    if pos_label is not None:
        check_label("pos_label", pos_label, labels)
    matrix = np.asarray(predict(X))
    one_class = notion in ("auto", "class-specific", ClassSpecific())
    if len(labels) == 2 and one_class:
        positive = labels[1] if pos_label is None else pos_label
        return matrix[:, labels.index(positive)], labels, positive
    if pos_label is not None:
        raise ValueError(
            f"pos_label is for one class of a binary classifier (got notion={str(notion)!r}, {len(labels)} classes): "
            "use notion=ClassSpecific(label)"
        )
    return matrix, labels, None

"""Scales of a reliability diagram's axes: linear, or probability paper, which spreads the ends near 0 and 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from scipy.special import expit, logit, ndtr, ndtri

from ..data.checks import check_choice
from ..data.types import FloatArray

#: Limits next to 0 and 1, for values that have no position on paper.
_NEXT = 1e-12
#: Ends of paper: the first, or further out if scores or bins lie there.
_ENDS = (1e-3, 1e-4, 1e-5, 1e-6)
#: Share of the scores that may lie beyond the ends.
_BEYOND = 0.005
#: Ticks of paper up to one half, those that matter most first.
_TICKS = (0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6, 0.25, 0.05, 0.4)
#: Minimum distance in points between two ticks, and on small panels.
_BETWEEN = {False: 36.0, True: 26.0}
#: Number of points of a finer line: between two points of a curve, and in total.
_FINER, _IN_ALL = 24, 8000


@dataclass(frozen=True)
class Scale:
    """Mapping of probabilities to positions along an axis.

    Attributes
    ----------
    name : str
    forward, inverse : callable
        From probabilities to positions, and back.
    step, reach : float
        Width of a histogram's bar in positions, and the position up to which there are bars; 0 for the linear scale.
    """

    name: str
    forward: Callable[[FloatArray], FloatArray]
    inverse: Callable[[FloatArray], FloatArray]
    step: float = 0.0
    reach: float = 0.0

    @property
    def is_paper(self) -> bool:
        """Whether 0 and 1 have no position."""
        return self.step > 0

    def places(self, p: Any) -> FloatArray:
        """Positions of probabilities; those of 0 and 1 are far out, but finite."""
        return self.forward(np.clip(np.asarray(p, dtype=np.float64), _NEXT, 1 - _NEXT))

    def cuts(self, domain: tuple[float, float]) -> FloatArray:
        """Edges of a histogram's bars of equal width on paper, and the domain's ends."""
        half = round(self.reach / self.step)
        inner = self.inverse(self.step * np.arange(-half, half + 1))
        return np.concatenate([domain[:1], inner[(inner > domain[0]) & (inner < domain[1])], domain[1:]])


def _identity(p: FloatArray) -> FloatArray:
    return p


SCALES = {
    scale.name: scale
    for scale in (
        Scale("linear", _identity, _identity),
        Scale("logit", logit, expit, step=0.25, reach=14.0),
        Scale("probit", ndtri, ndtr, step=0.1, reach=4.8),
    )
}
PAPERS = tuple(name for name, scale in SCALES.items() if scale.is_paper)


@dataclass(frozen=True)
class Frame:
    """The scale of a panel, and the ends of paper; points beyond them are drawn on its edge."""

    scale: Scale
    low: float = -np.inf
    high: float = np.inf

    def inside(self, p: FloatArray) -> FloatArray:
        """Probabilities, with those beyond the edge moved to it."""
        return np.clip(p, self.low, self.high)

    def outside(self, p: FloatArray) -> Any:
        """-1 below the edge, 1 above, else 0."""
        return (p > self.high).astype(int) - (p < self.low)

    def line(self, x: FloatArray, *ys: FloatArray) -> list[FloatArray]:
        """Lines that are straight in probabilities, with points added in between on paper, where they are curved."""
        if not self.scale.is_paper or len(x) < 2:
            return [x, *ys]
        t = np.arange(n := int(np.clip(_IN_ALL // len(x), 1, _FINER))) / n
        places = self.scale.places(self.inside(x))
        left, width = x[:-1, None], np.diff(x)[:, None]
        finer = self.scale.inverse(places[:-1, None] + t * np.diff(places)[:, None])
        share = np.divide(
            np.clip(finer - left, 0, width), width, out=np.broadcast_to(t, finer.shape).copy(), where=width > 0
        )
        out = [np.append(v[:-1, None] + share * np.diff(v)[:, None], v[-1]) for v in (x, *ys)]
        return [self.inside(v) for v in out]

    def bars(self, counts: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Counts and edges of a histogram; the bars at the frame's ends contain the scores beyond."""
        drawn = self.inside(edges)
        seen = np.flatnonzero(np.diff(drawn) > 0)
        first, last = seen[0], seen[-1] + 1
        out = counts[first:last].copy()
        out[0] += counts[:first].sum()
        out[-1] += counts[last:].sum()
        return out, drawn[first : last + 1]


LINEAR = Frame(SCALES["linear"])
#: Frames of panels that were drawn on paper.
_FRAMES: WeakKeyDictionary[Axes, Frame] = WeakKeyDictionary()


def frame_of(ax: Axes) -> Frame:
    """Scale and ends of a panel."""
    return _FRAMES.get(ax, LINEAR) if ax.get_xscale() == "function" else LINEAR  # a cleared axes starts afresh


def scale_for(ax: Axes, name: str | None, *, fresh: bool) -> Scale:
    """The requested scale, or that of a panel with a diagram; ValueError if these differ."""
    present = frame_of(ax).scale
    if fresh:
        return SCALES["linear" if name is None else name]
    if name is not None:
        check_choice("scale of a second diagram on the same axes", name, (present.name,))
    return present


def check_scale(name: Any, ax: Any) -> bool:
    """Check a ``scale`` argument; return whether it, or by default the scale of the axes, is paper."""
    if name is not None:
        return SCALES[check_choice("scale", name, tuple(SCALES))].is_paper
    axes = [] if ax is None else [a for a in np.asarray(ax, dtype=object).ravel() if isinstance(a, Axes)]
    return any(frame_of(a).scale.is_paper for a in axes)


def set_paper(ax: Axes, scale: Scale, ends: tuple[float, float], margin: float) -> None:
    """Set the scale of both axes of a panel between two probabilities, with a border."""
    low, high = scale.places(ends)
    border = margin * (high - low)
    frame = Frame(scale, *scale.inverse(np.array([low - border, high + border])).tolist())
    for axis in ("x", "y"):
        getattr(ax, f"set_{axis}scale")("function", functions=(scale.places, scale.inverse))
    ax.set(xlim=(frame.low, frame.high), ylim=(frame.low, frame.high))
    _FRAMES[ax] = frame


def set_ticks(ax: Axes, scale: Scale, side: float, *, small: bool) -> None:
    """Set the ticks on both axes of a panel whose limits are set."""
    for axis in (ax.xaxis, ax.yaxis):
        if not scale.is_paper:
            axis.set_major_locator(MaxNLocator(4 if small else 6, steps=[1, 2, 5, 10], min_n_ticks=3))
            continue
        axis.set_major_locator(FixedLocator(ticks_of(frame_of(ax), side / _BETWEEN[small])))
        axis.set_major_formatter(FuncFormatter(lambda p, _: tick_text(p)))
        axis.set_tick_params(labelsize=6.5 if small else 8.5)
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())


def ticks_of(frame: Frame, most: float) -> list[float]:
    """Round probabilities within a frame, as many as fit."""
    low, high = frame.scale.places([frame.low, frame.high])
    out: list[float] = []
    for p in _TICKS:
        for tick in (p, 1 - p):
            apart = np.abs(frame.scale.places(tick) - frame.scale.places(out))
            if frame.low < tick < frame.high and (apart >= (high - low) / most).all():
                out.append(tick)
    return sorted(out)


def tick_text(p: float) -> str:
    """A probability in its shortest form: 0.01, 10⁻⁴, 0.99, 1-10⁻⁴."""
    small = min(p, 1 - p)
    if small > 0.9e-3:
        return f"{p:.4g}"
    power = f"10⁻{'⁰¹²³⁴⁵⁶'[-round(np.log10(small))]}"
    return power if p < 0.5 else f"1-{power}"


def ends_of(markers: FloatArray, counts: FloatArray, edges: FloatArray) -> tuple[float, float]:
    """Ends of paper: .001 and .999, or further out if scores or bins lie there."""
    below = np.append(0.0, np.cumsum(counts)) / max(float(counts.sum()), 1e-300)
    last = _ENDS[-1]

    def end(markers: FloatArray, share: Callable[[float], float]) -> float:
        """The first end up to which markers and all but a few scores lie, except those beyond the last end."""
        nearest = float(markers[markers >= last].min(initial=1.0))
        return next((e for e in _ENDS if nearest >= e and share(e) - share(last) <= _BEYOND), last)

    low = end(markers, lambda e: float(np.interp(e, edges, below)))
    high = end(1 - markers, lambda e: 1 - float(np.interp(1 - e, edges, below)))
    return low, 1 - high

"""Tables of the page's data files: the default against the 15 curves, and every estimator."""

from __future__ import annotations

import numpy as np
import polars as pl

from .runs import DEFAULT, NOTIONS, Run
from .stats import CLEAR, Number, spread

#: What the default's error may be of the best curve's: at every size, and up to ``SMALL`` samples.
BAR, SMALL_BAR, SMALL = 0.95, 0.7, 120


def default(run: Run) -> pl.DataFrame:
    """The default against the best of the 15 at every size, with the bars and its bias as a share of the truth."""
    rows = []
    for notion in NOTIONS:
        against = {m: ratio_to_best(run, m, notion) for m in ("rel_p95", "rmse")}
        bias = run.relative_bias(notion)[:, :, run.estimators.index(DEFAULT)]
        for i, size in enumerate(run.sizes):
            row = {"notion": notion, "size": size}
            for measure, found in against.items():
                best, at_best, ours, ratio = found[i]
                row |= {f"{measure}_best": best, f"{measure}_of_best": at_best, f"{measure}_ours": ours}
                row |= {f"{measure}_ratio": ratio.value, f"{measure}_ratio_se": ratio.se}
                row |= {f"{measure}_bar": SMALL_BAR if measure == "rel_p95" and size <= SMALL else BAR}
            middle = run.resampler.median(bias[i])
            rows.append(row | {"bias": middle.value, "bias_se": middle.se})
    return pl.DataFrame(rows)


def ratio_to_best(run: Run, measure: str, notion: str, name: str = DEFAULT) -> list[tuple[str, float, float, Number]]:
    """At every size: the best of the 15, its median, that of the estimator ``name``, and their ratio."""
    values = run.values(measure, notion)
    out = []
    for i in range(len(run.sizes)):
        columns = run.columns([*run.curves, name])
        found, again = run.resampler.medians(values[i][:, columns])
        best = int(np.nanargmin(found[:-1]))
        ratio = float(found[-1] / found[best])
        doubt = spread(again[:, -1] / again[:, :-1].min(axis=1)) if len(again) else np.nan
        out.append((run.curves[best], float(found[best]), float(found[-1]), Number(ratio, float(doubt))))
    return out


def mark(ratio: Number, bar: float) -> str:
    """Whether a bar is met, and whether that is clear."""
    if not np.isfinite(ratio.value):
        return ""
    clear = np.isfinite(ratio.se) and abs(ratio.value - bar) > CLEAR * ratio.se
    return ("✓" if ratio.value <= bar else "✗") + ("" if clear else "?")


def estimators(run: Run) -> pl.DataFrame:
    """Every estimator: relative error and bias, and microseconds an estimate; medians over its distributions."""
    late = run.late()
    parts = [(run, run.estimators), *([(late, run.lacking)] if late is not None else [])]
    rows = []
    for of, names in parts:
        for notion in NOTIONS:
            error, seconds = of.medians("rel_p95", notion), of.medians("seconds", notion)
            relative = of.relative_bias(notion)
            for name, j in zip(names, of.columns(names), strict=True):
                for i, size in enumerate(of.sizes):
                    column = relative[i, :, j]
                    bias = float(np.nanmedian(column)) if (~np.isnan(column)).any() else float("nan")
                    row = {"notion": notion, "size": size, "estimator": name, "distributions": of.n_distributions}
                    rows.append(row | {"rel_p95": error[i, j], "bias": bias, "microseconds": 1e6 * seconds[i, j]})
    return pl.DataFrame(rows)

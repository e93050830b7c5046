"""How wrong is each estimator, as published?

    python -c "
    from calibrant.benchmark import Config, paper_curves, run
    config = Config('as-published', sets={sets}, pool={pool}, rows={rows})
    run(config=config, out='PUBLISHED_RUN_FOLDER', estimators=paper_curves(config.mode))"
    {command}

The experiment is that of [benchmark.md](benchmark.md) with the settings of the authors' code: means of the mixtures on
[−1, 1], the linear mapping as printed, their ranges of bins, and class-wise Silverman's bandwidth of class 0 for every
class. Each of {of} distributions has {sets} evaluation sets per size and a truth from {points} points. Ratios are
geometric means over distributions, and over sizes for N ≤ {ends}; ± is one standard error over mixtures. Verdicts are
clear by two of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from evidence_parts.pages import kept, table, wrapped, write

from . import figures
from .claims import FIGURE_ENDS, FIXED, PUBLISHED_AT_30, SILVERMAN, overall
from .runs import NOTIONS, Run
from .stats import UNDECIDED, Number, both
from .summed import Summed

DATA = "published_silverman"
#: The settings that are compared, and what stands for the sizes of the published figure.
OWN, CORRECTED = "as-published", "corrected"
ENDS = f"≤ {FIGURE_ENDS}"
_HOLD = {UNDECIDED: "is undecided"}


def silverman(run: Run, corrected: Run) -> pl.DataFrame:
    """Silverman's error by that with a fixed bandwidth: at each size, and over those of the published figure."""
    rows = []
    for setting, of in ((OWN, run), (CORRECTED, corrected)):
        for notion in NOTIONS:
            for fixed in FIXED:
                found = {ENDS: overall(of, notion, [(SILVERMAN, fixed)], FIGURE_ENDS)}
                logs = of.log_ratio(notion, SILVERMAN, fixed)
                found |= {str(size): of.ratio(one) for size, one in zip(of.sizes, logs, strict=True)}
                about = {"setting": setting, "notion": notion, "fixed": fixed}
                rows += [{**about, "size": size, "ratio": n.value, "se": n.se} for size, n in found.items()]
    return pl.DataFrame(rows)


def _ratio(rows: pl.DataFrame, setting: str, notion: str, fixed: str, size: str) -> Number:
    return Number(*rows.filter(setting=setting, notion=notion, fixed=fixed, size=size).select("ratio", "se").row(0))


def _worse(rows: pl.DataFrame, setting: str, notion: str) -> str:
    """Whether Silverman's bandwidth is worse than both fixed ones, over the sizes of the published figure."""
    return both(*(_ratio(rows, setting, notion, fixed, ENDS).beyond(1.0, 1) for fixed in FIXED))


def answer(about: Summed, rows: pl.DataFrame) -> str:
    """Errors at the smallest size beside those of the published figure, and what holds of Silverman's bandwidth."""
    low, high = PUBLISHED_AT_30
    absolute, relative = (
        [about.medians(measure, notion)[0][about.columns(about.curves)] for notion in NOTIONS]
        for measure in ("abs_p95", "rel_p95")
    )
    within = [int(((found >= low) & (found <= high)).sum()) for found in absolute]
    spans = [
        f"{_span(found)} ({words.lower()}; {inside} of {len(found)} within the published {low:g} to {high:g})"
        for found, inside, words in zip(absolute, within, NOTIONS.values(), strict=True)
    ]
    own, corrected = (
        " and ".join(
            f"{_HOLD.get(word := _worse(rows, setting, n), word)} ({words.lower()})" for n, words in NOTIONS.items()
        )
        for setting in (OWN, CORRECTED)
    )
    unfinished = "" if about.finished else f"**Unfinished: {about.n_distributions} of {about.n_wanted}.** "
    return (
        f"{unfinished}At N = {about.sizes[0]} absolute errors are {' and '.join(spans)}; relative ones are "
        f"{' and '.join(map(_span, relative))}. The statement that Silverman's bandwidth is worse than both fixed ones "
        f"for N ≤ {FIGURE_ENDS} {own}; in the corrected setting it {corrected}."
    )


def _span(found: np.ndarray) -> str:
    return f"{found.min():.2f} to {found.max():.2f}"


def _rows(rows: pl.DataFrame, sizes: list[str]) -> list[list[str]]:
    out = []
    for notion, words in NOTIONS.items():
        for fixed in FIXED:
            own = [f"{_ratio(rows, OWN, notion, fixed, size).value:.2f}" for size in sizes]
            ends = [_ratio(rows, setting, notion, fixed, ENDS).text() for setting in (OWN, CORRECTED)]
            out.append([words, fixed.removeprefix("d"), *own, *ends])
    return out


def page(docs: Path, command: str) -> None:
    """The page and its picture, from the data files."""
    data = docs / "benchmark"
    about, rows = Summed.read(data / "published.csv", data / "published.json"), kept(data / f"{DATA}.csv")
    figures.figure2(about, "abs_p95", docs / "images" / "benchmark_published.png")
    some = np.unique(np.linspace(0, len(about.sizes) - 1, 4).round().astype(int))
    sizes = [str(about.sizes[i]) for i in some]
    said = (
        f"The table divides the error of Silverman's bandwidth by that of a fixed one, at some sizes N and for N "
        f"{ENDS}; below 1 Silverman's is better. *Corrected*: in the setting of the main page."
    )
    write(
        docs / "benchmark_as_published.md",
        __doc__,
        answer(about, rows),
        ("images/benchmark_published.png", "Absolute error of 15 estimators by rows, as published"),
        [wrapped(said), "", *table(["notion", "fixed", *sizes, ENDS, "corrected"], _rows(rows, sizes), texts=2)],
        [data / "published.csv", data / f"{DATA}.csv"],
        command=command,
        sets=str(about.config.sets),
        pool=f"{about.config.pool:_}",
        rows=f"{about.config.rows:_}",
        points=f"{about.config.pool:,}",
        of=str(about.n_distributions),
        ends=str(FIGURE_ENDS),
    )

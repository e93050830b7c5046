"""`docs/training_tables.md` and its picture, from lines of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from .results import ALLOWED, MEASURES, ROWS, Line, Table, by_log_loss, tables
from .settings import METHODS, SETTINGS, SIZES

#: Compared in words, with XE and with one another.
JUDGED = ("accuracy", "canonical plug-in", "canonical debiased", "class-wise", "top-label", "log-loss", "Brier")
SHORT = ("accuracy", "canonical debiased", "class-wise", "log-loss")
OURS = "KDE-XE"


def text(lines: list[Line]) -> str:
    """Markdown; what was never finished in all settings is not on it."""
    found = tables(lines)
    if not found:
        raise SystemExit("no setting has two seeds in which every method has finished")
    rows = [row for row in ROWS if row != "XE"]
    sizes = ", ".join(f"{name} {train} / {validation} / {test}" for name, (train, validation, test) in SIZES.items())
    seeds = sorted({len(one.seeds) for one in found})
    return (
        Path(__file__)
        .parents[1]
        .joinpath("train_tables.md")
        .read_text(encoding="utf-8")
        .format(
            state=_state(found),
            sizes=sizes,
            seeds=" to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1])))),
            runs=sum(len(METHODS) * len(one.seeds) for one in found),
            grid=_grid(),
            allowed=f"{ALLOWED:g}",
            helps=_helps(found),
            claims=_claims(found),
            against_xe=_counts(found, [(row, "XE") for row in rows], "row"),
            against_rivals=_counts(found, [(OURS, row) for row in rows if not row.startswith(OURS)], "rival"),
            by_log_loss=_helps(tables(lines, by_log_loss), briefly=True),
            chosen=_chosen(found),
            each="\n\n".join(_setting(one) for one in found),
            seconds=_seconds(lines),
        )
    )


def _state(found: list[Table]) -> str:
    missing = [str(setting) for setting in SETTINGS if str(setting) not in {one.setting for one in found}]
    return f"Not finished, and left out: {'; '.join(missing)}. " if missing else ""


def _grid() -> str:
    grids: dict[str, list[str]] = {}
    for method in METHODS:
        if method.strength is not None:
            width = "" if method.bandwidth is None else f" at h = {method.bandwidth}"
            grids.setdefault(f"{method.family}{width}", []).append(f"{method.strength:g}")
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in grids.items())


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = ["| " + " | ".join(names) + " |", "|---" + "|---:" * (len(names) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _helps(found: list[Table], *, briefly: bool = False) -> str:
    """KDE-XE less XE, a setting a line."""

    def lead(one: Table, row: str) -> str:
        fit = np.mean([line["log-loss, trained on"] for line in one.chosen[row]])
        return f"{fit:.3f} → {one.values[row]['log-loss'].mean():.3f}"

    both = [] if briefly else ["XE", OURS]
    head = ["setting", *(f"{row}: log-loss, trained on → new" for row in both), *SHORT]
    return _table(
        head,
        (
            [one.setting, *(lead(one, row) for row in both), *(str(one.difference(OURS, name)) for name in SHORT)]
            for one in found
        ),
    )


def _verdicts(found: list[Table], row: str, to: str, measure: str) -> Counter[str]:
    return Counter(one.difference(row, measure, to).verdict for one in found)


def _counts(found: list[Table], pairs: list[tuple[str, str]], what: str) -> str:
    """In how many settings the first of a pair is better / worse than the second."""
    cells = []
    for row, to in pairs:
        counts = [_verdicts(found, row, to, name) for name in JUDGED]
        cells.append([row if what == "row" else to, *(f"{one['better']} / {one['worse']}" for one in counts)])
    return _table([what, *JUDGED], cells)


def _claims(found: list[Table]) -> str:
    """What the tables say of KDE-XE, counted."""
    n = len(found)

    def names(measure: str, verdict: str) -> str:
        which = [one.setting for one in found if one.difference(OURS, measure).verdict == verdict]
        return f"{len(which)} of {n}" + (f" ({'; '.join(which)})" if which else "")

    lines = [
        f"- *{measure}*: better than XE in {names(measure, 'better')}; worse in {names(measure, 'worse')}."
        for measure in SHORT
    ]
    rivals = [(OURS, "XE, temperature"), (OURS, "XE, stopped early"), (f"{OURS}, temperature", "XE, temperature")]
    for row, rival in rivals:
        parts = []
        for measure in ("canonical debiased", "class-wise", "log-loss"):
            counts = _verdicts(found, row, rival, measure)
            parts.append(f"{measure} {counts['better']} better, {counts['worse']} worse")
        lines.append(f"- *{row}* against *{rival}*, of {n} settings: {'; '.join(parts)}.")
    return "\n".join(lines)


def _chosen(found: list[Table]) -> str:
    """How often validation chose which strength and bandwidth."""
    rows = []
    for one in found:
        counts = Counter((line["strength"], line["bandwidth"]) for line in one.chosen[OURS])
        cells = [str(counts[method.strength, method.bandwidth]) for method in METHODS if method.family == OURS]
        rows.append([one.setting, *cells])
    head = [f"γ = {m.strength:g}, h = {m.bandwidth}" for m in METHODS if m.family == OURS]
    return _table(["setting", *head], rows)


def _setting(one: Table) -> str:
    """Means of test rows, and differences to XE."""
    floor = ["plug-in if calibrated"]
    columns = [*list(MEASURES)[:2], *floor, *list(MEASURES)[2:]]
    digits = {name: shown for name, (_, shown) in MEASURES.items()} | {floor[0]: 3}
    means = _table(
        ["", *columns],
        ([row, *(f"{one.values[row][name].mean():.{digits[name]}f}" for name in columns)] for row in ROWS),
    )
    gaps = _table(
        ["less XE", *SHORT],
        ([row, *(str(one.difference(row, name)) for name in SHORT)] for row in ROWS if row != "XE"),
    )
    return f"### {one.setting}\n\n{len(one.seeds)} seeds.\n\n{means}\n\n{gaps}".replace("-0.0", "−0.0")


def _seconds(lines: list[Line]) -> str:
    """CPU seconds of trainings on the wide network."""
    wide = {str(setting) for setting in SETTINGS if len(setting.recipe.layers) > 1}
    parts = []
    for family in ("XE", "MMCE", OURS):
        spent = [line["seconds"] for line in lines if line["family"] == family and line["setting"] in wide]
        parts.append(f"{family} {np.median(spent):.1f} s")
    return ", ".join(parts)

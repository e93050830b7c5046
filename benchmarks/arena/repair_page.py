"""`repair.md`: the scoreboard of calibrators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

GOALS = ("log-loss", "Brier")
#: Losses of scores as they are count as this at least where others are relative to them.
LEAST = 1e-3


def page(lines: list[dict[str, Any]], half: str, splits: int, single: list[str]) -> str:
    """The whole page."""
    intro = Path(__file__).with_name("repair_intro.md").read_text(encoding="utf-8")
    return intro.format(
        experiments=len(lines),
        half=half,
        splits=splits,
        least=LEAST,
        single=", ".join(single),
        all="\n\n".join(board(lines, goal, single) for goal in range(2)),
        groups="\n\n".join(groups(lines, goal, single) for goal in range(2)),
        worst="\n\n".join(worst(lines, goal) for goal in range(2)),
    )


def losses(lines: list[dict[str, Any]], goal: int) -> tuple[list[str], np.ndarray]:
    """Names, and losses of experiments by calibrator."""
    names = list(lines[0]["read"])
    return names, np.array([[line["read"][name]["losses"][goal] for name in names] for line in lines])


def gains(names: list[str], table: np.ndarray) -> np.ndarray:
    """By how much calibrators lessen the loss of the scores as they are, relative to it."""
    alone = np.maximum(table[:, names.index("identity")], LEAST)[:, None]
    return (table[:, names.index("identity")][:, None] - table) / alone


def board(lines: list[dict[str, Any]], goal: int, single: list[str]) -> str:
    """All calibrators over all experiments, by one score."""
    names, table = losses(lines, goal)
    gain = gains(names, table)
    oracle = gain[:, [names.index(name) for name in single]].max(axis=1)
    ranks = rankdata(table, axis=1).mean(axis=0)
    rows = [
        f"| {GOALS[goal]} | mean rank | win rate | harm > 0.1 % | harm > 1 % | worst | mean gain | of the oracle's "
        "| within 0.1 % of it | CPU seconds | failed |",
        "|---|" + "---:|" * 10,
    ]
    for at in np.argsort(ranks):
        own = table[:, [at]]
        others = np.delete(table, at, axis=1)
        wins = float(((own < others) + 0.5 * (own == others)).mean())
        seconds = np.mean([line["read"][names[at]]["seconds"] for line in lines])
        failed = np.mean([line["read"][names[at]]["failed"] / line["read"][names[at]]["splits"] for line in lines])
        here = gain[:, at]
        rows.append(
            f"| {names[at]} | {ranks[at]:.2f} | {wins:.3f} | {_share(here < -0.001)} | {_share(here < -0.01)} "
            f"| {100 * max(0.0, -here.min()):.1f} % | {100 * here.mean():+.2f} % | {here.mean() / oracle.mean():+.2f} "
            f"| {_share(here > oracle - 0.001)} | {seconds:.4f} | {_share(failed)} |"
        )
    return "\n".join(rows)


def groups(lines: list[dict[str, Any]], goal: int, single: list[str]) -> str:
    """Three best by rank, and what `auto` does, by size and by kind of data."""
    rows = [
        f"| {GOALS[goal]} | rows to fit | experiments | best mean ranks | auto: rank | harm > 0.1 % | > 1 % "
        "| mean gain | of the oracle's |",
        "|---|" + "---:|" * 2 + "---|" + "---:|" * 5,
    ]
    for kind in ("tabular", "network"):
        for many in (False, True):
            for n in sorted({line["n"] for line in lines}):
                some = [x for x in lines if x["kind"] == kind and (x["classes"] > 2) == many and x["n"] == n]
                if some:
                    what = f"{kind}, {'several classes' if many else 'two classes'}"
                    rows.append(f"| {what} | {n} | {len(some)} | {_group(some, goal, single)} |")
    return "\n".join(rows)


def _group(some: list[dict[str, Any]], goal: int, single: list[str]) -> str:
    names, table = losses(some, goal)
    gain, ranks = gains(names, table), rankdata(table, axis=1).mean(axis=0)
    oracle = gain[:, [names.index(name) for name in single]].max(axis=1).mean()
    best = ", ".join(f"{names[at]} {ranks[at]:.1f}" for at in np.argsort(ranks)[:3])
    if "auto" not in names:
        return f"{best} | | | | |"
    own = gain[:, names.index("auto")]
    part = f"{own.mean() / oracle:.2f}" if oracle > 0 else "–"
    return (
        f"{best} | {ranks[names.index('auto')]:.1f} | {_share(own < -0.001)} | {_share(own < -0.01)} "
        f"| {100 * own.mean():+.2f} % | {part}"
    )


def worst(lines: list[dict[str, Any]], goal: int, most: int = 8) -> str:
    """Where `auto` does most harm."""
    names, table = losses(lines, goal)
    if "auto" not in names:
        return ""
    own, alone = table[:, names.index("auto")], table[:, names.index("identity")]
    gain = gains(names, table)[:, names.index("auto")]
    rows = ["| experiment | rows to fit | " + f"{GOALS[goal]} as it is | auto | change |", "|---|---:|---:|---:|---:|"]
    rows += [
        f"| {lines[at]['name']} | {lines[at]['n']} | {alone[at]:.4f} | {own[at]:.4f} | {-100 * gain[at]:+.2f} % |"
        for at in np.argsort(gain)[:most]
    ]
    return "\n".join(rows)


def _share(part: Any) -> str:
    return f"{100 * np.mean(part):.1f} %"

"""`repair.md`: the scoreboard of calibrators."""

from __future__ import annotations

from itertools import product
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
        said=said(lines, single),
        all="\n\n".join(board(lines, goal, single) for goal in range(2)),
        groups="\n\n".join(groups(lines, goal, single) for goal in range(2)),
        ends=ends(lines),
        worst="\n\n".join(worst(lines, goal) for goal in range(2)),
    )


#: Scores in words: the first counts probabilities of labels as 1e-6 at least, the last as 1e-9.
WORDS = ("log-loss", "Brier score", "log-loss from 1e-9 on")
SHOWN = ("auto", "auto, ends as they are", "fix", "ensemble-temperature", "temperature", "scikit-learn isotonic")


def said(lines: list[dict[str, Any]], single: list[str]) -> str:
    """What the defaults gain and harm, and others beside them, by three scores."""
    rows = [
        "| score | calibrator | harm > 0.1 % | > 1 % | worst | of the oracle's gain | mean rank |",
        "|---|---|" + "---:|" * 5,
    ]
    for goal, words in enumerate(WORDS):
        names, table = losses(lines, goal)
        gain, ranks = gains(names, table), rankdata(table, axis=1).mean(axis=0)
        oracle = gain[:, [names.index(name) for name in single]].max(axis=1).mean()
        for name in (name for name in SHOWN if name in names):
            at = names.index(name)
            own = gain[:, at]
            rows.append(
                f"| {words} | {name} | {_share(own < -0.001)} | {_share(own < -0.01)} "
                f"| {100 * max(0.0, -own.min()):.1f} % | {own.mean() / oracle:.2f} | {ranks[at]:.2f} |"
            )
    return "\n".join(rows)


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


#: Of which the best for an experiment is the oracle where scores are exactly 0 or 1.
OF_ENDS = ("identity", "auto", "ensemble-temperature", "platt", "beta")


def ends(lines: list[dict[str, Any]]) -> str:
    """Gains by the log-loss of probabilities of at least 1e-9, beside the best, of two classes and of several."""
    rows = [
        "| classes | scores | rows to fit | experiments | calibrator | mean gain | of the oracle's | harm > 0.1 % "
        "| > 1 % | worst | Brier: mean gain | harm > 0.1 % | > 1 % | worst |",
        "|---|---|" + "---:|" * 2 + "---|" + "---:|" * 9,
    ]
    for n, k in product(sorted({line["n"] for line in lines}), ("two", "several")):
        for what, with_ends in (("all", (False, True)), ("some 0 or 1", (True,))):
            some = [x for x in lines if (x["classes"] == 2) == (k == "two") and x["n"] == n and x["ends"] in with_ends]
            if some:
                rows += [f"| {k} | {what} | {n} | {len(some)} | {row} |" for row in _of_ends(some)]
    return "\n".join(rows)


def _of_ends(some: list[dict[str, Any]]) -> list[str]:
    names, table = losses(some, 2)
    brier = gains(*losses(some, 1))
    gain = gains(names, table)
    oracle = gain[:, [names.index(name) for name in OF_ENDS if name in names]].max(axis=1).mean()
    rows = []
    for name in (
        "auto",
        "auto, ends as they are",
        "end-smoothing",
        "ensemble-temperature",
        "scikit-learn sigmoid",
        "probmetrics SVS",
    ):
        if name in names:
            own, other = gain[:, names.index(name)], brier[:, names.index(name)]
            harms = [
                f"{_share(each < -0.001)} | {_share(each < -0.01)} | {100 * max(0.0, -each.min()):.1f} %"
                for each in (own, other)
            ]
            rows.append(
                f"{name} | {100 * own.mean():+.2f} % | {own.mean() / oracle:.2f} | {harms[0]} "
                f"| {100 * other.mean():+.2f} % | {harms[1]}"
            )
    return rows


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

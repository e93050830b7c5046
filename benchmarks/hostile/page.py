"""The page of hostile cases: what they end in, from the counts that are kept."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibrant.data.writing import write_text

from .. import charts
from ..markdown import table
from ..provenance import Kept, header
from . import ledger

COMMAND = "python -m benchmarks.hostile --page benchmarks/hostile.md"
#: Cases that were aimed at, of a group or of each of its kinds.
AIMS = {"memory": 1_000_000, "commands": 2000, "writers": 200, "engines": 200}
OF_A_GROUP = ("memory",)


def keep(blocks: Sequence[ledger.Block], folder: Path) -> None:
    """Counts, and faults where any is left, as data files."""
    seconds = sum(block.seconds for block in blocks)
    faults = ledger.faults(blocks)
    for name, columns in (("counts", ledger.counts(blocks)), ("faults", faults)):
        about = header(f"hostile.{name}", COMMAND, "0, and the number of the case", seconds, ())
        del about["modules"]
        Kept(about, columns).write(folder / f"{name}.csv")
    if not faults["fault"]:
        (folder / "faults.csv").unlink()


def write(folder: Path, path: Path) -> None:
    """Page and picture, from the data files of a folder."""
    files = [one for name in ("counts", "first_run", "faults") if (one := folder / f"{name}.csv").exists()]
    kept, first = map(Kept.read, files[:2])
    question, setting = Path(__file__).with_name("intro.md").read_text(encoding="utf-8").split("\n\n", 1)
    charts.write(picture(kept), path.with_suffix(".svg"))
    shown = f"![Cases by group and how they end]({path.stem}.svg)"
    lines = [question, "", wrapped(answer(kept, first)), "", shown, ""]
    links = [f"- [{one.name}](hostile/{one.name}): commit {Kept.read(one).header['commit']}" for one in files]
    write_text(path, "\n".join([*lines, *rows(kept), "", setting.strip(), "", "All numbers:", "", *links]) + "\n")


def wrapped(text: str) -> str:
    """A paragraph in lines."""
    return textwrap.fill(text, 119, break_long_words=False, break_on_hyphens=False)


def answer(kept: Kept, first: Kept) -> str:
    """How many cases are faults, how many were of the first run, and whether as many were tried as were aimed at."""
    cases, faults = (int(kept[name].sum()) for name in ("cases", "faults"))
    short = {group: short_of(kept.where(group=group), group, aim) for group, aim in AIMS.items()}
    missed = [f"{group} ({text})" for group, text in short.items() if text]
    aims = f"missed for {', '.join(missed)}" if missed else "met"
    if never := [str(kind) for kind, n in zip(kept.columns["kind"], kept["cases"], strict=True) if not n]:
        aims += f"; never tried: {', '.join(never)}"
    refused = 100 * kept["refused"].sum() / cases
    before = (int(first.header[name]) for name in ("faults", "cases"))
    return (
        f"{'Yes' if faults else 'No known case does'}: {faults:,} of {cases:,} cases are faults, and {refused:.0f} % "
        f"are refused. This does not estimate what other cases would find, since faults were corrected as they were "
        f"found; the first run had {' in '.join(f'{n:,}' for n in before)} cases. The target numbers of cases "
        f"are {aims}."
    )


def short_of(some: Kept, group: str, aim: int) -> str:
    """What is missing."""
    had = int(some["cases"].sum() if group in OF_A_GROUP else some["cases"].min())
    return f"{had:,} of {aim:,}" if had < aim else ""


def rows(kept: Kept) -> list[str]:
    """A group a line."""
    found = [(group, kept.where(group=group)) for group in kept.distinct("group")]
    lines = [[g, f"{len(one)}", *(f"{int(one[name].sum()):,}" for name in ledger.COUNTED)] for g, one in found]
    return list(table(["group", "kinds", *ledger.COUNTED], lines))


def picture(kept: Kept) -> charts.Figure:
    """Cases of each group by how they end."""
    groups = kept.distinct("group")
    sums = {name: [float(kept.where(group=group)[name].sum()) for group in groups] for name in ledger.COUNTED[1:]}
    series = {name: [(v or np.nan, np.nan) for v in values] for name, values in sums.items() if any(values)}
    return charts.dots(groups, series, "cases (none where there is no mark)", log=True)

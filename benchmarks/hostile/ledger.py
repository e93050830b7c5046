"""Results of blocks of cases as lines of a file, and the page that is made of them."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: Faults of a block that are written out; the others are counted.
_TOLD = 40
#: How cases ended.
COUNTED = ("cases", "results", "refused", "faults")


@dataclass
class Block:
    """Cases ``start … start + n - 1`` of a kind, and how they ended."""

    group: str
    kind: str
    seed: int
    start: int
    n: int = 0
    results: int = 0
    refused: int = 0
    wrong: int = 0
    seconds: float = 0.0
    #: Number, ending and words of cases that ended wrongly.
    faults: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, number: int, ending: str, words: str) -> None:
        self.n += 1
        if ending in ("result", "refused"):
            self.results += ending == "result"
            self.refused += ending == "refused"
            return
        self.wrong += 1
        if len(self.faults) < _TOLD:
            self.faults.append((number, ending[:400], words[:400]))


def read(store: Path) -> list[Block]:
    """Blocks of a file; none where there is none. A line that a killed process left half-written is left out."""
    found = []
    for line in store.read_text(encoding="utf-8", errors="replace").splitlines() if store.exists() else []:
        try:
            found.append(Block(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            continue
    return found


def line(block: Block) -> str:
    """A block as a line of a file."""
    return json.dumps({**asdict(block), "seconds": round(block.seconds, 3)}, default=str) + "\n"


def append(store: Path, block: Block) -> None:
    with store.open("a", encoding="utf-8") as file:
        file.write(line(block))


def merged(blocks: Iterable[Block]) -> list[Block]:
    """One block for each kind, of all its cases."""
    whole: dict[tuple[str, str], Block] = {}
    for block in blocks:
        one = whole.setdefault((block.group, block.kind), Block(block.group, block.kind, block.seed, block.start))
        for name in ("n", "results", "refused", "wrong", "seconds"):
            setattr(one, name, getattr(one, name) + getattr(block, name))
        one.faults += block.faults
    return sorted(whole.values(), key=lambda block: (block.group, block.kind))


def next_number(blocks: Iterable[Block]) -> dict[tuple[str, str], int]:
    """The first case of each kind that was not tried."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for block in blocks:
        key = block.group, block.kind
        found[key] = max(found[key], block.start + block.n)
    return found


def sort_of(kind: str, ending: str) -> str:
    """What faults of one cause have in common: the kind of error, the file, and its words without values."""
    ending = "a message too long" if ending.startswith("a message of") else ending
    text = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]?|<[^>]*>", "…", ending)
    text = re.sub(r"\.py:\d+", "", text)
    text = re.sub(r"-?\d[\d,]*\.?\d*(e[-+]?\d+)?", "#", text)
    file = re.search(r"at ([\w/]+\.py|[\w/]+)", text)
    return f"{text[:70].strip()}" if file else f"{kind}: {text[:60].strip()}"


def sorts(blocks: Iterable[Block]) -> dict[str, list[tuple[Block, int, str, str]]]:
    """Faults by what they have in common."""
    found: dict[str, list[tuple[Block, int, str, str]]] = defaultdict(list)
    for block in blocks:
        for number, ending, words in block.faults:
            found[sort_of(block.kind, ending)].append((block, number, ending, words))
    return found


def printable(text: str) -> str:
    """Text that a table shows as it is."""
    return re.sub(r"[^ -~]", "·", text).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def counts(blocks: Sequence[Block]) -> dict[str, list[Any]]:
    """Columns of counts by group and kind."""
    total: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for block in blocks:
        kind = re.sub("^(file|mapping) of .*", r"\1 of a calibrator", block.kind)
        total[block.group, printable(kind)] += Counter(
            cases=block.n, results=block.results, refused=block.refused, faults=block.wrong
        )
    columns: dict[str, list[Any]] = {"group": [group for group, _ in total], "kind": [kind for _, kind in total]}
    return columns | {name: [one[name] for one in total.values()] for name in COUNTED}


def summary(blocks: Sequence[Block]) -> str:
    """One line."""
    cases, wrong = sum(b.n for b in blocks), sum(b.wrong for b in blocks)
    hours = sum(b.seconds for b in blocks) / 3600
    return f"{cases:,} cases in {hours:.2f} hours of one process: {wrong:,} faults of {len(sorts(blocks))} sorts"


def faults(blocks: Sequence[Block]) -> dict[str, list[Any]]:
    """Columns of the sorts of faults, the commonest first: how often each was met, and a case of each."""
    ordered = sorted(sorts(blocks).items(), key=lambda item: -len(item[1]))
    examples = [f"{cases[0][0].kind}:{cases[0][1]}" for _, cases in ordered]
    return {
        "fault": [printable(name) for name, _ in ordered],
        "cases": [len(cases) for _, cases in ordered],
        "example": list(map(printable, examples)),
    }

"""Hostile cases of every kind, each made of its seed, kind and number alone, and how each ends.

    python -m benchmarks.hostile --store /tmp/hostile.jsonl [--seconds 3000] [--group memory] [--kind report]
    python -m benchmarks.hostile --case report:17
    python -m benchmarks.hostile --store /tmp/hostile.jsonl --keep
    python -m benchmarks.hostile --page benchmarks/hostile.md

Lines of results are added to the store, in which a run goes on where it was stopped. Every kind gets about the same
time, in turns, so that a run which ends early is a sample of all. A case ends well with a result that holds together,
or with a refusal that names an argument; anything else is a fault, which ``--case`` repeats. Cases run in a process of
its own with a limit on memory: where that dies, the case that killed it is a fault, and the run goes on after it.
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("RUST_BACKTRACE", "0")
os.environ.setdefault("MPLBACKEND", "Agg")
for _threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(_threads, "1")

from calibrant.data.writing import write_text  # noqa: E402

from .. import arguments  # noqa: E402
from . import ledger  # noqa: E402

if TYPE_CHECKING:
    from .drawing import Draw
    from .endings import Case

#: Seconds of a kind in a turn, cases of a kind in a turn at most, and bytes of memory of the process.
TURN, MOST_IN_TURN, MEMORY = 1.0, 1000, 8 << 30
#: Counts of all cases so far, and faults that are left, kind by kind.
KEPT = Path(__file__).with_name("cases.jsonl")
GROUPS = ("memory", "tensors", "archives", "commands", "writers", "engines")


def kinds_of(group: str) -> dict[str, Callable[[Draw], Case]]:
    """Kinds of a group; its libraries are loaded here."""
    from importlib import import_module

    return import_module(f"benchmarks.hostile.{group}").kinds()


def one(group: str, kind: str, make: Callable[[Draw], Case], seed: int, number: int) -> tuple[str, str]:
    """How a case ends, and its words."""
    from .drawing import Draw
    from .endings import ending

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case = make(draw := Draw(seed, kind, number))
        except Exception as error:  # of these scripts
            return f"not drawn: {type(error).__name__}: {error}", str(draw)
    return ending(case), case.words


def work(options: argparse.Namespace, now: mmap.mmap) -> None:
    """Turns of all kinds until the time is over."""
    resource.setrlimit(resource.RLIMIT_AS, (options.memory << 30,) * 2)
    kinds = {
        (group, kind): make
        for group in options.group or GROUPS[:3]
        for kind, make in kinds_of(group).items()
        if options.kind in kind
    }
    blocks = ledger.read(options.store)
    start = ledger.next_number([*ledger.read(KEPT), *blocks])
    spent: dict[tuple[str, str], float] = defaultdict(float)
    for block in blocks:
        spent[block.group, block.kind] += block.seconds
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        left = [key for key in kinds if start[key] < options.most]
        if not left:
            break
        for key in sorted(left, key=lambda key: spent[key]):
            if time.monotonic() > end:
                break
            block = ledger.Block(*key, seed=options.seed, start=start[key])
            began = time.monotonic()
            while block.n < min(MOST_IN_TURN, options.most - start[key]) and time.monotonic() - began < TURN:
                number = start[key] + block.n
                now[:256] = f"{key[0]}:{key[1]}:{number}".encode().ljust(256)
                block.add(number, *one(*key, kinds[key], options.seed, number))
            block.seconds = time.monotonic() - began
            ledger.append(options.store, block)
            start[key] += block.n
            spent[key] += block.seconds
    now[:256] = b"done".ljust(256)


def watch(options: argparse.Namespace, now: mmap.mmap) -> None:
    """Start workers until one ends by itself; what a dead one was at is a fault."""
    end = time.monotonic() + options.seconds
    while (left := end - time.monotonic()) > 1:
        command = [*sys.argv[1:], "--seconds", str(left), "--worker", str(options.now)]
        done = subprocess.run([sys.executable, "-m", "benchmarks.hostile", *command], stderr=subprocess.DEVNULL)
        text = now[:256].decode().strip()
        if text == "done" or ":" not in text:
            if done.returncode:
                raise SystemExit(f"the worker ended with {done.returncode}: run it with --worker to see why")
            break
        group, kind, number = text.split(":")[0], ":".join(text.split(":")[1:-1]), int(text.split(":")[-1])
        before = ledger.next_number([*ledger.read(KEPT), *ledger.read(options.store)])[group, kind]
        block = ledger.Block(group, kind, options.seed, start=before, n=number - before)
        block.add(number, f"the process ended with {done.returncode}", "")
        ledger.append(options.store, block)


def repeat(options: argparse.Namespace) -> None:
    """Tell of one case."""
    kind, _, number = options.case.rpartition(":")
    for group in options.group or GROUPS:
        try:
            made = kinds_of(group)
        except ImportError:
            continue
        if kind in made:
            print(*one(group, kind, made[kind], options.seed, int(number)), sep="\n")
            return
    raise SystemExit(f"there is no kind {kind!r}")


def again(options: argparse.Namespace) -> None:
    """Repeat the cases that ended wrongly, and write the store with how they end now."""
    blocks = ledger.read(options.store)
    before = sum(block.wrong for block in blocks)
    for i, block in enumerate(blocks):
        if not block.wrong:
            continue
        make = kinds_of(block.group)[block.kind]
        if block.wrong > len(block.faults):  # some were counted and not written out: the whole block
            blocks[i] = ledger.Block(block.group, block.kind, block.seed, block.start, seconds=block.seconds)
            for number in range(block.start, block.start + block.n):
                blocks[i].add(number, *one(block.group, block.kind, make, block.seed, number))
            continue
        ended = [(number, *one(block.group, block.kind, make, block.seed, number)) for number, *_ in block.faults]
        block.faults = [(number, end, words) for number, end, words in ended if end not in ("result", "refused")]
        block.wrong = len(block.faults)
        block.results += sum(end == "result" for _, end, _ in ended)
        block.refused += sum(end == "refused" for _, end, _ in ended)
    options.store.unlink()
    for block in blocks:
        ledger.append(options.store, block)
    print(f"{before:,} cases were repeated: {sum(len(block.faults) for block in blocks):,} end wrongly still")


def keep(options: argparse.Namespace) -> None:
    """Add the counts of a store to those that are kept, kind by kind."""
    from . import page as pages

    blocks = ledger.merged([*ledger.read(KEPT), *ledger.read(options.store), *untried()])
    write_text(KEPT, "".join(map(ledger.line, blocks)))
    pages.keep(blocks, KEPT.parent)
    print(ledger.summary(blocks))


def untried() -> list[ledger.Block]:
    """No cases of each kind in memory and of each command: the page says which were never tried."""
    return [ledger.Block(group, kind, 0, 0) for group in ("memory", "commands") for kind in kinds_of(group)]


def page(options: argparse.Namespace) -> None:
    """Write the page of the cases that are kept, and its picture."""
    from . import page as pages

    pages.write(KEPT.parent, options.page)


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--store", type=Path, help="lines of results, added to")
    parser.add_argument("--seconds", type=float, default=3600, help="end after so long (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--group", action="append", choices=GROUPS, help="kinds to run; default: the first three")
    parser.add_argument("--kind", default="", metavar="TEXT", help="only kinds whose name contains TEXT")
    parser.add_argument("--most", type=int, default=20_000, help="cases of a kind (default %(default)s)")
    parser.add_argument("--memory", type=int, default=8, help="GiB that the process may have (default %(default)s)")
    parser.add_argument("--case", metavar="KIND:NUMBER", help="repeat one case")
    parser.add_argument("--again", action="store_true", help="repeat the faults of the store with today's code")
    parser.add_argument("--keep", action="store_true", help="add the counts of the store to those of the page")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page here")
    parser.add_argument("--worker", dest="now", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        repeat(options)
    elif options.again:
        again(options)
    elif options.keep:
        keep(options)
    elif options.page:
        page(options)
    elif options.now:
        with options.now.open("r+b") as file:
            work(options, mmap.mmap(file.fileno(), 256))
    else:
        options.now = options.store.with_suffix(".now")
        options.now.write_bytes(bytes(256))
        with options.now.open("r+b") as file:
            watch(options, mmap.mmap(file.fileno(), 256))
        options.now.unlink()
        print(ledger.summary(ledger.read(options.store)))


if __name__ == "__main__":
    main()

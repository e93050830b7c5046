"""How many small changes to the core does a test notice?

    python -m benchmarks.mutants [--number 400] [--others 100] [--jobs 2] [--store ~/.cache/calibrant-mutants]
    python -m benchmarks.mutants --page                       write the page from what is kept

Needs `cosmic-ray` and `pytest-cov`. A mutant is drawn by seed: a place in `estimators/`, `sums/`, `comparison/` or
`measure/` (annotations excluded), and one of the changes that Cosmic Ray knows for it. It is judged by the quick tests
that run its line according to a coverage run of all of them. The fastest run first, until one fails. Results are kept
line by line, so that a stopped run can go on, and end up in `benchmarks/data/mutants.csv`. The page lists the
survivors, with the reasons given in `benchmarks/mutants_reasons.json`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from calibrant.data.writing import write_text

from . import arguments, provenance
from .markdown import share, table
from .provenance import DATA, ROOT, Kept
from .store import lines_of

FOLDERS = ("estimators", "sums", "comparison", "measure")
#: Tests that are run: quick ones, that need nothing else.
QUICK = ("-q", "-p", "no:cacheprovider", "-m", "not slow and not torch and not engines")
#: Seconds of tests of a mutant at first, and of all that may be run.
FIRST, MOST = 20.0, 150.0
#: Changes that need an argument: the code to insert.
_WITH_ARGUMENTS = ("core/VariableReplacer", "core/VariableInserter")
_PAGE, _REASONS = ROOT / "benchmarks" / "mutants.md", ROOT / "benchmarks" / "mutants_reasons.json"
_DATA = DATA / "mutants.csv"


class Mutant(NamedTuple):
    """A change: the file below ``src``, the operator, which of its places in the file, and the first line there."""

    file: str
    operator: str
    occurrence: int
    line: int

    def changed(self) -> str:
        """The file with it."""
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        code = (ROOT / "src" / self.file).read_text(encoding="utf-8")
        found = mutate_code(code, get_operator(self.operator)(), self.occurrence)
        if found is None:
            raise LookupError(f"no such place: {self}")
        return str(found)

    def shown(self) -> list[str]:
        """The lines that it takes and gives."""
        was, now = (ROOT / "src" / self.file).read_text(encoding="utf-8"), self.changed()
        lines = difflib.unified_diff(was.splitlines(), now.splitlines(), n=0, lineterm="")
        return [
            f"{line[0]} {line[1:].strip()}" for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")
        ]

    def key(self) -> str:
        """A name by which a reason is found, also where lines above it have changed."""
        text = json.dumps([self.file, self.operator, *self.shown()])
        return hashlib.sha256(text.encode()).hexdigest()[:10]


def every_place() -> dict[tuple[str, int, int, int, int], list[Mutant]]:
    """Mutants by their place: file, and where it begins and ends."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    out: dict[Any, list[Mutant]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((ROOT / "src" / "calibrant" / folder).rglob("*.py")):
            code, file = path.read_text(encoding="utf-8"), path.relative_to(ROOT / "src").as_posix()
            skipped = [*_annotations(ast.parse(code))]
            nodes = [*ast_nodes(get_ast(code))]
            for name in sorted(set(operator_names()) - {*_WITH_ARGUMENTS}):
                operator = get_operator(name)()
                places = (place for node in nodes for place in operator.mutation_positions(node))
                for i, (start, end) in enumerate(places):
                    if not any(low <= start and end <= high for low, high in skipped):
                        out[(file, *start, *end)].append(Mutant(file, name, i, start[0]))
    return out


def _annotations(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations begin and end: nothing reads them when a test runs."""
    for node in ast.walk(tree):
        for found in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(found, ast.expr):
                yield (found.lineno, found.col_offset), (found.end_lineno or 0, found.end_col_offset or 0)


def drawn(number: int, others: int) -> tuple[list[Mutant], list[Mutant]]:
    """``number`` mutants of different places, and ``others`` at other places, which nobody has looked at."""
    rng = random.Random(0)
    places = every_place()
    some = rng.sample(sorted(places), number)
    out = [rng.choice(places[place]) for place in some]
    rest = rng.sample(sorted(places.keys() - set(some)), others)
    return out, [rng.choice(places[place]) for place in rest]


class Tests(NamedTuple):
    """Tests that run each line of each file; of each test its seconds, and in which run its lines were seen."""

    lines: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]
    run: dict[str, int]


def covering(store: Path, jobs: int) -> Tests:
    """What is kept with the code, and a run of the files of tests that are new or have changed since."""
    from coverage import CoverageData

    data, seen = store / f"{provenance.code()}.coverage", store / f"{provenance.code()}.tests.json"
    known = json.loads(seen.read_text(encoding="utf-8")) if seen.is_file() and data.is_file() else {}
    there = {
        path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    if new := [file for file, text in there.items() if known.get(file, [""])[0] != text]:
        run = max((each[2] for each in known.values()), default=-1) + 1
        times = store / "times.xml"
        command = [sys.executable, "-m", "pytest", *QUICK, *new, "-n", str(jobs), f"--junitxml={times}"]
        command += ["--cov=calibrant", "--cov-append", "--cov-context=test", "--cov-report="]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"COVERAGE_FILE": str(data)}, check=False)
        known |= {file: [there[file], {}, run] for file in new}
        for case in ET.parse(times).iter("testcase"):
            path = case.attrib["classname"].replace(".", "/") + ".py"
            known[path][1][f"{path}::{case.attrib['name']}"] = float(case.attrib["time"])
        write_text(seen, json.dumps(known))
    seconds = {test: each for file in there for test, each in known[file][1].items()}
    of_run = {test: known[file][2] for file in there for test in known[file][1]}
    kept = CoverageData(str(data))
    kept.read()
    out: dict[str, dict[int, set[str]]] = {}
    for file in kept.measured_files():
        name = Path(file).relative_to(ROOT / "src").as_posix()
        ran = kept.contexts_by_lineno(file).items()
        out[name] = {line: {one.rsplit("|", 1)[0] for one in tests} & seconds.keys() for line, tests in ran}
    return Tests(out, seconds, of_run)


def tests_of(mutant: Mutant, tests: Tests, after: int) -> list[str]:
    """Tests that run its line, the fastest first; those of the whole file, where the line runs at import only.

    A survivor is judged again by those that were first run ``after`` it.
    """
    lines = tests.lines.get(mutant.file, {0: set()})
    found = lines.get(mutant.line) or set().union(*lines.values())
    return sorted((t for t in found if tests.run[t] > after), key=lambda test: (tests.seconds[test], test))


def judged(mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> dict[str, Any]:
    """Whether a test fails with it: first some, then all within the time there is."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        write_text(source / mutant.file, mutant.changed())
        done, spent = 0, 0.0
        for limit in (FIRST, MOST):
            some = []
            while done < len(tests) and (not some or spent + seconds[tests[done]] <= limit):
                spent += seconds[tests[done]]
                some.append(tests[done])
                done += 1
            if some and _fails(some, source):
                return {"killed": True, "tests": done}
    return {"killed": False, "tests": done}


def _fails(tests: list[str], source: Path) -> bool:
    listed = source.parent / "tests.txt"
    write_text(listed, "\n".join(tests))
    command = [sys.executable, "-m", "pytest", *QUICK, "-x", "--no-header", f"@{listed}"]
    environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=4 * MOST, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def rows_of(some: list[Mutant], others: list[Mutant], known: dict[Mutant, dict[str, Any]]) -> dict[str, list[Any]]:
    """Columns of the data file: of mutants that were only counted it does not say what they change."""
    drawn_as = [(mutant, mutant in some) for mutant in some + others]
    out: dict[str, list[Any]] = {"counted": ["mutant" if listed else "other" for _, listed in drawn_as]}
    out |= {name: [getattr(mutant, name) for mutant, _ in drawn_as] for name in Mutant._fields}
    out["key"] = [mutant.key() if listed else "" for mutant, listed in drawn_as]
    out["change"] = [json.dumps(mutant.shown()) if listed else "" for mutant, listed in drawn_as]
    for name in ("killed", "tests", "run"):
        out[name] = [int(known[mutant][name]) for mutant, _ in drawn_as]
    return out


def page(kept: Kept) -> Iterator[str]:
    """The page; of others only how many are noticed."""
    reasons = json.loads(_REASONS.read_text(encoding="utf-8")) if _REASONS.is_file() else {}
    yield "# How many small changes to the core does a test notice?"
    yield ""
    found, others = kept.where(counted="mutant"), kept.where(counted="other")
    text = (
        f"{share(found['killed'])} % of {len(found)} drawn mutants make a quick test fail. It was "
        f"{share(found['killed'] * (found['run'] == 0))} % before tests were written for unnoticed ones. "
        f"{share(others['killed'])} % of {len(others)} others, which nobody has looked at, do."
    )
    yield from textwrap.wrap(text, 120)
    yield ""
    rows = []
    for folder in FOLDERS:
        here = np.array([file.startswith(f"calibrant/{folder}/") for file in found.columns["file"]])
        rows.append([f"`{folder}/`", str(here.sum()), share(found["killed"][here])])
    yield from table(("folder", "mutants", "noticed, %"), rows)
    yield ""
    yield "## Survivors"
    yield ""
    listed = zip(*(found.columns[name] for name in ("killed", "file", "key", "tests", "change")), strict=True)
    for killed, file, key, tests, change in listed:
        if killed == "0":
            why = reasons.get(key, "no reason yet")
            yield f"- `{file.removeprefix('calibrant/')}` ({key}, {tests} tests): {why}"
            yield ""
            yield "  ```diff"
            yield from (f"  {line}" for line in json.loads(change))
            yield "  ```"
            yield ""
    yield f"Run again with `{kept.header['command']}`. All mutants are in `{_DATA.relative_to(ROOT)}` (calibrant"
    yield f"{kept.header['calibrant']}, commit {kept.header['commit']})."


def rendered() -> str:
    """The page, from the data file."""
    return "\n".join(page(Kept.read(_DATA))) + "\n"


def main() -> None:
    made = arguments.parser(__doc__, jobs=1)
    made.add_argument("--number", type=int, default=400, help="mutants (default %(default)s)")
    made.add_argument("--others", type=int, default=100, help="mutants that are only counted (default %(default)s)")
    made.add_argument("--store", type=Path, default=Path.home() / ".cache" / "calibrant-mutants", metavar="FOLDER")
    made.add_argument("--page", action="store_true", help="write the page from what is kept")
    options = made.parse_args()
    if not options.page:
        _run(options)
    write_text(_PAGE, rendered())
    print(rendered())


def _run(options: argparse.Namespace) -> None:
    """Judge what has not been judged, and keep it in the data file."""
    options.store.mkdir(parents=True, exist_ok=True)
    tests = covering(options.store, options.jobs)
    now, (some, others) = max(tests.run.values()), drawn(options.number, options.others)
    mutants = some + others
    with lines_of(options.store / f"{provenance.code()}.jsonl") as (there, add):
        known = {Mutant(*key): result for key, result in there}
        missing = {m: tests_of(m, tests, known.get(m, {"run": -1})["run"]) for m in mutants}
        missing = {m: found for m, found in missing.items() if m not in known or (found and not known[m]["killed"])}
        done = len(mutants) - len(missing)
        each = (delayed(_kept)(m, found, tests.seconds) for m, found in missing.items())
        for mutant, result in Parallel(options.jobs, return_as="generator_unordered", batch_size=1)(each):
            before = known.get(mutant, {"tests": 0})["tests"]
            known[mutant] = {"killed": result["killed"], "tests": before + result["tests"], "run": now}
            add([mutant, known[mutant]])
            done += 1
            print(f"{done} of {len(mutants)}", flush=True)
    about = provenance.header(
        "benchmarks.mutants",
        f"python -m benchmarks.mutants --number {options.number} --others {options.others}",
        "0, for all that is drawn",
        float("nan"),  # of processes, some of other runs
        sorted({mutant.file.removesuffix(".py").replace("/", ".") for mutant in mutants}),
        ("cosmic-ray", "pytest"),
    )
    Kept(about, rows_of(some, others, known)).write(_DATA)


def _kept(mutant: Mutant, tests: list[str], seconds: dict[str, float]) -> tuple[Mutant, dict[str, Any]]:
    return mutant, judged(mutant, tests, seconds)


if __name__ == "__main__":
    main()

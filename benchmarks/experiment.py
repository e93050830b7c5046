"""Experiments: cases, samples of each that a seed repeats, and a page made from what is kept of them.

A script makes an :class:`Experiment` and ends with ``EXPERIMENT.main()``, which takes these options::

    python -m benchmarks.NAME [--repetitions N] [--jobs J] [--only TEXT]    run what is missing, keep it, write the page
    python -m benchmarks.NAME --more                                        the same, beside what the data file holds
    python -m benchmarks.NAME --quick                                       repeat a few samples of what is kept
    python -m benchmarks.NAME --page                                        write the page from what is kept

What has been run is a line each of a file beside the data file, so that a stopped run goes on where it was.
"""

from __future__ import annotations

import importlib.util
import itertools
import resource
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from matplotlib.figure import Figure

from calibrant.data.writing import write_text

from . import arguments, charts, provenance
from .provenance import DATA, ROOT, Kept
from .store import lines_of

#: Numbers of a sample by name, or of several samples.
Numbers = Mapping[str, float | Sequence[float]]
#: Relative difference of a repeated number that counts as none.
_SAME = 1e-9


@dataclass(frozen=True)
class Experiment:
    """A question, samples that answer it, and the page made from them.

    Parameters
    ----------
    module : str
        The script's name, ``__spec__.name``.
    cases : mapping of str to values
        Columns that tell cases apart, with the values of each: every combination is a case.
    sample : callable
        ``sample(**case, seed)`` returns the numbers of a sample by name, or lists of numbers: of several samples that
        are computed side by side, each a row of what is kept. Nothing else is random.
    answer : callable
        The answer in a sentence or two, from what is kept.
    page : callable
        Lines of the page below answer and picture, from what is kept: a table, and what its columns are.
    picture : callable, optional
        A figure, from what is kept.
    repetitions : int
        Samples of a case.
    quick : int
        Samples that ``--quick`` repeats: together no more than five seconds; 0 where another machine repeats none.
    timed : collection of str
        Numbers that are times, which nothing repeats.
    figures : mapping of str to callables
        Texts that other pages quote, from what is kept and the arguments of the quotation.
    some : callable, optional
        Which combinations are cases.
    portion : callable, optional
        Share of the repetitions that a combination gets, where some take long; at least one.
    needs : sequence of str
        Modules of other packages, without which no sample can be repeated.
    here : callable, optional
        Whether the data of a combination are on this machine: ``--quick`` repeats no others.
    at : str, optional
        The page, from the root of the checkout; by default beside the script.
    packages : sequence of str
        Distributions whose versions the data file and the page give.
    """

    module: str
    cases: Mapping[str, Sequence[Any]]
    sample: Callable[..., Numbers]
    answer: Callable[[Kept], str]
    page: Callable[[Kept], Iterable[str]]
    picture: Callable[[Kept], Figure] | None = None
    repetitions: int = 100
    quick: int = 3
    timed: Sequence[str] = ()
    figures: Mapping[str, Callable[..., str]] = field(default_factory=dict)
    some: Callable[..., bool] | None = None
    portion: Callable[..., float] | None = None
    needs: Sequence[str] = ()
    here: Callable[..., bool] | None = None
    at: str = ""
    packages: Sequence[str] = ()

    @property
    def name(self) -> str:
        """``coverage.optimism`` of ``benchmarks.coverage.optimism``."""
        return self.module.removeprefix("benchmarks.")

    @property
    def question(self) -> str:
        """The first line of the script's docstring."""
        return self._texts[0]

    @property
    def _texts(self) -> list[str]:
        return _paragraphs(sys.modules[self.sample.__module__].__doc__)

    @property
    def data(self) -> Path:
        """The data file."""
        return DATA / Path(*self.name.split(".")).with_suffix(".csv")

    @property
    def page_file(self) -> Path:
        """The page."""
        return ROOT / self.at if self.at else ROOT / Path(*self.module.split(".")).with_suffix(".md")

    @property
    def picture_file(self) -> Path:
        """The picture, beside the page."""
        return self.page_file.with_suffix(".svg")

    @property
    def missing(self) -> list[str]:
        """Those modules it needs that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    @cached_property
    def kept(self) -> Kept:
        """What the data file holds; FileNotFoundError where the experiment has not been run."""
        return Kept.read(self.data)

    def every(self) -> list[dict[str, Any]]:
        """All cases."""
        every = [dict(zip(self.cases, values, strict=True)) for values in itertools.product(*self.cases.values())]
        return every if self.some is None else [case for case in every if self.some(**case)]

    @property
    def repeatable(self) -> list[dict[str, Any]]:
        """Cases whose data are on this machine."""
        return [case for case in self.every() if self.here is None or self.here(**case)]

    def _portion(self, case: Mapping[str, Any]) -> float:
        return 1.0 if self.portion is None else self.portion(**case)

    def run(self, repetitions: int, jobs: int = 1, only: str = "", more: bool = False) -> bool:
        """Run what is missing; whether all samples are there, which are then kept in the data file.

        With ``more``, what the data file holds is not run again, once the samples of a quick run have agreed.
        """
        cases = [(case, max(1, round(repetitions * self._portion(case)))) for case in self.every()]
        asked = [(case, seed) for seed in range(repetitions) for case, number in cases if seed < number]
        path = self.data.with_suffix(".running.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        with lines_of(path) as (there, add):
            if not there:
                add(provenance.code())
            elif there[0] != provenance.code():
                raise SystemExit(f"{path} was begun with other code: delete it to begin again")
            if more and len(there) < 2:
                if wrong := self.check():
                    raise SystemExit("\n".join(["what is kept is of other code:", *wrong]))
                for line in self._lines():
                    add(line)
                there = [provenance.code(), *self._lines()]
            known = {(*case.values(), seed): (numbers, took) for case, seed, numbers, took in there[1:]}
            missing = [
                (c, s) for c, s in asked if (*c.values(), s) not in known and only in " ".join(map(str, c.values()))
            ]
            found = Parallel(jobs, return_as="generator_unordered", batch_size=1)(
                delayed(_timed)(self.sample, case, seed) for case, seed in missing
            )
            for i, (case, seed, numbers, took) in enumerate(found, 1):
                add([case, seed, numbers, took])
                known[(*case.values(), seed)] = (numbers, took)
                if i % max(len(missing) // 20, 1) == 0:
                    print(f"{i:,} of {len(missing):,} samples", flush=True)
        if any((*case.values(), seed) not in known for case, seed in asked):
            return False
        self._keep(asked, known, repetitions)
        path.unlink()
        return True

    def _keys(self) -> Iterator[tuple[str, ...]]:
        """Case and seed of each row of the data file."""
        return zip(*(map(str, self.kept.columns[name]) for name in (*self.cases, "seed")), strict=True)

    def _lines(self) -> Iterator[list[Any]]:
        """What the data file holds, as lines of a run: a case, a seed, its numbers and CPU seconds."""
        kept = self.kept
        columns = {name: kept[name].tolist() for name in kept.columns if name not in (*self.cases, "seed")}
        cases = {tuple(map(str, case.values())): case for case in self.every()}
        rows: dict[tuple[str, ...], list[int]] = {}
        for i, key in enumerate(self._keys()):
            rows.setdefault(key, []).append(i)
        took = float(kept.header["seconds"]) / len(rows)
        for (*values, seed), some in rows.items():
            if tuple(values) not in cases:
                continue
            found = {name: [column[i] for i in some] for name, column in columns.items()}
            one = {name: v if len(v) > 1 else v[0] for name, v in found.items() if any(x == x for x in v)}
            yield [cases[tuple(values)], int(seed), one, took]

    def _keep(self, asked: list[Any], known: Mapping[Any, Any], repetitions: int) -> None:
        rows = [
            ({**case, "seed": seed}, one) for case, seed in asked for one in _rows(known[(*case.values(), seed)][0])
        ]
        nan = float("nan")
        names = list(dict.fromkeys(name for _, numbers in rows for name in numbers))
        if twice := {*self.cases, "seed"} & {*names}:
            raise ValueError(f"numbers have names of cases: {sorted(twice)}")
        # As text: what tells cases apart is compared as such.
        columns: dict[str, list[Any]] = {name: [str(case[name]) for case, _ in rows] for name in (*self.cases, "seed")}
        columns |= {name: [float(numbers.get(name, nan)) for _, numbers in rows] for name in names}
        case, seed = asked[0]
        _timed(self.sample, case, seed)  # here, so that what it loads is seen
        about = provenance.header(
            self.module,
            f"python -m {self.module} --repetitions {repetitions}",
            "the number of the sample, with its case",
            sum(known[(*case.values(), seed)][1] for case, seed in asked),
            provenance.loaded(),
            self.packages,
        )
        Kept(about, columns).write(self.data)
        self.__dict__.pop("kept", None)

    def check(self) -> list[str]:
        """Repeat a few samples; in what they differ from those kept."""
        kept, out = self.kept, []
        cases = {tuple(map(str, case.values())): case for case in self.repeatable}
        if not cases:
            return ["no data of any case are on this machine"]
        every = [key for key in dict.fromkeys(self._keys()) if key[:-1] in cases]
        for at in np.unique(np.linspace(0, len(every) - 1, self.quick).astype(int)).tolist():
            *values, seed = every[at]
            case = cases[tuple(values)]
            there = kept.where(**case, seed=seed)
            again = _rows(_timed(self.sample, case, int(seed))[2])
            for name in again[0].keys() - set(self.timed):
                value = np.array([one[name] for one in again], dtype=float)
                was = there[name] if name in there.columns else np.empty(0)
                if value.shape != was.shape or not np.allclose(value, was, rtol=_SAME, atol=1e-12, equal_nan=True):
                    out.append(f"{name} of {case}, sample {seed}, is {_shown(value)}; {_shown(was)} is kept")
        return out

    def rendered(self) -> str:
        """The page: question, answer, picture, table, setting, and where its numbers come from."""
        question, *setting = self._texts
        parts = [f"# {question}", wrapped(self.answer(self.kept))]
        if self.picture is not None:
            parts.append(f"![{question}]({self.picture_file.name})")
        parts += ["\n".join(self.page(self.kept)).strip(), "## Setting", *setting, "\n".join(_source(self))]
        return "\n\n".join(part for part in parts if part) + "\n"

    def write_page(self) -> None:
        """The page and its picture."""
        if self.picture is not None:
            charts.write(self.picture(self.kept), self.picture_file)
        write_text(self.page_file, self.rendered())

    def figure(self, name: str, *given: Any) -> str:
        """A text that other pages quote: one of ``figures``, or what `Kept.figure` reads."""
        if name in self.figures:
            return self.figures[name](self.kept, *given)
        return self.kept.figure(name, *given)

    def main(self) -> None:
        """The command, of the script as a module: other processes find nothing in ``__main__``."""
        if self.sample.__module__ == "__main__":
            importlib.import_module(self.module).EXPERIMENT.main()
            return
        made = arguments.parser(sys.modules["__main__"].__doc__, repetitions=self.repetitions, jobs=1, only="cases")
        made.add_argument("--quick", action="store_true", help="repeat a few samples of what is kept")
        made.add_argument("--page", action="store_true", help="write the page from what is kept")
        made.add_argument("--more", action="store_true", help="add samples to what is kept, where these still agree")
        options = made.parse_args()
        if self.missing and not options.page:
            raise SystemExit(f"{self.name} needs {', '.join(self.missing)}")
        if options.quick:
            wrong = self.check()
            raise SystemExit("\n".join(wrong) if wrong else 0)
        if not options.page and not self.run(options.repetitions, options.jobs, options.only, options.more):
            raise SystemExit("samples are missing: nothing was kept")
        self.write_page()
        print(self.page_file.read_text(encoding="utf-8"))


def _rows(numbers: Numbers) -> list[dict[str, float]]:
    """Samples that were computed side by side, one by one."""
    lists = {name: value for name, value in numbers.items() if not isinstance(value, int | float)}
    size = len(next(iter(lists.values()))) if lists else 1
    return [{name: value[i] if name in lists else value for name, value in numbers.items()} for i in range(size)]  # type: ignore[index, misc]


def _shown(values: np.ndarray) -> str:
    return ", ".join(f"{value:.12g}" for value in values[:3]) + (", …" if values.size > 3 else "")


def _timed(sample: Callable[..., Numbers], case: dict[str, Any], seed: int) -> tuple[Any, ...]:
    began = _spent()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = dict(sample(**case, seed=seed))
    return case, seed, numbers, _spent() - began


def _spent() -> float:
    """CPU seconds of this process, and of those that it has waited for."""
    others = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + others.ru_utime + others.ru_stime


def _source(one: Experiment) -> Iterator[str]:
    about = one.kept.header
    yield f"Run again with `{about['command']}` ({float(about['seconds']) / 60:,.0f} CPU minutes). All samples:"
    yield f"`{one.data.relative_to(ROOT)}` (commit {about['commit']})."
    if one.packages:
        yield f"Run on {about['machine']}, with {about['packages']}."


def _paragraphs(doc: str | None) -> list[str]:
    """Of a script's docstring, all but the command."""
    return [one for one in (doc or "").strip().split("\n\n") if not one.startswith("    ")]


def wrapped(text: str, first: str = "", rest: str = "") -> str:
    """A paragraph in lines."""
    return textwrap.fill(
        " ".join(text.split()), 119, initial_indent=first, subsequent_indent=rest, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def every_experiment() -> dict[str, Experiment]:
    """All experiments, by name: scripts that make one."""
    out = {}
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        if "\nEXPERIMENT = " in path.read_text(encoding="utf-8"):
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            out[module.EXPERIMENT.name] = module.EXPERIMENT
    return out

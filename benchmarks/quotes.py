"""Figures that pages quote, read from data files: `python -m benchmarks.quotes [--check]`.

A page quotes with a comment, which is not shown, before the figure, and one behind it::

    covers in <!-- figure coverage.shares coverage "draws as rows" -->94.8<!-- end --> % of samples

The comment names the experiment, the figure (one of its ``figures``) and what it is of; or the mean or percentage of a
column of its data file in some cases, ``coverage.power percent.1 rejected test=Cox n=500``. Data files beside other
pages are quoted in the same way, by path: ``docs/benchmark/estimators.csv mean.2 rel_p95 estimator=smooth size=115``. A
list of links to pages of experiments, with the question that each asks, is a quotation too::

    <!-- questions coverage.power coverage.sums_tests -->
    <!-- end -->

and so are the answers that experiments give, each a point of a list with a link to its page::

    <!-- answers coverage.groups coverage.few_groups -->
    <!-- end -->

The text between is written by this script; ``--check`` writes nothing and fails where a page says something else.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from calibrant.data.writing import write_text

from . import arguments
from .experiment import Experiment, every_experiment, wrapped
from .provenance import ROOT, Kept

_QUOTED = re.compile(
    r"(?P<start><!-- (?P<kind>figure|questions|answers) (?P<call>[^>]*?) -->).*?<!-- end -->", re.DOTALL
)


def pages() -> Iterable[Path]:
    """Pages that may quote."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]


def filled(text: str, page: Path) -> str:
    """A page with its figures as they are kept, and its questions as they are asked."""
    experiments = every_experiment() if _QUOTED.search(text) else {}

    def one(found: re.Match[str]) -> str:
        given = shlex.split(found["call"])
        if found["kind"] == "figure":
            name, *asked_for = given
            said = (Kept.read(ROOT / name) if name.endswith(".csv") else experiments[name]).figure(*asked_for)
        else:
            asked = [experiments[name] for name in given]
            points = _questions(asked, page) if found["kind"] == "questions" else _answers(asked, page)
            said = "\n\n" + "".join(f"{point}\n" for point in points) + "\n"
        return f"{found['start']}{said}<!-- end -->"

    return _QUOTED.sub(one, text)


def _questions(asked: list[Experiment], page: Path) -> list[str]:
    return [f"- [{one.question}]({_link(one, page)})" for one in asked if one.page_file.is_file()]


def _answers(asked: list[Experiment], page: Path) -> list[str]:
    said = (
        f"{one.answer(one.kept)} ([{one.name.split('.')[-1].replace('_', ' ')}]({_link(one, page)}))" for one in asked
    )
    return [wrapped(text, first="- ", rest="  ") for text in said]


def _link(one: Experiment, page: Path) -> str:
    return os.path.relpath(one.page_file, page.parent)


def wrong() -> list[str]:
    """Pages that say something else than the data files."""
    return [str(p.relative_to(ROOT)) for p in pages() if filled(text := p.read_text(encoding="utf-8"), p) != text]


def main() -> None:
    made = arguments.parser(__doc__)
    made.add_argument("--check", action="store_true", help="write nothing; fail where a page says something else")
    if made.parse_args().check:
        sys.exit("\n".join(f"{name} quotes a figure that is not what is kept" for name in wrong()) or 0)
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if filled(text, path) != text:
            write_text(path, filled(text, path))
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()

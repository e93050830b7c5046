"""How old evidence is: `python -m benchmarks.status [--check] [--only TEXT]`.

A line for each experiment: the commit that it was run on, how many of the modules that ran have changed since (which
need not matter), whether its quick run still gives what is kept, whether its page is what the data file says, and the
CPU time of a full run. ``--check`` fails where a quick run or a page disagrees, or a page quotes another figure. Below
stands how many words the pages have that the index of evidence links to, tables included.
"""

from __future__ import annotations

import re
import sys
import time

from . import arguments, quotes
from .experiment import Experiment, every_experiment
from .provenance import ROOT

_UNREAD = re.compile(r"<!--.*?-->|\]\([^)]*\)|^```.*?^```", re.DOTALL | re.MULTILINE)


def line(one: Experiment) -> tuple[list[str], list[str]]:
    """Cells of the table, and what is wrong."""
    if not one.data.is_file():
        return [one.name, "not run", "", "", "", ""], []
    began = time.perf_counter()
    missing = one.missing or ([] if one.repeatable else ["data"])
    differs = [] if missing else one.check()
    took = time.perf_counter() - began
    stale = not one.page_file.is_file() or one.page_file.read_text(encoding="utf-8") != one.rendered()
    quick = ("differs" if differs else "same") + f", {took:.1f} s" if one.quick else "none"
    if missing:
        quick = f"needs {', '.join(missing)}"
    changed, about = one.kept.changed, one.kept.header
    cells = [
        one.name,
        about["commit"],
        f"{len(changed)} of {len(about['modules'].split())}" if changed else "none",
        quick,
        "differs" if stale else "same",
        f"{float(about['seconds']) / 60:.1f} min",
    ]
    return cells, [f"{one.name}: {text}" for text in differs] + ([f"{one.name}: its page"] if stale else [])


def words() -> dict[str, int]:
    """Words of each page that the index of evidence links to: numbers count, marks alone and addresses do not."""
    index = ROOT / "docs" / "evidence.md"
    links = (index.parent / link for link in re.findall(r"\]\(([^)#]+\.md)", index.read_text(encoding="utf-8")))
    # Not those that are made with the site, of which nothing is written by hand.
    pages = {path.resolve() for path in links if path.is_file() and path.parent.name != "tables"}
    return {
        str(path.relative_to(ROOT)): len(re.findall(r"\S*\w\S*", _UNREAD.sub("", path.read_text(encoding="utf-8"))))
        for path in sorted(pages)
    }


def main() -> None:
    made = arguments.parser(__doc__, only="experiments")
    made.add_argument("--check", action="store_true", help="fail where anything disagrees")
    options = made.parse_args()
    wrong = [f"{name} quotes a figure that is not what is kept" for name in quotes.wrong()]
    rows = [["experiment", "commit", "changed", "quick run", "page", "a run"]]
    for name, one in every_experiment().items():
        if options.only in name:
            cells, differs = line(one)
            rows.append(cells)
            wrong += differs
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    found = words()
    print(f"{sum(found.values()):,} words of evidence on {len(found)} pages")
    print("\n".join(wrong))
    if options.check and wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()

"""Ten thousand random reports: does the verdict of any contradict its numbers, or its numbers each other?

    python -m benchmarks.contradictions [--reports 10000] [--first 0] [--kept FILE] [--write FILE]

Reports and what must hold of each are those of `tests/property/test_verdict.py`. A report that contradicts itself is
printed with the seed that repeats it. What was found is kept in FILE, so that a stopped run goes on where it was.
"""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from tests.property.test_verdict import contradictions, drawn

import calibrant as cal
from calibrant.data.writing import write_text

from . import arguments
from .store import lines_of


def judged(seed: int) -> tuple[str, str]:
    """Verdict of a random report, and in what it contradicts itself: nothing, as a rule."""
    y, p, given = drawn(seed)
    report = cal.report(y, p, **given)
    verdict = f"{report.evidence.status}, matters: {report.evidence.matters}"
    try:
        contradictions(report, y, p, given)
    except AssertionError as error:
        return verdict, str(error) or "an assertion failed"
    return verdict, ""


def main() -> None:
    parser = arguments.parser(__doc__, write=True)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first report")
    parser.add_argument("--kept", type=Path, help="what was found of each report")
    options = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
    seeds = range(options.first, options.first + options.reports)
    with nullcontext(([], list)) if options.kept is None else lines_of(options.kept) as (there, add):
        kept = {seed: (verdict, wrong) for seed, verdict, wrong in there}
        for seed in seeds:
            if seed not in kept:
                kept[seed] = judged(seed)
                add([seed, *kept[seed]])
    wrong = {seed: kept[seed][1] for seed in seeds if kept[seed][1]}
    for seed, words in wrong.items():
        print(f"report {seed}: {words}")
    found = Counter(kept[seed][0] for seed in seeds)
    lines = [
        f"{options.reports:,} reports (seeds from {options.first:,}): {len(wrong)} contradict themselves",
        "",
        "| verdict | reports |",
        "|---|---:|",
        *(f"| {name} | {count:,} |" for name, count in found.most_common()),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write is not None:
        page = f"# Reports that contradict themselves\n\nWritten by `python -m benchmarks.contradictions`.\n\n{text}"
        write_text(options.write, page)


if __name__ == "__main__":
    main()

"""Ten thousand random reports: does the verdict of any contradict its numbers, or its numbers each other?

    python -m benchmarks.contradictions [--reports 10000] [--first 0] [--write FILE]

Reports and what must hold of each are those of `tests/property/test_verdict.py`. A report that contradicts itself is
printed with the seed that repeats it.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter

from tests.property.test_verdict import contradictions, drawn

import calibrant as cal

from . import arguments


def main() -> None:
    parser = arguments.parser(__doc__, write=True)
    parser.add_argument("--reports", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first report")
    options = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", cal.CalibrantWarning)
    start, wrong, found = time.process_time(), 0, Counter[str]()
    for seed in range(options.first, options.first + options.reports):
        y, p, given = drawn(seed)
        report = cal.report(y, p, **given)
        found[f"{report.evidence.status}, matters: {report.evidence.matters}"] += 1
        try:
            contradictions(report, y, p, given)
        except AssertionError as error:
            wrong += 1
            print(f"report {seed}: {error}", flush=True)
    lines = [
        f"{options.reports:,} reports (seeds from {options.first:,}), {time.process_time() - start:.0f} s: {wrong} "
        "contradict themselves",
        "",
        "| verdict | reports |",
        "|---|---:|",
        *(f"| {name} | {count:,} |" for name, count in found.most_common()),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write is not None:
        page = f"# Reports that contradict themselves\n\nWritten by `python -m benchmarks.contradictions`.\n\n{text}"
        options.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

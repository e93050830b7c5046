"""What a class-wise report of a thousand classes costs, part by part, and what fewer draws a class would save.

    python -m benchmarks.speed.many_classes [--rows 20000] [--classes 1000] [--write FILE]

The frontier: processor seconds of the whole report against the width of its intervals, by the draws a class from which
an interval's spread and centre are found. Values alone, without any interval, are the floor of what can be saved there.
"""

from __future__ import annotations

import time
from dataclasses import replace

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np

import calibrant as cal
from calibrant.measure import question

from .. import arguments


def main() -> None:
    parser = arguments.parser(__doc__, write=True)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--classes", type=int, default=1000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((options.rows, options.classes))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((options.rows, 1))).sum(axis=1)
    predictions = cal.as_predictions(y, p, labels=list(range(options.classes)))
    cal.report(replace(predictions, probs=p[:100], codes=predictions.codes[:100]), notion="classwise")  # imports

    start = time.process_time()
    str(cal.report(predictions, notion="classwise"))
    parts = {"report and its text": time.process_time() - start}
    estimators = {"empirical Bayes": cal.EmpiricalBayes(), "residuals over ranks": cal.estimators.ResidualKernel()}
    estimators |= {
        "density": cal.estimators.Density(),
        "15 bins": cal.Binned(),
        "15 quantile bins": cal.Binned(strategy="quantile"),
    }
    for name, estimator in estimators.items():
        start = time.process_time()
        cal.calibration_error(predictions, notion="classwise", estimator=estimator)
        parts[f"value: {name}"] = time.process_time() - start
    widths: dict[str, float] = {}
    reports = []
    for draws in (8, 4, 2):
        question.FEWEST = question.MOST_OF_FEW = draws
        start = time.process_time()
        found = cal.report(predictions, notion="classwise").estimates
        seconds = time.process_time() - start
        now = {name: e.interval.high - e.interval.low for name, e in found.items()}
        widths = widths or now
        reports.append((draws, seconds, float(np.mean([now[k] / widths[k] for k in now if widths[k] > 0]))))
    text = page(options.rows, options.classes, parts, reports)
    print(text)
    if options.write is not None:
        options.write.write_text(text, encoding="utf-8")


def page(rows: int, classes: int, parts: dict[str, float], reports: list[tuple[int, float, float]]) -> str:
    """The two tables, and what the second says of a report without any draw."""
    slope, floor = np.polyfit([draws for draws, _, _ in reports], [seconds for _, seconds, _ in reports], 1)
    lines = [
        f"# What a class-wise report of {classes} classes costs",
        "",
        f"Written by `python -m benchmarks.speed.many_classes --rows {rows} --classes {classes} --write FILE`;",
        "processor seconds of one core, one run.",
        "",
        "| part | CPU s |",
        "|---|--:|",
        *(f"| {name} | {seconds:.1f} |" for name, seconds in parts.items()),
        "",
        "| draws a class | CPU s of the report with all its intervals | mean width of intervals, of that with 8 |",
        "|--:|--:|--:|",
        *(f"| {draws} | {seconds:.1f} | {share:.2f} |" for draws, seconds, share in reports),
        "",
        f"A draw a class costs {slope:.1f} s. By a straight line, no draws leave {floor:.1f} s: sorting and sums of",
        "every class, its values by five estimators, its fitted maps and what power the report states.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""What a report of a thousand classes costs, part by part.

    python -m benchmarks.speed.many_classes [--rows 20000] [--classes 1000] [--write FILE]

The gain of a repair, and intervals of secondary estimators, are computed when they are read: the rows after the first
of each report say what they cost.
"""

from __future__ import annotations

import time
from dataclasses import replace

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np

import calibrant as cal
from calibrant.data.writing import write_text

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

    parts = {}
    for name, notion in {"report": "auto", "class-wise report": "classwise"}.items():
        start = time.process_time()
        report = cal.report(predictions, notion=notion)
        parts[name] = time.process_time() - start
        str(report)
        parts[f"{name} and its text"] = time.process_time() - start
        intervals = [e.interval for e in report.estimates.values()]
        parts[f"the same, and {len(intervals)} intervals of the {name}"] = time.process_time() - start
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
    text = page(options.rows, options.classes, parts)
    print(text)
    if options.write is not None:
        write_text(options.write, text)


def page(rows: int, classes: int, parts: dict[str, float]) -> str:
    """The table."""
    lines = [
        f"# What a report of {classes} classes costs",
        "",
        f"Written by `python -m benchmarks.speed.many_classes --rows {rows} --classes {classes} --write FILE`;",
        "processor seconds of one core, one run.",
        "",
        "| part | CPU s |",
        "|---|--:|",
        *(f"| {name} | {seconds:.1f} |" for name, seconds in parts.items()),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Does any random report contradict itself?

    python -m benchmarks.contradictions [--repetitions 5000]

Labels, probabilities, weights, groups, classes, notions, levels and thresholds are random, for 1 to 3,000 rows of one
score, or 2 or 4 classes. Status, p-value, intervals, regions, gains and words of each report are compared with each
other and with its rows, as `tests/property/test_verdict.py` does with fewer reports. A warning not issued by the
package counts as an error.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Iterator

import calibrant as cal

from .experiment import Experiment
from .markdown import share, table
from .provenance import Kept

STATUS, MATTERS = ("miscalibrated", "no evidence", "undecided"), ("True", "False", "None")


def sample(reports: str, seed: int) -> dict[str, float]:
    """Status of a report and whether it matters, by their places above, and what is wrong with it."""
    from tests.property.test_verdict import contradictions, drawn  # here, for it needs pytest

    y, p, given = drawn(seed)
    out = {"contradicts itself": 0.0, "ends with an error": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        try:
            report = cal.report(y, p, **given)
            out["status"] = float(STATUS.index(report.evidence.status))
            out["matters"] = float(MATTERS.index(str(report.evidence.matters)))
            contradictions(report, y, p, given)
        except AssertionError:
            out["contradicts itself"] = 1.0
        except Exception:
            out["ends with an error"] = 1.0
    return out


def answer(kept: Kept) -> str:
    wrong, failed = kept["contradicts itself"], kept["ends with an error"]
    seeds = [seed for seed, bad in zip(kept.columns["seed"], wrong + failed, strict=True) if bad]
    one, two = (f"{int(bad.sum()):,}" if bad.any() else "none" for bad in (wrong, failed))
    itself = "contradict themselves" if wrong.sum() > 1 else "contradicts itself"
    return (
        f"{one.capitalize()} of {len(kept):,} reports {itself} ({share(wrong)} %), and {two} "
        f"{'end' if failed.sum() > 1 else 'ends'} with an error" + (f" (seeds: {', '.join(seeds)})." if seeds else ".")
    )


def page(kept: Kept) -> Iterator[str]:
    yield "The table counts reports by status and whether the error matters (`Report.evidence`)."
    yield ""
    yield from table(("status", "matters", "reports"), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for i, status in enumerate(STATUS):
        for j, matters in enumerate(MATTERS):
            held = (kept["status"] == i) & (kept["matters"] == j)
            if held.any():
                yield [status, matters, f"{held.sum():,}"]


EXPERIMENT = Experiment(
    __spec__.name, {"reports": ("random",)}, sample, answer, page, repetitions=5000, quick=2, needs=("pytest",)
)

if __name__ == "__main__":
    EXPERIMENT.main()

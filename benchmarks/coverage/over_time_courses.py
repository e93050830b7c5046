"""Calibration over time of subgroups and classes: does it see changes that are none?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.over_time_courses [--repetitions 400]

Subgroups (``by=``) and classes (``notion="classwise"``) that are followed over the same 4 periods. Five subgroups of
2,000 rows with uniform scores, of which none changes, or one by a step of 0.8 in the log-odds after row 1,200; ten of
4,000 rows with rare outcomes (beta 1, 10); and ten classes of 2,000 rows (Dirichlet 0.3).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

from ..experiment import Experiment, title
from ..markdown import share, table
from ..provenance import Kept

FOLLOWED = ("5 subgroups, uniform", "10 subgroups, rare", "10 classes", "5 subgroups, one changes")
TESTS = ("change", "trend", "periods")


def sample(followed: str, seed: int) -> dict[str, float]:
    """Which tests reject for any course at 0.05 after adjustment, and whether the first course is named if any is."""
    rng = np.random.default_rng([seed, 7, FOLLOWED.index(followed)])
    n, many = 4_000 if followed.endswith("rare") else 2_000, 10
    options: dict[str, Any] = {"every": n // 4, "estimator": cal.Binned(5)}
    if followed == "10 classes":
        s = rng.dirichlet(np.full(many, 0.3), n)
        y = (s.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        options |= {"notion": "classwise", "labels": range(many)}
    else:
        s = rng.beta(1, 10, n).clip(1e-9) if followed.endswith("rare") else rng.random(n)
        by = rng.integers(many if followed.startswith("10") else 5, size=n)
        moved = followed.endswith("changes") * 0.8 * ((by == 0) & (np.arange(n) >= 1_200))
        y = (rng.random(n) < expit(logit(s) + moved)).astype(int)
        options |= {"by": by, "labels": [0, 1]}
    found = cal.calibration_over_time(y, s, np.arange(n), **options)
    out = {t: float(any(one.adjusted[t] <= 0.05 for one in found.courses)) for t in TESTS}
    rejected = max(out.values())
    return out | {"any": rejected, "named": float(found.course == "0" and rejected > 0)}


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    calm = np.concatenate([kept.where(followed=one)["any"] for one in FOLLOWED if not one.endswith("changes")])
    moved = kept.where(followed=FOLLOWED[-1])
    yield (
        f"In {share(calm)} % of streams without a change one is said; the subgroup that changes is named in "
        f"{share(moved['named'])} %."
    )
    yield ""
    yield "Share of streams, in per cent with its standard error, in which a test rejects for any subgroup or class at"
    yield "0.05 after adjustment for all tests of all (Holm); *named*: for the first one, which changes where one does."
    yield ""
    names = (*TESTS, "any", "named")
    rows = [(kept.where(followed=one), one) for one in FOLLOWED]
    cells = ([one, f"{len(some)}", *(share(some[name]) for name in names)] for some, one in rows)
    yield from table(("followed", "streams", *names), cells)


EXPERIMENT = Experiment(__spec__.name, {"followed": FOLLOWED}, sample, page, repetitions=400, quick=3)

if __name__ == "__main__":
    EXPERIMENT.main()

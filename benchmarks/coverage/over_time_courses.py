"""Does calibration over time of subgroups and classes report changes that never happened?

    python -m benchmarks.coverage.over_time_courses [--repetitions 400]

Subgroups (`by=`) and classes (`notion="classwise"`) are followed over the same 4 periods. There are 2,000 rows of five
subgroups with uniform scores, where none changes, or one changes by a step of 0.8 in the log-odds after row 1,200;
4,000 rows of ten subgroups with rare outcomes (beta 1, 10); and 2,000 rows of ten classes (Dirichlet 0.3). A test
rejects at 0.05 after adjustment for all the stream's tests (Holm).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

FOLLOWED = ("5 subgroups, uniform", "10 subgroups, rare", "10 classes", "5 subgroups, one changes")
CALM, MOVED = FOLLOWED[:-1], FOLLOWED[-1]
TESTS = ("change", "trend", "periods")
#: Streams without a change in which one may be reported, in per cent.
MOST = 5


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


def answer(kept: Kept) -> str:
    calm = {one: kept.where(followed=one)["any"] for one in CALM}
    more = [f"{name}: {share(values)}" for name, values in calm.items() if percent(values)[0] > MOST]
    missed = f"missed for {'; '.join(more)}" if more else "met in every case"
    moved = kept.where(followed=MOVED)
    return (
        f"A test of a subgroup or class rejects in {share(np.concatenate([*calm.values()]))} % of streams without a "
        f"change (aim: ≤ {MOST} %, {missed}). Where one subgroup changes, a test rejects in {share(moved['any'])} % of "
        f"streams, and that subgroup is named in {share(moved['named'])} %."
    )


def picture(kept: Kept) -> Figure:
    series = {name: [percent(kept.where(followed=one)[name]) for one in FOLLOWED] for name in (*TESTS, "any", "named")}
    return dots([*FOLLOWED], series, "streams in which a test rejects, %", float(MOST), share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of streams in which a test rejects for any subgroup or class, and in which"
    yield "the first (which changes if one does) is *named*."
    yield ""
    short = ("5, uniform", "10, rare", "10 classes", "one changes")
    parts = [kept.where(followed=one) for one in FOLLOWED]
    yield from table(
        ("test", *short),
        ([name, *(f"{100 * some[name].mean():.1f}" for some in parts)] for name in (*TESTS, "any", "named")),
    )


EXPERIMENT = Experiment(__spec__.name, {"followed": FOLLOWED}, sample, answer, page, picture, repetitions=400)

if __name__ == "__main__":
    EXPERIMENT.main()

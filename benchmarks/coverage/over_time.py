"""How often `calibration_over_time` sees changes that are none, and whether its intervals contain those that are.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.over_time --store FILE [--repetitions 200] [--write FILE]
        [--courses]

Streams of 4,000 rows, cut into 8 periods. Scores are uniform, U-shaped (beta 0.3, 0.3), rare (beta 0.5, 20), of a mix
that rises with time (beta 1 to 4, 2), or the confidences of ten classes (Dirichlet 0.4). Log-odds of outcomes are
those of the scores plus a shift: none; a constant -0.5; a step of 0.8 after row 2,600; a step of 0.8 that is taken
back (rows 1,400 to 2,600); a slope from 0 to 0.8. Of confidences, -0.8 instead. A sample's seed is its number. The
search and its interval were chosen on uniform, rare and rising scores with 60 streams each; U-shaped ones and
confidences, and the step that is taken back, were not looked at before this page was written.

With ``--courses``, in place of these: subgroups (``by=``) and classes (``notion="classwise"``) that are followed over
the same 4 periods. Five subgroups of 2,000 rows with uniform scores, of which none changes, or one by a step of 0.8 in
the log-odds after row 1,200; ten of 4,000 rows with rare outcomes (beta 1, 10); and ten classes of 2,000 rows
(Dirichlet 0.3).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

from .. import arguments
from ..store import lines_of

N, STEP, BACK = 4_000, 2_600, 1_400
FAMILIES = ("uniform", "U-shaped", "rare", "rising mix", "confidences of ten classes")
SHIFTS = ("none", "constant", "step", "step and back", "slope")


def stream(family: str, shift: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, scores and chances, in order of time."""
    rng = np.random.default_rng([seed, FAMILIES.index(family), SHIFTS.index(shift)])
    t = np.arange(N)
    s = {
        "uniform": lambda: rng.random(N),
        "U-shaped": lambda: rng.beta(0.3, 0.3, N),
        "rare": lambda: rng.beta(0.5, 20, N),
        "rising mix": lambda: rng.beta(1 + 3 * t / N, 2),
        "confidences of ten classes": lambda: rng.dirichlet(np.full(10, 0.4), N).max(axis=1),
    }[family]()
    s = s.clip(1e-9, 1 - 1e-9)
    size = -0.8 if family.startswith("conf") else 0.8
    by = {
        "none": 0.0,
        "constant": -0.5,
        "step": size * (t >= STEP),
        "step and back": size * ((t >= BACK) & (t < STEP)),
        "slope": size * t / N,
    }[shift]
    chance = expit(logit(s) + by)
    return (rng.random(N) < chance).astype(int), s, chance


def outcome(family: str, shift: str, seed: int) -> list[float]:
    """Which tests reject at 0.05 after adjustment, changes found and sought, and those within their intervals."""
    y, s, chance = stream(family, shift, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.calibration_over_time(y, s, np.arange(N), every=N // 8, estimator=cal.Binned(5))
    p = found.adjusted
    rejected = [float(p[name] <= 0.05) for name in ("change", "trend", "periods")]
    true = {"step": [STEP], "step and back": [BACK, STEP]}.get(shift, [])
    within, wide, gaps = 0, [], 0
    edges = [0, *true, N]
    for i, at in enumerate(true):
        near = [one for one in found.changes if one.interval.low <= at <= one.interval.high]
        within += bool(near)
        if len(found.changes) == len(true):
            one = found.changes[i]
            wide.append((one.interval.high - one.interval.low) / N)
            rows = slice(at, edges[i + 2])
            gaps += one.after_interval.low <= float((chance - s)[rows].mean()) <= one.after_interval.high
    return [*rejected, len(found.changes), within, gaps, float(np.mean(wide)) if wide else float("nan")]


COURSES = ("5 subgroups, uniform", "10 subgroups, rare", "10 classes", "5 subgroups, one changes")


def followed(kind: str, seed: int) -> list[float]:
    """Which tests reject for any course at 0.05 after adjustment, and whether the first course is named if any is."""
    rng = np.random.default_rng([seed, 7, COURSES.index(kind)])
    n, many = 4_000 if kind.endswith("rare") else 2_000, 10
    options: dict[str, Any] = {"every": n // 4, "estimator": cal.Binned(5)}
    if kind == "10 classes":
        s = rng.dirichlet(np.full(many, 0.3), n)
        y = (s.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        options |= {"notion": "classwise", "labels": range(many)}
    else:
        s = rng.beta(1, 10, n).clip(1e-9) if kind.endswith("rare") else rng.random(n)
        by = rng.integers(many if kind.startswith("10") else 5, size=n)
        moved = kind.endswith("changes") * 0.8 * ((by == 0) & (np.arange(n) >= 1_200))
        y = (rng.random(n) < expit(logit(s) + moved)).astype(int)
        options |= {"by": by, "labels": [0, 1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cal.calibration_over_time(y, s, np.arange(n), **options)
    tests = [float(any(one.adjusted[t] <= 0.05 for one in found.courses)) for t in ("change", "trend", "periods")]
    return [*tests, max(tests), float(found.course == "0" and max(tests) > 0)]


def write_courses(path: Path, done: list[Any], repetitions: int) -> None:
    """The page of several courses."""
    lines = [
        "# Calibration over time of subgroups and classes: false alarms",
        "",
        f"Written by `python -m benchmarks.coverage.over_time --courses --store FILE --repetitions {repetitions} "
        "--write FILE`.",
        "",
        *(__doc__ or "").split("\n\n")[3].removesuffix("\n").splitlines(),
        "",
        "Share of streams, in per cent ± standard error, in which a test rejects for any subgroup or class at 0.05",
        "after adjustment for all tests of all (Holm); *named*: for the first one, which changes where one does.",
        "",
        "| followed | streams | change | trend | periods | any | named |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for kind in COURSES:
        rows = np.array([row[2:] for row in done if row[0] == kind and row[1] < repetitions])
        shares = rows.mean(axis=0)
        cells = [f"{100 * v:.1f} ± {100 * (v * (1 - v) / len(rows)) ** 0.5:.1f}" for v in shares]
        lines.append(f"| {kind} | {len(rows)} | " + " | ".join(cells) + " |")
    arguments.finish(type("Options", (), {"write": path})(), lines)


def main() -> None:
    made = arguments.parser(__doc__, repetitions=200, write=True, store=True)
    made.add_argument("--courses", action="store_true", help="subgroups and classes that are followed")
    options = made.parse_args()
    if options.courses:
        with lines_of(options.store) as (done, add):
            known = {(row[0], row[1]) for row in done}
            for kind in COURSES:
                for seed in range(options.repetitions):
                    if (kind, seed) not in known:
                        done.append([kind, seed, *followed(kind, seed)])
                        add(done[-1])
        if options.write is not None:
            write_courses(options.write, done, options.repetitions)
        return
    with lines_of(options.store) as (done, add):
        known = {(row[0], row[1], row[2]) for row in done}
        for seed in range(options.repetitions):
            for family in FAMILIES:
                for shift in SHIFTS:
                    if (family, shift, seed) not in known:
                        done.append([family, shift, seed, *outcome(family, shift, seed)])
                        add(done[-1])
    if options.write is not None:
        write(options.write, done, options.repetitions)


def write(path: Path, done: list[Any], repetitions: int) -> None:
    """The page."""
    lines = [
        "# Calibration over time: false alarms, and intervals of changes",
        "",
        f"Written by `python -m benchmarks.coverage.over_time --store FILE --repetitions {repetitions} --write FILE`.",
        "",
        *(__doc__ or "").split("\n\n")[2].splitlines(),
        "",
        "Share of streams, in per cent, in which a test rejects at 0.05 after adjustment for three tests (standard",
        "errors: at most 5), and in which as many changes are found as there are. Of these streams, *time*: changes",
        "that are within an interval of a time; *gap*: gaps of rows after the true time that are within the interval;",
        "*width*: median of intervals of times as a share of the stream.",
        "",
        "| scores | shift of log-odds | change | trend | periods | any | as many | time | gap | width |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for family in FAMILIES:
        for shift in SHIFTS:
            rows = np.array([row[3:] for row in done if row[0] == family and row[1] == shift and row[2] < repetitions])
            k = {"step": 1, "step and back": 2}.get(shift, 0)
            right = rows[:, 3] == k
            numbers = [*rows[:, :3].mean(axis=0), rows[:, :3].max(axis=1).mean(), right.mean()]
            cells = [f"{100 * v:.1f}" for v in numbers]
            seen = rows[rows[:, 3] > 0] if k else rows[:0]
            if len(seen) and right.any():
                exact = rows[right]
                time = exact[:, 4].sum() / (k * len(exact))
                cells += [f"{100 * time:.1f}", f"{100 * exact[:, 5].sum() / (k * len(exact)):.1f}"]
                cells += [f"{100 * np.nanmedian(exact[:, 6]):.0f} %"]
            else:
                cells += ["", "", ""]
            lines.append(f"| {family} | {shift} | " + " | ".join(cells) + " |")
    arguments.finish(type("Options", (), {"write": path})(), lines)


if __name__ == "__main__":
    main()

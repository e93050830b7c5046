"""Do intervals of calibrated probabilities cover the truth?

    python -m benchmarks.coverage.map_intervals [--repetitions 100]

Intervals are those of `predict_interval` at 200 quantiles of scores. Scores follow Beta(0.8, 0.7). Truths, with
log-odds z of the score s, are *over-confident* 0.5 z - 0.3; *asymmetric* 0.6 log s - 1.6 log(1 - s) - 0.5; *bent* z +
0.15 z² - 0.5; *wave* z + 0.8 sin z; *steps* 0.1, 0.45 and 0.9. The family of isotonic regression and Venn-Abers
predictors is that of all increasing maps.

*Elsewhere* are other scores, Beta(3, 2), Beta(0.4, 0.5) and Beta(0.5, 8), and other truths. No choice about the
interval of `AutoCalibrator` was made on them: *under-confident* 1.6 z - 0.2; *shifted* z + 0.7; *half* s / 2; *kink*
has slope 0.4 above 0.6; *quick wave* z + 0.4 sin 2z; *jump* is 0.25 and 0.75 on either side of 0.5.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit
from scipy.stats import beta

from calibrant import calibrators as c

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept

LEVEL, AUTO = 95, "AutoCalibrator"
TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "over-confident": lambda s: expit(0.5 * logit(s) - 0.3),
    "asymmetric": lambda s: expit(0.6 * np.log(s) - 1.6 * np.log1p(-s) - 0.5),
    "bent": lambda s: expit(logit(s) + 0.15 * logit(s) ** 2 - 0.5),
    "wave": lambda s: expit(logit(s) + 0.8 * np.sin(logit(s))),
    "steps": lambda s: 0.1 + 0.35 * (s > 0.3) + 0.45 * (s > 0.7),
}
OTHER_TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "under-confident": lambda s: expit(1.6 * logit(s) - 0.2),
    "shifted": lambda s: expit(logit(s) + 0.7),
    "half": lambda s: s / 2,
    "kink": lambda s: np.where(s > 0.6, 0.6 + 0.4 * (s - 0.6), s),
    "quick wave": lambda s: expit(logit(s) + 0.4 * np.sin(2 * logit(s))),
    "jump": lambda s: np.where(s > 0.5, 0.75, 0.25),
}
MAPS = TRUTHS | OTHER_TRUTHS
FIRST = "Beta(0.8, 0.7)"
SCORES = {FIRST: (0.8, 0.7), "Beta(3, 2)": (3.0, 2.0), "Beta(0.4, 0.5)": (0.4, 0.5), "Beta(0.5, 8)": (0.5, 8.0)}
ROWS, OTHER_ROWS = (100, 1000), (100, 300, 1000, 3000)
CALIBRATORS = {
    "PlattScaling": c.PlattScaling(),
    "Platt, no shrinkage": c.PlattScaling(shrinkage=0),
    "BetaCalibration": c.BetaCalibration(),
    "QuadraticLogit": c.QuadraticLogit(),
    "SplineCalibrator": c.SplineCalibrator(),
    "IsotonicCalibrator": c.IsotonicCalibrator(),
    "VennAbers (no level)": c.VennAbers(),
    AUTO: c.AutoCalibrator(),
}
#: Truths inside a calibrator's family.
INSIDE = {
    "PlattScaling": ("calibrated", "over-confident"),
    "Platt, no shrinkage": ("calibrated", "over-confident"),
    "BetaCalibration": ("calibrated", "over-confident", "asymmetric"),
    "QuadraticLogit": ("calibrated", "over-confident", "bent"),
    "IsotonicCalibrator": ("calibrated", "over-confident", "asymmetric", "wave", "steps"),
    "VennAbers (no level)": ("calibrated", "over-confident", "asymmetric", "wave", "steps"),
}
PARAMETRIC = [*CALIBRATORS][:4]
JUMPING = ("steps", "jump")
Case = tuple[str, str, int]


def some(scores: str, truth: str, n: int) -> bool:
    """Whether it is a case: elsewhere there are other truths and sizes."""
    return (truth in TRUTHS and n in ROWS) if scores == FIRST else truth in OTHER_TRUTHS


def sample(scores: str, truth: str, n: int, seed: int) -> dict[str, float]:
    """Per cent of scores whose truth each calibrator's interval covers, and the mean width."""
    shape, true = SCORES[scores], MAPS[truth]
    rng = np.random.default_rng([seed, [*SCORES].index(scores), [*MAPS].index(truth), n])
    at = beta.ppf((np.arange(200) + 0.5) / 200, *shape).clip(1e-9, 1 - 1e-9)
    s = rng.beta(*shape, n).clip(1e-9, 1 - 1e-9)
    y = (rng.random(n) < true(s)).astype(int)
    out = {}
    for name in CALIBRATORS if scores == FIRST else (AUTO,):
        low, high = CALIBRATORS[name].set_params(labels=[0, 1]).fit(s, y).predict_interval(at).T
        out[f"{name}: covered"] = 100 * float(np.mean((low <= true(at)) & (true(at) <= high)))
        out[f"{name}: width"] = float((high - low).mean())
    return out


def _of(kept: Kept, name: str, case: Case, what: str = "covered") -> tuple[float, float]:
    scores, truth, n = case
    return estimate(kept.where(scores=scores, truth=truth, n=n)[f"{name}: {what}"])


def _mean(kept: Kept, name: str, cases: list[Case], what: str = "covered") -> tuple[float, float]:
    """Mean over cases, with its standard error; NaN without a case."""
    if not cases:
        return float("nan"), float("nan")
    value, error = np.array([_of(kept, name, case, what) for case in cases]).T
    return float(value.mean()), float(np.sqrt((error**2).sum()) / len(cases))


def _cases(name: str, n: int | None = None, *, inside: bool | None = None) -> list[Case]:
    """Cases of the first scores, inside or outside a calibrator's family."""
    return [
        (FIRST, truth, rows)
        for truth in TRUTHS
        for rows in ROWS
        if n in (rows, None) and inside in (truth in INSIDE.get(name, ()), None)
    ]


def _elsewhere(truths: tuple[str, ...] = tuple(OTHER_TRUTHS), rows: tuple[int, ...] = OTHER_ROWS) -> list[Case]:
    return [(scores, truth, n) for scores in SCORES if scores != FIRST for truth in truths for n in rows]


def _said(case: Case) -> str:
    return f"{case[1]}, {case[0]}, {case[2]:,} rows"


def answer(kept: Kept) -> str:
    held = [_of(kept, name, case)[0] for name in PARAMETRIC for case in _cases(name, inside=True)]
    outside = {(name, case): _of(kept, name, case)[0] for name in PARAMETRIC for case in _cases(name, inside=False)}
    name, worst = min(outside, key=outside.__getitem__)
    rising = [_of(kept, "IsotonicCalibrator", case)[0] for case in _cases("IsotonicCalibrator", inside=True)]
    auto = {case: _of(kept, AUTO, case) for case in (*_cases(AUTO), *_elsewhere())}
    missed = [case for case, (value, error) in auto.items() if value + 2 * error < LEVEL]
    least = min(auto, key=lambda case: auto[case][0])
    which = ", ".join(f"{truth} {number}" for truth, number in Counter(case[1] for case in missed).most_common())
    return (
        f"95 % intervals of the parametric maps cover the truth at {min(held):.1f} to {max(held):.1f} % of scores "
        f"where it is in their family, and otherwise at as few as {outside[name, worst]:.1f} % ({name}; "
        f"{_said(worst)}). Those of isotonic regression cover increasing truths at {min(rising):.1f} to "
        f"{max(rising):.1f} % of scores. With 1,000 rows, they are {_wider(kept, '1000')} times as wide as the "
        f"spline's. Coverage of `{AUTO}` is below 95 % by more than two standard errors in {len(missed)} of "
        f"{len(auto)} cases{f' ({which})' if missed else ''}; the lowest is {auto[least][0]:.1f} % ({_said(least)})."
    )


def picture(kept: Kept) -> Figure:
    lines = {
        f"{name}: {'in' if inside else 'outside'} the family" if name in INSIDE else name: (name, inside)
        for name in CALIBRATORS
        for inside in (True, False)
        if _cases(name, inside=inside)
    }
    series = {}
    for n in (100, 1000, 3000):
        pairs = [_mean(kept, name, _cases(name, n, inside=inside)) for name, inside in lines.values()]
        series[f"{n:,} rows"] = pairs + [_mean(kept, AUTO, _elsewhere((truth,), (n,))) for truth in OTHER_TRUTHS]
    names = [*lines, *(f"{AUTO}, elsewhere: {truth}" for truth in OTHER_TRUTHS)]
    return dots(names, series, "scores whose truth is covered, %", LEVEL, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives mean coverage in per cent over truths inside and outside the family, with 100 and 1,000"
    yield "rows, the lowest coverage of any truth and size, and the mean width with 1,000 rows."
    yield ""
    yield from table(("calibrator", "in family", "1,000", "outside", "1,000", "lowest", "width"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name in (name for name in CALIBRATORS if name != "Platt, no shrinkage"):
        yield _line(kept, name, name, {n: [_cases(name, n, inside=inside) for inside in (True, False)] for n in ROWS})
    yield _line(kept, f"{AUTO}, elsewhere", AUTO, {n: [[], _elsewhere(rows=(n,))] for n in OTHER_ROWS})


def _line(kept: Kept, shown: str, name: str, cases: dict[int, list[list[Case]]]) -> list[str]:
    """Cases by rows, with truths in the family and outside."""
    least = min(_of(kept, name, case)[0] for parts in cases.values() for part in parts for case in part)
    means = [_mean(kept, name, cases[n][i])[0] for i in (0, 1) for n in ROWS]
    width = _mean(kept, name, [case for part in cases[ROWS[1]] for case in part], "width")[0]
    return [shown, *(f"{value:.1f}".replace("nan", "") for value in (*means, least)), f"{width:.3f}"]


def _covered(kept: Kept, name: str, kind: str, rows: str = "") -> str:
    """The least and the most coverage of a calibrator where truths are of a kind: in its family or not, or jumping."""
    every = [*_cases(name), *(_elsewhere() if name == AUTO else [])]
    kinds = {
        "family": [case for case in every if case[1] in INSIDE.get(name, ())],
        "outside": [case for case in every if case[1] not in INSIDE.get(name, ())],
        "smooth": [case for case in every if case[1] not in JUMPING],
        "jumps": [case for case in every if case[1] in JUMPING],
    }
    values = [_of(kept, name, case)[0] for case in kinds[kind] if rows in ("", str(case[2]))]
    return f"{min(values):.0f} to {max(values):.0f}"


def _parametric(kept: Kept, rows: str) -> str:
    """The least and the most coverage of all parametric maps in their family."""
    values = [_of(kept, name, case)[0] for name in PARAMETRIC for case in _cases(name, int(rows), inside=True)]
    return f"{min(values):.0f} to {max(values):.0f}"


def _wider(kept: Kept, rows: str) -> str:
    """How many times as wide as the spline's the intervals of isotonic regression are."""
    cases = _cases(AUTO, int(rows))
    isotonic, spline = (_mean(kept, f"{name}Calibrator", cases, "width")[0] for name in ("Isotonic", "Spline"))
    return f"{isotonic / spline:.1f}"


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": SCORES, "truth": MAPS, "n": OTHER_ROWS},
    sample,
    answer,
    page,
    picture,
    repetitions=100,
    some=some,
    figures={"covered": _covered, "parametric": _parametric, "wider": _wider},
)

if __name__ == "__main__":
    EXPERIMENT.main()

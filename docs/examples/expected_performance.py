"""Write `docs/expected_performance.md`, and its picture, from data with dates that NannyML ships.

    python docs/examples/expected_performance.py [--docs docs]

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

PAGE = """# Without labels: what is the model worth today?

Written by `python docs/examples/expected_performance.py` with the data of NannyML {version}.

Labels of today's rows come in weeks, or never. `expected_performance` says what accuracy, F1, AUC, log-loss or cost
they would show, from today's probabilities and labelled rows of the past:

```python
import calibrant as cal

metrics = ["accuracy", "f1", "roc-auc"]
found = cal.expected_performance(p_new, reference=(y, p), metric=metrics, time=when, every="month")
print(found)
found.plot()
```

How often outcomes come at each score is learnt from the reference, with its uncertainty; then outcomes of the new rows
are drawn, and each metric is computed from them. The interval is for what the labels of these rows would say. The model
need not be calibrated: it only has to be wrong in the same way as in the reference.

## Loans for cars

50,000 labelled loans of ten months are the reference; for the ten months after them `expected_performance` gets only
probabilities. The last column is what the labels said later.

```
{loans}
```

| month | expected accuracy | what labels said | within the interval |
|---|---|---:|---|
{months}

![Expected accuracy, F1 and AUC by month](images/expected_performance.png)

{loans_said}

## What nobody can see

The numbers are right while outcomes at equal scores are as frequent as in the reference. A shift of the scores alone,
towards surer or less sure ones, is accounted for. If the same score comes to mean something else, rows without labels
look as before, and no method can tell. 20,000 scores are uniform, before and after; outcomes are as frequent as the
scores say before, and six tenths as frequent after:

```python
{blind}
```

```
{blind_text}
```

The labels would show an accuracy of {blind_true:.3f}. There is no shift to be found, since there is none in what is
seen: the value is off by {blind_off:.3f}, and the interval does not contain the truth. Only labels help: a few hundred
of recent rows, and `calibration_over_time` or `CalibrationMonitor`.

A small change of that kind may not matter. Probabilities that people in Massachusetts are employed have been too low
by about 0.01 since 2016 ([over_time.md](over_time.md)); with the rows of 2015 as the reference, what labels said of the
accuracy is within the interval in {years_inside} of {years_all} years:

| year | expected accuracy | what labels said |
|---|---|---:|
{years}

## When only base rates change

Where the classes keep their scores and only their shares change (an epidemic, a campaign, resampled rows), outcomes at
equal scores do change, and this can be undone: `prior="estimate"` estimates the new base rates from the scores as
`estimate_prior` does, and `prior=0.02` takes a known one. The test of `estimate_prior` says where more has changed.

## What is said about shift

`.shifts` has a row for the scores of each class, and for each column of `features=(X_reference, X_new)`: how far the
two distributions differ, the p-value adjusted for their number, and the share of new rows whose values the reference
does not have. Above 1 %, the summary says that the numbers are extrapolated. A shift of the scores is no alarm
by itself. A shift of features may be harmless, too: it matters where it changes what a score means.

## How good it is

Errors against NannyML's CBPE, and how often intervals cover, with no shift, a shift of the scores, and new base rates:
[benchmarks/coverage/expected_performance.md](../benchmarks/coverage/expected_performance.md).
"""

BLIND = """rng = np.random.default_rng(0)
p, new = rng.random(20_000), rng.random(20_000)
y, labels = rng.random(20_000) < p, rng.random(20_000) < 0.6 * new  # labels: not known in practice
print(cal.expected_performance(new, reference=(y, p), metric="accuracy"))"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    docs = parser.parse_args().docs
    spec = find_spec("nannyml")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install --no-deps nannyml")
    data = Path(spec.origin).parent / "datasets" / "data"

    old, new, later = (
        pd.read_csv(data / f"synthetic_car_loan_{part}.csv") for part in ("reference", "analysis", "analysis_target")
    )
    new = new.merge(later, on="id")
    loans = cal.expected_performance(
        new["y_pred_proba"],
        reference=(old["repaid"], old["y_pred_proba"]),
        metric=["accuracy", "f1", "roc-auc"],
        time=new["timestamp"],
        every="month",
    )
    loans.plot().figure_.savefig(docs / "images" / "expected_performance.png", dpi=110)
    right = (new["repaid"] == (new["y_pred_proba"] >= 0.5)).groupby(new["timestamp"].str[:7]).mean()
    months, inside = [], 0
    for period in loans.periods:
        first, said = period.metrics[0], right[period.name]
        covered = first.interval.low <= said <= first.interval.high
        inside += covered
        ends = f"{first.value:.3f} ({first.interval.low:.3f} to {first.interval.high:.3f})"
        months.append(f"| {period.name} | {ends} | {said:.3f} | {'yes' if covered else 'no'} |")
    since = [period for period in loans.periods if period.name >= "2019-04"]
    below = sum(right[period.name] < period.metrics[0].value for period in since)
    loans_said = (
        f"{inside} of {len(months)} intervals contain what labels said later. The fall in April was foreseen, since\n"
        "scores moved towards a half. That the same score has meant less since ([over_time.md](over_time.md)) was\n"
        f"not: labels said less than expected in {below} of {len(since)} months, by "
        f"{np.mean([p.metrics[0].value - right[p.name] for p in since]):.4f} on average."
    )

    rng = np.random.default_rng(0)
    p, fresh = rng.random(20_000), rng.random(20_000)
    y, labels = rng.random(20_000) < p, rng.random(20_000) < 0.6 * fresh
    blind = cal.expected_performance(fresh, reference=(y, p), metric="accuracy")
    true = float(np.mean(labels == (fresh >= 0.5)))
    if blind.interval.low <= true <= blind.interval.high or blind.shifted:
        raise SystemExit("the example of a shift that nobody sees no longer says what the page says")

    first, rest, later = (
        pd.read_parquet(data / f"employment_MA_{part}.pq") for part in ("reference", "analysis", "analysis_target")
    )
    rest = rest.merge(later, on="id")
    years, years_inside = [], 0
    for year, rows in rest.groupby("year"):
        found = cal.expected_performance(
            rows["predicted_probability"], reference=(first["employed"], first["predicted_probability"])
        )
        said = (rows["employed"] == (rows["predicted_probability"] >= 0.5)).mean()
        ends = f"{found.value:.4f} ({found.interval.low:.4f} to {found.interval.high:.4f})"
        years_inside += found.interval.low <= said <= found.interval.high
        years.append(f"| {year} | {ends} | {said:.4f} |")

    text = PAGE.format(
        version=version("nannyml"),
        loans=loans,
        months="\n".join(months),
        loans_said=loans_said,
        blind=BLIND,
        blind_text=blind,
        blind_true=true,
        blind_off=abs(blind.value - true),
        years="\n".join(years),
        years_inside=years_inside,
        years_all=len(years),
    )
    (docs / "expected_performance.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

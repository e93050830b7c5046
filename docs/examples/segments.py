"""Write `docs/segments.md`, and its picture, from rows whose truth is known.

python docs/examples/segments.py [--docs docs]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pandas as pd
from scipy.special import expit, logit

import calibrant as cal

PAGE = """# Find the segment where the model is wrong

Written by `python docs/examples/segments.py`.

A model can be calibrated overall and wrong for tenants above 60 in the north. `subgroup_calibration` tests subgroups
that you name; `find_segments` looks for them, and its p-values and intervals allow for the search.

```python
import calibrant as cal

found = cal.find_segments(frame, label="left", prob="p_left", X=["age", "region", "tenant", "income", "since"])
print(found)
```

{n:,} customers. Scores of tenants in the north from the age of 60 on are too low (log-odds by 0.9); those of customers
whose age is missing, too high (by 0.7); and all are a little too extreme (log-odds times 1.2):

```
{found}
```

`found.plot(segment=0)` draws the gaps, and the reliability diagram of the first segment:

![Gaps of two segments, and the reliability diagram of the first](images/segments.png)

`found.mask(0)` says which rows are in the first segment, and `found.apply(X)` which segments new rows are in.
`found.to_frame()` has a row for each segment.

## What is judged

First the map of all rows is recalibrated (a polynomial logistic curve of the score). A segment is reported where
outcomes differ from what this map expects *at the same scores*. So scores that are too extreme everywhere are not
reported for every segment; `report` says that. For each segment there are two numbers:

- **gap**: observed minus predicted, for the original scores. Its interval covers the gaps of all segments that could
  have been found at once (after a split, of those that were tested). That makes it wide.
- **beyond**: observed minus expected at the same scores. The p-value is about this.

They may disagree: where a segment's scores are right and all others' wrong, *beyond* is large and the gap is near 0.
The sentence then says that the scores may be right there.

The best segment is added to the map as an offset, and the search goes on, until the best one left is not significant.
What is found later is beyond what was found before, and the report says beyond what.

## Two ways to allow for the search

- `confirm="simulate"`: all rows are searched; the same search runs on 199 sets of outcomes drawn from the map of all
  rows, and the p-value is the rank of what was found among the best of those. No rows are lost, and the smallest
  p-value is 0.005 (99 sets and 0.01 beyond ten million values of features). Rows that depend on each other (`groups=`)
  change the signs of their residuals together instead.
- `confirm="split"`: one half is searched, and the other tests what was found (Holm). It takes a hundredth of the time
  and has less power.

`"auto"` simulates up to ten million values of features. How often false segments are reported, what is found and how
well, and whether intervals cover: [benchmarks/coverage/segments.md](../benchmarks/coverage/segments.md).

## What is left out, and reported

Columns that are constant or empty, texts that differ in nearly every row, and columns that determine the
outcome (do they leak the label?). Missing values are a value of their own: "age is missing". Of a category the 200 most
frequent values are kept separate.

## More rows than fit into memory

```python
cal.find_segments(lazy_frame, label="left", prob="p_left", X=["age", "region"], max_rows=1_000_000)
```

The engine of a lazy frame (Polars, DuckDB, Dask, PySpark) draws a million rows, and these are searched. A segment that
is a hundredth of all rows then has ten thousand.

## Repair

```python
from calibrant.calibrators import CalibratedModel, SegmentCalibrator

CalibratedModel(model, "segments").fit(X, y)  # by the model's own features; or for probabilities that are there:
repaired = SegmentCalibrator().fit(p_val, y_val, features=X_val)
repaired.predict_proba(p_new, features=X_new)
repaired.segments_, repaired.weight_  # where, and the part of the change that is made
```

`SegmentCalibrator` first fits a common map (by default `AutoCalibrator`, which leaves scores alone where nothing is
gained). It then searches segments beyond this map, up to 20, and gives each an offset in the logit. Offsets are fitted
jointly and shrunk (empirical Bayes). Map, search and offsets are repeated without each fifth of the rows. What these
held-out rows gain in log-loss and Brier score, and its standard error, decide whether the change is made in full, in
part, or not at all. `caution=` says how many squared standard errors it must gain; with 1 more is repaired, and harm is
more frequent.

`learner="boosting"` uses trees of LightGBM on features and score in place of segments (`pip install
"calibrant[boost]"`). It repairs more where a model is wrong in many ways, as a linear model is. It does not say where,
and `save_calibrator`, which saves segments, refuses it (`joblib.dump` saves it).

Several classes: each is searched against the others, and a segment moves the logits of all. Features that the new
rows lack are an error; values that were not seen are in no segment that names one. A segment needs a variance of
outcomes, the sum of q (1 - q), of 20 on either side, some 80 rows at even odds and 1,000 at odds of 2 %; with fewer
rows nothing is changed.

How often the log-loss rises, and what is repaired:
[benchmarks/coverage/segment_calibrator.md](../benchmarks/coverage/segment_calibrator.md). Against MCGrad:
[benchmarks/coverage/segment_calibrator_data.md](../benchmarks/coverage/segment_calibrator_data.md). Who finds a planted
segment: [benchmarks/coverage/segments_peers.md](../benchmarks/coverage/segments_peers.md).

## From the command line

```bash
calibrant segments customers.csv --label left --prob p_left --html segments.html --fail-if-found
```

reads all other columns as features, or those of `--features 'x_*'`.

## What it is not

It finds where a model is wrong, not why, and not whom it treats unfairly: a calibrated segment may still be treated
unfairly, and fairness between named subgroups is a question about these (`subgroup_calibration`,
[subgroups.md](../benchmarks/coverage/subgroups.md)). A model without segments to be found is *multicalibrated* as far
as these features, conditions and rows can show.
"""


def customers(n: int) -> pd.DataFrame:
    """Rows with a planted segment, and with missing values that mean something."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, n).astype(float)
    region, tenant = rng.choice(["north", "south", "east", "west"], n), rng.random(n) < 0.5
    p = expit(rng.normal(-1, 1.2, n))
    unknown = rng.random(n) < 0.06
    shift = 0.9 * ((region == "north") & tenant & (age >= 60)) - 0.7 * unknown
    left = rng.random(n) < expit(logit(p) / 1.2 + shift)
    since = np.datetime64("2015-01-01") + rng.integers(0, 3650, n)
    return pd.DataFrame(
        {
            "left": left.astype(int),
            "p_left": p,
            "age": np.where(unknown, np.nan, age),
            "region": region,
            "tenant": tenant,
            "income": rng.lognormal(10, 0.5, n).round(),
            "since": since.astype("M8[ns]"),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    docs = parser.parse_args().docs
    frame = customers(n := 20_000)
    found = cal.find_segments(frame, label="left", prob="p_left", X=["age", "region", "tenant", "income", "since"])
    found.plot(segment=0).figure_.savefig(docs / "images" / "segments.png", dpi=110, bbox_inches="tight")
    (docs / "segments.md").write_text(PAGE.format(n=n, found=found), encoding="utf-8")


if __name__ == "__main__":
    main()

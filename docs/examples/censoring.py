"""Writes docs/censoring.md and its image: models of survival, judged at a horizon, on data of scikit-survival.

Run from the repository's root: ``python docs/examples/censoring.py [--docs docs]``. Needs ``pip install
scikit-survival==0.28.0``, which calibrant itself does not.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import sksurv
from matplotlib import pyplot as plt
from pictures import save
from sklearn.model_selection import KFold, train_test_split
from sksurv.datasets import load_gbsg2
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis
from sksurv.metrics import brier_score
from sksurv.nonparametric import kaplan_meier_estimator

import calibrant as cal

HORIZON = 1095
MODELS = {
    "Cox": lambda: CoxPHSurvivalAnalysis(),
    "random survival forest": lambda: RandomSurvivalForest(200, min_samples_leaf=10, random_state=0),
    "boosting": lambda: GradientBoostingSurvivalAnalysis(n_estimators=300, random_state=0),
}


def data() -> tuple[pd.DataFrame, np.ndarray]:
    """Features as numbers, and follow-up."""
    X, y = load_gbsg2()
    X["tgrade"] = X["tgrade"].map(len)  # I, II, III
    return pd.get_dummies(X, drop_first=True).astype(float), y


def risk(model, X) -> np.ndarray:
    """Predicted probability of the event by the horizon."""
    return np.array([1 - survival(HORIZON) for survival in model.predict_survival_function(X)])


def out_of_fold(name: str, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Risks of the rows of each fold, by a model of the other folds."""
    found = np.empty(len(y))
    for rest, fold in KFold(5, shuffle=True, random_state=0).split(X):
        found[fold] = risk(MODELS[name]().fit(X.iloc[rest], y[rest]), X.iloc[fold])
    return found


PAGE = """# An event by a horizon, with censored follow-up

Written by `python docs/examples/censoring.py` with scikit-survival {version}.

A survival model says that a patient has an event within three years with probability 0.4. Is it right? Some patients
left the study before three years without an event: their outcome is unknown. `cal.censoring_weights` gives every row a
label and a weight (inverse probability of censoring, IPCW), and every function of calibrant takes these.

## Labels and weights

The data are GBSG2, which scikit-survival ships: {rows} patients with breast cancer, the event is recurrence or death,
times are in days. Half of the rows train, the other {test} test, at a horizon of {horizon:,} days.

```python
import calibrant as cal
from sksurv.datasets import load_gbsg2

X, y = load_gbsg2()
found = cal.censoring_weights(y_test["time"], y_test["cens"], horizon={horizon})  # "cens" is True for an event
print(found)
```

```
{found}
```

How often did the event happen by the horizon?

| rows that were censored before | event rate |
|---|--:|
| weighted (IPCW) | {rate_weighted:.4f} |
| one minus Kaplan–Meier, which uses the same rows | {rate_km:.4f} |
| left out | {rate_dropped:.4f} |
| counted as without the event | {rate_without:.4f} |

A row with an event is rarely censored before, as its event comes first: where censored rows are left out, the rate is
too high. If they count as without the event, later events are missed, and the rate is too low. A calibration
error computed from such labels has the same bias.

## Three models

```python
model = CoxPHSurvivalAnalysis().fit(X_train, y_train)
p = [1 - survival({horizon}) for survival in model.predict_survival_function(X_test)]
cal.estimate(found.y_true, p, sample_weight=found.sample_weight)
cal.brier_score(found.y_true, p, sample_weight=found.sample_weight, scale="half")
```

| model | mean risk | calibration error | 95 % interval | Brier score | scikit-survival's | verdict of the report |
|---|--:|--:|--:|--:|--:|---|
{models}

The Brier scores differ by at most {largest:.0e}, after calibrant's is multiplied by the mean weight, {mean_weight:.6f}:
scikit-survival divides by the number of rows, calibrant by the sum of the weights. Here scikit-survival, too, estimates
the censoring distribution on the test rows; for that of the training rows, pass `reference=(time_train,
event_train)` here and `y_train` there.

![Reliability diagrams of three models and of one after recalibration, with weighted rows](images/censoring.png)

## Recalibration

Calibrators take weights too. Of the three, the model called {worst} has the largest error. A beta calibration is fitted
to its risks for the training rows, each by a model of the other four fifths, with the labels and weights of these rows:

```python
y_fit, weight = cal.censoring_weights(y_train["time"], y_train["cens"], horizon={horizon})
calibrator = cal.calibrators.BetaCalibration().fit(p_out_of_fold, y_fit, sample_weight=weight)
p_repaired = calibrator.predict_proba(p)[:, 1]
```

```
{compared}
```

## What to know

- **What is assumed**: censoring depends neither on the time of the event nor on the scores. If sicker patients leave
  earlier, the weights do not make up for them.
- **The horizon must lie within follow-up.** At the last follow-up and beyond, no row shows who has had no event by
  then; `censoring_weights` refuses such a horizon.
- **Rows with weight 0 stay in place**, so that other columns fit, and change no result. Reports count them among the
  rows; what the intervals rest on is the effective size, here {size:.0f} of {test}.
- **Intervals** take the weights as known, and as independent of the outcome. In
  [simulations](../benchmarks/coverage/censoring.md) they cover as often as without censoring, but not where nearly all
  rows have the event and half are censored: `censoring_weights` warns there, and an earlier horizon helps.
- **Times in whole months or years** tie events and censorings. scikit-survival weighs an event at T by 1/G(T), which
  also counts censorings at T, though these come after the event. The mean weight is then above 1. With
  `left_limit=True` the weight is 1/G(T−), and the mean weight is 1. These times are in days, so the difference is
  small: {mean_weight:.6f} and {mean_left:.6f}. Where it is above 2 %, a warning says so.
- **Several kinds of events**: pass whether any was observed, then set `y_true` to False for those of other kinds.
- The weights and scores are [those of scikit-survival](../benchmarks/censoring.md), to rounding, on all its data sets.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1])
    docs = parser.parse_args().docs
    X, y = data()
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=0)
    time, event = y[test]["time"], y[test]["cens"]
    found = cal.censoring_weights(time, event, HORIZON)
    given, known = {"sample_weight": found.sample_weight}, found.sample_weight > 0

    risks = {name: risk(make().fit(X.iloc[train], y[train]), X.iloc[test]) for name, make in MODELS.items()}
    errors = {name: cal.estimate(found.y_true, p, **given) for name, p in risks.items()}
    rows, apart = [], []
    for name, p in risks.items():
        ours = cal.brier_score(found.y_true, p, scale="half", **given)
        theirs = float(brier_score(y[test], y[test], 1 - p, HORIZON)[1][0])
        apart.append(abs(ours * found.sample_weight.mean() - theirs))
        low, high = errors[name].interval
        verdict = cal.report(found.y_true, p, **given).verdict.partition(":")[0]
        rows.append(
            f"| {name} | {p.mean():.3f} | {errors[name].value:.3f} | {low:.3f} to {high:.3f} | {ours:.6f} "
            f"| {theirs:.6f} | {verdict} |"
        )
    worst = max(errors, key=lambda name: errors[name].value)
    fit = cal.censoring_weights(y[train]["time"], y[train]["cens"], HORIZON)
    calibrator = cal.calibrators.BetaCalibration()
    calibrator.fit(out_of_fold(worst, X.iloc[train], y[train]), fit.y_true, sample_weight=fit.sample_weight)
    repaired = calibrator.predict_proba(risks[worst])[:, 1]
    pair = {worst: risks[worst], "recalibrated": repaired}
    compared = cal.compare_models(found.y_true, pair, scores=("brier", "log-loss"), **given)

    figure, panels = plt.subplots(2, 2, figsize=(9, 9.5), layout="constrained")
    for ax, (name, p) in zip(panels.flat, {**risks, f"{worst}, recalibrated": repaired}.items(), strict=True):
        cal.ReliabilityDisplay.from_predictions(found.y_true, p, ax=ax, **given)
        ax.set(title=name, xlabel=f"Predicted risk by {HORIZON:,} days")
    save(figure, docs / "images" / "censoring.png")

    times, survival = kaplan_meier_estimator(event, time)
    left = cal.censoring_weights(time, event, HORIZON, left_limit=True)
    (docs / "censoring.md").write_text(
        PAGE.format(
            version=sksurv.__version__,
            rows=len(y),
            test=len(test),
            horizon=HORIZON,
            found=found,
            rate_weighted=np.average(found.y_true, weights=found.sample_weight),
            rate_km=1 - survival[times <= HORIZON][-1],
            rate_dropped=found.y_true[known].mean(),
            rate_without=found.y_true.mean(),
            models="\n".join(rows),
            largest=max(apart),
            mean_weight=found.sample_weight.mean(),
            mean_left=left.sample_weight.mean(),
            worst=worst,
            compared=compared,
            size=found.effective_size,
        ),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()

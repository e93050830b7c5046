"""Writes docs/comparing_models.md and its images.

Run from the repository's root: ``python docs/examples/comparing_models.py [--docs docs]``, and then
``python -m benchmarks.quotes``, which fills in what experiments answer.
"""

import argparse
from pathlib import Path

import numpy as np
from pictures import save
from scipy.special import expit, logit, ndtr

import calibrant as cal
from calibrant.calibrators import BetaCalibration, IsotonicCalibrator, PlattScaling, TemperatureScaling
from calibrant.datasets import make_scores, true_map


def season(n_games: int = 400, reads: int = 6, seed: int = 0) -> tuple:
    """Games that three forecasters follow: each is forecast several times, and ends once."""
    rng = np.random.default_rng(seed)
    strength = 0.9 * rng.standard_normal(n_games)
    # What is known grows from one forecast to the next: a walk whose end decides.
    steps = rng.standard_normal((n_games, reads)) * np.sqrt(1 / (reads + 1))
    known = np.cumsum(steps, axis=1)
    left = 1 - np.arange(1, reads + 1) / (reads + 1)
    end = known[:, -1] + rng.standard_normal(n_games) * np.sqrt(left[-1])
    won = (strength + 1.2 * end > 0).astype(int)
    right = ndtr((strength[:, None] + 1.2 * known) / (1.2 * np.sqrt(left)))
    before = np.repeat(ndtr(strength / 1.2)[:, None], reads, axis=1)
    models = {
        "live": right,
        "overconfident": expit(1.7 * logit(np.clip(right, 1e-6, 1 - 1e-6))),
        "before the game": before,
    }
    game = np.repeat(np.arange(n_games), reads)
    return np.repeat(won, reads), {k: np.clip(v.reshape(-1), 1e-6, 1 - 1e-6) for k, v in models.items()}, game


def ranks() -> cal.results.ModelRanks:
    """Distance of calibration maps to the true one on twenty synthetic data sets."""
    tried = {
        "none": None,
        "temperature": TemperatureScaling(),
        "Platt": PlattScaling(),
        "beta": BetaCalibration(),
        "isotonic": IsotonicCalibrator(),
    }
    off: dict[str, list[float]] = {name: [] for name in tried}
    at = np.linspace(0.01, 0.99, 999)
    for kind in ("calibrated", "overconfident", "underconfident", "shifted", "wavy"):
        for seed in range(4):
            data = make_scores(400, kind, random_state=seed)
            for name, one in tried.items():
                said = at if one is None else one.fit(data.y_prob, data.y_true).predict_proba(at)[:, 1]
                off[name].append(float(np.abs(said - true_map(at, kind)).mean()))
    return cal.scores.rank_models(off)


PAGE = """# Comparing models

Written by `python docs/examples/comparing_models.py`.

## On the same rows

`cal.compare_models(y, {{"a": p_a, "b": p_b}})` estimates by how much models differ on the same rows, in calibration and
in proper scores, with intervals and p-values. For columns of a file: `calibrant compare-models games.csv --model a=p_a
--model b=p_b --label won --groups game`.

Here three forecasters give six forecasts for each of {games} games. The first uses all that has happened so far, the
second uses the same and is over-confident, and the third uses only what was known before the game. The six forecasts of
a game share one result, so rows depend on each other: pass `groups=game`.

```
{text}
```

- **Which is better?** Proper scores answer: they fall with miscalibration and rise with discrimination. Two forecasts
  with the same information differ only in *miscalibration*; one that knows less lacks *discrimination*.
- **Groups** change what is known of the noise, not the scores. Treated as independent, these rows would give the
  difference of the log-losses of "live" and "overconfident" a standard error of {se_rows:.5f}; it is
  {se_groups:.5f}. And what looks like miscalibration of "before the game", a squared error of {raw:.4f} of independent
  rows, is mostly the same {games} results six times over: with groups it is {squared_groups:.4f}.
- **Several pairs** find a difference by chance more often than one does: p-values in brackets are adjusted (Holm).

`cal.plot.ModelComparisonDisplay(comparison).plot()` draws it:

![Differences of three forecasters, with intervals](images/model_comparison.png)

## Do the intervals cover?

On samples whose true differences are known:

<!-- answers coverage.model_comparison_coverage -->
<!-- end -->

What stays weak:

- **Calibration error** (L1): its interval combines those of `cal.estimate` for each model, by the same estimator, and
  shares their assumptions ([coverage](../benchmarks/coverage/coverage_tracks.md)). It does not get narrower where
  both errors rise and fall together, so between calibrated models it covers the truth nearly always;
  where they move against each other, in small samples less often than it says. The *squared* error has an unbiased
  estimate, near calibration too.
- **Bins blur**: gaps that change their sign within one of √n bins of equal counts, of each class, are lost to the
  squared error. With many classes most rows of a class lie near 0, and few bins lie where it is probable.
- **Miscalibration** of calibrated models is covered too often: resamples of an isotonic fit vary more than samples do.
  Differences there are found later than they could be.
- **Bias of parts**: the overfit of the isotonic fit is estimated from labels drawn from a smooth map of the scores.
  If the truth is flat with jumps it is less; intervals allow for that, which makes them wide where one model has many
  scores and the other few. With groups, one correlation is assumed for all rows, and negatively correlated labels of
  a group are treated as independent.
- **Few groups**: below 30 there is a warning. Groups are counted by Kish's formula: if one has half of the rows, they
  count as few.
- A **log score** of ∞, a probability of 0 for the observed class, has no interval.

## Over several data sets

Data sets are the units when methods are compared on many of them. `cal.scores.rank_models(scores)` ranks the methods on
each, and tests the average ranks (Friedman; Iman and Davenport; Nemenyi), as Demšar (2006) proposes. Here five
calibration maps on twenty synthetic data sets of 400 rows, by their distance to the true map:

```
{ranked}
```

`cal.plot.CriticalDifferenceDisplay(ranks).plot()`: bars join methods that do not differ significantly.

![Critical-difference diagram of five calibration maps](images/critical_difference.png)
"""


def main() -> None:
    """Compare, draw and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1])
    docs = parser.parse_args().docs
    images, page = docs / "images", docs / "comparing_models.md"
    images.mkdir(parents=True, exist_ok=True)
    y, models, game = season()
    found = cal.compare_models(y, models, groups=game, random_state=0)
    alone = cal.compare_models(y, models, random_state=0)
    of = ("log-loss", "live", "overconfident")
    save(cal.plot.ModelComparisonDisplay(found).plot().figure_, images / "model_comparison.png")
    ranked = ranks()
    save(cal.plot.CriticalDifferenceDisplay(ranked).plot().figure_, images / "critical_difference.png")
    text = PAGE.format(
        games=len(np.unique(game)),
        raw=alone.models[2].measures["squared_calibration_error"],
        squared_groups=found.models[2].measures["squared_calibration_error"],
        text=found,
        se_rows=alone.difference(*of).se,
        se_groups=found.difference(*of).se,
        ranked=ranked,
    )
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

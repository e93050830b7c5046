"""The picture of docs/groups.md, and with ``--data`` its figures of real forecasts.

Run from the repository's root: ``python docs/examples/groups.py [--docs docs] [--data FOLDER]``. The folder holds
nba_games.csv and mlb_games.csv (FiveThirtyEight, checking-our-work-data, CC BY 4.0) and precip_niamey_2016.csv (the R
package reliabilitydiag, CC BY 4.0).
"""

import argparse
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib import pyplot as plt
from pictures import look, save
from scipy.stats import norm

import calibrant as cal


def events(n_events: int = 40, reads: int = 60, seed: int = 3) -> tuple:
    """Calibrated forecasts of events that come near: a martingale that ends in the outcome."""
    path = np.random.default_rng(seed).normal(size=(n_events, reads + 1)).cumsum(axis=1)
    scores = norm.cdf(path[:, :-1] / np.sqrt(np.arange(reads, 0, -1)))
    return np.repeat(path[:, -1] > 0, reads).astype(int), scores.ravel(), np.repeat(np.arange(n_events), reads)


def picture(path: Path) -> None:
    look()
    y, s, event = events()
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
    for ax, groups, name in zip(axes, (None, event), ("rows taken as independent", "groups=event"), strict=True):
        curve = cal.reliability_curve(y, s, groups=groups, level=0.95)
        found = cal.report(y, s, groups=groups)
        ax.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--")
        ax.fill_between(curve.scores, curve.lower, curve.upper, alpha=0.25, lw=0)
        ax.plot(curve.scores, curve.observed)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="forecast", title=f"{name}\nverdict: {found.evidence.status}")
        ax.set_aspect("equal")
    axes[0].set_ylabel("how often it happened")
    save(figure, path)


def row(name: str, y: np.ndarray, s: np.ndarray, groups: object) -> None:
    p = cal.as_predictions(y, s, groups=groups)
    e = cal.estimate(p)
    status, cox = cal.report(p).evidence.status, cal.significance.cox_test(p).pvalue
    print(
        f"| {name} | {p.n_samples:,} | {p.n_groups:,} | {e.value:.4f} | {e.interval.low:.4f} to {e.interval.high:.4f} "
        f"| {status} | {cox:.3g} |"
    )


def real(folder: Path) -> None:
    print("| forecasts | rows | groups | calibration error | 95 % interval | report | Cox's test, p |")
    print("|---|---:|---:|---:|---|---|---:|")
    for name in ("nba", "mlb"):
        games = pl.read_csv(folder / f"{name}_games.csv", infer_schema_length=None)
        games = games.filter(pl.col("prob1_outcome").cast(float).is_in([0.0, 1.0])).drop_nulls("prob1")
        y, s = games["prob1_outcome"].to_numpy().astype(int), games["prob1"].to_numpy()
        season = games["season"].cast(str)
        for how, groups in {
            "none": None,
            "days": games["date"].cast(str),
            "team and season": season + games["team1"],
            "seasons": season,
        }.items():
            row(f"{name.upper()}, {how}", y, s, groups)
        favoured = s >= 0.5
        row(
            f"{name.upper()}, the favourite's row, none",
            np.where(favoured, y, 1 - y),
            np.where(favoured, s, 1 - s),
            None,
        )
        both, stated = np.concatenate([y, 1 - y]), np.concatenate([s, 1 - s])
        row(f"{name.upper()}, a row for each team, none", both, stated, None)
        row(f"{name.upper()}, a row for each team, games", both, stated, np.tile(np.arange(len(y)), 2))
    days = pl.read_csv(folder / "precip_niamey_2016.csv")
    week = (days["date"] // 7).to_numpy()
    for name in ("Logistic", "EMOS", "ENS", "EPC"):
        for how, groups in {"none": None, "weeks": week}.items():
            row(f"rain in Niamey, {name}, {how}", days["obs"].to_numpy().astype(int), days[name].to_numpy(), groups)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    y, s, event = events()
    print(cal.report(y, s).verdict, cal.report(y, s, groups=event).verdict, sep="\n")
    picture(options.docs / "images" / "groups.png")
    if options.data is not None:
        real(options.data)


if __name__ == "__main__":
    main()

"""Reports, decompositions and comparisons of published forecasts of games and of rain, and parity with R's values.

    OMP_NUM_THREADS=1 python -m benchmarks.real.real_forecasts --data FOLDER [--pages FOLDER]

The folder holds nba_games.csv and mlb_games.csv (FiveThirtyEight, checking-our-work-data) and precip_niamey_2016.csv
(the R package reliabilitydiag). Prints each verdict; `--pages` also writes the pages. Stops where the CORP
decomposition of the EMOS forecasts for Niamey is not what reliabilitydiag prints.
"""

from pathlib import Path

import numpy as np
import polars as pl

import calibrant as cal

from .. import arguments

#: Mean score, miscalibration, discrimination and uncertainty of EMOS by reliabilitydiag, as printed.
FROM_R = {"EMOS": (0.232, 0.0183, 0.0305, 0.244)}
FORECASTERS = ("Logistic", "EMOS", "ENS", "EPC")


def games(path: Path) -> tuple[np.ndarray, np.ndarray, int]:
    """Results of the first team, its probabilities, and how many games without a winner were left out."""
    rows = pl.read_csv(path, infer_schema_length=None).drop_nulls(["prob1", "prob1_outcome"])
    won, p = rows["prob1_outcome"].to_numpy(), rows["prob1"].to_numpy()
    decided = (won == 0) | (won == 1)
    return won[decided].astype(int), p[decided], int((~decided).sum())


def show(name: str, y: np.ndarray, p: np.ndarray, pages: Path | None) -> tuple[float, float, float, float]:
    report = cal.report(y, p, title=name)
    parts = cal.decompose(y, p)
    found = (parts.total, parts.miscalibration, parts.discrimination, parts.uncertainty)
    print(f"{name}, {len(y):,} rows: {report.verdict}")
    print("  Brier score {:.4f} = miscalibration {:.4f} - discrimination {:.4f} + uncertainty {:.4f}".format(*found))
    print(f"  p-values: {pvalues(y, p)}\n")
    if pages is not None:
        report.to_html(pages / f"{name.replace(' ', '_')}.html")
    return found


def pvalues(y: np.ndarray, p: np.ndarray) -> str:
    tests = {
        "resampling": cal.calibration_test(y, p, random_state=0),
        "Hosmer–Lemeshow": cal.significance.hosmer_lemeshow_test(y, p, df="external"),
        "Spiegelhalter": cal.significance.spiegelhalter_test(y, p),
        "Cox": cal.significance.cox_test(y, p),
        "Kuiper": cal.significance.cumulative_test(y, p),
        "adaptive": cal.significance.adaptive_test(y, p, random_state=0),
        "belt": cal.significance.calibration_belt(y, p),
    }
    return ", ".join(f"{name} {test.pvalue:.3g}" for name, test in tests.items())


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pages", type=Path)
    options = parser.parse_args()
    if options.pages is not None:
        options.pages.mkdir(parents=True, exist_ok=True)
    for name, file in (("NBA", "nba_games.csv"), ("MLB", "mlb_games.csv")):
        y, p, without = games(options.data / file)
        show(name, y, p, options.pages)
        if without:
            print(f"  ({without} without a winner left out)\n")
    rain = pl.read_csv(options.data / "precip_niamey_2016.csv")
    y = rain["obs"].cast(int).to_numpy()
    forecasts = {name: rain[name].to_numpy() for name in FORECASTERS}
    for name, p in forecasts.items():
        found = show(f"Niamey {name}", y, p, options.pages)
        for ours, theirs in zip(found, FROM_R.get(name, found), strict=True):
            digits = 3 if theirs > 0.1 else 4
            assert round(ours, digits) == round(theirs, digits), (name, ours, theirs)
    print(cal.compare_models(y, forecasts, reference="EMOS", random_state=0))


if __name__ == "__main__":
    main()

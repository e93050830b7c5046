"""Pictures of docs/guide: ``python docs/examples/guide_pictures.py [--docs docs]``, from the repository's root."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from pictures import look, save

import calibrant as cal
from calibrant.plot import CostDisplay, DecisionCurveDisplay, MurphyDisplay, NullDistributionDisplay


def overconfident(n: int, seed: int = 0, slope: float = 1.6) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes, and scores whose log odds are too large by a factor."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-0.5, 1.4, n)
    return (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int), 1 / (1 + np.exp(-slope * log_odds))


def notions(path: Path) -> None:
    """One matrix of probabilities, three questions."""
    digits = cal.datasets.load_digits_predictions()
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
    for ax, notion in zip(axes, ("confidence", "class-specific:1", "class-specific:8"), strict=True):
        found = cal.calibration_error(digits.y_true, digits.y_prob, notion=notion)
        cal.ReliabilityDisplay.from_predictions(
            digits.y_true, digits.y_prob, notion=notion, ax=ax, histogram=None, legend=False, n_resamples=100
        )
        ax.set_title(f"{notion}\ncalibration error {found:.3f}")
    save(figure, path)


def bands(path: Path) -> None:
    """The same rows with three bands."""
    y, p = overconfident(1000)
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
    for ax, band in zip(axes, ("confidence", "consistency", "simultaneous"), strict=True):
        curve = "isotonic" if band == "simultaneous" else "auto"
        cal.ReliabilityDisplay.from_predictions(y, p, band=band, curve=curve, ax=ax, histogram=None, legend=False)
        ax.set_title(f'band="{band}"\ncurve="{curve}"')
    save(figure, path)


def tests(path: Path) -> None:
    """What the statistic would be if the model were calibrated, and what it is."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, slope, name in zip(axes, (1.0, 1.6), ("calibrated", "log odds 1.6 times too large"), strict=True):
        y, p = overconfident(1000, slope=slope)
        result = cal.calibration_test(y, p)
        NullDistributionDisplay.from_result(result, ax=ax)
        ax.set_title(f"{name}: p = {result.pvalue:.3f}")
    save(figure, path)


def scores(path: Path) -> None:
    """Loss at every threshold: before, and after recalibration."""
    y, p = overconfident(2000, slope=2.5)
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    MurphyDisplay.from_predictions(y, p, ax=ax)
    save(figure, path)


def decisions(path: Path) -> None:
    """What a decision costs, and the net benefit at each threshold."""
    y, p = overconfident(2000, slope=2.5)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    CostDisplay.from_predictions(y, p, costs=[[0, 1], [4, 0]], ax=left)
    DecisionCurveDisplay.from_predictions(y, p, ax=right)
    save(figure, path)


def main() -> None:
    """Draw them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    images = parser.parse_args().docs / "images"
    look()
    for draw in (notions, bands, tests, scores, decisions):
        draw(images / f"guide_{draw.__name__}.png")


if __name__ == "__main__":
    main()

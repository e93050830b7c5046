"""Every calibrator of the survey on each of its synthetic cases, as pictures (its Figures 12 to 20).

Run from the repository's root: ``python docs/examples/survey_gallery.py OUT``. Silva Filho et al., *Classifier
calibration: a survey*. Two classes: calibration maps beside the true one, and reliability diagrams of new rows before
and after. Three classes: arrows in the simplex, the change of each class's probability, and class-wise reliability
diagrams before and after. The three-class scores are ours, for the survey does not publish its own: see
``make_survey``.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from pictures import save

import calibrant as cal
from calibrant.calibrators import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibrator,
    MatrixScaling,
    OneVsRest,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.datasets import Sample, make_survey, survey_restored, survey_true_map

BINARY = {
    "binning": HistogramBinning(10, "quantile"),
    "isotonic": IsotonicCalibrator(),
    "logistic": PlattScaling(),
    "beta": BetaCalibration(),
}
ONE_AGAINST_THE_REST = {f"{name}, one vs. rest": OneVsRest(one) for name, one in BINARY.items()}
OF_ALL_CLASSES = {
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(0),
    "matrix": MatrixScaling(0),
    "Dirichlet": DirichletCalibration("odir", 0.01),
}
SEVERAL = {**ONE_AGAINST_THE_REST, **OF_ALL_CLASSES}
TWO_CLASSES = ("underconfident", "overconfident")
THREE_CLASSES = ("three-class", "network")
TO_FIT, NEW = 3000, 3000


def rows(case: str) -> tuple[Sample, Sample]:
    """Rows to fit to, and new ones."""
    return make_survey(TO_FIT, case, random_state=0), make_survey(NEW, case, random_state=1)


def fitted(calibrators: dict[str, Any], data: Sample) -> dict[str, Any]:
    """The calibrators, fitted."""
    return {name: one.fit(data.y_prob, data.y_true) for name, one in calibrators.items()}


def maps(case: str, out: Path, dpi: int = 100) -> None:
    """Calibration maps of two classes over the diagram of the scores, and the diagrams of new rows after them."""
    data, new = rows(case)
    found = fitted(BINARY, data)
    figure, axes = plt.subplots(2, 4, figsize=(15, 7.6), layout="constrained")
    figure.get_layout_engine().set(wspace=0.08)
    for (above, below), (name, one) in zip(axes.T, found.items(), strict=True):
        cal.plot.CalibrationMapDisplay.from_calibrators(
            {name: one},
            data.y_true,
            data.y_prob,
            truth=partial(survey_true_map, case=case),
            ax=above,
            histogram=None,
            legend=False,
        )
        above.set_title(f"{name}: the map and the true one", fontsize=10)
        errors = [
            cal.ReliabilityDisplay.from_predictions(
                new.y_true, p, ax=below, histogram=None, legend=False
            ).estimate.value
            for p in (new.y_prob, one.predict_proba(new.y_prob)[:, 1])
        ]
        below.set_title(f"new rows: ECE {errors[0]:.3f}, after {errors[1]:.3f}", fontsize=10)
    save(figure, out / f"{case}_maps.png", dpi)


def arrows(case: str, out: Path, dpi: int = 100) -> None:
    """Where points of the simplex go; where they should is known for the distorted posterior only."""
    data, _ = rows(case)
    figure, axes = plt.subplots(2, 4, figsize=(16, 8), layout="constrained")
    for ax, (name, one) in zip(axes.flat, fitted(SEVERAL, data).items(), strict=True):
        cal.plot.SimplexMapDisplay.from_calibrator(
            one, scores=data.y_prob, truth=survey_restored if case == "three-class" else None, ax=ax
        )
        ax.set_title(name, fontsize=11)
    save(figure, out / f"{case}_arrows.png", dpi)


def heat(case: str, names: dict[str, Any], path: Path, dpi: int = 100) -> None:
    """How much each class's probability changes, a row of panels a calibrator."""
    data, _ = rows(case)
    figure, axes = plt.subplots(len(names), 3, figsize=(11.5, 3.9 * len(names)), layout="constrained", squeeze=False)
    for panels, (name, one) in zip(axes, fitted(names, data).items(), strict=True):
        cal.plot.SimplexMapDisplay.from_calibrator(one, kind="heat", scores=data.y_prob, ax=panels)
        panels[0].text(-0.2, 0.43, name, fontsize=11, rotation=90, va="center")
    save(figure, path, dpi)


def classwise(case: str, names: dict[str, Any], path: Path, dpi: int = 100) -> None:
    """Class-wise reliability diagrams of new rows before and after, a row of panels a calibrator."""
    data, new = rows(case)
    figure, axes = plt.subplots(len(names), 3, figsize=(11, 4.1 * len(names)), layout="constrained", squeeze=False)
    for panels, (name, one) in zip(axes, fitted(names, data).items(), strict=True):
        for said, p in (("before", new.y_prob), ("after", one.predict_proba(new.y_prob))):
            cal.ReliabilityDisplay.from_predictions(
                new.y_true, p, notion="classwise", classes=[0, 1, 2], name=said, ax=panels, histogram=None
            )
        for panel in panels:
            panel.set_title(f"{name}: {panel.get_title()}", fontsize=10)
    save(figure, path, dpi)


def every(out: Path) -> None:
    """All pictures."""
    for case in TWO_CLASSES:
        maps(case, out)
    groups = {"one_vs_rest": ONE_AGAINST_THE_REST, "all_classes": OF_ALL_CLASSES}
    for case in THREE_CLASSES:
        arrows(case, out)
        for group, names in groups.items():
            heat(case, names, out / f"{case}_heat_{group}.png")
            classwise(case, names, out / f"{case}_classwise_{group}.png")


def of_the_page(images: Path) -> None:
    """The few that docs/gallery.md shows."""
    arrows("network", images, dpi=100)
    (images / "network_arrows.png").replace(images / "survey_network_arrows.png")
    few = {name: SEVERAL[name] for name in ("isotonic, one vs. rest", "Dirichlet")}
    heat("network", few, images / "survey_network_heat.png", dpi=110)
    classwise("network", few, images / "survey_network_classwise.png", dpi=110)


def main() -> None:
    """Draw everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the pictures")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    every(out)
    print(f"{len(list(out.glob('*.png')))} pictures in {out}; rows to fit {TO_FIT}, new ones {NEW}")


if __name__ == "__main__":
    main()

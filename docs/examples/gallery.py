"""Pictures of repair: calibration maps, the simplex, before and after. Writes docs/gallery.md and its images.

Run from the repository's root: ``python docs/examples/gallery.py [--docs docs]``. The cases are the synthetic ones of
Silva Filho et al., *Classifier calibration: a survey*, whose true maps are known.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from pictures import save
from scipy.special import expit, logit
from survey_gallery import of_the_page

import calibrant as cal
from calibrant.calibrators import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibrator,
    MatrixScaling,
    OneVsRest,
    PlattScaling,
    SplineCalibrator,
    TemperatureScaling,
    VennAbers,
    select_calibrator,
)
from calibrant.datasets import load_digits_predictions, make_survey, survey_restored, survey_true_map
from calibrant.plot import BrierCurveDisplay, CalibrationMapDisplay, SimplexDisplay, SimplexMapDisplay

BINARY = {
    "Platt scaling": PlattScaling(),
    "beta calibration": BetaCalibration(),
    "spline": SplineCalibrator(),
    "ten bins of equal mass": HistogramBinning(10, "quantile"),
    "isotonic": IsotonicCalibrator(),
    "Venn-Abers": VennAbers(),
}
ROWS = 1000


def maps(case: str, images: Path) -> dict[str, float]:
    """Six maps of one case; returns the mean absolute error of each, against the true map at new scores."""
    data, new = make_survey(ROWS, case, random_state=0), make_survey(50_000, case, random_state=1)
    truth = partial(survey_true_map, case=case)
    figure, axes = plt.subplots(2, 3, figsize=(11, 8.4), layout="constrained")
    figure.get_layout_engine().set(h_pad=0.14)
    errors = {"unchanged scores": float(np.abs(new.y_prob - truth(new.y_prob)).mean())}
    for ax, (name, one) in zip(axes.flat, BINARY.items(), strict=True):
        fitted = one.fit(data.y_prob, data.y_true)
        CalibrationMapDisplay.from_calibrators(
            {name: fitted}, data.y_true, data.y_prob, truth=truth, ax=ax, histogram=None, legend=False
        )
        errors[name] = float(np.abs(fitted.predict_proba(new.y_prob)[:, 1] - truth(new.y_prob)).mean())
        ax.set_title(f"{name}: error {errors[name]:.3f}", fontsize=10)
    handles = [next(a for a in axes.flat[0].lines if a.get_label() == "true map"), axes.flat[0].lines[-1]]
    figure.legend(handles, ["true map", "calibrator"], loc="outside lower center", ncols=2, fontsize=9)
    save(figure, images / f"gallery_{case}.png")
    return errors


def simplex(images: Path) -> None:
    """Three classes: where calibrators move the simplex."""
    data = make_survey(3000, "three-class", random_state=0)
    several = {
        "temperature": TemperatureScaling(),
        "matrix, shrunk": MatrixScaling(),
        "Dirichlet, ODIR": DirichletCalibration("odir", 0.01),
        "isotonic, one against the rest": OneVsRest(IsotonicCalibrator()),
    }
    figure, axes = plt.subplots(2, 2, figsize=(9, 8.6), layout="constrained")
    for ax, (name, one) in zip(axes.flat, several.items(), strict=True):
        fitted = one.fit(data.y_prob, data.y_true)
        SimplexMapDisplay.from_calibrator(fitted, scores=data.y_prob, truth=survey_restored, ax=ax)
        ax.set_title(name, fontsize=10)
    save(figure, images / "gallery_simplex.png")
    fitted = several["Dirichlet, ODIR"]
    display = SimplexMapDisplay.from_calibrator(fitted, kind="heat", scores=data.y_prob)
    save(display.figure_, images / "gallery_simplex_heat.png")
    test = make_survey(3000, "three-class", random_state=1)
    before = cal.ReliabilityDisplay.from_predictions(
        test.y_true, test.y_prob, notion="classwise", classes=[0, 1, 2], name="before", random_state=0
    )
    after = cal.ReliabilityDisplay.from_predictions(
        test.y_true, fitted.predict_proba(test.y_prob), notion="classwise", name="after", ax=before.ax_, random_state=0
    )
    save(after.figure_, images / "gallery_classwise.png")


def surfaces(images: Path) -> None:
    """Density, frequencies and local error over the simplex, by cells and by kernels."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet([1, 1, 1], 4000)
    y = (rng.random((4000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    stated = truth**1.8 / (truth**1.8).sum(axis=1, keepdims=True)
    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    for row, kind in zip(axes, ("histogram", "kernel"), strict=True):
        for ax, show in zip(row, ("density", "error"), strict=True):
            kernel = cal.estimators.DirichletKernel(0.02, "query") if kind == "kernel" else None
            SimplexDisplay.from_predictions(y, stated, kind=kind, show=show, estimator=kernel, ax=ax)
            ax.set_title(f"{kind}: {show}", fontsize=10)
    save(figure, images / "gallery_simplex_cells.png")
    one = SimplexDisplay.from_predictions(y, stated, kind="kernel", show="frequency", estimator=kernel)
    save(one.figure_, images / "gallery_simplex_frequency.png")


def before_and_after(images: Path) -> str:
    """Naive Bayes on digits: half of the held-out rows choose and fit a calibrator, the other half judge it."""
    data = load_digits_predictions()
    half = np.arange(len(data.y_true)) % 2 == 0
    found = select_calibrator(data.y_prob[half], data.y_true[half], rule="one-standard-error")
    y, p = data.y_true[~half], data.y_prob[~half]
    before = cal.ReliabilityDisplay.from_predictions(y, p, name="before", random_state=0)
    after = cal.ReliabilityDisplay.from_predictions(
        y, found.calibrator.predict_proba(p), name=f"after {found.name}", ax=before.ax_, random_state=0
    )
    save(after.figure_, images / "gallery_before_after.png")
    return found.name


def paper_and_costs(images: Path) -> None:
    """A rare event on probability paper, and Brier curves before and after."""
    rng = np.random.default_rng(0)
    true = expit(rng.normal(-5, 2, 20_000))
    y, stated = (rng.random(20_000) < true).astype(int), expit(1.5 * logit(true) + 1.5)
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.7))
    figure.subplots_adjust(left=0.07, right=0.98, bottom=0.1, top=0.98, wspace=0.24)
    for ax, scale in zip(axes, ("linear", "logit"), strict=True):
        cal.ReliabilityDisplay.from_predictions(y, stated, scale=scale, curve="isotonic", ax=ax)
    save(figure, images / "gallery_paper.png")
    fit, new = make_survey(ROWS, "overconfident", random_state=0), make_survey(3000, "overconfident", random_state=1)
    repaired = SplineCalibrator().fit(fit.y_prob, fit.y_true).predict_proba(new.y_prob)[:, 1]
    curves = BrierCurveDisplay.from_predictions(new.y_true, {"original": new.y_prob, "spline": repaired})
    save(curves.figure_, images / "gallery_brier.png")


PAGE = """# Pictures of repair

Made by `python docs/examples/gallery.py`; the cases are those of Silva Filho et al., *Classifier calibration: a
survey*, with known truth ({rows} rows to fit).

## Calibration maps

`cal.plot.CalibrationMapDisplay.from_calibrators(fitted, y, p)` draws the calibrated score for each score over the
reliability diagram: the curve, band and bins of the scores in grey, and the true map as a broad pale line.

![Six maps of under-confident scores beside the true map: the spline's is nearest](images/gallery_underconfident.png)

![Six maps of over-confident scores beside the true map: the spline's is nearest](images/gallery_overconfident.png)

Mean absolute distance to the true probability, at 50 000 new scores:

| calibrator | under-confident | over-confident |
|---|---|---|
{table}

The true map has a flat middle. Platt's and the beta map cannot bend that way; the spline can; steps can, within their
noise.

## Three classes

`cal.plot.SimplexMapDisplay.from_calibrator(fitted, scores=P)` shows where points of the simplex go; the colour is the
predicted class afterwards. An arrow should end in its circle, and a grey line shows the distance. The survey does
not publish the scores of its three classes: here they are the true probabilities squared and weighted. They (grey) lie
on a curve, for there is one feature: away from it arrows are faint, for there a map is an extrapolation.

![Where four calibrators move points of the simplex, and how far they are from the truth](images/gallery_simplex.png)

`kind="heat"` shows the change of each class's probability.

![By how much the Dirichlet map changes each class's probability over the simplex](images/gallery_simplex_heat.png)

`cal.plot.SimplexDisplay.from_predictions(y, P, kind="histogram" or "kernel", show=…)` colours the simplex by rows per
area, by class frequencies, or by the distance between frequencies and probabilities. Here the probabilities of 4,000
rows are too extreme. The canonical L1 error is the mean of the right panels over the rows, noise included.

![Density of rows and error over the simplex, by cells and by kernels](images/gallery_simplex_cells.png)

![Frequencies of three classes over the simplex by kernels](images/gallery_simplex_frequency.png)

Class by class, before and after the Dirichlet map, on new rows:

![Class-wise reliability diagrams before the Dirichlet map and after](images/gallery_classwise.png)

## Before and after

Naive Bayes on handwritten digits; cross-validation on half of the rows chose “{chosen}”, the other half is drawn.

![Reliability diagram before and after: over-confident, then near it](images/gallery_before_after.png)

## Every calibrator of the survey on each of its cases

`python docs/examples/survey_gallery.py OUT` draws what the survey's Figures 12 to 20 show. For two classes it draws the
maps of binning, isotonic, logistic and beta calibration with the true map, and new rows before and after. For three
classes it draws these four, one against the rest, and temperature, vector, matrix and Dirichlet scaling: as arrows, as
the change of each class's probability, and as class-wise diagrams. The cases are under- and over-confident scores, the
distorted posterior, and a network. The survey does not publish the network's scores; ours come from
`make_survey(n, "network")`, 16 hidden units that overfit 300 rows. Eight maps of them:

![Arrows in the simplex, eight calibrators of a network](images/survey_network_arrows.png)

![Change of each class's probability by two calibrators of a network](images/survey_network_heat.png)

One matrix cannot express every map: isotonic regression, one against the rest, repairs each class of this network
better than the Dirichlet map does.

![Class-wise reliability diagrams of a network before and after two calibrators](images/survey_network_classwise.png)

## Rare events: probability paper

`cal.ReliabilityDisplay.from_predictions(y, p, scale="logit", curve="isotonic")` (or `"probit"`, and `.plot(scale=…)` of
a result) shows what a linear diagram hides in its corner. Bins at 0 or 1 lie outside of such paper and are drawn as
arrowheads on its edge.

![A rare event on linear axes, all in a corner, and on probability paper](images/gallery_paper.png)

## At which costs

`cal.plot.BrierCurveDisplay.from_predictions(y, {{"original": p, …}})` draws the expected loss where the cost
proportion is the threshold. The area is the Brier score; the thin lines show what recalibration could reach on the same
rows.

![Expected loss at every cost, before and after a spline](images/gallery_brier.png)

## How estimates change with the number of rows

`docs/examples/appendix_f.py` estimates the error of one network from subsets of its predictions of digits: by the
published Dirichlet and Beta kernels, by bins and by the default. Bands cover 95 % of a hundred subsets. A wide band
means that one estimate from that number of rows says little. A constant mean does not show that an estimator is right:
a kernel or a cell of fixed width blurs equally at every n.

![Canonical, class-wise and confidence errors estimated from 50 to 800 rows, means and bands](images/appendix_f.png)
"""


def main() -> None:
    """Draw everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1])
    docs = parser.parse_args().docs
    images = docs / "images"
    images.mkdir(parents=True, exist_ok=True)
    under, over = (maps(case, images) for case in ("underconfident", "overconfident"))
    simplex(images)
    surfaces(images)
    chosen = before_and_after(images)
    of_the_page(images)
    paper_and_costs(images)
    table = "\n".join(f"| {name} | {under[name]:.3f} | {over[name]:.3f} |" for name in under)
    (docs / "gallery.md").write_text(PAGE.format(rows=ROWS, table=table, chosen=chosen), encoding="utf-8")


if __name__ == "__main__":
    main()

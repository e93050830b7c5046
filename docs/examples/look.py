"""Every picture, and every page at every width, light and dark, on one contact sheet: to be opened and judged.

    pip install "calibrant[cli]"            # and Chromium (or Chrome) for the pages
    python docs/examples/look.py OUT [--width 2400]

writes ``OUT/contact_sheet.png``, and what is on it at full size into ``OUT/pages`` and ``OUT/pictures``: pages of a
report, of ten classes, of compared calibrators, of compared models, of subgroups and a diagram by itself at 390, 768
and 1400 pixels; every kind of display, drawn now; and the documentation's own pictures as they are. Look for words cut
off or on top of one another, legends on curves, text too small to read, and what a stranger would not understand.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from pictures import save
from PIL import Image, ImageChops, ImageDraw, ImageFont

import calibrant as cal
from calibrant.calibrators import PlattScaling, SplineCalibrator, TemperatureScaling
from calibrant.datasets import load_digits_predictions, load_even_digits_predictions, make_survey, survey_restored

WIDTHS = (390, 768, 1400)
#: Chromium's narrowest window; narrower pages are shown in a frame of their own width.
NARROWEST = 500
TALLEST = 4200
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
IMAGES = Path(__file__).resolve().parents[1] / "images"

EVEN, DIGITS, SURVEY = (
    load_even_digits_predictions(),
    load_digits_predictions(),
    make_survey(1500, "three-class", random_state=0),
)
Y = (EVEN.y_true == "even").astype(int)


def models() -> dict[str, np.ndarray]:
    """Three models of one outcome: as they are, sharper, and blunter."""
    p = EVEN.y_prob
    return {
        "naive Bayes": p,
        "halfway": (p + p.mean()) / 2,
        "after Platt": PlattScaling().fit(p, Y).predict_proba(p)[:, 1],
    }


def subgroups() -> cal.results.SubgroupReport:
    """Errors of six parts of the rows, one after another."""
    return cal.subgroup_calibration(
        Y, EVEN.y_prob, np.array([f"part {i + 1}" for i in (np.arange(len(Y)) * 6 // len(Y))])
    )


PAGES: dict[str, Callable[[], str]] = {
    "report": lambda: cal.report(EVEN.y_true, EVEN.y_prob, pos_label="even", title=EVEN.description).to_html(),
    "report, ten classes": lambda: cal.report(DIGITS.y_true, DIGITS.y_prob, title=DIGITS.description).to_html(),
    "compared calibrators": lambda: cal.compare_calibrators(Y, EVEN.y_prob).to_html(),
    "compared models": lambda: cal.compare_models(Y, models(), n_resamples=200, random_state=0).to_html(),
    "subgroups": lambda: subgroups().to_html(),
    "diagram by itself": lambda: cal.ReliabilityDisplay.from_predictions(Y, EVEN.y_prob, name="naive Bayes").to_html(),
}


def overlay() -> plt.Figure:
    """Two models on axes that are given, with titles beside."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    for name, p in list(models().items())[:2]:
        cal.ReliabilityDisplay.from_predictions(Y, p, name=name, ax=axes[0])
        cal.ReliabilityDisplay.from_predictions(Y, p, name=name, ax=axes[1], histogram="below")
    for ax, title in zip(axes, ("inside", "below"), strict=True):
        ax.set_title(title)
    return figure


def ten_classes() -> plt.Figure:
    """The worst nine of ten, two models."""
    repaired = TemperatureScaling().fit(DIGITS.y_prob, DIGITS.y_true).predict_proba(DIGITS.y_prob)
    first = cal.ReliabilityDisplay.from_predictions(DIGITS.y_true, DIGITS.y_prob, notion="classwise", name="before")
    again = {"notion": "classwise", "name": "after", "ax": first.ax_}
    return cal.ReliabilityDisplay.from_predictions(DIGITS.y_true, repaired, **again).figure_


def simplex() -> plt.Figure:
    """Arrows, with the truth."""
    fitted = TemperatureScaling().fit(SURVEY.y_prob, SURVEY.y_true)
    return cal.plot.SimplexMapDisplay.from_calibrator(fitted, scores=SURVEY.y_prob, truth=survey_restored).figure_


def maps() -> plt.Figure:
    """Two calibrators over the scores."""
    fitted = {"Platt": PlattScaling().fit(EVEN.y_prob, Y), "spline": SplineCalibrator().fit(EVEN.y_prob, Y)}
    return cal.plot.CalibrationMapDisplay.from_calibrators(fitted, Y, EVEN.y_prob).figure_


def ranked() -> plt.Figure:
    """Five methods on twelve data sets."""
    scores = np.add(np.random.default_rng(0).random((12, 5)), [0, 0.1, 0.3, 0.5, 0.5])
    names = ("isotonic", "Platt", "beta", "temperature", "none")
    return cal.plot.CriticalDifferenceDisplay.from_scores(dict(zip(names, scores.T, strict=True))).figure_


DISPLAYS: dict[str, Callable[[], plt.Figure]] = {
    "ReliabilityDisplay": lambda: cal.ReliabilityDisplay.from_predictions(Y, EVEN.y_prob, name="naive Bayes").figure_,
    "on axes that are given": overlay,
    "ten classes": ten_classes,
    "CalibrationMapDisplay": maps,
    "SimplexMapDisplay": simplex,
    "SimplexDisplay": lambda: (
        cal.plot.SimplexDisplay.from_predictions(SURVEY.y_true, SURVEY.y_prob, show="error").figure_
    ),
    "BrierCurveDisplay": lambda: cal.plot.BrierCurveDisplay.from_predictions(Y, models()).figure_,
    "MurphyDisplay": lambda: cal.plot.MurphyDisplay.from_predictions(Y, models()).figure_,
    "DecisionCurveDisplay": lambda: cal.plot.DecisionCurveDisplay.from_predictions(Y, models()).figure_,
    "RiskCoverageDisplay": lambda: cal.plot.RiskCoverageDisplay.from_predictions(Y, models()).figure_,
    "CalibrationBeltDisplay": lambda: cal.plot.CalibrationBeltDisplay.from_predictions(Y, EVEN.y_prob).figure_,
    "NullDistributionDisplay": lambda: cal.calibration_test(Y, EVEN.y_prob, random_state=0).plot().figure_,
    "ModelComparisonDisplay": lambda: cal.compare_models(Y, models(), n_resamples=200, random_state=0).plot().figure_,
    "CriticalDifferenceDisplay": ranked,
    "SubgroupDisplay": lambda: subgroups().plot().figure_,
}


def shoot(browser: str, page: Path, picture: Path, width: int, *, dark: bool) -> None:
    """A page at a width, down to where nothing follows."""
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.html"
        style = f"border:0;width:{width}px;height:{TALLEST}px"
        frame.write_text(f'<body style="margin:0"><iframe src="{page.as_uri()}" style="{style}"></iframe></body>')
        size = f"--window-size={max(width, NARROWEST)},{TALLEST}"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"]
        flags += [f"--user-data-dir={folder}/profile", *(["--force-dark-mode"] if dark else [])]
        command = [browser, *flags, size, f"--screenshot={picture}", frame.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    drawn = Image.open(picture).convert("RGB").crop((0, 0, width, TALLEST))
    ground = Image.new("RGB", drawn.size, drawn.getpixel((width // 2, TALLEST - 1)))
    filled = ImageChops.difference(drawn, ground).getbbox()
    drawn.crop((0, 0, width, TALLEST if filled is None else min(filled[3] + 20, TALLEST))).save(picture)


def pages(out: Path) -> list[list[tuple[str, Path]]]:
    """A row a page: every width, light and dark."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"none of {', '.join(BROWSERS)} is installed: the sheet has no pages")
        return []
    rows = []
    for name, make in PAGES.items():
        page = (out / f"{name.replace(', ', '_').replace(' ', '_')}.html").resolve()
        page.write_text(make(), encoding="utf-8")
        row = []
        for width in WIDTHS:
            for dark in (False, True):
                shade = "dark" if dark else "light"
                picture = page.with_name(f"{page.stem}_{width}_{shade}.png")
                shoot(browser, page, picture, width, dark=dark)
                row.append((f"{name}, {width}" if not row else f"{width}, {shade}", picture))
        rows.append(row)
        print(name, flush=True)
    return rows


def displays(out: Path) -> list[tuple[str, Path]]:
    """Every kind of display, drawn now."""
    found = []
    for name, draw in DISPLAYS.items():
        path = out / f"{name.replace(' ', '_')}.png"
        save(draw(), path, dpi=100)
        found.append((name, path))
        print(name, flush=True)
    return found


def sheet(rows: Sequence[Sequence[tuple[str, Path]]], width: int) -> Image.Image:
    """Rows of named pictures, each row as wide as the sheet."""
    strips = [_strip(row, width) for row in rows]
    whole = Image.new("RGB", (width, sum(strip.height for strip in strips)), "#c8ccd0")
    top = 0
    for strip in strips:
        whole.paste(strip, (0, top))
        top += strip.height
    return whole


def _strip(row: Sequence[tuple[str, Path]], width: int, gap: int = 14, head: int = 26) -> Image.Image:
    """A row: pictures at one scale, 1 at most, with their names above."""
    drawn = [Image.open(path).convert("RGB") for _, path in row]
    scale = min(1.0, (width - gap * (len(row) + 1)) / sum(one.width for one in drawn))
    drawn = [
        one.resize((round(one.width * scale), round(one.height * scale)), Image.Resampling.LANCZOS) for one in drawn
    ]
    strip = Image.new("RGB", (width, max(one.height for one in drawn) + head + gap), "#c8ccd0")
    pen, font, left = ImageDraw.Draw(strip), ImageFont.load_default(14), gap
    for (name, _), one in zip(row, drawn, strict=True):
        pen.text((left, 6), name, fill="black", font=font)
        strip.paste(one, (left, head))
        left += one.width + gap
    return strip


def in_rows(found: Sequence[tuple[str, Path]], many: int = 4) -> list[Sequence[tuple[str, Path]]]:
    """Some at a time."""
    return [found[i : i + many] for i in range(0, len(found), many)]


def main() -> None:
    """Make everything and put it on one sheet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of the sheet, the pages and the pictures")
    parser.add_argument("--width", type=int, default=2400, help="of the sheet, in pixels")
    options = parser.parse_args()
    for name in ("pages", "pictures"):
        (options.out / name).mkdir(parents=True, exist_ok=True)
    of_docs = [(path.name, path) for path in sorted(IMAGES.glob("*.png"))]
    shown = pages(options.out / "pages") + in_rows(displays(options.out / "pictures")) + in_rows(of_docs)
    path = options.out / "contact_sheet.png"
    sheet(shown, options.width).save(path, optimize=True)
    print(f"{sum(map(len, shown))} pictures on {path}")


if __name__ == "__main__":
    main()

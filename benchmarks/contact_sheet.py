"""Contact sheet: the HTML of every kind of result at three widths, as pictures to be looked at.

    python benchmarks/contact_sheet.py FOLDER

Needs Chromium. Writes FOLDER/<width>.html and FOLDER/<width>.png, and the page of each result that has one as
FOLDER/page-<name>-<width>.png; prints by how many pixels anything is wider than the room that it has.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.calibrators import Identity, PlattScaling
from calibrant.data.writing import write_text
from calibrant.decisions import decision_calibration_error, optimism_corrected, risk_coverage
from calibrant.scores import brier_curve, grouping_loss, murphy_curve, rank_models
from calibrant.significance import calibration_belt, confidence_direction, hosmer_lemeshow_test

WIDTHS = (390, 820, 1280)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def results(n: int = 2000, seed: int = 0) -> Iterator[tuple[str, Any]]:
    """Results of scores that are too high at one end, by name."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p**1.3).astype(int)
    q = rng.dirichlet(np.ones(4), n)
    k = (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    x = rng.normal(size=(n, 3))
    groups = cal.subgroup_calibration(y, p, {"site": rng.choice(["north", "south", "east"], n)})
    models = cal.compare_models(y, {"first": p, "second": p**1.3, "third": np.clip(p + 0.05, 0, 1)})
    report = cal.report(k, q, notion="classwise")
    cost = cal.expected_cost(y, p, [[0, 1], [5, 0]])
    monitor = cal.CalibrationMonitor()
    for part in np.array_split(np.arange(n), 20):
        monitor.update(y[part], p[part])
    yield from {
        "report": cal.report(y, p),
        "report of classes": report,
        "estimate": cal.estimate(y, p),
        "curve": cal.reliability_curve(y, p, level=0.95),
        "bins": cal.reliability_curve(y, p, estimator="binned", level=0.95),
        "test": cal.calibration_test(y, p),
        "Hosmer-Lemeshow test": hosmer_lemeshow_test(y, p),
        "belt": calibration_belt(y, p),
        "decision curve": cal.decision_curve(y, p),
        "Murphy curve": murphy_curve(y, p),
        "Brier curve": brier_curve(y, p),
        "risk and coverage": risk_coverage(k, q),
        "decomposition": cal.decompose(y, p, level=0.95),
        "grouping loss": grouping_loss(y, p, x),
        "measures": cal.calibration_measures(y, p),
        "optimism": optimism_corrected(LogisticRegression(), x, y, n_resamples=50),
        "costs": cost,
        "mean cost": cost.realised,
        "decision error": decision_calibration_error(y, p, thresholds=(0.2, 0.4)),
        "direction": confidence_direction(k, q, notion="classwise"),
        "models": models,
        "difference": models.differences[0],
        "ranks": rank_models({"a": [1, 2, 1, 3], "b": [2, 3, 2, 4], "c": [3, 1, 3, 5]}),
        "subgroups": groups,
        "subgroup": groups.subgroups[0],
        "calibrators": cal.compare_calibrators(y, p, candidates={"platt": PlattScaling(), "none": Identity()}),
        "evidence": report.evidence,
        "gain": report.gain,
        "row of a class": report.per_class[0],
        "monitor": monitor,
        "accumulator": cal.Accumulator().update(y, p),
        "predictions": cal.as_predictions(y, p),
    }.items()


def shoot(page: Path, picture: Path, width: int, height: int) -> None:
    """Photograph a page at a width: in a frame, for a window of Chromium is never narrower than 500 pixels."""
    frame = page.with_suffix(".frame.html")
    style = f"border:0;width:{width}px;height:{height}px"
    write_text(frame, f"<body style='margin:0'><iframe style='{style}' src='{page.name}'></iframe>")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000")
    size = f"--window-size={max(width, 500)},{height}"
    subprocess.run(
        [str(CHROMIUM), *flags, size, f"--screenshot={picture}", frame.as_uri()], check=True, capture_output=True
    )
    frame.unlink()


#: By how many pixels an open part is wider than what it lies in, which then scrolls, or the page than its window.
PROBE = """
const found = {};
for (const frame of document.querySelectorAll("iframe")) {
  const doc = frame.contentDocument, parts = [...doc.querySelectorAll(".calibrant-shown, pre, .picture")];
  const open = [doc.documentElement, ...parts.filter((part) => !part.closest("details:not([open])"))];
  found[frame.name] = Math.max(...open.map((part) => part.scrollWidth - part.clientWidth));
}
document.body.innerHTML = "";
document.body.textContent = JSON.stringify(found);
"""


def overflows(shown: dict[str, str], folder: Path) -> dict[str, list[int]]:
    """Pixels by which HTML is too wide, at every width."""
    frames = "".join(
        f'<iframe name="{name}|{width}" style="border:0;width:{width}px" srcdoc="{html.escape(text)}"></iframe>'
        for name, text in shown.items()
        for width in WIDTHS
    )
    page = folder / "probe.html"
    script = f"addEventListener('load', () => setTimeout(() => {{ {PROBE} }}, 500));"
    write_text(page, f"<!doctype html><meta charset=utf-8><body>{frames}<script>{script}</script>")
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1600,1200", "--virtual-time-budget=20000")
    command = [str(CHROMIUM), *flags, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    page.unlink()
    found = json.loads(html.unescape(re.findall(r"<body>(\{.*\})", done.stdout, re.DOTALL)[0]))
    return {name: [found[f"{name}|{width}"] for width in WIDTHS] for name in shown}


def main(folder: Path) -> None:
    """Write the sheets."""
    if CHROMIUM is None:
        raise SystemExit("no Chromium was found")
    folder.mkdir(parents=True, exist_ok=True)
    found = list(results())
    style = "body{margin:8px;font:14px system-ui,sans-serif}section{border-top:3px solid #888;padding:6px 0}"
    parts = (f"<section><h2>{html.escape(name)}</h2>{one._repr_html_()}</section>" for name, one in found)
    sheet = f"<!doctype html><meta charset=utf-8><style>{style}</style>{''.join(parts)}"
    for width in WIDTHS:
        page = folder / f"{width}.html"
        write_text(page, sheet)
        shoot(page, folder / f"{width}.png", width, 30_000 if width < 500 else 22_000)
    style = "<!doctype html><meta charset=utf-8><style>body{margin:8px;font:14px system-ui,sans-serif}</style>"
    shown = {name: style + one._repr_html_() for name, one in found}
    shown |= {f"page: {name}": one.to_html() for name, one in found if hasattr(one, "to_html")}
    print(f"{'pixels too wide at':<28}" + "".join(f"{width:>8}" for width in WIDTHS))
    for name, wide in overflows(shown, folder).items():
        if max(wide) > 0:
            print(f"{name:<28}" + "".join(f"{pixels:>8}" for pixels in wide))
    for name, one in found:
        if hasattr(one, "to_html"):
            page = folder / f"page-{name.replace(' ', '-')}.html"
            one.to_html(page)
            for width in WIDTHS:
                shoot(page, folder / f"{page.stem}-{width}.png", width, 2400)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

"""Pages as people see them: at four widths, light, dark and on paper, measured in Chromium."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import TemperatureScaling, VectorScaling

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")]
WIDTHS = (360, 390, 768, 1400)

PROBE = Path(__file__).parent / "layout_probe.js"


def sample(k, n, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    sharper = q**1.7 / (q**1.7).sum(axis=1, keepdims=True)
    return np.minimum((rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1), k - 1), sharper


def two_classes():
    y, q = sample(2, 700)
    return cal.report(y, q[:, 1]).to_html()


def ten_classes():
    y, q = sample(10, 3000)
    names = np.array([f"a class with quite a long name, number {i}" for i in range(10)])
    return cal.report(
        names[y], q, labels=names, title="Ten classes, and a title that is longer than a phone is wide"
    ).to_html()


def thirty_classes():
    y, q = sample(30, 2000)
    return cal.report(y, q, notion="classwise").to_html()


def comparison():
    y, q = sample(4, 1500)
    some = {"temperature": TemperatureScaling(), "vector": VectorScaling()}
    return cal.compare_calibrators(y, q, candidates=some).to_html()


@pytest.mark.parametrize("make", [two_classes, ten_classes, thirty_classes, comparison])
def test_nothing_is_hidden_cut_off_or_pale(make, tmp_path):
    page = make()
    paper = page.replace("@media print", "@media all").replace("@media screen and", "@media speech and")
    frames = [(f"{w} px", page, w) for w in WIDTHS] + [("print", paper, 794)]
    shown = [
        f'<iframe data-name="{name}" style="border:0;width:{w}px;height:900px" srcdoc="{html.escape(text)}"></iframe>'
        for name, text, w in frames
    ]
    wrapper = tmp_path / "frames.html"
    script = f"<script>{PROBE.read_text(encoding='utf-8')}</script>"
    wrapper.write_text(f"<!doctype html><body>{''.join(shown)}{script}</body>", encoding="utf-8")
    done = subprocess.run(
        [
            str(CHROMIUM),
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1600,1200"),
            *("--virtual-time-budget=8000", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", wrapper.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    probe = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert probe, done.stdout[-1500:]
    found = json.loads(html.unescape(probe.group(1)))
    assert set(found) == {*(f"{w} px {light}" for w in WIDTHS for light in ("light", "dark")), "print print"}
    assert {name: one["wrong"] for name, one in found.items() if one["wrong"]} == {}
    assert len({one["cells"] for one in found.values()}) == 1  # no row is missing anywhere
    assert min(one["cells"] for one in found.values()) >= 7 * 4 if make is not comparison else 8


def test_pages_stay_small():
    y, q = sample(10, 5000)
    assert len(cal.report(y, q).to_html()) <= 300_000
    rng = np.random.default_rng(0)
    many = rng.dirichlet(np.full(1000, 0.05), 20_000)
    drawn = np.minimum((rng.random((20_000, 1)) > np.cumsum(many, axis=1)).sum(axis=1), 999)
    assert len(cal.report(drawn, many, labels=range(1000)).to_html()) <= 1_500_000

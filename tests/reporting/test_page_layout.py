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
WIDTHS = (360, 390, 768, 820, 1400)

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


def seen(frames, tmp_path):
    """What the probe says of pages in frames of given widths, by name."""
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
    return json.loads(html.unescape(probe.group(1)))


def subgroups():
    y, q = sample(2, 900)
    return cal.subgroup_calibration(
        y, q[:, 1], {"site": np.arange(900) % 14, "a long name": np.arange(900) % 2}
    ).to_html()


def models():
    y, q = sample(2, 900)
    return cal.compare_models(
        y, {name: q[:, 1] ** power for name, power in zip("abc", (1, 1.3, 2), strict=True)}
    ).to_html()


@pytest.mark.parametrize("make", [two_classes, ten_classes, thirty_classes, comparison, subgroups, models])
def test_nothing_is_hidden_cut_off_or_pale(make, tmp_path):
    page = make()
    paper = page.replace("@media print", "@media all").replace("@media screen and", "@media speech and")
    found = seen([(f"{w} px", page, w) for w in WIDTHS] + [("print", paper, 794)], tmp_path)
    assert set(found) == {*(f"{w} px {light}" for w in WIDTHS for light in ("light", "dark")), "print print"}
    assert {name: one["wrong"] for name, one in found.items() if one["wrong"]} == {}
    assert len({one["cells"] for one in found.values()}) == 1  # no row is missing anywhere
    assert min(one["cells"] for one in found.values()) >= 7 * 4 if make is not comparison else 8


def test_a_notebook_stays_as_it_was(tmp_path):
    """Fragments in a page with rules of its own, light and dark: they fit, can be read, and change nothing around."""
    y, q = sample(2, 900)
    p = q[:, 1]
    parts = [
        cal.report(y, p),
        cal.report(*sample(12, 900), notion="classwise"),
        cal.estimate(y, p),
        cal.reliability_curve(y, p, estimator=cal.Binned(10), level=0.95),
        cal.subgroup_calibration(y, p, {"site": np.arange(900) % 14}),
        cal.compare_models(y, {"a": p, "b": p**1.3}),
        cal.compare_calibrators(y, p, candidates={"temperature": TemperatureScaling()}),
    ]
    fragments = "".join(one._repr_html_() for one in parts)
    host = (
        "<div id=host><h1>A</h1><h2>B</h2><h3>C</h3><p class=verdict>D <b class=light>E</b></p><section class=cards>"
        "<small class=card>S</small></section><details open><summary>F</summary><pre>G</pre></details>"
        "<button>H</button>"
        "<table class=stacked><thead><tr><th>I</th></tr></thead><tbody><tr class=off><td>J</td></tr></tbody></table>"
        "<svg><text class=few>K</text></svg></div>"
    )
    bodies = {"light": "background:#fff;color:#111", "dark ": "background:#111;color:#eee"}
    frames = [
        (f"{mode} {w} {kind}", f"<!doctype html><body style='{style}'>{host}{inside}", w)
        for mode, style in bodies.items()
        for w in (390, 900)
        for kind, inside in (("with", fragments), ("without", ""))
    ]
    found = seen(frames, tmp_path)
    assert {name: one["wrong"] for name, one in found.items() if one["wrong"]} == {}
    assert found["light 390 with light"]["cells"] > 100
    for mode in bodies:
        for w in (390, 900):
            with_them, without = (found[f"{mode} {w} {kind} light"]["host"] for kind in ("with", "without"))
            assert with_them == without
            assert len(with_them) >= 20


def test_paper_keeps_headings_and_leaves_out_what_is_said_twice(tmp_path):
    """Two of the screen's rules are others on paper: what is folded keeps its name, text beside tables goes."""
    y, q = sample(2, 900)
    page = cal.compare_models(y, {"a": q[:, 1], "b": q[:, 1] ** 1.5}).to_html()
    script = """<script>addEventListener("load", () => {
      const shown = (e) => getComputedStyle(e).display !== "none", out = document.createElement("pre");
      const folds = Array.from(document.querySelectorAll("details")).filter(shown);
      const heads = folds.map((f) => f.querySelector("summary")).filter(shown);
      const told = {names: heads.map((head) => head.textContent),
        texts: Array.from(document.querySelectorAll("pre")).filter((p) => shown(p.parentElement)).length,
        button: shown(document.getElementById("theme")),
        levels: Array.from(document.querySelectorAll("h1, h2, h3, h4")).map((h) => h.tagName)};
      out.id = "probe"; out.textContent = JSON.stringify(told);
      document.body.append(out);
    });</script></body>"""
    told = {}
    for name, text in {"screen": page, "paper": page.replace("@media print", "@media all")}.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text.replace("</body>", script), encoding="utf-8")
        flags = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom")
        done = subprocess.run([str(CHROMIUM), *flags, path.as_uri()], capture_output=True, text=True, timeout=120)
        told[name] = json.loads(html.unescape(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout).group(1)))
    assert told["screen"]["names"][-1] == "as text"
    assert told["paper"]["names"] == told["screen"]["names"][:-1]
    assert all(re.search(r" \((none|\d+) of 1 pair differs?\)$", name) for name in told["paper"]["names"])
    assert (told["screen"]["texts"], told["paper"]["texts"]) == (1, 0)
    assert (told["screen"]["button"], told["paper"]["button"]) == (True, False)
    assert told["screen"]["levels"] == ["H1", "H2", "H2"]  # none is skipped


def test_pages_stay_small():
    y, q = sample(10, 5000)
    assert len(cal.report(y, q).to_html()) <= 300_000
    rng = np.random.default_rng(0)
    many = rng.dirichlet(np.full(1000, 0.05), 5_000)
    drawn = np.minimum((rng.random((5_000, 1)) > np.cumsum(many, axis=1)).sum(axis=1), 999)
    assert len(cal.report(drawn, many, labels=range(1000)).to_html()) <= 1_500_000


def embedded(**options):
    y, q = sample(2, 700)
    return cal.ReliabilityDisplay.from_predictions(y, q[:, 1], **options).to_html()


@pytest.mark.parametrize(
    "make",
    [
        two_classes,
        thirty_classes,
        comparison,
        embedded,
        lambda: embedded(band="consistency"),
        lambda: embedded(band="simultaneous", bins=None),
        lambda: embedded(curve="isotonic"),
        lambda: cal.reliability_curve(*sample(3, 700), level=0.9).plot().to_html(),
        lambda: cal.report(*sample(3, 700)).plot().to_html(),
    ],
)
def test_every_choice_of_every_menu_draws(make, tmp_path):
    page = tmp_path / "page.html"
    script = f"<script>{(Path(__file__).parent / 'menu_probe.js').read_text(encoding='utf-8')}</script>"
    text = make()
    page.write_text(text.replace("</body>", f"{script}</body>") if "</body>" in text else text + script)
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=8000", "--dump-dom")
    done = subprocess.run(
        [str(CHROMIUM), *flags, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    told = json.loads(html.unescape(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL).group(1)))
    assert told["wrong"] == []
    assert told["n"] >= 2 * len(told["bands"]) >= 2
    assert told["saved"].startswith("data:image/svg+xml;charset=utf-8,<svg ")


def test_a_page_says_when_and_by_what_it_was_made_and_of_a_phone_nothing_about_a_mouse():
    for page in (two_classes(), models(), comparison()):
        assert re.search(r"<footer[^>]*>\d{4}-\d\d-\d\d \d\d:\d\d .*, calibrant " + re.escape(cal.__version__), page)
        assert not re.search(r"[Hh]over over", page)
        assert 'class="save"' in page
    assert re.search(r'class="picture"><svg', models())

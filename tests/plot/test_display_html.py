"""A display as a part of a web page: the page's own diagram, with the display's numbers, loading nothing."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import calibrant as cal

pytest.importorskip("jinja2")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NASTY = "<script>alert(1)</script> & 'one'"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 1.2, 600)
    return (rng.random(600) < p**1.3).astype(int), p


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))


@pytest.mark.parametrize(
    ("options", "kind", "band"),
    [
        ({}, "smooth", "confidence"),
        ({"band": "consistency"}, "smooth", "consistency"),
        ({"curve": "isotonic", "bins": None}, "isotonic", "confidence"),
        ({"curve": "binned"}, "smooth", "confidence"),
    ],
)
def test_it_holds_the_curve_its_band_and_the_bins(rows, options, kind, band):
    display = cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20, **options)
    (view,) = data_of(display.to_html())["charts"][0]["views"]
    curve, bins = display.diagrams[0].curve, display.diagrams[0].bins
    at = np.array([np.abs(curve.scores - 1e-4 * s).argmin() for s in view[kind]["s"]])
    np.testing.assert_allclose(1e-4 * np.array(view[kind]["s"]), curve.scores[at], atol=6e-5)
    drawn_of = (view[kind]["o"], *view[kind]["bands"][band])
    for found, wanted in zip(drawn_of, (curve.observed, curve.lower, curve.upper), strict=True):
        drawn = np.array([np.nan if v is None else 1e-4 * v for v in found])
        known = ~np.isnan(drawn)
        assert known.mean() > 0.5
        np.testing.assert_allclose(drawn[known], wanted[at][known], atol=2e-4)
    assert sum(view["bins"]["n"]) == pytest.approx(600, rel=0.02)
    if bins is None:
        assert set(view["bins"]["o"]) == {None}
    else:
        np.testing.assert_allclose(1e-4 * np.array(view["bins"]["o"]), bins.observed[bins.count > 0], atol=6e-5)


def test_a_view_for_each_panel(rows):
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(3), 300)
    labels = ["a", "<b>", "c"]
    y = np.array(labels)[rng.integers(3, size=300)]
    display = cal.ReliabilityDisplay.from_predictions(y, q, labels=labels, notion="classwise", n_resamples=20)
    views = data_of(display.to_html())["charts"][0]["views"]
    assert [view["name"].split(" (")[0] for view in views] == [f"Class {c}" for c in display.classes]
    assert "<b>" not in display.to_html()


def test_names_are_escaped_and_nothing_is_loaded(rows):
    text = cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20, name=NASTY).to_html()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#39;one&#39;" in text
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org/2000/svg)| src=| href=", text)
    style = text.split("<style>")[1].split("</style>")[0]
    assert style.startswith(".calibrant-diagram {")
    assert ":root" not in style
    assert not re.search(r"\bbody\b", style)


def test_the_file_appears_whole_or_not_at_all(rows, tmp_path, monkeypatch):
    display = cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20)
    path = tmp_path / "diagram.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "no room")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", fail)
        with pytest.raises(OSError, match="No space left"):
            display.to_html(path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert display.to_html(path) == path.read_text(encoding="utf-8")
    with pytest.raises(IsADirectoryError):
        display.to_html(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_two_in_one_page_leave_it_alone(rows, tmp_path):
    """Each draws its own curve and answers to its own menus; the page's headings, colours and root stay."""
    names = ("one", "two")
    parts = [
        cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20, name=name, curve=curve).to_html()
        for name, curve in zip(names, ("adaptive", "isotonic"), strict=True)
    ]
    probe = """<script>
      const parts = [...document.querySelectorAll(".calibrant-diagram")], style = (e) => getComputedStyle(e);
      const charts = () => parts.map((p) => p.querySelector(".chart").innerHTML);
      const menu = parts[0].querySelector("#rows"), before = charts();
      menu.value = "log"; menu.dispatchEvent(new Event("change"));
      const told = {
        curves: parts.map((p) => p.querySelectorAll(".smooth").length),
        names: parts.map((p) => p.querySelector("#curve-name").textContent),
        changed: charts().map((after, i) => after !== before[i]),
        margin: style(document.body).marginLeft, root: document.documentElement.className,
        wide: parts.every((p) => p.scrollWidth <= p.clientWidth + 1),
        heading: style(document.querySelector("h2.host")).fontSize };
      document.body.innerHTML = "<pre id=probe></pre>";
      document.getElementById("probe").textContent = JSON.stringify(told);
    </script>"""
    page = tmp_path / "page.html"
    head = (
        "<!doctype html><meta charset=utf-8><body style='margin:33px'><h2 class=host style='font-size:41px'>Host</h2>"
    )
    page.write_text(head + "".join(parts) + probe, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run([CHROMIUM, *flags, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    told = json.loads(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL).group(1))
    assert min(told["curves"]) >= 1
    assert told["names"] == ["smooth curve", "isotonic (CORP) curve"]
    assert told["changed"] == [True, False]
    assert (told["margin"], told["root"], told["heading"], told["wide"]) == ("33px", "", "41px", True)

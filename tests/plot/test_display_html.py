"""A display as a part of a web page: the page's own diagram, with the display's numbers, loading nothing."""

import html
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
    assert not re.search(
        r"@import|url\((?!#)|fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org/2000/svg)| src=| href=", text
    )
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


def told_by(page, probe, tmp_path, *flags):
    """What a script at the end of the part says, in Chromium."""
    path = tmp_path / "page.html"
    inside, end = page.rsplit("</div>", 1)
    script = f"""addEventListener("load", () => {{
      const out = document.createElement("pre");
      out.id = "probe"; out.textContent = {probe};
      document.querySelector(".calibrant-diagram").append(out);
    }});"""
    path.write_text(f"{inside}<script>{script}</script></div>{end}", encoding="utf-8")
    every = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", *flags]
    done = subprocess.run(
        [CHROMIUM, *every, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(html.unescape(re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL).group(1)))


#: Colours of what is read, over the background that it is seen on; canvas colours where nothing is painted.
SEEN = """JSON.stringify((() => {
  const part = document.querySelector(".calibrant-diagram"), style = (e) => getComputedStyle(e);
  const chart = part.querySelector(".chart");
  chart.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
  const probe = part.appendChild(document.createElement("i"));
  const canvas = (name) => { probe.style.color = name; return style(probe).color; };
  const of = (where, property) => style(part.querySelector(where))[property];
  return {scheme: style(document.documentElement).colorScheme, ground: style(part).backgroundColor,
    words: [of("h2", "color"), of(".note", "color"), of(".legend", "color"), of("select", "color"),
      of("svg text", "fill"), of("text.tick", "fill")],
    marks: [of(".smooth", "stroke"), of(".whisker", "stroke"), of(".reference", "stroke")],
    tip: [of(".tip text", "fill"), of(".box", "fill")],
    option: [of("option", "color"), of("option", "backgroundColor")],
    canvas: [canvas("CanvasText"), canvas("Canvas")], heard: part.querySelector(".heard").textContent};
})())"""


def contrast(front, back):
    """Of two CSS colours, the first over the second."""

    def parts(colour):
        v = [float(x) for x in re.findall(r"[0-9.]+(?:e-?[0-9]+)?", colour.replace("srgb", ""))]
        unit = 1 if colour.startswith("color(") else 255
        return np.array(v[:3]) / unit, v[3] if len(v) > 3 else 1.0

    (ink, opacity), (ground, _) = parts(front), parts(back)

    def luminance(c):
        return float(np.dot([0.2126, 0.7152, 0.0722], np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)))

    light, dark = sorted([luminance(opacity * ink + (1 - opacity) * ground), luminance(ground)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("reader", [(), ("--force-dark-mode",)])
@pytest.mark.parametrize(
    "host", ["background:#fff;color:#111", "background:#111;color:#eee", "background:#fdf6e3;color:#073642"]
)
def test_it_is_readable_on_any_host_whatever_the_reader_prefers(host, reader, rows, tmp_path):
    part = cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20, name="a model").to_html()
    page = f"<!doctype html><meta charset=utf-8><body style='{host}'><h1>Host</h1>{part}"
    told = told_by(page, SEEN, tmp_path, *reader)
    colour = re.search(r"background:(#\w+)", host).group(1)
    hexes = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    ground = f"rgb({', '.join(str(int(hexes[i : i + 2], 16)) for i in (0, 2, 4))})"
    assert (told["scheme"], told["ground"]) == ("normal", "rgba(0, 0, 0, 0)")
    assert min(contrast(colour, ground) for colour in told["words"]) >= 4.5
    assert min(contrast(colour, ground) for colour in told["marks"]) >= 3
    assert contrast(*told["tip"]) >= 4.5
    assert contrast(*told["option"]) >= 4.5
    assert re.match(r"score 0\.\d{3}, observed .* %", told["heard"])  # what the arrow keys read, for who cannot see it


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("reader", [(), ("--force-dark-mode",)])
def test_opened_by_itself_it_is_as_the_reader_prefers(reader, rows, tmp_path):
    part = cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20).to_html()
    told = told_by(f"<meta charset=utf-8>{part}", SEEN, tmp_path, *reader)
    text, ground = told["canvas"]
    assert told["scheme"] == "light dark"
    assert (contrast("rgb(0, 0, 0)", ground) < 3) == bool(reader)
    assert contrast(text, ground) > 10
    assert min(contrast(colour, ground) for colour in told["words"]) >= 4.5
    assert min(contrast(colour, ground) for colour in told["marks"]) >= 3

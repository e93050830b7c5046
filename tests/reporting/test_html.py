"""The HTML page: self-contained, escaped, and working in a real browser where one is installed."""

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import TemperatureScaling, VectorScaling

NASTY = ["<script>alert(1)</script>", "</script><b>", "<!--<script ", "a & b \"quoted\" 'single'", "日本語 ünïcode"]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def nasty_predictions():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(5), 1500)
    return np.array(NASTY)[np.minimum((rng.random((1500, 1)) > np.cumsum(q, axis=1)).sum(axis=1), 4)], q


def nasty_report():
    y, q = nasty_predictions()
    return cal.report(y, q, labels=NASTY, title="A <i>title</i> & more").to_html()


def nasty_comparison():
    y, q = nasty_predictions()
    names = {"</script><b>": TemperatureScaling(), "<i>": VectorScaling()}
    return cal.compare_calibrators(y, q, labels=NASTY, candidates=names, title="A <i>title</i> & more").to_html()


@pytest.fixture(scope="module", params=[nasty_report, nasty_comparison])
def nasty_page(request):
    return request.param()


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "action", "data") and v]


@pytest.mark.slow
def test_page_loads_nothing(nasty_page):
    parsed = Elements()
    parsed.feed(nasty_page)
    assert parsed.links == ["data:,"]  # an empty icon, so that browsers do not ask for one
    assert "default-src 'none'" in nasty_page
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket", nasty_page)


def test_names_are_text_not_markup(nasty_page):
    parsed = Elements()
    parsed.feed(nasty_page)
    assert parsed.tags.count("script") == 2
    assert "i" not in parsed.tags
    assert "<script>alert" not in nasty_page
    data = re.search(r'id="data">(.*?)</script>', nasty_page, re.DOTALL).group(1)
    assert not set("<>&") & set(data)  # any of them could open or close markup inside a script element
    assert "&lt;/script&gt;&lt;b&gt;" in nasty_page


def test_page_and_text_say_the_same_of_the_numbers():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    found = cal.report(rng.random(200) < p, p)
    page, text = (" ".join(html.unescape(whole).split()) for whole in (found.to_html(), str(found)))
    note = text[text.index("Intervals of the calibration error are 95 %") : text.index("median-unbiased value.")]
    assert "may lie mostly below its value" in note
    assert note in page


def test_written_file_is_what_is_returned(tmp_path):
    path = tmp_path / "r.html"
    page = cal.report([0, 1, 1], [0.2, 0.6, 0.9]).to_html(path)
    assert path.read_text(encoding="utf-8") == page


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_page_works_in_a_browser(nasty_page, tmp_path):
    page = tmp_path / "page.html"
    probe = (Path(__file__).parent / "page_probe.js").read_text(encoding="utf-8")
    page.write_text(nasty_page.replace("</body>", f"<script>{probe}</script></body>"), encoding="utf-8")
    done = subprocess.run(
        [
            CHROMIUM,
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--enable-logging=stderr", "--virtual-time-budget=3000", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "CONSOLE" not in done.stderr, done.stderr  # any message would be an error or a CSP refusal
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    first, circles, second, options, bands, dark, clipped, other = found.group(1).split("\n")
    assert re.match(
        r"score 0\.\d{3} \| observed [\d.]+ % \| interval [\d.]+ % – [\d.]+ % \| bin .* rows \| bin interval", first
    )
    assert int(circles.split()[1]) >= 5
    assert second.startswith("score 0.")
    assert second != first
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in options
    assert bands == "bands 6 true isotonic (CORP) curve"  # six different pictures, each with its own note
    assert dark == "dark true"
    assert clipped.strip() == "clipped"
    assert other in ("other none", "other drawn anew")  # of two diagrams, the other follows the menu too
    assert (other == "other none") == (nasty_page.count('class="chart"') == 1)

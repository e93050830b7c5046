"""The built site in a browser, at three widths, light and dark, with no network. docs/build_site.sh makes it."""

import functools
import html
import json
import re
import shutil
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "docs" / "build" / "html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "llms.txt").exists(), reason="the site is not built: docs/build_site.sh"),
]
SEEN = [
    "index",
    "get_started",
    "user_guide",
    "how_to",
    "reference",
    "evidence",
    "tour",
    "which",
    "coming_from",
    "cite",
    "glossary",
    "estimators",
    "tables/coverage_bands",
    "benchmark",
    "guide/notions",
    "guide/scores",
    "reference/command",
    "reference/tasks",
    "reference/api/calibrant.report",
    "reference/api/calibrant.results.Report",
    "tables/arena_repair",
    "auto_examples/index",
    "auto_examples/plot_12_segments",
]
WIDTHS = (390, 820, 1280)

#: Opens each page in frames of these widths, light and dark, and writes what is wrong into the document.
PROBE = """<!doctype html><body><script>
// Whether something ends beyond the window, where nothing around it scrolls.
function beyond(one, width) {
  const box = one.getBoundingClientRect();
  if (!box.width || box.right <= width + 1) return false;
  const style = one.ownerDocument.defaultView.getComputedStyle;
  for (let at = one; at.tagName !== "ARTICLE"; at = at.parentElement)
    if (["auto", "scroll"].includes(style(at).overflowX) || style(at).position === "absolute") return false;
  return true;
}
(async () => {
  const wrong = [];
  for (const page of PAGES) for (const width of WIDTHS) for (const theme of THEMES) {
    localStorage.setItem("mode", theme); localStorage.setItem("theme", theme);
    const frame = document.createElement("iframe");
    frame.style.cssText = `width:${width}px;height:900px;border:0`; frame.src = "/" + page + ".html";
    document.body.append(frame);
    await new Promise((done) => { frame.onload = done; });
    await new Promise((done) => setTimeout(done, 60));
    const root = frame.contentDocument.documentElement, by = root.scrollWidth - root.clientWidth;
    if (by > 0) wrong.push(`${page} at ${width} scrolls sideways by ${by}`);
    const cut = Array.from(root.querySelectorAll("article *")).find((one) => beyond(one, root.clientWidth));
    if (cut) wrong.push(`${page} at ${width} cuts <${cut.tagName}> ${cut.textContent.trim().slice(0, 40)}`);
    if (root.dataset.theme !== theme) wrong.push(`${page} is ${root.dataset.theme}, not ${theme}`);
    frame.remove();
  }
  const out = document.createElement("pre"); out.id = "probe"; out.textContent = JSON.stringify(wrong);
  document.body.append(out);
})();
</script></body>"""

#: Searches as a reader does, and waits until no more is found.
SEARCH = """<!doctype html><body><iframe src="/search.html?q=temperature" style="width:1000px;height:900px"></iframe>
<script>
let before = 0;
const wait = setInterval(() => {
  const found = document.querySelector("iframe").contentDocument.querySelectorAll("#search-results li a");
  if (!found.length || found.length !== before) { before = found.length; return; }
  clearInterval(wait);
  const out = document.createElement("pre"); out.id = "probe";
  out.textContent = JSON.stringify(Array.from(found).map((a) => a.textContent)); document.body.append(out);
}, 500);
</script></body>"""


def probe(pages, widths, themes):
    """A page of ours that opens pages of the site."""
    given = {"PAGES": pages, "WIDTHS": widths, "THEMES": themes}
    return functools.reduce(lambda text, name: text.replace(name, json.dumps(given[name])), given, PROBE)


class Server(SimpleHTTPRequestHandler):
    """The site's files, two pages of our own, and a list of what was asked for in vain."""

    missing: list[str] = []
    own = {"/__probe": probe(SEEN, WIDTHS, ("light", "dark")), "/__search": SEARCH}

    def do_GET(self):
        if self.path in self.own:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(self.own[self.path].encode())
        else:
            super().do_GET()

    def send_error(self, code, message=None, explain=None):
        self.missing.append(f"{code} {self.path}")
        super().send_error(code, message, explain)

    def log_message(self, *_):
        pass


def browse(path, profile):
    """What a page of ours found, what the console was told, and what the server has not."""
    Server.missing = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(SITE)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=60000")
    away = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
    try:
        done = subprocess.run(
            [str(CHROMIUM), *flags, away, f"--user-data-dir={profile}", "--dump-dom", f"http://127.0.0.1:{server.server_port}{path}"],
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    finally:
        server.shutdown()
        server.server_close()
    probe = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert probe, done.stdout[-1500:] + done.stderr[-1500:]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line and re.search(r"rror|ailed", line)]
    return json.loads(html.unescape(probe.group(1))), console, [m for m in Server.missing if "favicon" not in m]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_pages_fit_and_the_console_is_silent(tmp_path):
    assert browse("/__probe", tmp_path) == ([], [], [])


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_no_page_is_cut_on_a_phone(tmp_path):
    made = ("_static/", "_modules/", "genindex", "py-modindex")
    pages = sorted(path.relative_to(SITE).with_suffix("").as_posix() for path in SITE.rglob("*.html"))
    pages = [name for name in pages if not name.startswith(made)]
    assert len(pages) > 350
    for i in range(0, len(pages), 60):  # a browser has a minute of its own time
        Server.own["/__phone"] = probe(pages[i : i + 60], WIDTHS[:1], ("light",))
        assert browse("/__phone", tmp_path / str(i)) == ([], [], [])


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_search_finds_without_a_network(tmp_path):
    found, console, missing = browse("/__search", tmp_path)
    assert any("emperature" in title for title in found)
    assert (console, missing) == ([], [])


def test_links_inside_the_site_lead_somewhere():
    texts = {page: page.read_text(encoding="utf-8") for page in SITE.rglob("*.html") if "_static" not in page.parts}
    names = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        if page.name in ("genindex.html", "search.html"):
            continue
        for link in re.findall(r'<(?:a|img|link|script)\b[^>]*?\b(?:href|src)="([^"]+)"', text):
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not target.exists():
                broken.append(f"{page.name}: {link}")
            elif parts.fragment and target in names and unquote(parts.fragment) not in names[target]:
                broken.append(f"{page.name}: no {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere():
    loads = re.compile(
        r'<(?:script|img|iframe)\b[^>]*\bsrc="(https?:[^"]+)"|<link\b[^>]*rel="(?:stylesheet|preload)"[^>]*href="(https?:[^"]+)"'
    )
    assert [link for page in SITE.rglob("*.html") for link in loads.findall(page.read_text(encoding="utf-8"))] == []


def test_what_a_machine_reads_is_there():
    text = (SITE / "llms.txt").read_text(encoding="utf-8")
    pages = re.findall(r"^- \[[^\]]+\]\((?:https?://[^/]+/)?(.+?\.html)\)", text, flags=re.M)
    assert len(pages) > 200
    assert [page for page in pages if not (SITE / page).exists()] == []
    assert '<meta property="og:description"' in (SITE / "get_started.html").read_text(encoding="utf-8")


def test_the_head_of_a_page_is_text():
    """A title with code in it once ended its tag, and the rest stood above the page."""
    for page in SITE.rglob("*.html"):
        for tag in re.findall(r"<meta (?:property|name)=[^>]*>", page.read_text(encoding="utf-8")):
            assert re.fullmatch(r'<meta (property|name)="[^"]*" content="[^"<>]*"( ?/)?>', tag), (page.name, tag)


def test_the_signature_of_a_result_has_no_fields():
    text = (SITE / "reference" / "api" / "calibrant.results.Report.html").read_text(encoding="utf-8")
    assert "n_samples" in text
    assert "sig-param" not in text.split("</dt>")[0]

"""What a site has beside its pages: MathJax, ``llms.txt``, a map for search engines, and cards for links to a page."""

import html
import importlib.util
import shutil
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def _mathjax(app: Sphinx) -> None:
    """Copy MathJax out of the package that ships it: readers need no network, and the repository not its 2 MB."""
    found = importlib.util.find_spec("mathjax")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("no MathJax: pip install django-static-mathjax==3.2.2.1")
    source = Path(found.submodule_search_locations[0]) / "static" / "mathjax" / "es5" / "tex-svg.js"
    target = Path(app.outdir) / "_static" / "mathjax" / "tex-svg.js"
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def first_sentence(tree: nodes.document) -> str:
    """The first paragraph of a page, up to 200 characters."""
    for paragraph in tree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if text:
            return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"
    return ""


def _card(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    if tree is None:
        return
    said = first_sentence(tree)
    tags = {
        # Not that of the context, which is HTML.
        "og:title": app.env.titles[page].astext(),
        "og:type": "article",
        "og:site_name": "calibrant",
        "og:description": said,
    }
    if app.config.site_url:
        base = app.config.site_url.rstrip("/")
        tags |= {"og:url": f"{base}/{page}.html", "og:image": f"{base}/_images/reliability.png"}
    lines = [f'<meta property="{name}" content="{html.escape(value)}" />' for name, value in tags.items()]
    context["metatags"] += "\n".join(["", f'<meta name="description" content="{html.escape(said)}" />', *lines])


def _indices(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    out, base = Path(app.outdir), app.config.site_url.rstrip("/")
    titles = {name: title.astext() for name, title in app.env.titles.items()}
    own = [name for name in sorted(titles) if not name.startswith("reference/api/")]
    lines = [
        f"- [{titles[n]}]({base + '/' if base else ''}{n}.html): {first_sentence(app.env.get_doctree(n))}" for n in own
    ]
    start = f"# calibrant\n\n> {metadata('calibrant')['Summary']}\n"
    api = [f"- [{titles[n]}]({base + '/' if base else ''}{n}.html)" for n in sorted(titles) if n not in own]
    text = "\n".join([start, "## Pages", "", *lines, "", "## API", "", *api, ""])
    (out / "llms.txt").write_text(text, encoding="utf-8")
    if base:
        rows = "".join(f"<url><loc>{base}/{name}.html</loc></url>" for name in sorted(titles))
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        (out / "sitemap.xml").write_text(
            f'<?xml version="1.0"?><urlset xmlns="{space}">{rows}</urlset>\n', encoding="utf-8"
        )


def _mathjax_after(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        _mathjax(app)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", _card)
    app.connect("build-finished", _mathjax_after)
    app.connect("build-finished", _indices)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

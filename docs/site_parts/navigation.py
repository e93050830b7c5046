"""The lists of links in pages of sections become the site's navigation."""

import re

from sphinx.application import Sphinx

#: Pages whose lists of links are navigation; their headings are its captions.
SECTIONS = (
    "index",
    "get_started",
    "user_guide",
    "how_to",
    "reference",
    "evidence",
    "tables/index",
    "reference/api/index",
)
_ITEM = re.compile(r"^[-|] .*?\[[^\]]+\]\((?P<page>[\w./-]+\.(?:md|ipynb|rst))\)")


def pages(text: str) -> dict[str, list[str]]:
    """Pages that lists link to, by the heading above: the first link of each item, each page once."""
    found: dict[str, list[str]] = {"": []}
    caption = ""
    for line in text.splitlines():
        if line.startswith("## "):
            caption = line[3:].strip()
        elif item := _ITEM.match(line):
            page = re.sub(r"\.(md|ipynb|rst)$", "", item["page"])
            if not any(page in listed for listed in found.values()):
                found.setdefault(caption, []).append(page)
    return {caption: listed for caption, listed in found.items() if listed}


def _add(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname not in SECTIONS:
        return
    for caption, listed in pages(source[0]).items():
        inside = [page for page in listed if docname != "index" or page in SECTIONS]
        named = f":caption: {caption}\n" if caption and docname != "index" else ""
        entries = "\n".join(inside)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n{named}\n{entries}\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _add)
    return {"parallel_read_safe": True}

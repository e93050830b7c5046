"""Links out of ``docs/``: tables of evidence become pages of the site, other files of the repository text or links."""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
TABLES = DOCS / "tables"
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_PICTURE = re.compile(r"(?P<start>!\[[^\]]*\]\()(?P<path>[^)\s:]+\.svg)\)")
#: Pages that have no text of their own in the site, and where their readers find it.
_INSTEAD = {"README.md": DOCS / "index.md"}


def linked(root: Path = ROOT) -> list[Path]:
    """Tables under ``benchmarks/`` that a page links to, or such a table."""
    found: dict[Path, None] = {}
    waiting = sorted(p for p in DOCS.rglob("*.md") if TABLES not in p.parents)
    while waiting:
        page = waiting.pop()
        for link in _LINK.finditer(page.read_text(encoding="utf-8")):
            target = (page.parent / link["path"]).resolve()
            if root / "benchmarks" in target.parents and target.suffix == ".md" and target not in found:
                found[target] = None
                waiting.append(target)
    return sorted(found)


def place(table: Path) -> Path:
    """Where the site has a table."""
    return TABLES / "_".join(table.relative_to(ROOT / "benchmarks").parts)


def relinked(text: str, page: Path, shown_at: Path, repository: str = "") -> str:
    """The text with links that lead somewhere from where the site shows it."""

    def link(match: re.Match[str]) -> str:
        target = (page.parent / match["path"]).resolve()
        name = target.relative_to(ROOT).as_posix() if ROOT in target.parents else ""
        if name in _INSTEAD:
            target = _INSTEAD[name]
        elif name.startswith("benchmarks/") and target.suffix == ".md":
            target = place(target)
        elif not name.startswith("docs/") or name.startswith("docs/examples/") or target.is_dir():
            return f"[{match['text']}]({repository}/blob/main/{name})" if repository and name else match["text"]
        relative = Path(os.path.relpath(target, shown_at.parent)).as_posix()
        return f"[{match['text']}]({relative}{match['anchor'] or ''})"

    return _LINK.sub(link, text)


def _write(app: Sphinx) -> None:
    TABLES.mkdir(exist_ok=True)
    wanted = {"index.md", *(place(table).name for table in linked())}
    for old in TABLES.glob("*.md"):
        if old.name not in wanted:
            old.unlink()  # a page that has moved
    lines = ["# Tables of simulations", "", "Each is written by a script of the same name under `benchmarks/`.", ""]
    for table in linked():
        text = table.read_text(encoding="utf-8")
        for picture in _PICTURE.finditer(text):
            drawn = table.parent / picture["path"]
            keep(place(drawn), drawn.read_text(encoding="utf-8"))
        text = _PICTURE.sub(lambda found, at=table: f"{found['start']}{place(at.parent / found['path']).name})", text)
        keep(place(table), relinked(text, table, place(table), app.config.repository_url))
        title = next(line[2:] for line in text.splitlines() if line.startswith("# "))
        lines.append(f"- [{title}]({place(table).name})")
    keep(TABLES / "index.md", "\n".join(lines) + "\n")


def keep(path: Path, text: str) -> None:
    """Write a page, unless it is there already: Sphinx reads anew what is newer."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _relink(app: Sphinx, docname: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if page.suffix in (".md", ".ipynb") and TABLES not in page.parents:
        source[0] = relinked(source[0], page, page, app.config.repository_url)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("repository_url", "", "env")
    app.add_config_value("site_url", "", "html")
    app.connect("builder-inited", _write)
    app.connect("source-read", _relink, priority=400)
    return {"parallel_read_safe": True}

"""README and addresses of the package: links of the README are relative here, and absolute on a package index.

The address of the repository is one setting, ``repository`` below ``[tool.hatch.metadata.hooks.custom]`` in
`pyproject.toml`. While it is empty no address is invented: the packaged README has the words of links to files,
without the links, and no pictures, and the build says so. ``email``, that of the authors, is another.
"""

import re
import sys
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: A picture or a link to a file of the repository: not to a heading, nor to another site.
RELATIVE = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]\[]*)\]\((?P<path>(?!#|[a-z]+:)[^)\s]+)\)")


def for_an_index(text: str, repository: str, tag: str) -> str:
    """The README with absolute links into ``repository`` at ``tag``; where there is no address, without them."""

    def absolute(found: re.Match[str]) -> str:
        picture, words, path = found["picture"], found["text"], found["path"]
        if not repository:
            return "" if picture else words
        return f"{picture}[{words}]({repository.rstrip('/')}/{'raw' if picture else 'blob'}/{tag}/{path})"

    return RELATIVE.sub(absolute, text)


class Metadata(MetadataHookInterface):
    """Fills in ``readme``, ``urls`` and ``authors``."""

    def update(self, metadata: dict) -> None:
        repository, site = self.config["repository"].rstrip("/"), self.config["documentation"]
        if not repository:
            print(
                "calibrant: no repository is set in pyproject.toml; the packaged README has no links", file=sys.stderr
            )
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = for_an_index(text, repository, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        email = {"email": self.config["email"]} if self.config["email"] else {}
        metadata["authors"] = [{"name": "The calibrant developers", **email}]
        urls = {"Documentation": site}
        if repository:
            urls |= {
                "Source": repository,
                "Issues": f"{repository}/issues",
                "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            }
        metadata["urls"] = {name: url for name, url in urls.items() if url}

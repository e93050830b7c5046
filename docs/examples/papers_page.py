"""``docs/papers.md``: what three papers say, what computes it here, and what came out.

``python docs/examples/papers_page.py --docs docs`` runs every item (half a minute; needs torch) and stops at one that
does not come out as the page says.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from papers_parts import popordanoska, posocco, survey_calibrators
from papers_parts.items import Paper

PAPERS = (posocco.PAPER, survey_calibrators.PAPER, popordanoska.PAPER)
HEAD = """# Three papers, item by item

What they define, print or claim; what computes it here; and what came out when
`python docs/examples/papers_page.py --docs docs` ran it. *Agrees*: two computations, or a computation and a printed
value, are the same. *Differs*: they are not, and why. *Holds* and *does not hold*: statements that rest on experiments.
Everything is computed when the page is written, or read from the results of a run that the item names. Places are the
papers' own numbers where we are sure of them, else what the item is about.
"""


def page(papers: tuple[Paper, ...]) -> str:
    """The whole page."""
    parts, words = [], {}
    for paper in papers:
        rows = []
        for item in paper.items:
            found = item.check()
            verdict = found.split("**")[1]
            words[verdict] = words.get(verdict, 0) + 1
            cells = (item.place, item.says, item.here, found)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append(
            "\n".join(
                [
                    f"\n## {paper.title}\n",
                    f"{paper.source}.\n",
                    "| where | what | here | what came out |",
                    "|---|---|---|---|",
                    *rows,
                ]
            )
        )
    counted = ", ".join(f"{n} *{word}*" for word, n in words.items())
    return HEAD + f"\n{sum(words.values())} items: {counted}.\n" + "\n".join(parts) + "\n"


def main() -> None:
    """Read the argument, run, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, required=True, help="where papers.md is written")
    arguments = parser.parse_args()
    (arguments.docs / "papers.md").write_text(page(PAPERS), encoding="utf-8")


if __name__ == "__main__":
    main()

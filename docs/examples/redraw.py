"""The pictures of experiments drawn again from the results in the repository, without running anything.

``python docs/examples/redraw.py [NAME …] [--docs docs]``; a NAME is one of those below, default all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from evidence_parts.pages import kept


def canonical(docs: Path) -> None:
    """docs/canonical.md."""
    import canonical_page

    canonical_page.pictures(kept(docs / "canonical" / "results.csv"), docs / "images")


def convergence(docs: Path) -> None:
    """docs/convergence.md."""
    import convergence_page

    convergence_page.pictures(kept(docs / "canonical" / "convergence.csv"), docs / "images")


def benchmark(docs: Path) -> None:
    """docs/benchmark.md, docs/benchmark_as_published.md and the README's."""
    import benchmark_page
    from benchmark_parts import figures
    from benchmark_parts.summed import Summed

    data, images = docs / "benchmark", docs / "images"
    benchmark_page.pictures(Summed.read(data / "summary.csv", data / "config.json"), images)
    published = Summed.read(data / "published.csv", data / "published.json")
    figures.figure2(published, "abs_p95", images / "benchmark_published.png")


def training(docs: Path) -> None:
    """docs/training_tables.md."""
    from training_parts import forest

    gaps = forest.settings_gaps(kept(docs / "training" / "settings.csv"))
    forest.draw_settings(gaps, docs / "images" / "training_tables.png")


DRAWN: dict[str, Callable[[Path], None]] = {one.__name__: one for one in (canonical, convergence, benchmark, training)}


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(DRAWN)}")
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1])
    options = parser.parse_args()
    if unknown := set(options.names) - set(DRAWN):
        parser.error(f"NAME must be some of {', '.join(DRAWN)}; got {', '.join(sorted(unknown))}")
    for name in options.names or DRAWN:
        DRAWN[name](options.docs)


if __name__ == "__main__":
    main()

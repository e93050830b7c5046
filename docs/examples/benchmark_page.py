"""The benchmark's page, figures and small files, from the folder of a run of ``calibrant benchmark``.

``python docs/examples/benchmark_page.py RUN_FOLDER [--tracks TRACK_RUN_FOLDER] [--published RUN_FOLDER] [--log RUN_LOG]
[--only published|tracks] --docs docs``

It only reads the runs, which may be unfinished (the page then says so), and writes into the folder of the docs:
``benchmark.md``, ``benchmark/summary.csv``, ``benchmark/config.json`` and ``images/benchmark_*.png``, and of the runs
that are given ``benchmark_tracks.md`` and ``benchmark_as_published.md`` (with ``--only`` nothing but one of these; the
second needs a run of the 15 curves only). Every number on a page is computed here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import polars as pl
from benchmark_parts import claims, figures, sections, tracks
from benchmark_parts.runs import Run
from benchmark_parts.summed import Summed

import calibrant
from calibrant.benchmark import summary
from calibrant.benchmark.runner import MEASURES

FIGURE_2 = """
## Figure 2, in both interpretations

The relative error, as the paper's text describes it, and the absolute one, as its figure shows it. The published
figure ends at N = 500.

![Relative error of 15 published estimators and of the default by rows: ours is least](images/benchmark_relative.png)

![Absolute error of 15 published estimators and of the default by rows](images/benchmark_absolute.png)
"""


OTHER_PAGES = """
## Other pages

[benchmark_as_published.md](benchmark_as_published.md): the same experiment in the setting of the authors' code.
[benchmark_tracks.md](benchmark_tracks.md): Beta scores, real networks, rare positives, probability vectors, and samples
up to a million.
"""


#: What a run of other distributions found: the default beside the curves on mixtures, tables and networks.
ELSEWHERE = Path(__file__).parents[2] / "benchmarks" / "arena" / "reporting.md"


def side_by_side() -> str:
    """The default on other mixtures, on models of real tables and on networks, by `benchmarks.arena.prior`."""
    text = ELSEWHERE.read_text(encoding="utf-8")
    tables = text[text.index("## Confidence") :].replace("## ", "### ")
    return f"""
## Mixtures and real models, side by side

A run of the mixtures above says nothing of real models.
[benchmarks/arena/reporting.md](../benchmarks/arena/reporting.md) has the same comparison on distributions that nothing
was chosen on: other mixtures (means in [-1, 1]), ten models of 17 families of real tables, three public networks. In
each cell: ratio of the median 95th percentile of the relative error / ratio of the median RMSE, both to the best of
the paper's 15 curves at that size and on that set, in hindsight / median bias. "Before" is the default before its prior
was learnt from mixtures and real models; the last column is an oracle that knows on which side every score is wrong. By
the code as it ships.

{tables}"""


COMMAND = "python docs/examples/benchmark_page.py RUN_FOLDER --docs docs"


def pictures(run: Run | Summed, images: Path) -> None:
    """The pictures of the page and the README's."""
    figures.figure2(run, "rel_p95", images / "benchmark_relative.png")
    figures.figure2(run, "abs_p95", images / "benchmark_absolute.png")
    figures.readme_figure(run, images / "benchmark_readme.png")


def write_summary(run: Run, path: Path) -> None:
    """Medians over distributions with standard errors, one row a notion, size and estimator."""
    columns = [f"{m}{end}" for m in MEASURES for end in ("", "_se")]
    summed = summary(run.frame).select("notion", "size", "estimator", "distributions", *columns)
    summed.with_columns(pl.col(columns).round_sig_figs(4)).write_csv(path)


def write_config(run: Run, path: Path) -> None:
    """Configuration, versions, estimators, and how many distributions there are."""
    plain = json.loads(json.dumps(run.config.to_dict()))
    content = {
        "config": {key: value for key, value in plain.items() if key != "versions"},
        "versions": {**run.versions, "calibrant": calibrant.__version__},
        "distributions": run.n_distributions,
        "distributions_wanted": run.n_wanted,
        "estimators": {name: run.definitions[name] for name in run.estimators},
    }
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write(run: Run, docs: Path, log: Path | None) -> None:
    """The page of the mixtures, and its files."""
    images, data = docs / "images", docs / "benchmark"
    data.mkdir(exist_ok=True)
    write_summary(run, data / "summary.csv")
    write_config(run, data / "config.json")
    pictures(run, images)
    more = " --log RUN_LOG" if log is not None else ""
    _write_page(
        docs / "benchmark.md",
        sections.first_lines(run),
        sections.what_was_run(run, log),
        sections.how_to_repeat(run, COMMAND + more),
        FIGURE_2,
        sections.default_tables(run),
        side_by_side(),
        claims.Claims(run).page(),
        sections.estimator_tables(run),
        OTHER_PAGES,
    )


def write_published(published: Run, corrected: Run, docs: Path) -> None:
    """The page of the authors' own setting, beside the same estimators in ours."""
    data = docs / "benchmark"
    data.mkdir(exist_ok=True)
    write_summary(published, data / "published.csv")
    write_config(published, data / "published.json")
    figures.figure2(published, "abs_p95", docs / "images" / "benchmark_published.png")
    again = sections.commands(published, f"{COMMAND} --published PUBLISHED_RUN_FOLDER")
    _write_page(docs / "benchmark_as_published.md", claims.published_page(published, corrected), again)


def write_tracks(others: tracks.Tracks, docs: Path) -> None:
    """The page of the other known truths."""
    again = f"`calibrant benchmark --track NAME --out TRACK_RUN_FOLDER` and `{COMMAND} --tracks TRACK_RUN_FOLDER`"
    _write_page(docs / "benchmark_tracks.md", tracks.page(others), f"## How to repeat it\n\n{again}\n")


def _write_page(path: Path, *parts: str) -> None:
    path.write_text("\n".join(part.strip("\n") + "\n" for part in parts), encoding="utf-8")


def main() -> None:
    """Read the arguments, the runs, and write."""
    parser = argparse.ArgumentParser(description="Write the benchmark's page from the folder of a run.")
    parser.add_argument("run", type=Path, nargs="?", help="folder of a run of the mixtures, finished or not")
    parser.add_argument("--tracks", type=Path, help="folder of a run of the tracks")
    parser.add_argument("--published", type=Path, help="folder of a run with --mode as-published")
    parser.add_argument("--only", choices=("published", "tracks"), help="write no page but this option's")
    parser.add_argument("--log", type=Path, help="what the logger calibrant.benchmark wrote: gives the wall time")
    parser.add_argument("--docs", type=Path, required=True, help="where benchmark.md is written")
    arguments = parser.parse_args()
    if arguments.only is not None and getattr(arguments, arguments.only) is None:
        parser.error(f"--only {arguments.only} needs --{arguments.only}")
    if arguments.run is None and arguments.only != "tracks":
        parser.error("only --only tracks does without the folder of a run of the mixtures")
    (arguments.docs / "images").mkdir(parents=True, exist_ok=True)
    run = None if arguments.run is None else Run.read(arguments.run)
    if arguments.tracks is not None and arguments.only != "published":
        write_tracks(tracks.Tracks.read(arguments.tracks), arguments.docs)
    if run is None or arguments.only == "tracks":
        return
    if arguments.published is not None:
        published = Run.read(arguments.published)
        if published.config.mode != "as-published":
            raise ValueError(
                f"--published must be a run of mode 'as-published'; {arguments.published} is {published.config.mode!r}"
            )
        write_published(published, run, arguments.docs)
    if arguments.only is None:
        if not run.has_default:
            raise ValueError(f"{arguments.run} holds no results of {sections.DEFAULT}")
        write(run, arguments.docs, arguments.log)


if __name__ == "__main__":
    main()

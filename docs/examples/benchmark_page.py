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

from benchmark_parts import claims, figures, page, published, sections, tracks
from benchmark_parts.runs import DEFAULT, Run, logged
from benchmark_parts.summed import Summed
from evidence_parts.pages import keep

import calibrant
from calibrant.benchmark import summary
from calibrant.benchmark.runner import MEASURES

COMMAND = "python docs/examples/benchmark_page.py RUN_FOLDER --docs docs"
PUBLISHED = f"{COMMAND} --published PUBLISHED_RUN_FOLDER"


def pictures(run: Run | Summed, images: Path) -> None:
    """The pictures of the page and the README's."""
    figures.figure2(run, "rel_p95", images / "benchmark_relative.png")
    figures.readme_figure(run, images / "benchmark_readme.png")


def write_summary(run: Run, path: Path) -> None:
    """Medians over distributions with standard errors, one row a notion, size and estimator."""
    columns = [f"{m}{end}" for m in MEASURES for end in ("", "_se")]
    summed = summary(run.frame).select("notion", "size", "estimator", "distributions", *columns)
    keep(summed, path, COMMAND, str(run.config.seed), digits=4)


def write_config(run: Run, path: Path, log: Path | None = None) -> None:
    """Configuration, versions, estimators, times, and how many distributions there are."""
    plain = json.loads(json.dumps(run.config.to_dict()))
    content = {
        "config": {key: value for key, value in plain.items() if key != "versions"},
        "versions": {**run.versions, "calibrant": calibrant.__version__},
        "distributions": run.n_distributions,
        "distributions_wanted": run.n_wanted,
        "clusters": int(run.clusters.max() + 1),
        "processor_seconds": round(float(run.frame["seconds"].sum()) * run.config.sets, 2),
        "estimators": {name: run.definitions[name] for name in run.estimators},
    }
    if log is not None:
        content["wall"] = dict(zip(("seconds", "calls"), logged(log), strict=True))
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def write_data(run: Run, docs: Path, log: Path | None) -> None:
    """The data files of the page of the mixtures."""
    data = docs / "benchmark"
    data.mkdir(exist_ok=True)
    write_summary(run, data / "summary.csv")
    write_config(run, data / "config.json", log)
    made = (sections.default, claims.claims, claims.ratios, claims.bias, claims.truths, sections.estimators)
    for name, of in zip(page.DATA, made, strict=True):
        keep(of(run), data / f"{name}.csv", COMMAND, str(run.config.seed))


def write(docs: Path) -> None:
    """The page of the mixtures and its pictures, from the data files."""
    data = docs / "benchmark"
    pictures(Summed.read(data / "summary.csv", data / "config.json"), docs / "images")
    page.page(docs, COMMAND)


def write_published(run: Run, corrected: Run, docs: Path) -> None:
    """The page of the authors' own setting, beside the same estimators in ours."""
    data = docs / "benchmark"
    data.mkdir(exist_ok=True)
    write_summary(run, data / "published.csv")
    write_config(run, data / "published.json")
    keep(published.silverman(run, corrected), data / f"{published.DATA}.csv", PUBLISHED, str(run.config.seed))
    published.page(docs, PUBLISHED)


def main() -> None:
    """Read the arguments, the runs, and write."""
    parser = argparse.ArgumentParser(description="Write the benchmark's page from the folder of a run.")
    parser.add_argument("run", type=Path, nargs="?", help="folder of a run of the mixtures; by default the data files")
    parser.add_argument("--tracks", type=Path, help="folder of a run of the tracks")
    parser.add_argument("--published", type=Path, help="folder of a run with --mode as-published")
    parser.add_argument("--only", choices=("published", "tracks"), help="write no page but this option's")
    parser.add_argument("--log", type=Path, help="what the logger calibrant.benchmark wrote: gives the wall time")
    parser.add_argument("--docs", type=Path, required=True, help="where benchmark.md is written")
    arguments = parser.parse_args()
    if arguments.only is not None and getattr(arguments, arguments.only) is None:
        parser.error(f"--only {arguments.only} needs --{arguments.only}")
    if arguments.run is None and arguments.only == "published":
        parser.error("--only published needs the folder of a run of the mixtures")
    (arguments.docs / "images").mkdir(parents=True, exist_ok=True)
    run = None if arguments.run is None else Run.read(arguments.run)
    if arguments.tracks is not None and arguments.only != "published":
        tracks.write_data(tracks.Tracks.read(arguments.tracks), arguments.docs, f"{COMMAND} --tracks TRACK_RUN_FOLDER")
        tracks.page(arguments.docs)
    if run is None and arguments.only is None:
        write(arguments.docs)
        tracks.page(arguments.docs)
        published.page(arguments.docs, PUBLISHED)
    if run is None or arguments.only == "tracks":
        return
    if arguments.published is not None:
        own = Run.read(arguments.published)
        if own.config.mode != "as-published":
            raise ValueError(
                f"--published must be a run of mode 'as-published'; {arguments.published} is {own.config.mode!r}"
            )
        write_published(own, run, arguments.docs)
    if arguments.only is None:
        if not run.has_default:
            raise ValueError(f"{arguments.run} holds no results of {DEFAULT}")
        write_data(run, arguments.docs, arguments.log)
        write(arguments.docs)


if __name__ == "__main__":
    main()

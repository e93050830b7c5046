"""The commands that report: `calibrant report FILE`, and `calibrant merge A B …` on sums that were saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.printable import printable
from ..data.progress import progress_bar
from .output import Output, as_text, check_option, guarded, of_command, warn
from .source import (
    PIECE_ROWS,
    STREAM_ABOVE_BYTES,
    ByOption,
    DatabaseOption,
    EngineOption,
    FileColumns,
    FormatOption,
    GroupsOption,
    HtmlOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    PosLabelOption,
    ProbOption,
    ReplaceOption,
    Source,
    SqlOption,
    WeightOption,
    numbered,
    taken_among,
)

if TYPE_CHECKING:
    from ..accumulator import Accumulator
    from ..frames import FrameSubgroups
    from ..measure.result import Estimate
    from ..reporting import Report

#: What ``--fail-above`` can judge.
_JUDGED: dict[str, Callable[[Estimate], float]] = {
    "value": lambda e: e.value,
    "corrected": lambda e: e.corrected,
    "low": lambda e: e.interval.low,
}

FileOption = Annotated[
    str | None,
    typer.Argument(
        help="CSV, Parquet, NDJSON or Arrow file; - reads standard input. With --engine a pattern, a folder."
    ),
]
EstimatorOption = Annotated[
    str,
    typer.Option(
        help="auto, binned[:N][:quantile][:linear][:debias], density[:BANDWIDTH[:KERNEL]], residual[:score], "
        "smooth, sweep, isotonic or another estimator's name."
    ),
]
LevelOption = Annotated[float, typer.Option(help="Level of intervals and bands.")]
ToleranceOption = Annotated[
    float | None,
    typer.Option(help="Calibration error below which it does not matter; default: 0.05, less for rare outcomes."),
]
ThresholdOption = Annotated[
    float | None, typer.Option(help="Decision threshold (a score): tells how many decisions a repair changes.")
]
SumsOption = Annotated[
    Path | None, typer.Option("--sums", help="Write the sums of all rows here, for calibrant merge; - as above.")
]
FailAboveOption = Annotated[float | None, typer.Option(help="Exit with 1 when the calibration error is above this.")]
FailOnOption = Annotated[
    str,
    typer.Option(help="What --fail-above judges: value (noise included), corrected, or low (end of the interval)."),
]
TitleOption = Annotated[str | None, typer.Option(help="Title of the report.")]


@dataclass(frozen=True)
class Wanted:
    """What a report is to say and where it goes, as the options of these names were typed; judged when it is made."""

    estimator: str
    level: float
    tolerance: float | None
    threshold: float | None
    title: str | None
    as_json: bool
    html: Path | None
    sums: Path | None
    fail_above: float | None
    fail_on: str
    force: bool

    def __post_init__(self) -> None:
        if self.fail_above is not None and not 0 <= self.fail_above <= 1:
            raise ValueError(f"--fail-above must lie in [0, 1]; got {self.fail_above}")
        check_option("--fail-on", self.fail_on, _JUDGED)
        if self.html is not None and self.html == self.sums:
            raise ValueError(f"--html and --sums are both {self.html}: they are two files")

    @cached_property
    def chosen(self) -> Any:
        """The estimator."""
        from ..estimators.names import estimator_named

        return self.estimator if self.estimator == "auto" else estimator_named(self.estimator)

    def about(self, name: str) -> dict[str, Any]:
        """What the library is told."""
        return {
            "estimator": self.chosen,
            "level": self.level,
            "tolerance": self.tolerance,
            "threshold": self.threshold,
            "title": self.title or f"Calibration of {name}",
        }

    def outputs(self, taken: Callable[[Path | None], Mapping[str, Any]]) -> tuple[Output, Output]:
        """Files for the page and for the sums, which may not be those ``taken``."""
        named = (("--html", self.html), ("--sums", self.sums))
        page, sums = (Output(option, path, taken(path), force=self.force) for option, path in named)
        return page, sums

    def end(self, text: str, outputs: tuple[Output, Output], found: Mapping[str, Estimate]) -> None:
        """Print, and exit with 1 where an error is too large; estimates by what they are of."""
        page, sums = outputs
        page.told(text, sums)
        if self.fail_above is None:
            return
        judged = {of: _JUDGED[self.fail_on](one) for of, one in found.items()}
        above = {of: value for of, value in judged.items() if not value <= self.fail_above}
        for of, value in above.items():
            what = f"calibration error {value:.4f} ({self.fail_on}){printable(of)}"
            typer.echo(f"calibrant: {what} is above {self.fail_above:g}", err=True)
        if above:
            raise typer.Exit(1)


def report_command(
    file: FileOption = None,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    groups: GroupsOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    notion: Annotated[
        str, typer.Option(help="auto, class-specific:LABEL, class-wise, confidence or top-label.")
    ] = "auto",
    estimator: EstimatorOption = "auto",
    level: LevelOption = 0.95,
    tolerance: ToleranceOption = None,
    threshold: ThresholdOption = None,
    as_json: JsonOption = False,
    html: HtmlOption = None,
    sums: SumsOption = None,
    fail_above: FailAboveOption = None,
    fail_on: FailOnOption = "value",
    file_format: FormatOption = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--load", help="Read in pieces; default: above 256 MB, but never with --groups."),
    ] = None,
    engine: EngineOption = None,
    by: ByOption = None,
    sql: SqlOption = None,
    database: DatabaseOption = None,
    on_invalid: Annotated[
        str, typer.Option(help="With --engine, what to do with rows that cannot be read: raise, or drop them.")
    ] = "raise",
    sum_tolerance: Annotated[float | None, typer.Option(help="How far rows may sum from 1.")] = None,
    title: TitleOption = None,
    force: ReplaceOption = False,
) -> None:
    """Report on the predictions in FILE, in the files of a pattern or folder, or of a query."""

    def run() -> tuple[str, tuple[Output, Output], Mapping[str, Estimate], Wanted]:
        wanted = Wanted(estimator, level, tolerance, threshold, title, as_json, html, sums, fail_above, fail_on, force)
        about = (label, prob, weight, labels, pos_label, groups, engine, by, sql, database)
        source = Source(file or "", file_format, *about)
        source.check()
        outputs = wanted.outputs(source.taken)
        if engine is not None:
            return (*_by_engine(source, wanted, outputs, notion, on_invalid, stream, sum_tolerance), wanted)
        if on_invalid != "raise":
            raise ValueError("--on-invalid is for --engine: without it rows that cannot be read are refused")
        if stream and groups is not None:
            raise ValueError("--stream reads in pieces, which would part groups: leave it out, or read with --engine")
        found = of_command(_from_file(source, wanted, outputs[1], notion, stream, sum_tolerance))
        outputs[0].write(found.to_html)
        return as_text(found, as_json), outputs, {"": found.headline}, wanted

    text, outputs, found, wanted = guarded(run)
    wanted.end(text, outputs, found)


def merge_command(
    files: Annotated[
        list[Path], typer.Argument(help="Sums that calibrant report --sums wrote, or Accumulator.to_bytes.")
    ],
    estimator: EstimatorOption = "auto",
    level: LevelOption = 0.95,
    tolerance: ToleranceOption = None,
    threshold: ThresholdOption = None,
    as_json: JsonOption = False,
    html: HtmlOption = None,
    sums: SumsOption = None,
    fail_above: FailAboveOption = None,
    fail_on: FailOnOption = "value",
    title: TitleOption = None,
    force: ReplaceOption = False,
) -> None:
    """Report on the rows of many machines from the sums that each saved: the same as of all rows at once."""

    def run() -> tuple[str, tuple[Output, Output], Mapping[str, Estimate], Wanted]:
        from ..reporting import report

        wanted = Wanted(estimator, level, tolerance, threshold, title, as_json, html, sums, fail_above, fail_on, force)
        outputs = wanted.outputs(lambda out: taken_among(out, files))
        merged = _merged(files)
        name = files[0].name if len(files) == 1 else f"{len(files)} shards"
        found = of_command(report(merged, **wanted.about(name)))
        outputs[1].write(merged.to_bytes)
        outputs[0].write(found.to_html)
        return as_text(found, as_json), outputs, {"": found.headline}, wanted

    text, outputs, found, wanted = guarded(run)
    wanted.end(text, outputs, found)


def _from_file(
    source: Source, wanted: Wanted, kept: Output, notion: str, stream: bool | None, sum_tolerance: float | None
) -> Report:
    """Report on a file that is read here, whole or in pieces; its sums are written where they are asked for."""
    from ..accumulator import Accumulator
    from ..estimators import Binned
    from ..reporting import report

    with source.table() as table:
        columns = source.columns(table)
        asked = columns.notion(notion)
        bins = wanted.chosen if isinstance(wanted.chosen, Binned) and wanted.chosen._fixed else Binned()
        sums = Accumulator(notion=asked, binned=bins, sum_tolerance=sum_tolerance, **columns.meaning)
        large = table.n_bytes > STREAM_ABOVE_BYTES and source.groups is None
        pieces = large if stream is None else stream
        if pieces:
            found = report(_streamed(columns, sums), **wanted.about(source.name))
        else:
            rows = next(columns.pieces())
            predictions = columns.predictions(rows, sum_tolerance)
            found = report(predictions, None, notion=asked, **wanted.about(source.name))
            if kept.path is not None:
                sums.update(rows.y_true, rows.y_prob, rows.weight, rows.groups)
    kept.write(sums.to_bytes)
    return found


def _by_engine(
    source: Source,
    wanted: Wanted,
    outputs: tuple[Output, Output],
    notion: str,
    on_invalid: str,
    stream: bool | None,
    sum_tolerance: float | None,
) -> tuple[str, tuple[Output, Output], Mapping[str, Any]]:
    """Report on what an engine reads; with ``--by`` a table of subgroups."""
    from ..estimators import Binned
    from ..reporting import report

    page, kept = outputs
    if stream is not None:
        raise ValueError("--stream and --load are for files that are read without --engine")
    if sum_tolerance is not None:
        raise ValueError("--sum-tolerance is for files that are read without --engine")
    if source.by is not None:
        of_all: dict[str, Any] = {"--html": wanted.html, "--sums": wanted.sums, "--tolerance": wanted.tolerance}
        of_all |= {"--threshold": wanted.threshold, "--title": wanted.title}
        for option, value in of_all.items():
            if value is not None:
                raise ValueError(f"{option} is of all rows, and --by makes one result per subgroup: leave one out")
        if wanted.fail_on == "corrected":
            raise ValueError("--fail-on corrected is not told of subgroups: use value or low")
    check_option("--on-invalid", on_invalid, ("raise", "drop"))
    fixed = isinstance(wanted.chosen, Binned) and wanted.chosen._fixed
    settings = {"notion": notion, "on_invalid": on_invalid, "binned": wanted.chosen if fixed else None}
    sums: Any = source.sums(settings)
    if sums.dropped:
        warn(f"{sums.dropped:,} rows that cannot be read were left out")
    if source.by is not None:
        return _subgroups(sums, wanted, outputs)
    found = of_command(report(sums, **wanted.about(source.name)))
    kept.write(sums.to_bytes)
    page.write(found.to_html)
    return as_text(found, wanted.as_json), outputs, {"": found.headline}


def _subgroups(
    sums: FrameSubgroups, wanted: Wanted, outputs: tuple[Output, Output]
) -> tuple[str, tuple[Output, Output], Mapping[str, Any]]:
    """Estimates of subgroups."""
    found = sums.estimate(wanted.chosen, level=wanted.level)
    one_by_one = {f" of {g.name}": _AsEstimate(g.error, g.error_interval) for g in found.subgroups}
    return as_text(found, wanted.as_json), outputs, one_by_one


@dataclass(frozen=True)
class _AsEstimate:
    """A subgroup's error by the names of an estimate."""

    value: float
    interval: Any


def _streamed(columns: FileColumns, sums: Accumulator) -> Accumulator:
    """Add all rows, piece by piece."""
    with progress_bar("reading rows", columns.table.n_rows()) as advance:
        for rows in columns.pieces(PIECE_ROWS):
            with numbered(rows.numbers):
                sums.update(rows.y_true, rows.y_prob, rows.weight)
            advance(len(rows.y_true))
    return sums


def _merged(files: Sequence[Path]) -> Accumulator:
    """The sums of all files together; ValueError names a file that is none, or that does not go with the others."""
    from ..accumulator import Accumulator

    merged, seen = Accumulator(), dict[bytes, Path]()
    with progress_bar("merging", len(files)) as advance:
        for file in files:
            if not file.is_file():
                raise ValueError(
                    f"{file} does not exist" if not file.exists() else f"{file} is a directory: give files"
                )
            data = file.read_bytes()
            if (other := seen.setdefault(data[-32:], file)) is not file:
                warn(f"{file} and {other} hold the same sums: rows that are there twice count twice")
            try:
                merged += Accumulator.from_bytes(data)
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from error
            advance(1)
    if not merged.n_samples:
        raise ValueError(f"{', '.join(map(str, files))}: no rows were added to these sums")
    return merged

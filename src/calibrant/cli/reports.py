"""The commands that report: `calibrant report FILE`, and `calibrant merge A B …` on saved sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from glob import has_magic
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..data.checks import check_number
from ..data.printing import printable
from ..data.progress import progress_bar, working
from .engines import Files, opened
from .output import Outputs, PrintOptions, check_option, for_command, warn
from .source import PIECE_ROWS, STREAM_ABOVE_BYTES, FileColumns, Source, numbered, typed, typed_notion

if TYPE_CHECKING:
    from ..accumulator import Accumulator
    from ..comparison.subgroups.result import SubgroupReport
    from ..frames import SubgroupSums
    from ..measure.result import Estimate
    from ..reporting import Report

#: Numbers that ``--fail-above`` can compare.
_COMPARED: dict[str, Callable[[Estimate], float]] = {
    "value": lambda e: e.value,
    "corrected": lambda e: e.corrected,
    "low": lambda e: e.interval.low,
}


@dataclass(frozen=True, kw_only=True)
class EngineSource(Source):
    """A file, or files or a query read by an engine."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet, NDJSON or Arrow file, or the log of an LLM evaluation; - is standard input. "
            "With --engine also a pattern or folder.",
            show_default=False,
        ),
    ] = ""
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine to use: polars, duckdb, dask or spark. FILE may then be a pattern or a (partitioned) folder."
        ),
    ] = None
    by: Annotated[
        str | None, typer.Option(help="Column of subgroups to report on separately, as in `calibrant subgroups`.")
    ] = None
    sql: Annotated[str | None, typer.Option(help="Query that replaces FILE; needs --engine duckdb.")] = None
    database: Annotated[str | None, typer.Option(help="Database file for --sql, opened read-only.")] = None

    def __post_init__(self) -> None:
        if (self.sql is None) == (not self.file):
            raise ValueError("give either FILE or --sql")
        if self.database is not None and self.sql is None:
            raise ValueError("--database needs --sql")
        if self.engine is not None and self.score is not None:
            raise ValueError("--score is for logs of LLM evaluations, which engines cannot read: leave out --engine")
        if self.engine is None and self.sql is not None:
            raise ValueError("--sql needs --engine duckdb")
        if self.engine is None and (self._is_pattern or (self.file and Path(self.file).is_dir())):
            what = "a pattern" if self._is_pattern else "a directory"
            raise ValueError(f"{self.file} is {what}: give a single file, or add --engine polars to read all its files")

    @property
    def _is_pattern(self) -> bool:
        return has_magic(self.file) and not Path(self.file).exists()

    @property
    def name(self) -> str:
        """For titles."""
        return "a query" if self.sql is not None else self.file if self._is_pattern else super().name

    def files_read(self) -> dict[str, Any]:
        """Files that are read, which no output may replace."""
        if self.engine is None or self.sql is not None:
            return {"the input file": self.file or None, "the input database": self.database}
        return {"an input file": Files.of(self.file, self.file_format).paths}

    def sums(self, settings: Mapping[str, Any]) -> Accumulator | SubgroupSums:
        """Sums of all rows, or of each subgroup of --by, that the engine makes; settings are those of from_frame."""
        from ..frames import from_frame

        with opened(str(self.engine), self.file or None, self.file_format, self.sql, self.database) as lazy:
            truths = self.label_columns(lazy)
            label = "" if truths else lazy.find_one(self.label, "--label")
            named = {"weight": self.weight, "by": self.by, "groups": self.groups}
            aside = {role: lazy.find_one(c, f"--{role}") for role, c in named.items() if c is not None}
            probs = self.probability_columns(lazy, {label, *truths, *aside.values()})
            words = [None if truths else label, aside.get("by"), aside.get("groups")]
            frame = lazy.frame(words, [*truths, *probs, aside.get("weight")])
            kind = truths[:1] or [lazy.example(label)]
            options = {
                "labels": None if self.labels is None else [typed(v, kind) for v in self.labels.split(",")],
                "pos_label": None if self.pos_label is None else typed(self.pos_label, kind),
                "notion": typed_notion(settings["notion"], kind),
            }
            with working(f"reading with {self.engine}"):
                return from_frame(
                    frame,
                    label=truths or label,
                    prob=probs[0] if len(probs) == 1 else probs,
                    **{**aside, **settings, **options},
                )


@dataclass(frozen=True, kw_only=True)
class ReportOptions(PrintOptions):
    """Contents of a report, and its files."""

    estimator: Annotated[
        str,
        typer.Option(
            help="Estimator of the calibration error: auto, binned[:N] (then :quantile, :linear, :debias), "
            "density[:BANDWIDTH[:KERNEL]], residual[:score], smooth[:BANDWIDTH], beta-kernel[:BANDWIDTH], adaptive, "
            "cumulative, empirical-bayes, isotonic, parametric or sweep."
        ),
    ] = "auto"
    level: Annotated[float, typer.Option(help="Level of intervals and bands.")] = 0.95
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Largest calibration error that does not matter to you. Default: 0.05, less for rare outcomes."
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(help="Decision threshold (a score), to report how many decisions recalibration would change."),
    ] = None
    sums: Annotated[
        Path | None,
        typer.Option(
            help="Write the sums of all rows (with --by, not those of each subgroup) to this file, for `calibrant "
            "merge`; - is standard output."
        ),
    ] = None
    fail_above: Annotated[
        float | None, typer.Option(help="Exit with code 1 if the calibration error is above this.")
    ] = None
    fail_on: Annotated[
        str | None,
        typer.Option(
            help="Number that --fail-above checks: value (the default; sampling noise included), corrected "
            "(median-unbiased), or low (the lower end of the interval)."
        ),
    ] = None
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None

    def __post_init__(self) -> None:
        if self.fail_above is not None:
            check_number("--fail-above", self.fail_above, least=0, most=1)
        if self.fail_on is not None:
            check_option("--fail-on", self.fail_on, _COMPARED)
            if self.fail_above is None:
                raise ValueError(f"--fail-on {self.fail_on} needs --fail-above, the largest error that may pass")

    @cached_property
    def chosen(self) -> Any:
        """The estimator."""
        from ..estimators.names import estimator_named

        return self.estimator if self.estimator == "auto" else estimator_named(self.estimator)

    @property
    def bins(self) -> Any:
        """The estimator if sums of its bins are needed, else None."""
        from ..estimators import Binned

        return self.chosen if isinstance(self.chosen, Binned) and self.chosen._fixed else None

    def outputs(self, read: Mapping[str, Any]) -> Outputs:
        """Files for the page and for the sums."""
        return Outputs(read, force=self.force, html=self.html, sums=self.sums)

    def report(self, rows: Any, name: str, **options: Any) -> Report:
        """The library's report on rows or sums."""
        from ..reporting import report

        settings: dict[str, Any] = {"estimator": self.chosen, "level": self.level, "tolerance": self.tolerance}
        settings |= {"threshold": self.threshold, "title": self.title or f"Calibration of {name}"}
        return for_command(report(rows, None, **settings, **options))

    def check_by(self) -> None:
        """Refuse options that do not apply to subgroups."""
        if self.tolerance is not None:
            raise ValueError(
                "--tolerance is for the verdict on all rows; subgroups are tested without it: leave it out"
            )
        if self.threshold is not None:
            raise ValueError("--threshold counts decisions over all rows, not per subgroup: leave it out")
        if self.fail_on == "corrected":
            raise ValueError("--fail-on corrected is not available for subgroups: use value or low")

    def of_sums(self, sums: Accumulator | SubgroupSums, source: EngineSource) -> Report | SubgroupReport:
        """The report on sums of all rows, or of subgroups."""
        from ..frames import SubgroupSums

        if not isinstance(sums, SubgroupSums):
            return self.report(sums, source.name)
        return self.titled(sums.subgroups(self.chosen, level=self.level), source)

    def titled(self, found: SubgroupReport, source: EngineSource) -> SubgroupReport:
        """With the given title, or the name of the file."""
        return replace(found, title=self.title or f"Calibration of {source.name} by {source.by}")

    def finish(
        self, found: Report | SubgroupReport, sums: Accumulator | SubgroupSums, name: str, outputs: Outputs
    ) -> None:
        """Write the files and print; exit with 1 if the error is too large."""
        from ..reporting import Report

        outputs["sums"].write(lambda: (reduce(add, sums.values()) if isinstance(sums, Mapping) else sums).to_bytes())
        outputs["html"].write(partial(found.to_html, name=name))
        outputs.show(self.text_of(found))
        if self.sums is not None and not isinstance(found, Report):
            typer.echo("calibrant: the sums written are those of all rows, not of each subgroup", err=True)
        if self.fail_above is None:
            return
        checked = self.fail_on or "value"
        if isinstance(found, Report):
            errors = {"": _COMPARED[checked](found.headline)}
        else:
            low = checked == "low"
            errors = {f" of {g.name}": g.error_interval.low if low else g.error for g in found.subgroups}
        above = {of: value for of, value in errors.items() if not value <= self.fail_above}
        for of, value in above.items():
            what = f"calibration error {value:.4f} (--fail-on {checked}){printable(of)}"
            typer.echo(f"calibrant: {what} is above {self.fail_above:g}", err=True)
        if above:
            raise typer.Exit(1)


def report_command(
    source: EngineSource,
    options: ReportOptions,
    notion: Annotated[
        str, typer.Option(help="Notion of calibration: auto, class-specific:LABEL, classwise, confidence or top-label.")
    ] = "auto",
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--load",
            help="Read FILE in pieces or load it whole. Default: in pieces above 256 MB, but never with --groups.",
        ),
    ] = None,
    on_invalid: Annotated[str, typer.Option(help="Handling of invalid rows with --engine: raise or drop.")] = "raise",
    sum_tolerance: Annotated[
        float | None, typer.Option(help="Largest accepted difference between a row's sum of probabilities and 1.")
    ] = None,
) -> None:
    """Report how well the probabilities in FILE, or in the result of a query, are calibrated."""
    if source.by is not None:
        options.check_by()
        if options.sums is not None and source.groups is not None and source.engine is not None:
            raise ValueError(
                "--engine with --sums and --groups cannot take --by: a group may span subgroups; leave it out"
            )
    outputs = options.outputs(source.files_read() if options.html or options.sums else {})
    if source.engine is None:
        if on_invalid != "raise":
            raise ValueError("--on-invalid needs --engine: without an engine, invalid rows are always an error")
        if stream and source.groups is not None:
            raise ValueError("--stream reads in pieces and would split groups: leave it out, or read with --engine")
        options.finish(*_from_file(source, options, notion, stream, sum_tolerance), source.name, outputs)
        return
    for option, value in (("--stream and --load", stream), ("--sum-tolerance", sum_tolerance)):
        if value is not None:
            raise ValueError(f"{option} cannot be combined with --engine")
    check_option("--on-invalid", on_invalid, ("raise", "drop"))
    sums = source.sums({"notion": notion, "on_invalid": on_invalid, "binned": options.bins})
    if sums.dropped:
        warn(f"invalid rows dropped: {sums.dropped:,}")
    options.finish(options.of_sums(sums, source), sums, source.name, outputs)


def merge_command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Files written by `calibrant report --sums` or Accumulator.to_bytes."),
    ],
    options: ReportOptions,
) -> None:
    """Merge sums saved by `calibrant report --sums`, as on several machines, and report on all rows together."""
    outputs = options.outputs({"an input file": files})
    merged = _merged(files)
    name = files[0].name if len(files) == 1 else f"{len(files)} shards"
    options.finish(options.report(merged, name), merged, name, outputs)


def _from_file(
    source: EngineSource, options: ReportOptions, notion: str, stream: bool | None, sum_tolerance: float | None
) -> tuple[Report | SubgroupReport, Accumulator | SubgroupSums]:
    """Report on a file that is read here, whole or in pieces, and its sums if requested."""
    from ..accumulator import Accumulator
    from ..comparison.subgroups.build import subgroup_calibration
    from ..estimators import Binned

    with source.table() as table:
        columns, by = source.with_subgroups(table, [] if source.by is None else [source.by], several=True)
        chosen = columns.notion(notion)
        sums = Accumulator(
            notion=chosen, binned=options.bins or Binned(), sum_tolerance=sum_tolerance, **columns.meaning
        )
        large = table.n_bytes > STREAM_ABOVE_BYTES and columns.groups is None
        streams = large if stream is None else stream
        if streams and by:
            if sum_tolerance is not None:
                raise ValueError("--by with --sum-tolerance needs all rows at once: add --load, or leave out --stream")
            pieces = _sums_by(columns, by[0], {"notion": chosen, "binned": options.bins})
            return options.of_sums(pieces, source), pieces
        if streams:
            with progress_bar("reading rows", table.n_rows()) as advance:
                for rows in columns.pieces(PIECE_ROWS):
                    with numbered(rows.numbers):
                        sums.update(rows.y_true, rows.y_prob, rows.weight)
                    advance(len(rows.y_true))
            return options.report(sums, source.name), sums
        rows = next(columns.pieces())
        p = columns.predictions(rows, sum_tolerance)
        found: Report | SubgroupReport
        if by:
            of = {"notion": chosen, "estimator": options.chosen, "level": options.level}
            found = options.titled(subgroup_calibration(p, None, next(table.batches(by)), **of), source)
        else:
            found = options.report(p, source.name, notion=chosen)
        if options.sums is not None:
            sums.update(rows.y_true, rows.y_prob, rows.weight, rows.groups)
        return found, sums


def _sums_by(columns: FileColumns, by: str, settings: Mapping[str, Any]) -> SubgroupSums:
    """Sums of each subgroup of a file, in one pass."""
    from ..frames import SubgroupSums, from_frame

    probs = columns.probs[0] if len(columns.probs) == 1 else columns.probs
    roles: dict[str, Any] = {
        "label": list(columns.truths) or columns.label,
        "prob": probs,
        "weight": columns.weight,
        "by": by,
    }
    return cast(SubgroupSums, from_frame(columns.table.frame, **roles, **settings, **columns.meaning))


def _merged(files: Sequence[Path]) -> Accumulator:
    """The sums of all files together; ValueError names a file without sums, or with sums that do not match."""
    from ..accumulator import Accumulator

    merged, seen = Accumulator(), dict[bytes, Path]()
    with progress_bar("merging", len(files)) as advance:
        for file in files:
            if not file.exists() or file.is_dir():
                raise ValueError(f"{file} {'is a directory, not a file' if file.is_dir() else 'does not exist'}")
            data = file.read_bytes()
            if (other := seen.setdefault(data[-32:], file)) is not file:
                warn(f"{file} and {other} contain the same sums: their rows are counted twice")
            try:
                merged += Accumulator.from_bytes(data)
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from error
            advance(1)
    if not merged.n_samples:
        raise ValueError(f"{', '.join(map(str, files))}: these sums contain no rows")
    return merged

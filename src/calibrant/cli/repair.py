"""The commands that recalibrate: compare calibrators, fit and save one, apply a saved one."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from ..data.printing import number_of, printable, printable_lines
from ..data.progress import progress_bar
from .output import Output, Outputs, PrintOptions, check_option, for_command, numbers_of
from .saved_comparison import AVERAGE, SavedComparison, read_comparison
from .source import PIECE_ROWS, FileColumns, FileRows, Source, Without, numbered

if TYPE_CHECKING:
    from ..calibrators import Calibrator
    from ..data.tables import FileTable
    from ..data.types import AnyArray
    from ..reporting import CalibratorComparison

#: Largest number of values in a fit by default; more rows change little.
_MOST_NUMBERS = 20_000_000
_MOST_ROWS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class FitOptions(PrintOptions):
    """How calibrators are cross-validated."""

    kind: Annotated[
        str,
        typer.Option("--input", help="Kind of scores in the columns: probability, logit or margin (any real score)."),
    ] = "probability"
    cv: Annotated[int, typer.Option(help="Number of cross-validation folds.")] = 5
    goal: Annotated[
        str, typer.Option(help="Criterion of the choice: log-loss, brier or calibration (the calibration error).")
    ] = "log-loss"
    rule: Annotated[
        str,
        typer.Option(
            help="Rule of the choice: average (weighted by held-out losses, shrunk towards the unchanged scores), "
            "one-standard-error (the simplest that is nearly the best) or best."
        ),
    ] = "average"
    max_rows: Annotated[
        int | None,
        typer.Option(
            help="Largest number of rows to use, sampled at random. Default: a million, fewer with many classes.", min=2
        ),
    ] = None
    title: Annotated[str | None, typer.Option(help="Title of the comparison.")] = None

    def outputs(self, read: dict[str, Any], save: Path | None) -> Outputs:
        """Files for the page and for the saved result."""
        return Outputs(read, force=self.force, html=self.html, save=save)

    def compare(
        self, source: Source, columns: FileColumns, rows: FileRows, calibrators: str | None, level: float = 0.95
    ) -> CalibratorComparison:
        """Cross-validate calibrators by name; None for all that are suitable."""
        from ..calibrators import named_calibrator
        from ..reporting.comparing_calibrators import compare_calibrators

        n_classes = max(len(columns.probs), 2)
        names = None if calibrators is None else calibrators.split(",")
        with numbered(rows.numbers):
            # Names of columns may give their labels.
            found = compare_calibrators(
                rows.y_true.to_numpy(),
                rows.y_prob,
                sample_weight=rows.weight,
                groups=rows.groups,
                candidates=None if names is None else {name: named_calibrator(name, n_classes) for name in names},
                labels=_labels(columns),
                title=self.title or f"Calibrators of {source.name}",
                input=self.kind,
                cv=self.cv,
                goal=self.goal,
                rule=self.rule,
                level=level,
            )
        return for_command(found)


def compare_command(
    source: Source,
    options: FitOptions,
    calibrators: Annotated[
        str | None,
        typer.Option(
            help="Calibrators a,b,c, simplest first: identity, end-smoothing, temperature, ensemble-temperature, "
            "platt, beta, quadratic, vector, matrix, dirichlet, dirichlet-1, dirichlet-0.01, spline, gaussian-process, "
            "order-preserving, histogram, i-max, bayesian-binning, curve, isotonic, roc-hull, near-isotonic, "
            "pooled-isotonic, composed and venn-abers. Default: those that suit the number of classes."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of intervals and bands.")] = 0.95,
    save: Annotated[
        Path | None, typer.Option(help="Save the comparison to this file (JSON) for `calibrant fix --from`.")
    ] = None,
) -> None:
    """Cross-validate calibrators on the predictions in FILE and recommend one."""
    outputs = options.outputs({"the input file": source.file}, save)
    columns, rows = _sample(source, options.max_rows)
    found = options.compare(source, columns, rows, calibrators, level)
    outputs["html"].write(partial(found.to_html, name=source.name))
    outputs["save"].write(lambda: json.dumps(found.to_dict(), allow_nan=False) + "\n")
    outputs.show(options.text_of(found))


def fix_command(
    source: Source,
    save: Annotated[Path, typer.Option(help="Save the fitted calibrator to this file (JSON).")],
    options: FitOptions,
    calibrator: Annotated[
        str,
        typer.Option(
            help="Calibrator to save: auto (the cross-validated choice, if its gain exceeds sampling noise), average "
            "(that choice, whatever its gain) or a name from `calibrant compare --calibrators`."
        ),
    ] = "auto",
    comparison: Annotated[
        Path | None,
        typer.Option(
            "--from", help="File written by `calibrant compare --save` (or --json): fit the calibrator chosen there."
        ),
    ] = None,
) -> None:
    """Fit a calibrator to the predictions in FILE and save it for `calibrant apply`.

    Its performance is cross-validated as in `calibrant compare`; the saved calibrator is fitted to all rows.
    If the gain is within sampling noise, the calibrator leaves the scores unchanged, unless --calibrator names another.
    """
    from ..calibrators.saving import sealed, to_dict

    outputs = options.outputs({"the input file": source.file, "the comparison": comparison}, save)
    if comparison is not None and options.html is not None:
        raise ValueError(
            "--html writes a page of the comparison: pass it to calibrant compare instead of using it with --from"
        )
    saved = None if comparison is None else read_comparison(comparison)
    columns, rows = _sample(source, options.max_rows)
    if saved is None:
        alone = calibrator in ("auto", AVERAGE, "identity") or options.kind == "margin"
        names = None if calibrator in ("auto", AVERAGE) else calibrator if alone else f"identity,{calibrator}"
        found = options.compare(source, columns, rows, names)
        outputs["html"].write(partial(found.to_html, name=source.name))
        saved = SavedComparison.of(found.to_dict(), str(found))
    name = {"auto": saved.safe, AVERAGE: saved.chosen}.get(calibrator, calibrator)
    with numbered(rows.numbers):
        fitted = _fitted(name, columns, rows, options.kind, saved)
    outputs["save"].write(lambda: json.dumps(sealed(to_dict(fitted)), allow_nan=False, indent=1) + "\n")
    content = {"saved": str(save), "calibrator": name, "comparison": saved.found}
    outputs.show(json.dumps(content, allow_nan=False) if options.as_json else printable_lines(saved.text))
    if calibrator == "auto" and name != saved.chosen:
        typer.echo(
            "calibrant: the gain is within sampling noise: the saved calibrator leaves the probabilities unchanged; "
            f"--calibrator {saved.chosen} saves the choice",
            err=True,
        )
    elif name != saved.chosen:
        typer.echo(f"calibrant: {name} was saved as requested; cross-validation chose {saved.chosen}", err=True)


def apply_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Calibrator saved by `calibrant fix`.")],
    source: Annotated[Source, Without({"label", "weight", "groups", "labels", "pos_label"})],
    out: Annotated[
        Path, typer.Option(help="Write the rows with calibrated probabilities to this file; - is standard output.")
    ],
    prior: Annotated[
        str | None,
        typer.Option(
            help="Base rates in FILE, if they differ from those of the rows that the calibrator was fitted to: that of "
            "the positive class, or a,b,c in the order of the columns."
        ),
    ] = None,
    suffix: Annotated[str, typer.Option(help="Suffix of columns to add instead of replacing the scores.")] = "",
    out_format: Annotated[
        str | None,
        typer.Option(help="Format of --out: csv, parquet, ndjson or arrow. Default: from its name, else that of FILE."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Write the rows of FILE with calibrated probabilities. FILE may be larger than memory."""
    from ..calibrators import load_calibrator
    from ..calibrators.label_shift import at_base_rates

    output = Output("--out", out, {"the input file": source.file, "the calibrator": model}, force=force)
    calibrator = load_calibrator(model)
    if prior is not None:
        calibrator = at_base_rates(calibrator, numbers_of("--prior", prior), "--prior")
    with source.table() as table:
        table.read_as()
        columns = _fitted_columns(calibrator, source, table)
        rows = _apply(calibrator, table, {name: name + suffix for name in columns}, output, out_format)
    where = "standard output" if output.standard else printable(str(out))
    typer.echo(f"wrote {where}: {number_of(rows, 'row')}", err=True)


def _sample(source: Source, max_rows: int | None) -> tuple[FileColumns, FileRows]:
    """Rows for a comparison or a fit."""
    with source.table() as table:
        columns = source.columns(table)
        most = max_rows or min(_MOST_ROWS, max(_MOST_NUMBERS // len(columns.probs), 1000))
        rows = columns.rows(*table.sample(columns.names, most, 0, PIECE_ROWS))
        total = table.n_rows()
    if total > len(rows.numbers):
        typer.echo(
            f"calibrant: using {len(rows.numbers):,} of {total:,} rows, sampled at random (--max-rows)", err=True
        )
    return columns, rows


def _fitted(name: str, columns: FileColumns, rows: FileRows, kind: str, saved: SavedComparison) -> Calibrator:
    """A calibrator of that name, fitted to all rows; they must be of the classes that were compared."""
    from ..calibrators.select import as_sample
    from ..reporting.comparing_calibrators import digest_of

    sample = as_sample(rows.y_prob, rows.y_true.to_numpy(), rows.weight, kind, _labels(columns), groups=rows.groups)
    saved.check(sample.classes, kind, digest_of(sample))
    fitted = saved.calibrator(name, len(sample.classes))
    fitted.set_params(input=kind, labels=list(sample.classes))
    return fitted.fit(rows.y_prob, rows.y_true.to_numpy(), rows.weight)


def _labels(columns: FileColumns) -> list[Any] | None:
    """Labels of the columns; of a single one both, the one that it is the probability of last."""
    if len(columns.probs) > 1:
        return columns.labels
    both = columns.labels or columns.seen
    if columns.positive is None:
        if set(both) <= {0, 1}:
            return [False, True] if isinstance(both[0], bool) else [0, 1]
        raise ValueError(
            f"--pos-label must name the label whose probability is in column {columns.probs[0]!r}: "
            f"{' or '.join(map(str, both))}"
        )
    if columns.positive not in both:
        raise ValueError(f"--pos-label {columns.positive} is not among the labels {', '.join(map(str, both))}")
    return [v for v in both if v != columns.positive] + [columns.positive]


def _fitted_columns(calibrator: Calibrator, source: Source, table: FileTable) -> list[str]:
    """Columns that the calibrator is applied to: those it was fitted to, if they are there and none are named."""
    names = [str(name) for name in getattr(calibrator, "feature_names_in_", ())]
    known = bool(names) and set(names) <= set(table.columns)
    columns = names if source.prob is None and known else source.probability_columns(table)
    if set(columns) == set(names):
        columns = names  # in any order in the file
    expected = int(calibrator.n_features_in_)
    if len(columns) != expected:
        raise ValueError(
            f"the calibrator was fitted to {number_of(expected, 'column')}, but --prob names {len(columns)}: "
            f"{', '.join(columns[:6])}"
        )
    return columns


def _apply(
    calibrator: Calibrator, table: FileTable, names: dict[str, str], output: Output, out_format: str | None
) -> int:
    """Write calibrated rows; returns how many. ``names``: name of each column in the new file.

    Other fields of CSV are written to CSV with their original text, in quotes where needed; to other formats as what
    commands read in them, except that numbers such as 007 and +49, which may be names, stay text.
    """
    from polars.io.plugins import register_io_source

    from ..data.dialect import FORMATS, format_of, header, separator_of

    out = Path(str(output.path))
    chosen = check_option("--out-format", out_format or format_of(out) or table.file_format, FORMATS)
    for old, new in names.items():
        if new != old and new in table.columns:
            raise ValueError(f"--suffix {new.removeprefix(old)!r}: a column {new!r} already exists")
    separator = separator_of(table.path if output.standard else out)
    if chosen != "csv" and table.file_format == "csv":
        other = [c for c in table.columns if c not in names.values()]
        padded = table.frame.select(pl.col(other).str.contains(r"^\s*(\+|-?0\d)").any()).collect(engine="streaming")
        table.read_as([c for c in other if not padded[c].item()])
    schema = table.schema
    kinds = {new: schema[old] if schema[old].is_float() else pl.Float64() for old, new in names.items()}
    failed: list[ValueError] = []
    rows = 0

    def calibrated(*_: object) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for batch in table.batches(None, PIECE_ROWS):
            try:
                with numbered(range(rows, rows + batch.height)):
                    p = _probabilities(calibrator, batch, list(names))
            except ValueError as error:
                failed.append(error)
                raise
            rows += batch.height
            advance(batch.height)
            yield batch.with_columns([pl.Series(n, p[:, i], dtype=t) for i, (n, t) in enumerate(kinds.items())])

    frame = register_io_source(calibrated, schema=schema | kinds)
    others: dict[str, Callable[..., Any]] = {
        "parquet": frame.sink_parquet,
        "ndjson": frame.sink_ndjson,
        "arrow": frame.sink_ipc,
    }
    with progress_bar("calibrating rows", table.n_rows()) as advance, output.opened() as file:
        try:
            if chosen == "csv":
                first = StringIO()
                read = header(table.path, table.name) if table.file_format == "csv" else table.columns
                added = [new for old, new in names.items() if new != old]
                csv.writer(first, delimiter=separator, lineterminator="\n").writerow(read + added)
                file.write(first.getvalue().encode())
                frame.sink_csv(file, separator=separator, include_header=False)
            else:
                others[chosen](file)
        except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
            if failed:  # the error about a row is raised again, unchanged or wrapped
                raise failed[0] from error
            raise
    return rows


def _probabilities(calibrator: Calibrator, batch: Any, columns: list[str]) -> AnyArray:
    """Calibrated probabilities in the order of the columns, (n, columns)."""
    from ..calibrators.base import in_column_order, predict_unnamed
    from ..data.tables import as_numbers, score_columns

    scores = score_columns(as_numbers(batch, columns), columns)
    named = columns == list(getattr(calibrator, "feature_names_in_", ()))
    p = calibrator.predict_proba(scores) if named else predict_unnamed(calibrator, scores.to_numpy())
    if len(columns) == 1:
        return p[:, 1:]
    return in_column_order(calibrator, p)

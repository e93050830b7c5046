"""The commands that compare predictions: `compare-models`, `subgroups` and `segments`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.printing import printable
from .output import Outputs, PrintOptions
from .source import FileColumns, Source

if TYPE_CHECKING:
    from ..data.predictions import Predictions
    from ..data.tables import FileTable


@dataclass(frozen=True, kw_only=True)
class ModelsSource(Source):
    """A file with the probabilities of several models for the same rows."""

    prob: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="Model, repeatable: NAME=COLUMN (binary), NAME=COLUMN,COLUMN,… or NAME='p_*' (a column per label), "
            "or COLUMN, which is then also its name.",
        ),
    ] = None


def compare_models_command(
    source: ModelsSource,
    options: PrintOptions,
    notion: Annotated[
        str, typer.Option(help="Notion of calibration: auto, class-specific:LABEL, classwise, confidence or top-label.")
    ] = "auto",
    scores: Annotated[str, typer.Option(help="Proper scores a,b,c: brier, log-loss, spherical.")] = "brier,log-loss",
    reference: Annotated[
        str | None, typer.Option(help="Model that all others are compared to, instead of all pairs.")
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Number of bootstrap resamples.")] = 2000,
    adjust: Annotated[
        str, typer.Option(help="Correction of p-values for the number of pairs: holm, bonferroni or none.")
    ] = "holm",
    plot: Annotated[Path | None, typer.Option(help="Plot the differences to this file (PNG, PDF or SVG).")] = None,
) -> None:
    """Compare the calibration errors and proper scores of models whose probabilities are columns of FILE."""
    from ..comparison.models.compare import compare_models

    outputs = Outputs({"the input file": source.file}, force=options.force, plot=plot, html=options.html)
    with source.table() as table:
        models = _models(source, table)
        chosen = next(iter(models.values())).notion(notion)
        frame = next(table.batches([name for columns in models.values() for name in columns.names]))
        found = compare_models(
            _predictions(models, frame),
            notion=chosen,
            scores=[name.strip() for name in scores.split(",")] if scores else [],
            reference=reference,
            level=level,
            n_resamples=resamples,
            random_state=0,
            adjust=adjust,
        )
    outputs["plot"].draw(found)
    outputs["html"].write(partial(found.to_html, name=source.name))
    outputs.show(options.text_of(found))


def subgroups_command(
    source: Source,
    by: Annotated[list[str], typer.Option("--by", help="Column of subgroups, or a pattern; repeatable.")],
    options: PrintOptions,
    notion: Annotated[
        str,
        typer.Option(
            help="Notion of calibration: class-specific:LABEL (auto for one column) or confidence (auto for several)."
        ),
    ] = "auto",
    test: Annotated[str, typer.Option(help="Test of each subgroup: kuiper or in-the-large.")] = "kuiper",
    adjust: Annotated[str, typer.Option(help="Correction of p-values for multiple tests: holm, bh or none.")] = "holm",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    min_size: Annotated[int, typer.Option(help="Number of rows below which a subgroup is called small.", min=0)] = 50,
    resamples: Annotated[
        int, typer.Option(help="Number of draws for the kuiper test, increased for small p-values.", min=2)
    ] = 1999,
    intersections: Annotated[
        int, typer.Option(help="Number of columns whose values are combined: 2 adds all pairs.", min=1)
    ] = 1,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Plot the subgroups to this file (PNG, PDF or SVG).")
    ] = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with code 1 if a subgroup is miscalibrated.")] = False,
) -> None:
    """Test whether the predictions in FILE are calibrated in each subgroup, with a correction for multiple testing."""
    from ..comparison.subgroups.build import subgroup_calibration

    outputs = Outputs({"the input file": source.file}, force=options.force, plot=plot, html=options.html)
    with source.table() as table:
        columns, subgroups = source.with_subgroups(table, by)
        found = subgroup_calibration(
            columns.predictions(),
            None,
            next(table.batches(subgroups)),
            notion=columns.notion(notion),
            test=test,
            adjust=adjust,
            level=level,
            min_size=min_size,
            n_resamples=resamples,
            intersections=intersections,
        )
    found = replace(found, title=f"Calibration of {source.name} by {', '.join(subgroups)}")
    outputs["plot"].draw(found)
    outputs["html"].write(partial(found.to_html, name=source.name))
    outputs.show(options.text_of(found))
    if fail and found.rejected:
        names = ", ".join(printable(subgroup.name) for subgroup in found.rejected)
        typer.echo(f"calibrant: miscalibrated at {1 - level:.3g}: {names}", err=True)
        raise typer.Exit(1)


def segments_command(
    source: Source,
    options: PrintOptions,
    features: Annotated[
        list[str] | None,
        typer.Option("--features", help="Column of a feature, or a pattern; repeatable. Default: all other columns."),
    ] = None,
    notion: Annotated[
        str, typer.Option(help="Notion of calibration: auto, class-specific:LABEL, classwise, confidence or top-label.")
    ] = "auto",
    max_terms: Annotated[int, typer.Option(help="Largest number of conditions per segment, 1 to 4.")] = 3,
    min_rows: Annotated[
        int | None, typer.Option(help="Smallest number of rows per segment, increased if its test needs more.")
    ] = None,
    confirm: Annotated[
        str,
        typer.Option(help="Test of segments: simulate (simulated outcomes), split (held-out rows) or auto (by size)."),
    ] = "auto",
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    max_rows: Annotated[int | None, typer.Option(help="Largest number of rows to search, sampled at random.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Plot the segments to this file (PNG, PDF or SVG).")
    ] = None,
    fail_if_found: Annotated[
        bool, typer.Option("--fail-if-found", help="Exit with code 1 if a segment is found.")
    ] = False,
) -> None:
    """Find segments, defined by features in FILE, where the model is wrong; p-values allow for the search."""
    from ..comparison.segments.find import find_segments

    outputs = Outputs({"the input file": source.file}, force=options.force, plot=plot, html=options.html)
    with source.table() as table:
        columns, names = source.with_subgroups(table, features or [], "--features")
        if features is None:
            used = set(columns.names)
            names = [name for name in table.columns if name not in used]
            table.read_as(labels=names)
        if not names:
            raise ValueError(f"{table.name} has no columns besides labels and probabilities: there are no features")
        found = find_segments(
            columns.predictions(),
            None,
            next(table.batches(names)),
            notion=columns.notion(notion),
            max_terms=max_terms,
            min_rows="auto" if min_rows is None else min_rows,
            confirm=confirm,
            level=level,
            max_rows=max_rows,
        )
    found = replace(found, title=f"Segments of {source.name} where the model is wrong")
    outputs["plot"].draw(found)
    outputs["html"].write(partial(found.to_html, name=source.name))
    outputs.show(options.text_of(found))
    if fail_if_found and found.segments:
        typer.echo(f"calibrant: segments found at {1 - level:.3g}: {len(found.segments)}", err=True)
        raise typer.Exit(1)


def _models(source: ModelsSource, table: FileTable) -> dict[str, FileColumns]:
    """Columns of each model by its name, equally many."""
    from ..data.columns import some

    options = source.prob or []
    if len(options) < 2:
        raise ValueError(
            "give at least two models, such as --model a=p_a --model b=p_b; the columns of "
            f"{table.name} are {some(table.columns, most=12)}"
        )
    found: dict[str, FileColumns] = {}
    for text in options:
        name, patterns = _named(text, table.columns)
        if name in found:
            raise ValueError(f"--model: there are two models called {name!r}")
        try:
            columns = replace(source, prob=patterns).columns(table)
        except ValueError as error:
            raise ValueError(str(error).replace("--prob", "--model")) from error
        found[name] = columns
        first = next(iter(found.values()))
        if len(columns.probs) != len(first.probs):
            raise ValueError(
                f"--model {name} must have as many columns as the first ({len(first.probs)}); got {len(columns.probs)}"
            )
    return found


def _predictions(models: dict[str, FileColumns], frame: Any) -> dict[str, Predictions]:
    """Predictions of each model, which errors name."""
    found = {}
    for name, columns in models.items():
        try:
            rows = columns.rows(frame, range(frame.height))
            found[name] = columns.predictions(rows)
        except (ValueError, TypeError) as error:
            raise ValueError(f"model {name!r}: {error}") from error
    return found


def _named(text: str, columns: Sequence[str]) -> tuple[str, list[str]]:
    """Name of a model and the patterns of its columns: ``a=p_a``, ``a=p_x,p_y``, ``a=p_*``, or just a column."""
    if text in columns:
        return text, [text]
    name, equals, patterns = text.partition("=")
    if not equals or not name.strip() or not patterns.strip():
        raise ValueError(f"--model must be NAME=COLUMN, NAME=COLUMN,COLUMN,… or the name of a column; got {text!r}")
    if patterns in columns:
        return name.strip(), [patterns]
    return name.strip(), [p.strip() for p in patterns.split(",")]

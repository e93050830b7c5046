"""The commands that judge models against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .output import Output, as_text, draw, guarded, picture
from .source import (
    FileArgument,
    FileColumns,
    FormatOption,
    GroupsOption,
    HtmlOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    PosLabelOption,
    ReplaceOption,
    Source,
    WeightOption,
)

if TYPE_CHECKING:
    from ..data.predictions import Predictions
    from ..data.tables import FileTable


def compare_models_command(
    file: FileArgument,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A model, repeatable: NAME=COLUMN (binary), NAME=COLUMN,COLUMN,… or NAME='p_*' (a column a label); "
            "or COLUMN alone, by its name."
        ),
    ] = None,
    label: LabelOption = "y_true",
    weight: WeightOption = None,
    groups: GroupsOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    notion: Annotated[
        str, typer.Option(help="auto, class-specific:LABEL, classwise, confidence or top-label.")
    ] = "auto",
    scores: Annotated[str, typer.Option(help="Proper scores, a,b,c: brier, log-loss, spherical.")] = "brier,log-loss",
    reference: Annotated[str | None, typer.Option(help="Compare every model to this one, not every pair.")] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 2000,
    adjust: Annotated[
        str, typer.Option(help="Adjustment of p-values for the number of pairs: holm, bonferroni or none.")
    ] = "holm",
    as_json: JsonOption = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the differences here (PNG, PDF or SVG).")] = None,
    html: HtmlOption = None,
    file_format: FormatOption = None,
    force: ReplaceOption = False,
) -> None:
    """Compare models whose probabilities for the same rows are columns of FILE."""

    def run() -> tuple[str, Output, Output]:
        from ..comparison.models.compare import compare_models

        drawn = picture(plot, file, force=force)
        page = Output("--html", html, {"the file that is read": file, "the picture of --plot": plot}, force=force)
        if drawn.standard and page.standard:
            raise ValueError("--plot and --html cannot both be standard output")
        source = Source(file, file_format, label, None, weight, labels, pos_label, groups)
        with source.table() as table:
            models = _models(source, table, model or [])
            asked = next(iter(models.values())).notion(notion)
            wanted = [name for columns in models.values() for name in columns.names]
            frame = next(table.batches(wanted))
            found = compare_models(
                _judged(models, frame),
                notion=asked,
                scores=[name.strip() for name in scores.split(",")] if scores else [],
                reference=reference,
                level=level,
                n_resamples=resamples,
                random_state=0,
                adjust=adjust,
            )
        if plot is not None:
            from ..plot import ModelComparisonDisplay

            draw(ModelComparisonDisplay(found), drawn)
        page.write(found.to_html)
        return as_text(found, as_json), drawn, page

    text, drawn, page = guarded(run)
    drawn.told(text, page)


def _models(source: Source, table: FileTable, options: Sequence[str]) -> dict[str, FileColumns]:
    """Columns of each model, by its name; as many for each."""
    from ..data.columns import some

    if len(options) < 2:
        raise ValueError(
            "give at least two models, such as --model a=p_a --model b=p_b; columns of "
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
                f"--model {name}: it has {len(columns.probs)} columns, and the first model {len(first.probs)}"
            )
    return found


def _judged(models: dict[str, FileColumns], frame: Any) -> dict[str, Predictions]:
    """Predictions of each model; a complaint names it."""
    from ..data.tables import as_numbers

    found = {}
    for name, columns in models.items():
        try:
            rows = columns.rows(as_numbers(frame, columns.probs), range(frame.height))
            found[name] = columns.predictions(rows)
        except (ValueError, TypeError) as error:
            raise ValueError(f"model {name!r}: {error}") from error
    return found


def _named(text: str, columns: Sequence[str]) -> tuple[str, list[str]]:
    """Name of a model, and what names its columns: ``a=p_a``, ``a=p_x,p_y``, ``a=p_*``, or a column by itself."""
    if text in columns:
        return text, [text]
    name, told, patterns = text.partition("=")
    if not told or not name.strip() or not patterns.strip():
        raise ValueError(
            f"--model must be NAME=COLUMN, NAME=COLUMN,COLUMN,… or a column; {text!r} is neither that nor a column"
        )
    if patterns in columns:
        return name.strip(), [patterns]
    return name.strip(), [p.strip() for p in patterns.split(",")]

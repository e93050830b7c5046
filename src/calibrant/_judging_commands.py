"""The commands that judge models against each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._command_end import guarded
from ._command_input import (
    Columns,
    FileArgument,
    FormatOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    PosLabelOption,
    ReplaceOption,
    WeightOption,
    find_columns,
    parse_notion,
)
from ._files import check_free, replacing

if TYPE_CHECKING:
    from .comparing import ModelComparison
    from .reading import Table

#: Endings of the names of pictures that matplotlib writes.
_PICTURES = (".png", ".pdf", ".svg")


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
    groups: Annotated[
        str | None,
        typer.Option(help="Column of what rows belong to (a game, a patient): rows of one are not independent."),
    ] = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    notion: Annotated[
        str, typer.Option(help="auto, class-specific:LABEL, classwise, confidence or top-label.")
    ] = "auto",
    scores: Annotated[str, typer.Option(help="Proper scores, a,b,c: brier, log, spherical.")] = "brier,log",
    reference: Annotated[str | None, typer.Option(help="Compare every model to this one, not every pair.")] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.")] = 2000,
    adjust: Annotated[
        str, typer.Option(help="Adjustment of p-values for the number of pairs: holm, bonferroni or none.")
    ] = "holm",
    as_json: JsonOption = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the differences here (PNG, PDF or SVG).")] = None,
    file_format: FormatOption = None,
    force: ReplaceOption = False,
) -> None:
    """Compare models whose probabilities for the same rows are columns of FILE."""

    def run() -> str:
        from .comparing import compare_models
        from .reading import Table

        if plot is not None:
            if plot.suffix.lower() not in _PICTURES:
                raise ValueError(f"--plot must name a file ending in {', '.join(_PICTURES)}; got {plot}")
            if plot.resolve() == Path(file).resolve():
                raise ValueError(f"--plot {plot} is the file that is read: choose another name")
            check_free(plot, force=force, advice="pass --force")
        with Table(file, file_format) as table:
            rows = _read(table, model, label, weight, groups, labels, pos_label)
        found = compare_models(
            rows.y_true,
            rows.y_probs,
            notion=parse_notion(notion, rows.columns.seen if rows.columns.labels is None else rows.columns.labels),
            scores=[name.strip() for name in scores.split(",")] if scores else [],
            groups=rows.groups,
            sample_weight=rows.weight,
            labels=rows.columns.labels,
            pos_label=rows.columns.positive,
            reference=reference,
            level=level,
            n_resamples=resamples,
            random_state=0,
            adjust=adjust,
        )
        if plot is not None:
            _draw(found, plot)
        return json.dumps(found.to_dict(), allow_nan=False) if as_json else str(found)

    typer.echo(guarded(run))
    if plot is not None:
        typer.echo(f"wrote {plot}", err=True)


@dataclass(frozen=True)
class _Rows:
    """Columns of a file for a comparison; ``columns`` are the first model's."""

    y_true: Any
    y_probs: dict[str, Any]
    weight: Any
    groups: Any
    columns: Columns


def _read(
    table: Table,
    model: list[str] | None,
    label: str,
    weight: str | None,
    groups: str | None,
    labels: str | None,
    pos_label: str | None,
) -> _Rows:
    from ._columns import some
    from .reading import as_numbers, score_columns

    if not model or len(model) < 2:
        raise ValueError(
            "give at least two models, such as --model a=p_a --model b=p_b; columns of "
            f"{table.name} are {some(table.columns, most=12)}"
        )
    group = None if groups is None else _only(table.find(groups, "--groups"), "--groups", groups)
    found: dict[str, Columns] = {}
    for text in model:
        name, patterns = _named(text, table.columns)
        if name in found:
            raise ValueError(f"--model: there are two models called {name!r}")
        try:
            columns = find_columns(table, label, patterns, weight, labels, pos_label)
        except ValueError as error:
            raise ValueError(str(error).replace("--prob", "--model")) from error
        if group in columns.probs:
            raise ValueError(f"--model {text}: column {group!r} is that of --groups")
        found[name] = columns
        first = next(iter(found.values()))
        if len(columns.probs) != len(first.probs):
            raise ValueError(
                f"--model {name}: it has {len(columns.probs)} columns, and the first model {len(first.probs)}"
            )
    first = next(iter(found.values()))
    wanted = [first.label, *(c for columns in found.values() for c in columns.probs)]
    wanted += [c for c in (first.weight, group) if c is not None]
    frame = as_numbers(next(table.batches(wanted)), [c for columns in found.values() for c in columns.probs])
    return _Rows(
        y_true=frame[first.label],
        y_probs={name: score_columns(frame, columns.probs) for name, columns in found.items()},  # read by their names
        weight=None if first.weight is None else frame[first.weight],
        groups=None if group is None else frame[group],
        columns=first,
    )


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


def _only(found: list[str], role: str, pattern: str) -> str:
    if len(found) != 1:
        raise ValueError(f"{role} {pattern!r} matches {len(found)} columns: {', '.join(found[:6])}")
    return found[0]


def _draw(found: ModelComparison, path: Path) -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from .plot import ModelComparisonDisplay

    with replacing(path) as temporary:
        figure = ModelComparisonDisplay(found).plot().figure_
        figure.savefig(temporary, format=path.suffix.lower()[1:], dpi=150)

"""The command that reports group by group: `calibrant subgroups FILE --by COLUMN`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._command_end import guarded
from ._command_input import (
    FileArgument,
    FormatOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    PosLabelOption,
    ProbOption,
    ReplaceOption,
    WeightOption,
    find_columns,
    probability_columns,
    typed,
)
from ._files import check_free

if TYPE_CHECKING:
    from .notions import Notion
    from .reading import Table
    from .subgroups import SubgroupReport

ByOption = Annotated[list[str], typer.Option("--by", help="Column of groups, or a glob; repeatable.")]
NotionOption = Annotated[
    str, typer.Option(help="auto, class-specific:LABEL or confidence; auto: one column's class, else the confidence.")
]
TestOption = Annotated[str, typer.Option(help="Test of each group: kuiper or in-the-large.")]
AdjustOption = Annotated[str, typer.Option(help="Correction for the number of groups: holm, bh or none.")]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Draw the groups into this file (PNG, SVG or PDF).")]


def subgroups_command(
    file: FileArgument,
    by: ByOption,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    notion: NotionOption = "auto",
    test: TestOption = "kuiper",
    adjust: AdjustOption = "holm",
    level: Annotated[float, typer.Option(help="Level of intervals.")] = 0.95,
    min_size: Annotated[int, typer.Option(help="Rows below which a group is marked as small.", min=0)] = 50,
    resamples: Annotated[int, typer.Option(help="Draws of the kuiper test; more for groups far off.", min=2)] = 1999,
    as_json: JsonOption = False,
    plot: PlotOption = None,
    file_format: FormatOption = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 when a group is not calibrated.")] = False,
    force: ReplaceOption = False,
) -> None:
    """Is the model in FILE calibrated in each group? Intervals, and p-values corrected for their number."""

    def run() -> tuple[SubgroupReport, str]:
        from .reading import Table

        if plot is not None:
            check_free(plot, force=force, advice="pass --force")
        with Table(file, file_format) as table:
            report = _read(
                table,
                by,
                (label, prob, weight, labels, pos_label),
                notion,
                {"test": test, "adjust": adjust, "level": level, "min_size": min_size, "n_resamples": resamples},
            )
        if plot is not None:
            _draw(report, plot)
        return report, json.dumps(report.to_dict(), allow_nan=False) if as_json else str(report)

    result, text = guarded(run)
    typer.echo(text)
    if plot is not None:
        typer.echo(f"wrote {plot}", err=True)
    if fail and result.rejected:
        names = ", ".join(group.name for group in result.rejected)
        typer.echo(f"calibrant: not calibrated at {1 - level:.3g}: {names}", err=True)
        raise typer.Exit(1)


def _read(table: Table, by: list[str], named: tuple[Any, ...], notion: str, options: dict[str, Any]) -> SubgroupReport:
    """The report on the columns that options name; a glob for probabilities leaves the groups out."""
    import polars as pl

    from .subgroups import subgroup_calibration

    label, prob, weight, labels, pos_label = named
    groups = list(dict.fromkeys(c for pattern in by for c in table.find(pattern, "--by")))
    others: set[str | None] = {*groups, *table.find(label, "--label")}
    if weight is not None:
        others.update(table.find(weight, "--weight"))
    wanted = probability_columns(table, prob, others)
    columns = find_columns(table, label, wanted, weight, labels, pos_label)
    clash = [c for c in groups if c in (columns.label, columns.weight)]
    if clash:
        raise ValueError(f"--by {clash[0]}: this is the column of labels or of weights")
    piece = next(table.pieces(columns.label, columns.probs, columns.weight))
    frame = pl.concat(list(table.batches(groups)))
    return subgroup_calibration(
        piece.y_true,
        piece.y_prob,
        {c: frame[c] for c in groups},
        notion=_notion(notion, columns.seen if columns.labels is None else columns.labels),
        labels=columns.labels,
        pos_label=columns.positive,
        sample_weight=piece.weight,
        **options,
    )


def _notion(text: str, labels: list[Any]) -> str | Notion:
    from .notions import ClassSpecific

    name, _, label = text.partition(":")
    return ClassSpecific(typed(label, labels)) if name == "class-specific" and label else text


def _draw(report: SubgroupReport, path: Path) -> None:
    """Draw without a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from .plot import SubgroupDisplay

    figure = Figure(figsize=SubgroupDisplay.size_of(report), layout="constrained")
    FigureCanvasAgg(figure)
    SubgroupDisplay(report).plot(figure.subplots(1, 2, sharey=True))
    figure.savefig(path, dpi=150)

"""The command that reports subgroup by subgroup: `calibrant subgroups FILE --by COLUMN`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.printable import printable
from .output import Output, as_text, draw, guarded, picture
from .source import (
    FileArgument,
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
    WeightOption,
)

if TYPE_CHECKING:
    from ..comparison.subgroups.result import SubgroupReport

ByOption = Annotated[list[str], typer.Option("--by", help="Column of subgroups, or a glob; repeatable.")]
NotionOption = Annotated[
    str, typer.Option(help="auto, class-specific:LABEL or confidence; auto: one column's class, else the confidence.")
]
TestOption = Annotated[str, typer.Option(help="Test of each subgroup: kuiper or in-the-large.")]
AdjustOption = Annotated[str, typer.Option(help="Correction for the number of subgroups: holm, bh or none.")]
PlotOption = Annotated[Path | None, typer.Option("--plot", help="Draw the subgroups into this file (PNG, SVG or PDF).")]


def subgroups_command(
    file: FileArgument,
    by: ByOption,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    groups: GroupsOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    notion: NotionOption = "auto",
    test: TestOption = "kuiper",
    adjust: AdjustOption = "holm",
    level: Annotated[float, typer.Option(help="Level of intervals.")] = 0.95,
    min_size: Annotated[int, typer.Option(help="Rows below which a subgroup is marked as small.", min=0)] = 50,
    resamples: Annotated[int, typer.Option(help="Draws of the kuiper test; more for subgroups far off.", min=2)] = 1999,
    as_json: JsonOption = False,
    plot: PlotOption = None,
    html: HtmlOption = None,
    file_format: FormatOption = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 when a subgroup is not calibrated.")] = False,
    force: ReplaceOption = False,
) -> None:
    """Is the model in FILE calibrated in each subgroup? Intervals, and p-values corrected for their number."""

    def run() -> tuple[SubgroupReport, str, Output, Output]:
        from ..comparison.subgroups.build import subgroup_calibration

        drawn = picture(plot, file, force=force)
        page = Output("--html", html, {"the file that is read": file, "the picture of --plot": plot}, force=force)
        if drawn.standard and page.standard:
            raise ValueError("--plot and --html cannot both be standard output")
        source = Source(file, file_format, label, prob, weight, labels, pos_label, groups)
        with source.table() as table:
            subgroups = list(dict.fromkeys(c for pattern in by for c in table.find(pattern, "--by")))
            columns = source.columns(table, aside=subgroups)
            clash = [c for c in subgroups if c in (columns.label, columns.weight, columns.groups)]
            if clash:
                raise ValueError(f"--by {clash[0]}: this is the column of labels or of weights, or that of --groups")
            frame = next(table.batches(subgroups))
            found = subgroup_calibration(
                columns.predictions(),
                None,
                {name: frame[name] for name in subgroups},
                notion=columns.notion(notion),
                test=test,
                adjust=adjust,
                level=level,
                min_size=min_size,
                n_resamples=resamples,
            )
        if plot is not None:
            from ..plot import SubgroupDisplay

            draw(SubgroupDisplay(found), drawn)
        page.write(found.to_html)
        return found, as_text(found, as_json), drawn, page

    result, text, drawn, page = guarded(run)
    drawn.told(text, page)
    if fail and result.rejected:
        names = ", ".join(printable(subgroup.name) for subgroup in result.rejected)
        typer.echo(f"calibrant: not calibrated at {1 - level:.3g}: {names}", err=True)
        raise typer.Exit(1)

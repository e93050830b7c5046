"""The command `calibrant monitor FILE --time COLUMN`: calibration over time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..data.printing import printable_lines
from .output import Outputs, PrintOptions
from .source import Source

if TYPE_CHECKING:
    from ..data.predictions import Predictions
    from ..monitoring.monitor import CalibrationMonitor


def monitor_command(
    source: Source,
    options: PrintOptions,
    time: Annotated[str, typer.Option(help="Column of times: dates, datetimes or numbers.", show_default=False)],
    every: Annotated[
        str, typer.Option(help="Length of a period: auto, hour, day, week, month, quarter, year, or a number of rows.")
    ] = "auto",
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Column of subgroups to follow, or a pattern; repeatable.")
    ] = None,
    notion: Annotated[
        str, typer.Option(help="Notion of calibration: auto, class-specific:LABEL or confidence.")
    ] = "auto",
    level: Annotated[float, typer.Option(help="Level of intervals and of a new monitor's alarm.")] = 0.95,
    horizon: Annotated[
        int | None, typer.Option(help="Number of rows for which a new monitor runs. Default: 100,000.")
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="File of the monitor's state: created, or continued with later rows.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot gap, error and rows over time to this file.")] = None,
    fail_on_alarm: Annotated[
        bool, typer.Option("--fail-on-alarm", help="Exit with code 1 if the monitor raises an alarm.")
    ] = False,
) -> None:
    """Show calibration per period, test whether it changed, and monitor the rows in order of time."""
    from ..monitoring.monitor import CalibrationMonitor
    from ..monitoring.over_time import calibration_over_time
    from ..monitoring.periods import Times

    if state is not None and source.groups is not None:
        raise ValueError("--state does not contain the groups of earlier files: leave out --groups or --state")
    read: dict[str, Any] = {"the input file": None if source.file == "-" else source.file}
    outputs = Outputs(read | {"the file of --state": state}, force=options.force, html=options.html, plot=plot)
    if state is not None and source.file != "-" and state.exists() and state.samefile(source.file):
        raise ValueError(f"--state {state} is the input file")
    with source.table() as table:
        at = table.find_one(time, "--time")
        subgroups = list(dict.fromkeys(c for pattern in by or [] for c in table.find(pattern, "--by")))
        columns = source.columns(table, aside=[at, *subgroups])
        for option, name in [("time", at), *(("by", c) for c in subgroups)]:
            if name in columns.names:
                raise ValueError(f"--{option} {name}: this column is already used for labels, weights or --groups")
        table.read_as(labels=[at, *subgroups])
        p = columns.predictions()
        when = next(table.batches([at]))[at]
        of_rows = next(table.batches(subgroups)) if subgroups else None
        chosen = columns.notion(notion)
    begins = CalibrationMonitor(
        notion=notion if notion in ("auto", "confidence") else chosen, horizon=horizon or 100_000, level=level
    )
    monitor = begins if state is None or not state.exists() else CalibrationMonitor.load(state)
    for option, now, before in (
        ("horizon", horizon, monitor.horizon),
        ("notion", repr(begins.notion), repr(monitor.notion)),
    ):
        if now is not None and now != before:
            raise ValueError(f"--{option} is {now}, but the monitor of --state began with {before}: use another file")
    found = calibration_over_time(
        p, None, when, every=int(every) if every.isdecimal() else every, by=of_rows, notion=chosen, level=level
    )
    old = _go_on(monitor, p, Times.read(when, p.n_given))
    outputs["html"].write(partial(found.to_html, name=source.name))
    outputs["plot"].draw(found)
    if state is not None:  # last: if a page cannot be written, the rows are still new next time
        monitor.save(state)
    more = f"\nRows left out, as they are not later than the monitor's last row: {old:,}." if old else ""
    if options.as_json:
        text = json.dumps({"over_time": found.to_dict(), "monitor": monitor.report(), "left_out": old}, allow_nan=False)
    else:
        text = printable_lines(f"{found}\n\n{monitor.status}{more}")
    outputs.show(text)
    if fail_on_alarm and monitor.alarm:
        raise typer.Exit(1)


def _go_on(monitor: CalibrationMonitor, p: Predictions, times: Any) -> int:
    """Update a monitor with the rows later than its last one, in order; return the number of the others."""
    last = monitor.last_time
    later = np.ones(times.size, dtype=bool)
    if last is not None:
        known = type(times).read([last], 1)
        if known.dated != times.dated:
            raise ValueError("the times of --state and FILE must both be dates or both be numbers")
        later = times.values > known.values[0]
    order = np.flatnonzero(later)[np.argsort(times.values[later], kind="stable")]
    if order.size:
        shown = times.where(order)
        monitor.update(p.subset(order), time=[shown.shown(value) for value in shown.values.tolist()])
    return int((~later).sum())

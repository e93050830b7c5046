"""The command `calibrant monitor FILE --time COLUMN`: calibration over time."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..data.printing import Audience, printable_lines
from .output import Outputs, PrintOptions, warn
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
        str | None,
        typer.Option(help="Number of rows for which a new monitor runs, or none: no limit. Default: none."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="File of the monitor's state: created, or continued with later rows.")
    ] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Begin a new monitor in the file of --state, as after recalibration.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Plot gap, error and rows over time to this file.")] = None,
    fail_on_alarm: Annotated[
        bool,
        typer.Option(
            "--fail-on-alarm", help="Exit with code 1 if the monitor raises an alarm, or its horizon is over."
        ),
    ] = False,
) -> None:
    """Show calibration per period, test whether it changed, and monitor the rows in order of time."""
    from ..monitoring.monitor import CalibrationMonitor
    from ..monitoring.over_time import calibration_over_time
    from ..monitoring.periods import Times

    if reset and state is None:
        raise ValueError("--reset is for the monitor of --state, which is missing")
    if horizon is not None and horizon != "none" and not horizon.isdecimal():
        raise ValueError(f"--horizon must be a number of rows, or none; got {horizon!r}")
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
    monitor = begins = CalibrationMonitor(
        notion=notion if notion in ("auto", "confidence") else chosen,
        horizon=None if horizon in (None, "none") else int(horizon),
        level=level,
    )
    if state is not None and state.exists():
        monitor = CalibrationMonitor.load(state)
        if reset:
            monitor.horizon = monitor.horizon if horizon is None else begins.horizon
            monitor.reset()
        before, other = "but the monitor of --state began with", "use another file"
        if horizon is not None and begins.horizon != monitor.horizon:
            raise ValueError(f"--horizon is {horizon}, {before} {monitor.horizon or 'none'}: add --reset, or {other}")
        if repr(begins.notion) != repr(monitor.notion):
            raise ValueError(f"--notion is {begins.notion!r}, {before} {monitor.notion!r}: {other}")
    monitor.audience = Audience.COMMAND
    found = calibration_over_time(
        p, None, when, every=int(every) if every.isdecimal() else every, by=of_rows, notion=chosen, level=level
    )
    old = _go_on(monitor, p, Times.read(when, p.n_given))
    outputs["html"].write(partial(found.to_html, name=source.name))
    outputs["plot"].draw(found)
    if state is not None:  # last: if a page cannot be written, the rows are still new next time
        try:
            monitor.save(state, force=monitor is not begins)
        except FileExistsError:
            raise FileExistsError(
                f"--state {state} was written by another process in the meantime: the rows of {source.name} were not "
                "added to it; run again"
            ) from None
    if monitor.horizon_over:
        warn(f"{'' if state is None else f'--state {state}: '}{monitor.horizon_text}")
    more = f"\nRows left out, as they are not later than the monitor's last row: {old:,}." if old else ""
    if options.as_json:
        text = json.dumps({"over_time": found.to_dict(), "monitor": monitor.report(), "left_out": old}, allow_nan=False)
    else:
        text = printable_lines(f"{found}\n\n{monitor.status}{more}")
    outputs.show(text)
    if fail_on_alarm and (monitor.alarm or monitor.horizon_over):
        raise typer.Exit(1)


def _go_on(monitor: CalibrationMonitor, p: Predictions, times: Any) -> int:
    """Update a monitor with the rows later than its last one, in order; return the number of the others."""
    last, instants = monitor.last_time, times.instants
    later = np.ones(times.size, dtype=bool)
    if last is not None:
        known = type(times).read([last], 1)
        if known.kind != times.kind:
            raise ValueError(f"the times of --state are {known.kind}, and those of FILE {times.kind}: use one kind")
        later = instants > known.instants[0]
    order = np.flatnonzero(later)[np.argsort(instants[later], kind="stable")]
    if order.size:
        monitor.update(p.subset(order), time=times.where(order))
    return int((~later).sum())

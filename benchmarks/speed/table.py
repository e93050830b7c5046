"""Machine facts, and the results as Markdown."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any


def facts(versions: dict[str, str | None]) -> dict[str, Any]:
    """What the numbers were measured on."""
    own = {name: importlib.metadata.version(name) for name in ("calibrant", "numpy", "scipy")}
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": own,
        "peers": versions,
    }


def _cpu() -> str:
    """Generic name of the processor."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def markdown(results: dict[str, Any]) -> str:
    """The whole report."""
    f = results["facts"]
    peers = ", ".join(f"{k} {v or 'MISSING'}" for k, v in f["peers"].items())
    lines = [
        "# Speed beside other libraries",
        "",
        "Written by `python -m benchmarks.speed.speed --markdown benchmarks/speed/results.md`. Medians of CPU time "
        "over",
        "interleaved repetitions in one process, one thread, the same float64 and int64 arrays for all. Our calls are",
        "the public functions with input validation on. *Ratio* is ours over the fastest peer's; smaller is better.",
        "",
        f"{f['date']}; {f['cpu']}, {f['cores']} cores; Python {f['python']}; "
        + ", ".join(f"{k} {v}" for k, v in f["versions"].items())
        + f". Peers: {peers}.",
        "",
        "| work | ours, ms | fastest peer | its ms | ratio | wanted | |",
        "|---|--:|---|--:|--:|--:|---|",
    ]
    for row in results["rows"]:
        lines.append(_summary(row))
        if "memory" in row:
            good = row["memory"] <= row["memory_allowed"]
            lines.append(
                f"| … extra memory | {row['memory']:.1f} MB | | | | ≤ {row['memory_allowed']:g} MB | {_mark(good)} |"
            )
    for extra in results["own"]:
        good = extra["value"] <= extra["wanted"]
        lines.append(f"| {extra['row']} | {extra['shown']} | | | {extra['ratio']} | ≤ {extra['bar']} | {_mark(good)} |")
    lines += ["", "## Every peer", ""]
    for row in results["rows"]:
        lines += _details(row)
    return "\n".join(lines) + "\n"


def _mark(good: bool) -> str:
    return "met" if good else "**missed**"


def _summary(row: dict[str, Any]) -> str:
    if row["fastest"] is None:
        return f"| {row['row']} | {1e3 * row['seconds']:.3g} | none | | | ≤ {row['wanted']:g} | |"
    theirs = row["peers"][row["fastest"]]["seconds"]
    return (
        f"| {row['row']} | {1e3 * row['seconds']:.3g} | {row['fastest']} | {1e3 * theirs:.3g} | {row['ratio']:.2f} | "
        f"≤ {row['wanted']:g} | {_mark(row['ratio'] <= row['wanted'])} |"
    )


def _details(row: dict[str, Any]) -> list[str]:
    value = "" if row["value"] is None else f", value {row['value']:.6f}"
    lines = [f"**{row['row']}**: ours {1e3 * row['seconds']:.3g} ms{value}.", ""]
    if "twin" in row:
        lines += [f"Our own answer {row['twin']}.", ""]
    lines += ["| peer | ms | theirs / ours | answer | remark |", "|---|--:|--:|---|---|"]
    order = sorted(row["peers"].items(), key=lambda item: item[1].get("seconds", float("inf")))
    for name, entry in order:
        if "seconds" in entry:
            times = f"{1e3 * entry['seconds']:.3g} | {entry['seconds'] / row['seconds']:.2f}"
        else:
            times = " | "
        lines.append(f"| {name} | {times} | {entry['status']} | {entry['remark']} |")
    return [*lines, ""]

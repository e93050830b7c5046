"""A page: question, answer, picture, one table, setting, and how to run it again; full tables are data files."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl
from benchmarks.markdown import table
from benchmarks.provenance import Kept, header

from calibrant.data.writing import write_text

__all__ = ["Kept", "keep", "kept", "table", "wrapped", "write"]


def keep(frame: pl.DataFrame, path: Path, command: str, seed: str, digits: int = 5) -> None:
    """A table as a data file, below a header that says where its numbers come from."""
    about = header(path.stem, command, seed, 0.0, ())
    del about["seconds"], about["modules"]
    holes = [name for name in frame.columns if frame[name].dtype.is_integer() and frame[name].null_count()]
    rounded = (
        frame.with_columns(pl.col(holes).cast(pl.Float64))
        .with_columns(
            pl.col(pl.Float64, pl.Float32).round_sig_figs(digits).fill_null(float("nan")),
            pl.col(pl.Boolean).cast(pl.String),
        )
        .with_columns(pl.col(pl.String).fill_null(""))
    )
    Kept(about, rounded.to_dict(as_series=False)).write(path)


def kept(path: Path) -> pl.DataFrame:
    """A data file; a column without a value is one of numbers."""
    frame = pl.read_csv(path, comment_prefix="# ", infer_schema_length=None)
    empty = [name for name in frame.columns if frame[name].null_count() == len(frame)]
    return frame.with_columns(pl.col(empty).cast(pl.Float64))


def write(
    path: Path,
    doc: str | None,
    answer: str,
    picture: tuple[str, str],
    table: Iterable[str],
    data: Sequence[Path],
    **numbers: object,
) -> None:
    """A page from a script's docstring: the question, the command (indented) and the setting, and from its numbers.

    ``picture`` is a file beside the page and what it shows; ``numbers`` fill what the setting leaves open.
    """
    question, *rest = (doc or "").strip().split("\n\n")
    command = "\n".join(textwrap.dedent(one).format(**numbers) for one in rest if one.startswith("    "))
    setting = [one.format(**numbers) for one in rest if not one.startswith("    ")]
    links: dict[str, list[str]] = {}
    for one in data:
        links.setdefault(_origin(one), []).append(f"[{one.name}]({os.path.relpath(one, path.parent)})")
    parts = [f"# {question}", wrapped(answer), f"![{picture[1]}]({picture[0]})", "\n".join(table).strip(), "## Setting"]
    parts += [one if one.startswith("- ") else wrapped(one) for one in setting]
    parts += ["## Run it again", f"```bash\n{command}\n```", "All numbers:"]
    files = "\n".join(f"- {', '.join(some)}: {origin}" for origin, some in links.items())
    write_text(path, "\n\n".join([*parts, files]) + "\n")


def _origin(path: Path) -> str:
    about = Kept.read(path).header
    return "; ".join(f"{name} {about[name]}" for name in ("commit", "read from") if name in about)


def wrapped(text: str) -> str:
    """A paragraph in lines."""
    return textwrap.fill(" ".join(text.split()), 119, break_long_words=False, break_on_hyphens=False)

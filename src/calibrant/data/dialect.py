"""Formats of files and the meaning of text fields, independent of the engine that sums the rows.

CSV, NDJSON and Arrow have one parser, that of Polars, for every engine; Parquet, which is unambiguous, is left to the
engines. Fields of CSV are text until a command says which columns it reads, and as which type: one query then checks
all rows.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from shlex import quote
from typing import IO, Any

from .columns import check_distinct

FORMATS = ("csv", "parquet", "ndjson", "arrow")
#: Files up to this size are read whole to infer the types of NDJSON values.
_TYPED_WHOLE_BYTES = 64 * 2**20
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_GZIP, _BOM = b"\x1f\x8b", b"\xef\xbb\xbf"
#: Words for truth values, and for missing values in columns of numbers, in any case.
_TRUTHS = ("true", "false")
_MISSING = ("na", "n/a", "nan", "null", "none")
#: Larger whole numbers are not exact as floats: labels beyond this are text.
_EXACT = 2.0**53
#: Number of characters of a field in a message.
_SHOWN = 40


def _suffix(path: Path) -> str:
    """Suffix of a name, without that of compression."""
    return Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()


def format_of(path: Path) -> str | None:
    """Format given by a file's name; None if the name gives none."""
    return _SUFFIXES.get(_suffix(path))


def separator_of(path: Path) -> str:
    """Separator of CSV fields."""
    return "\t" if _suffix(path) == ".tsv" else ","


#: First bytes of unsupported files, with their kind and how to convert them.
_OTHER_KINDS = (
    (b"PK\x03\x04", "an Excel workbook or a zip archive", "save the sheet as CSV, or unzip the archive"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "save the sheet as CSV"),
    (rb"BZh[1-9]1AY&SY", "compressed with bzip2", "bunzip2 -k {name}"),
    (b"\xfd7zXZ\x00", "compressed with xz", "unxz -k {name}"),
    (rb"\(\xb5/\xfd", "compressed with Zstandard", "unzstd -k {name}"),
    (rb"\xff\xfe|\xfe\xff", "encoded as UTF-16", "iconv -f UTF-16 -t UTF-8 {name} > utf8.csv"),
)


def format_inside(path: Path, name: str, chosen: str | None = None) -> str:
    """Format of a file: the chosen one, else that of its name, else that of its first bytes.

    ValueError, with advice, for a file that cannot be read in it: other kinds are recognised by their first bytes.
    """
    with path.open("rb") as file:
        head = file.read(64)
        file.seek(-min(path.stat().st_size, 4), 2)
        tail = file.read()
    for start, kind, convert in _OTHER_KINDS:
        if re.match(start, head):
            typed = quote(name) if Path(name) == path else "FILE"
            raise ValueError(f"{name} is {kind}: convert it first ({convert.format(name=typed)})")
    found = chosen or format_of(path)
    if head.startswith(_GZIP):
        with _read_text(path, name) as file:
            head = file.read(64).encode()
    if found is None and head.startswith(b"PAR1"):
        found = "parquet"
    elif found is None and head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        found = "arrow"
    elif found is None:
        found = "ndjson" if head.removeprefix(_BOM).lstrip().startswith((b"{", b"[")) else "csv"
    if found == "parquet" and not (head.startswith(b"PAR1") and tail == b"PAR1"):
        raise ValueError(f"{name} is not a complete Parquet file: one begins and ends with the letters PAR1")
    if found == "ndjson" and head.startswith(_BOM):
        raise ValueError(f"{name} begins with a byte order mark, which JSON does not allow: write it without one")
    if found == "ndjson" and head.lstrip().startswith(b"["):
        raise ValueError(f"{name} is a JSON array: write NDJSON, one object per line")
    return found


@contextmanager
def _read_text(path: Path, name: str) -> Iterator[IO[str]]:
    """Open a text file, compressed or not; ValueError if it is truncated or damaged."""
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    options: dict[str, Any] = {"encoding": "utf-8-sig", "newline": ""}
    limit = csv.field_size_limit(sys.maxsize)  # of all that Python reads as CSV: fields here may be long
    try:
        with gzip.open(path, "rt", **options) if packed else path.open(**options) as file:
            yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} is not a complete gzip file: {error}") from error
    finally:
        csv.field_size_limit(limit)


def check_separated(name: str, columns: Sequence[str]) -> None:
    """ValueError for a CSV file whose only column looks like several with another separator."""
    separator = next((c for c in ";\t|" if c in columns[0]), None) if len(columns) == 1 else None
    if separator is not None:
        raise ValueError(
            f"{name} has one column, {columns[0]!r}: is it separated by {separator!r}? "
            "Separate columns by commas, or by tabs in a file with the suffix .tsv"
        )


def header(path: Path, name: str) -> list[str]:
    """Names of the columns of a CSV file, stripped; ValueError if one occurs twice."""
    with _read_text(path, name) as file, _faults(name):
        fields = next((row for row in csv.reader(file, delimiter=separator_of(path)) if row), None)
    if fields is None:
        raise ValueError(f"{name} is empty")
    found = [field.strip() for field in fields]
    check_distinct(name, [field for field in found if field])
    check_separated(name, found)
    return found


@contextmanager
def _faults(name: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not encoded as UTF-8 (invalid: {error.object[error.start : error.start + 1]!r}): convert it "
            "first, for instance from Latin-1 with iconv -f LATIN1 -t UTF-8"
        ) from error


def scanned(path: Path, kind: str, name: str) -> Any:
    """Scan a file as a lazy frame of Polars: fields of CSV are text, unnamed where the header has no name."""
    import polars as pl

    if not path.stat().st_size:
        raise ValueError(f"{name} is empty")
    exact = escape(str(path))  # a name is a name, not a pattern
    if kind == "csv":
        names = header(path, name)
        frame = pl.scan_csv(exact, separator=separator_of(path), infer_schema=False)
        raw = frame.collect_schema().names()
        if any("\r" in one.replace("\r\n", "") for one in raw):
            raise ValueError(f"{name} ends lines with a carriage return only: convert it first (tr '\\r' '\\n')")
        if len(raw) != len(names):
            raise ValueError(f"{name} has a header with unclear quotes: {len(raw)} or {len(names)} names")
        nameless = (one if one else f"column {i + 1}" for i, one in enumerate(names))
        return frame.rename(dict(zip(raw, nameless, strict=True)))
    if kind == "parquet":
        return pl.scan_parquet(exact, hive_partitioning=False)
    if kind == "ndjson":
        with _read_text(path, name) as file, _faults(name):
            first = next((line for line in file if line.strip()), "{}")
        with suppress(json.JSONDecodeError, RecursionError):  # said later, with its line
            json.loads(first, object_pairs_hook=lambda pairs: check_distinct(name, [key for key, _ in pairs]))
        whole = path.stat().st_size <= _TYPED_WHOLE_BYTES
        return pl.scan_ndjson(exact, infer_schema_length=None if whole else 100_000)
    with path.open("rb") as file_:
        streamed = not file_.read(6).startswith(b"ARROW1")
    return pl.read_ipc_stream(path).lazy() if streamed else pl.scan_ipc(exact, hive_partitioning=False)


def explain(path: Path, kind: str, name: str, error: BaseException) -> None:
    """Raise ValueError that names the line that polars cannot read in a text file, if one is found."""
    if kind not in ("csv", "ndjson"):
        return
    with _read_text(path, name) as file, _faults(name):
        for number, fault in _csv_faults(file, separator_of(path)) if kind == "csv" else _json_faults(file):
            raise ValueError(f"{name}: line {number} {fault}") from error


def _csv_faults(file: IO[str], separator: str) -> Iterator[tuple[int, str]]:
    rows, width = csv.reader(file, delimiter=separator, strict=True), 0
    try:
        for fields in rows:
            width = width or len(fields)
            if len(fields) > width:
                yield rows.line_num, f"has {len(fields)} fields; the header has {width}"
    except csv.Error as error:
        yield rows.line_num, f"has a missing or misplaced quote: {error}"


def _json_faults(file: IO[str]) -> Iterator[tuple[int, str]]:
    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not a JSON number")

    for number, line in enumerate(file, start=1):
        try:
            found = json.loads(line, parse_constant=refuse) if line.strip() else {}
        except (ValueError, RecursionError) as wrong:
            yield number, f"is not JSON: {wrong}"
        else:
            if not isinstance(found, dict):
                yield number, "is not a JSON object that names each value"


def field(column: str) -> Any:
    """Stripped text of a field; null if empty."""
    import polars as pl

    text = pl.col(column).str.strip_chars()
    return pl.when(text != "").then(text)


def is_blank(columns: Sequence[str]) -> Any:
    """Whether a line is blank: all fields are null, except that the first may hold spaces."""
    import polars as pl

    return pl.all_horizontal(field(columns[0]).is_null(), *(pl.col(c).is_null() for c in columns[1:]))


def as_said(
    frame: Any, labels: Sequence[str], numbers: Sequence[str], fields: Sequence[str] = ()
) -> tuple[dict[str, Any], bool]:
    """Expressions that parse columns of text, and whether there are blank lines, by one query of all rows.

    Lines are checked if the names of all their ``fields`` are given. Labels are whole numbers if all fields are, else
    other numbers, else ``true`` and ``false`` in any case, else text. Numbers are numbers, or ``true`` and ``false``;
    ValueError names the first row that is neither. Empty fields are missing values, as are NA, N/A, NaN, null and none
    among numbers.
    """
    import polars as pl

    text = {c: field(c) for c in (*labels, *numbers)}
    real = {c: t.cast(pl.Float64, strict=False) for c, t in text.items()}
    whole = {c: text[c].cast(pl.Int64, strict=False) for c in labels}
    lower = {c: t.str.to_lowercase() for c, t in text.items()}
    no_number = {c: real[c].is_null() | (real[c].is_finite() & (real[c].abs() > _EXACT)) for c in labels}
    no_number |= {c: real[c].is_null() for c in numbers}
    truth = {c: lower[c] == _TRUTHS[0] for c in text}

    def any_of(wrong: dict[str, Any], kind: str) -> list[Any]:
        return [(w & text[c].is_not_null()).any().alias(f"{kind} {c}") for c, w in wrong.items()]

    asked = any_of({c: w.is_null() for c, w in whole.items()}, "whole") + any_of(no_number, "number")
    asked += any_of({c: ~lower[c].is_in(_TRUTHS) for c in labels}, "truth")
    blank = is_blank(fields) if fields else pl.lit(False)
    found = frame.select(blank.any().alias("blank"), *asked).collect(engine="streaming").row(0, named=True)
    out = {
        c: whole[c]
        if not found[f"whole {c}"]
        else real[c]
        if not found[f"number {c}"]
        else truth[c]
        if not found[f"truth {c}"]
        else text[c]
        for c in labels
    }
    for c in numbers:
        out[c] = real[c]
        if not found[f"number {c}"]:
            continue
        rows = frame.filter(~blank) if found["blank"] else frame
        lost = text[c].is_not_null() & real[c].is_null() & ~lower[c].is_in(_MISSING)
        wrong = {"mixed": (~lower[c].is_in(_TRUTHS)).any(), "row": lost.arg_true().first()}
        asked_again = rows.select(**wrong, value=text[c].filter(lost).first()).collect(engine="streaming")
        mixed, row, value = asked_again.row(0)
        if not mixed:
            out[c] = truth[c].cast(pl.Float64)
        elif row is not None:
            shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
            raise ValueError(f"column {c!r} must hold numbers; row {row} is {shown!r}")
    return out, bool(found["blank"])

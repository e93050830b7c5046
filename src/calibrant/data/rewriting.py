"""Rows of a CSV file with some fields replaced or added, all else as it was, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_BOM = b"\xef\xbb\xbf"
#: Records that are held at a time.
_ROWS = 1 << 16


@dataclass(frozen=True)
class Record:
    """Fields of one record as they are written, quotes included, and how its line ends."""

    fields: list[bytes]
    ending: bytes

    @property
    def blank(self) -> bool:
        """Whether this is an empty line, which is no row."""
        return self.fields == [b""]


def rewrite(
    source: Path,
    target: Path,
    separator: str,
    places: Sequence[int],
    values: Callable[[list[list[str | None]], int], Sequence[Sequence[str]]],
    added: Sequence[str] | None = None,
) -> int:
    """Write a CSV file anew with other fields in some places, or with new ones at the end; returns how many rows.

    Parameters
    ----------
    places : sequence of int
        Columns that are read and replaced.
    values : callable
        Gets the texts (None where there is none) of these columns and the number of the first row, for some rows at a
        time, and gives the new texts of each.
    added : sequence of str, optional
        Names of columns that are added, in place of replacing those read.
    """
    mark = separator.encode()
    with source.open("rb") as file, target.open("wb") as out:
        records = _records(file, mark)
        header = next(records)
        width = len(header.fields)
        if added is not None:
            header = Record([*header.fields, *(_quoted(name, separator) for name in added)], header.ending)
        _put(out, header, mark)
        start = 0
        for block in _blocks(records):
            rows = [record for record in block if not record.blank]
            for i, record in enumerate(rows):
                if len(record.fields) != width:
                    raise ValueError(f"row {start + i} has {len(record.fields)} fields, and the header {width}")
            new = values([[_text(record.fields[place]) for record in rows] for place in places], start)
            for i, record in enumerate(rows):
                told = [column[i].encode() for column in new]
                if added is not None:
                    record.fields.extend(told)
                else:
                    for place, field in zip(places, told, strict=True):
                        record.fields[place] = field
            for record in block:
                _put(out, record, mark)
            start += len(rows)
    return start


def _blocks(records: Iterator[Record]) -> Iterator[list[Record]]:
    block: list[Record] = []
    for record in records:
        block.append(record)
        if len(block) >= _ROWS:
            yield block
            block = []
    if block:
        yield block


def _put(out: IO[bytes], record: Record, separator: bytes) -> None:
    out.write(separator.join(record.fields) + record.ending)


def _records(file: IO[bytes], separator: bytes) -> Iterator[Record]:
    """Records; one in quotes may go over several lines."""
    held = b""
    for line in file:
        held += line
        body = held[:-2] if held.endswith(b"\r\n") else held.removesuffix(b"\n")
        fields = body.split(separator) if b'"' not in body else _fields(body, separator)
        if fields is not None:
            yield Record(fields, held[len(body) :])
            held = b""
    if held:
        raise ValueError("the last record has a quotation mark that is not closed")


def _fields(body: bytes, separator: bytes) -> list[bytes] | None:
    """Fields of a record with quotation marks; None where one is not closed."""
    fields: list[bytes] = []
    at = 0
    while True:
        start = at + len(_BOM) if at == 0 and body.startswith(_BOM) else at
        if body[start : start + 1] == b'"':
            end = start + 1
            while True:
                end = body.find(b'"', end)
                if end < 0:
                    return None
                if body[end + 1 : end + 2] != b'"':
                    break
                end += 2
            end = body.find(separator, end + 1)
        else:
            end = body.find(separator, at)
        if end < 0:
            fields.append(body[at:])
            return fields
        fields.append(body[at:end])
        at = end + len(separator)


def _text(field: bytes) -> str | None:
    text = field.decode("utf-8", "replace").strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].replace('""', '"')
    return text or None


def _quoted(name: str, separator: str) -> bytes:
    bare = not any(mark in name for mark in (separator, '"', "\n", "\r"))
    return (name if bare else '"' + name.replace('"', '""') + '"').encode()

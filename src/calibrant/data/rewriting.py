"""Rows of a CSV or NDJSON file with some values replaced or added, all else as it was, byte for byte."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_BOM = b"\xef\xbb\xbf"
#: Records that are held at a time.
_ROWS = 1 << 16
_OPENED = re.compile(r"[\ufeff\s]*\{\s*(\})?")
_NAME = re.compile(r'\s*("(?:[^"\\]|\\.)*")\s*:\s*')
_NEXT = re.compile(r"\s*(?:,|(\}))")
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True)
class FileRecord(ABC):
    """One record of a file as it is written: a row, or what holds none (a header, an empty line)."""

    is_row: bool

    @abstractmethod
    def text(self, column: str) -> str | None:
        """What a row says in a column; None where it says nothing."""

    @abstractmethod
    def written(self, values: Mapping[str, str], *, added: bool) -> bytes:
        """The record with other values of some columns, or with these columns added."""


def rewrite(
    source: Path,
    target: Path,
    records: Callable[[IO[bytes]], Iterator[FileRecord]],
    columns: Mapping[str, str],
    values: Callable[[list[list[str | None]], int], Sequence[Sequence[str]]],
) -> int:
    """Write a file anew with other values in some columns, or with new ones at the end; returns how many rows.

    Parameters
    ----------
    records : callable
        Records of a file: :func:`csv_records` or :func:`json_records`.
    columns : dict of str to str
        Columns that are read, and what those that are written are called: as before to replace them, else to add some.
    values : callable
        Gets the texts (None where there is none) of the columns that are read and the number of the first row, for some
        rows at a time, and gives the new texts of each.
    """
    added = list(columns) != list(columns.values())
    nothing = dict.fromkeys(columns.values(), "")
    start = 0
    with source.open("rb") as file, target.open("wb") as out:
        for block in _blocks(records(file)):
            rows = [record for record in block if record.is_row]
            texts = [[row.text(name) for row in rows] for name in columns]
            new = zip(*values(texts, start), strict=True) if rows else iter(())
            for record in block:
                told = dict(zip(nothing, next(new), strict=True)) if record.is_row else nothing
                out.write(record.written(told, added=added))
            start += len(rows)
    return start


def _blocks(records: Iterator[FileRecord]) -> Iterator[list[FileRecord]]:
    block: list[FileRecord] = []
    for record in records:
        block.append(record)
        if len(block) >= _ROWS:
            yield block
            block = []
    if block:
        yield block


# JSON -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _JsonRecord(FileRecord):
    """A line, and from where to where the value of each name stands in it."""

    line: str
    spans: dict[str, tuple[int, int]]

    def text(self, column: str) -> str | None:
        start, end = self.spans.get(column, (0, 0))
        value = json.loads(self.line[start:end]) if end else None
        if value is None or isinstance(value, str):
            return value
        return str(int(value)) if isinstance(value, bool) else self.line[start:end]

    def written(self, values: Mapping[str, str], *, added: bool) -> bytes:
        line = self.line
        if not self.is_row:
            return line.encode("utf-8", "surrogateescape")
        if added:
            end = line.rindex("}")
            new = "".join(f",{json.dumps(name, ensure_ascii=False)}:{value}" for name, value in values.items())
            line = line[:end] + new + line[end:]
        else:
            for name in sorted(values, key=lambda name: self.spans[name], reverse=True):
                start, end = self.spans[name]
                line = line[:start] + values[name] + line[end:]
        return line.encode("utf-8", "surrogateescape")


def json_records(file: IO[bytes]) -> Iterator[FileRecord]:
    """Lines of NDJSON; ValueError, with its number, for one that is no object."""
    for number, line in enumerate(file, start=1):
        text = line.decode("utf-8", "surrogateescape")
        if text.strip("\ufeff \t\r\n"):
            try:
                yield _JsonRecord(True, text, _spans(text))
            except ValueError as wrong:
                raise ValueError(f"line {number} is no JSON object: {wrong}") from wrong
        else:
            yield _JsonRecord(False, text, {})


def _spans(line: str) -> dict[str, tuple[int, int]]:
    """Where the values of an object stand; of a name that occurs twice, the last, which is the one that counts."""
    spans: dict[str, tuple[int, int]] = {}
    mark = _match(_OPENED, line, 0, "'{' to open it")
    while not mark[1]:
        named = _match(_NAME, line, mark.end(), "name and ':'")
        start = named.end()
        _, end = _decode(line, start)
        spans[json.loads(named[1]) if "\\" in named[1] else named[1][1:-1]] = start, end
        mark = _match(_NEXT, line, end, "',' or '}'")
    if line[mark.end() :].strip():
        raise ValueError(f"it ends at character {mark.end()}, and the line does not")
    return spans


def _match(pattern: re.Pattern[str], line: str, at: int, what: str) -> re.Match[str]:
    found = pattern.match(line, at)
    if found is None:
        raise ValueError(f"there is no {what} at character {at}")
    return found


# CSV --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CsvRecord(FileRecord):
    """Fields as they are written, quotes included, and how the line ends."""

    fields: list[bytes]
    ending: bytes
    separator: str
    places: Mapping[str, int]

    def text(self, column: str) -> str | None:
        text = self.fields[self.places[column]].decode("utf-8", "replace").strip()
        if len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1].replace('""', '"')
        return text or None

    def written(self, values: Mapping[str, str], *, added: bool) -> bytes:
        fields = list(self.fields)
        if added:
            fields += self._added(values)
        elif self.is_row:
            for name, value in values.items():
                fields[self.places[name]] = value.encode()
        return self.separator.encode().join(fields) + self.ending

    def _added(self, values: Mapping[str, str]) -> list[bytes]:
        return [value.encode() for value in values.values()] if self.is_row else []


class _CsvHeader(_CsvRecord):
    def _added(self, values: Mapping[str, str]) -> list[bytes]:
        return [_quoted(name, self.separator) for name in values]


def csv_records(file: IO[bytes], separator: str, columns: Sequence[str]) -> Iterator[FileRecord]:
    """Records of CSV; one in quotes may go over several lines. ``columns`` are the names of its fields, in order."""
    mark, places = separator.encode(), {name: i for i, name in enumerate(columns)}
    held, rows, width = b"", 0, None
    for line in file:
        held += line
        body = held[:-2] if held.endswith(b"\r\n") else held.removesuffix(b"\n")
        fields = body.split(mark) if b'"' not in body else _fields(body, mark)
        if fields is None:
            continue
        about = fields, held[len(body) :], separator, places
        held = b""
        if width is None:
            width = len(fields)
            yield _CsvHeader(False, *about)
        elif fields == [b""]:
            yield _CsvRecord(False, *about)
        elif len(fields) != width:
            raise ValueError(f"row {rows} has {len(fields)} fields, and the header {width}")
        else:
            rows += 1
            yield _CsvRecord(True, *about)
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


def _quoted(name: str, separator: str) -> bytes:
    bare = not any(mark in name for mark in (separator, '"', "\n", "\r"))
    return (name if bare else '"' + name.replace('"', '""') + '"').encode()

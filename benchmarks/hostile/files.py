"""Files of predictions: text and binary ones, whose cells, headers or bytes may be anything."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from .drawing import Draw
from .rows import SCORES

#: What a cell may hold.
CELLS = (
    *("", " ", "0.5", " 0.5", "0,5", "NaN", "nan", "inf", "-inf", "Infinity", "1e400", "-1e-400", "1e-320", "0x1p-2"),
    *("yes", "no", "TRUE", "true", "False", "null", "None", "NA", "N/A", "-", "+0.5", ".5", "1.", "00", "01", "1_000"),
    *(
        '"',
        '""',
        '"a""b"',
        '"a\nb"',
        "'",
        "\\",
        "\\N",
        "=1+1",
        "<script>alert(1)</script>",
        "\x1b[2J",
        "\u202e",
        "\x00",
    ),
    *("\ufeff", "½", "١", "😀", "x" * 300, "x" * 200_000, "1" * 400, "2020-01-01", "[0.5]", "{}", "-0.0", "1.0000001"),
    *("99999999999999999999", "-1", "2", "100", "0.5%", "1/2", "0.5\r", "#", "\t", "\ud7ff", "​"),
)
#: Names that a column may have.
NAMES = (
    *("", " ", "y_true", "y_prob", " y_true", "Y_TRUE", "p_*", "*", "a,b", '"', "\x1b[31m", "\ufeffy_true", "x" * 5000),
    *(
        "\n",
        "__index__",
        "0",
        "-1",
        "p_",
        "p_0",
        "größe",
        "\u202e",
        "row",
        "count",
        "prob",
        "<b>",
        "'; DROP TABLE x; --",
    ),
)


def table_of(draw: Draw) -> dict[str, list[Any]]:
    """Columns of a file: labels, probabilities of one or of all classes, weights, groups, parts."""
    rng = draw.rng
    n, k = draw.one((1, 2, 5, 20, 30, 40, 40, 40, 60)), draw.one((2, 2, 2, 3, 4))
    matrix = np.asarray(draw.named("scores", SCORES)(rng, n, k), dtype=float)
    codes = (np.cumsum(matrix, axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    names = ["a", "b", "c", "d"][:k] if draw.chance(0.3) or k > 2 else [0, 1]
    draw.say("rows", f"{n} × {k}")
    columns: dict[str, list[Any]] = {"y_true": [names[c] for c in codes]}
    if names == [0, 1] or (k == 2 and draw.chance(0.5)):
        columns["y_prob"] = matrix[:, -1].tolist()
    else:
        columns |= {f"p_{name}": matrix[:, i].tolist() for i, name in enumerate(names)}
    columns |= {"w": rng.random(n).tolist(), "g": rng.integers(0, 6, n).tolist()}
    return columns | {"part": [("x", "y", "z")[i] for i in rng.integers(0, 3, n)]}


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def delimited(draw: Draw, columns: dict[str, list[Any]], wrong: bool) -> bytes:
    """CSV and its relatives."""
    header = list(columns)
    rows = [[_text(v) for v in row] for row in zip(*columns.values(), strict=True)]
    mark, end, start = ",", "\n", ""
    encode: Callable[[str], bytes] = lambda text: text.encode("utf-8", "surrogatepass")  # noqa: E731
    for _ in range(draw.whole(1, 3) if wrong else 0):
        what = draw.whole(0, 14)
        draw.say("text", what)
        i, j = draw.whole(0, max(len(rows), 1)), draw.whole(0, max(len(header), 1))
        if not rows or not header:
            break
        if what < 4:
            cell = draw.one(CELLS)
            draw.say("cell", cell)
            for row in rows if draw.chance(0.2) else rows[i : i + 1]:
                row[j : j + 1] = [cell]
        elif what == 4:
            header[j] = draw.one(NAMES)
        elif what == 5:
            rows[i] = rows[i][: draw.whole(0, len(header))] if draw.chance(0.5) else [*rows[i], "more"] * 2
        elif what == 6:
            mark = draw.one((";", "\t", "|", " ", ":", ",,"))
        elif what == 7:
            end = draw.one(("\r\n", "\r", "\n\n", " \n", "\n\r", "\u2028", "\x0b", ""))
        elif what == 8:
            rows[i] = draw.one(([], [""], ["#"], header, [" "] * len(header)))
        elif what == 9:
            start = draw.one(("\ufeff", "\n", "sep=,\n", "# a comment\n", " ", "\x00", "\ufeff\ufeff"))
        elif what == 10:
            coding = draw.one(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp037", "utf-7"))
            encode = lambda text, coding=coding: text.encode(coding, "replace")  # noqa: E731
        elif what == 11:
            rows = rows[:0] if draw.chance(0.5) else rows * draw.whole(2, 50)
        elif what == 12:
            header = draw.one((header[:-1], [*header, header[0]], header[:1] * len(header), [], header[::-1]))
        else:
            rows = [[f'"{cell}"' for cell in row] for row in rows]
    return encode(start + end.join(mark.join(row) for row in [header, *rows]) + draw.one((end, end, "")))


def lines_of_json(draw: Draw, columns: dict[str, list[Any]], wrong: bool) -> bytes:
    """NDJSON, or a JSON list of objects."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = [json.dumps(row) for row in rows]
    if wrong:
        i, name = draw.whole(0, len(rows)), draw.one(list(columns))
        odd = draw.one(
            (None, True, [], [0.5], {}, {"a": {"b": 1}}, "0.5", "", 1e308, 10**30, "\ud800", "x" * 100_000, -1)
        )
        draw.say("json", repr(odd)[:30])
        where = range(len(rows)) if draw.chance(0.2) else [i]
        for r in where:
            lines[r] = json.dumps(rows[r] | {name: odd})
        what = draw.whole(0, 12)
        draw.say("line", what)
        lines[i] = {
            0: "[" * draw.one((10, 1000, 100_000)),
            1: '{"a":' * 5000 + "1" + "}" * 5000,
            2: "null",
            3: "[]",
            4: lines[i][:-3],
            5: lines[i][:-1] + f',"{name}":0.5}}',
            6: lines[i].replace(":", ": NaN, ", 1),
            7: json.dumps({f"k{j}": j for j in range(500)}),
            8: "",
            9: lines[i] + lines[i],
            10: json.dumps({key: value for key, value in rows[i].items() if key != name}),
        }.get(what, lines[i])
    if draw.chance(0.1):
        return ("[" + ",\n".join(lines) + "]").encode("utf-8", "surrogatepass")
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def binary(draw: Draw, columns: dict[str, list[Any]], wrong: bool) -> bytes:
    """Parquet or Arrow."""
    frame = pl.DataFrame(columns, strict=False)
    if wrong:
        name = draw.one(frame.columns)
        draw.say("column", name)
        makers: list[Callable[[], Any]] = [
            lambda: frame[name].cast(pl.String),
            lambda: frame[name].cast(pl.Categorical),
            lambda: frame[name].cast(pl.Float32),
            lambda: frame[name].cast(pl.Boolean),
            lambda: frame[name].cast(pl.Decimal(20, 9)),
            lambda: frame[name].reshape((-1, 1)),
            lambda: pl.Series(name, [[v] for v in frame[name]]),
            lambda: pl.Series(name, [None] * frame.height),
            lambda: pl.Series(name, [None, *frame[name].to_list()[1:]]),
            lambda: pl.Series(name, [math.nan] * frame.height),
            lambda: pl.Series(name, [{"a": v} for v in frame[name]]),
            lambda: frame[name].cast(pl.Int64, strict=False).cast(pl.Date),
            lambda: frame[name].cast(pl.Int128, strict=False),
            lambda: frame[name].cast(pl.String).cast(pl.Binary),
            lambda: frame[name].cast(pl.UInt8, strict=False),
        ]
        try:
            frame = frame.with_columns(draw.one(makers)().alias(draw.one((name, name, name, "y_prob", ""))))
        except (Exception, pl.exceptions.PanicException):  # no such cast
            draw.say("column", "as it is")
    out = io.BytesIO()
    if draw.chance(0.6):
        frame.write_parquet(out)
    else:
        frame.write_ipc(out)
    return out.getvalue()


KINDS: dict[str, Callable[[Draw, dict[str, list[Any]], bool], bytes]] = {
    "csv": delimited,
    "tsv": lambda draw, columns, wrong: delimited(draw, columns, wrong).replace(b",", b"\t"),
    "ndjson": lines_of_json,
    "json": lines_of_json,
    "parquet": binary,
    "arrow": binary,
}


def damaged(draw: Draw, data: bytes) -> bytes:
    """Bytes of which some are others, or gone, or there twice."""
    what = draw.one(("flip", "cut", "add", "swap", "empty", "zip", "noise", "twice", "ends"))
    draw.say("bytes", what)
    held = bytearray(data)
    if what == "flip" and held:
        for _ in range(draw.whole(1, 6)):
            held[draw.whole(0, len(held))] ^= 1 << draw.whole(0, 8)
    elif what == "cut":
        del held[draw.whole(0, len(held) + 1) :]
    elif what == "add":
        at = draw.whole(0, len(held) + 1)
        held[at:at] = draw.rng.bytes(draw.whole(1, 50))
    elif what == "swap" and len(held) > 4:
        a, b = sorted((draw.whole(0, len(held)), draw.whole(0, len(held))))
        held = held[:a] + held[b:] + held[a:b]
    elif what == "zip":
        return gzip.compress(data)
    elif what == "noise":
        return draw.rng.bytes(draw.one((1, 4, 100, 5000)))
    elif what == "twice":
        return data + data
    elif what == "ends" and held:
        held = held[:20] + held[-20:]
    elif what == "empty":
        return draw.one((b"", b"\n", b"PAR1", b"ARROW1", b"{", b"\x00" * 100, b"\xef\xbb\xbf"))
    return bytes(held)


def file_of(draw: Draw) -> tuple[str, bytes]:
    """The name's ending and the bytes of a file, with up to two things wrong."""
    ending = draw.one((*KINDS, "csv", "csv"))
    draw.say("file", ending)
    wrong = draw.one((0, 0, 0, 0, 1, 1, 2, 3))  # nothing; its cells; its bytes; its name
    data = KINDS[ending](draw, table_of(draw), wrong == 1)
    if wrong == 2:
        data = damaged(draw, data)
    return (draw.one(("", "txt", "csv", "parquet", "CSV", "xlsx", "gz")) if wrong == 3 else ending), data

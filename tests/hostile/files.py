"""Files as hostile as those that people have, and what every reader must say of each: one number, or one refusal."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import dataclass

import numpy as np
import polars as pl

import calibrant as cal

N = 60
RNG = np.random.default_rng(3)
P = np.round(RNG.beta(0.7, 1.3, N), 6)
Y = (RNG.random(N) < P**1.4).astype(int)
W = RNG.integers(1, 4, N)
MANY = np.round(RNG.dirichlet(np.ones(3), N), 6)
MANY[:, 2] = np.round(1 - MANY[:, 0] - MANY[:, 1], 6)
CODES = RNG.integers(0, 3, N)
BASE = pl.DataFrame({"y_true": Y, "y_prob": P, "w": W})


def table(y=Y, p=P, w=W, *, header="y_true,y_prob,w", end="\n", more=()):
    """CSV of columns, with what each line ends in; ``more`` lines come in the middle."""
    lines = [",".join(map(str, row)) for row in zip(y, p, w, strict=True)]
    return end.join([header, *lines[:7], *more, *lines[7:], ""]).encode()


def spelled(words, y=Y):
    return [words[v] for v in y]


def of_classes(names, codes, p=MANY):
    lines = [",".join(map(str, (code, *row))) for code, row in zip(codes, p, strict=True)]
    return "\n".join([f"y_true,{','.join(names)}", *lines, ""]).encode()


def as_file(frame, how, **options):
    out = io.BytesIO()
    getattr(frame, f"write_{how}")(out, **options)
    return out.getvalue()


def json_lines(y=Y, p=P, w=W):
    rows = zip(y, p, w, strict=True)
    return "".join(
        json.dumps(dict(zip(("y_true", "y_prob", "w"), map(plain, row), strict=True))) + "\n" for row in rows
    ).encode()


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class File:
    """A file; ``refused`` are words of the one sentence, else ``value`` is the number (default: that of the rows)."""

    content: bytes
    name: str = "rows.csv"
    options: tuple = ()
    refused: str | None = None
    value: float | None = None
    n: int = N
    alone: tuple = ()  # engines that refuse it: names mean something to them

    @property
    def wanted(self):
        return cal.calibration_error(Y, P) if self.value is None else self.value


WEIGHTED = ("--weight", "w")
YES = ("--pos-label", "yes")
with_weights = cal.calibration_error(Y, P, sample_weight=W)
ones = cal.calibration_error(Y, P, sample_weight=(W > 1).astype(float))
many = cal.calibration_error(CODES, MANY)
certain = cal.calibration_error(Y, Y.astype(float))
without = np.arange(N) != 7
a_share = cal.calibration_error(np.where(without, Y, 0.5), P)

FILES = {
    "plain": File(table()),
    "plain, weights": File(table(), options=WEIGHTED, value=with_weights),
    # Lines.
    "CRLF": File(table(end="\r\n")),
    "no last line end": File(table().rstrip()),
    "BOM": File(b"\xef\xbb\xbf" + table()),
    "BOM, quoted header": File(b"\xef\xbb\xbf" + table(header='"y_true","y_prob","w"')),
    "blank lines": File(table(more=["", ""])),
    "blank lines, CRLF": File(table(end="\r\n", more=["", ""])),
    "a blank line first": File(b"\n" + table()),
    "a blank CRLF line first": File(b"\r\n" + table(end="\r\n")),
    "blank lines last": File(table() + b"\n\n\n"),
    "blank line of spaces": File(table(more=["   "])),
    "a line of commas": File(table(more=[",,"])),
    "a header only": File(b"y_true,y_prob,w\n", refused="rows"),
    "a header only, without line end": File(b"y_true,y_prob,w", refused="rows"),
    "nothing": File(b"", refused="is empty"),
    "only blank lines": File(b"\n\n\n", refused="is empty"),
    "old Mac line ends": File(table(end="\r"), refused="carriage return"),
    "comment line": File(b"# made today\n" + table(), refused="y_true"),
    # Ragged rows.
    "a field more": File(table(more=["1,0.5,1,9"]), refused="fields"),
    "a field less": File(table(more=["1,0.5"]), n=N + 1, value=cal.calibration_error([*Y, 1], [*P, 0.5])),
    "a weight less": File(table(more=["1,0.5"]), options=WEIGHTED, refused="w"),
    "a comma at the end of each line": File(table().replace(b"\n", b",\n")),
    "a comma at the end of each row": File(table().replace(b"\n", b",\n").replace(b"w,\n", b"w\n"), refused="fields"),
    # Spaces and quotes.
    "spaces before fields": File(table().replace(b",", b", ")),
    "spaces around fields": File(table().replace(b",", b" , ")),
    "spaces around fields, weights": File(table().replace(b",", b" , "), options=WEIGHTED, value=with_weights),
    "tabs around fields": File(table().replace(b",", b"\t,\t")),
    "spaces in names": File(table(header=" y_true , y_prob, w ")),
    "all quoted": File(b"\n".join(b",".join(b'"' + f + b'"' for f in row.split(b",")) for row in table().split())),
    "spaces within quotes": File(table(y=[f'" {v} "' for v in Y])),
    "text with spaces": File(table(y=spelled([" no", "yes "])), options=YES),
    "newlines within quotes": File(table(w=['"a\nb"'] * N)),
    "newline within a quoted name": File(table(header='y_true,y_prob,"w\nx"')),
    "quotes within quotes": File(table(y=spelled(['"n ""o"""', "yes"])), options=YES),
    "commas within quotes": File(table(y=spelled(['"n,o"', "yes"])), options=YES),
    "a backslash within quotes": File(table(y=spelled(['"n\\"', "yes"])), options=YES),
    "single quotes": File(table(y=spelled(["'no'", "yes"])), options=YES),
    "an open quote": File(table(more=['1,0.5,"x']), refused="quote"),
    # Labels.
    "yes/no": File(table(y=spelled(["no", "yes"])), options=YES),
    "yes/no, weights": File(table(y=spelled(["no", "yes"])), options=(*YES, *WEIGHTED), value=with_weights),
    "yes/no without a label": File(table(y=spelled(["no", "yes"])), refused="pos"),
    "yes/No": File(table(y=spelled(["no", "No"])), refused="pos"),
    "true/false": File(table(y=spelled(["false", "true"]))),
    "True/False": File(table(y=spelled(["False", "True"]))),
    "TRUE/FALSE": File(table(y=spelled(["FALSE", "TRUE"]))),
    "true/False mixed": File(table(y=["true" if v else "False" for v in Y])),
    "t/f": File(table(y=spelled(["f", "t"])), options=("--pos-label", "t")),
    "Y/N": File(table(y=spelled(["N", "Y"])), options=("--pos-label", "Y")),
    "00/01": File(table(y=spelled(["00", "01"]))),
    "+0/+1": File(table(y=spelled(["+0", "+1"]))),
    "1.0/0.0": File(table(y=spelled(["0.0", "1.0"]))),
    "1./0.": File(table(y=spelled(["0.", "1."]))),
    "mixed int/float": File(table(y=["1.0" if v and i % 2 else v for i, v in enumerate(Y)])),
    "1e0/0e0": File(table(y=spelled(["0e0", "1e0"]))),
    "-1/1": File(table(y=spelled(["-1", "1"]))),
    "1.5 as a label": File(table(y=np.where(without, Y, 1.5)), refused="y_true"),
    "0.5 as a share": File(table(y=np.where(without, Y, 0.5)), value=a_share, n=N + 1),
    "0/1/true": File(table(y=["true" if i == 7 else v for i, v in enumerate(Y)]), refused="y_true"),
    "true/false/1": File(table(y=[1 if i == 7 else str(v > 0).lower() for i, v in enumerate(Y)]), refused="y_true"),
    "0/1/yes": File(table(y=["yes" if i == 7 else v for i, v in enumerate(Y)]), refused="y_true"),
    "a letter case apart": File(table(y=spelled(["no", "YES"])), options=("--pos-label", "yes"), refused="yes"),
    "large labels": File(table(y=spelled([2**60, 2**60 + 1])), options=("--pos-label", str(2**60 + 1))),
    "labels beyond int64": File(table(y=spelled([2**64, 2**64 + 1])), options=("--pos-label", str(2**64 + 1))),
    "dates as labels": File(table(y=spelled(["2026-01-01", "2026-01-02"])), options=("--pos-label", "2026-01-02")),
    "one label": File(table(y=np.ones(N, int)), value=cal.calibration_error(np.ones(N, int), P)),
    "Unicode labels": File(table(y=spelled(["nein", "größer 🙂"])), options=("--pos-label", "größer 🙂")),
    # Missing values.
    **{
        f"{spelling!r} as a {what}": File(
            table(**{what[0]: [spelling if i == 7 else v for i, v in enumerate(values)]}),
            options=WEIGHTED,
            refused=column,
        )
        for what, values, column in (("y label", Y, "y_true"), ("p score", P, "y_prob"), ("w weight", W, "w"))
        for spelling in ("", "NA", "NaN", "nan", "null", "None", "N/A", "-", '""', "inf", "-inf", "Infinity")
    },
    "NA as a text label": File(table(y=spelled(["NA", "yes"])), options=YES),
    "null as a text label": File(table(y=spelled(["null", "yes"])), options=YES),
    "None as a text label": File(table(y=spelled(["None", "yes"])), options=YES),
    "nan as a text label": File(table(y=spelled(["nan", "yes"])), options=YES),
    "missing in a column that is not read": File(table(w=["NA" if i % 3 else "x" for i in range(N)])),
    # Numbers.
    "scientific": File(table(p=[f"{v:.7e}" for v in P])),
    "SCIENTIFIC": File(table(p=[f"{v:.7E}" for v in P])),
    "Fortran exponents": File(table(p=[f"{v:.7e}".replace("e", "d") for v in P]), refused="y_prob"),
    "no leading zero": File(table(p=[f"{v:.6f}".lstrip("0") for v in P])),
    "trailing point": File(table(p=["1." if v else "0." for v in Y]), value=certain),
    "plus signs": File(table(p=[f"+{v}" for v in P])),
    "many digits": File(table(p=[f"{v:.6f}" + "0" * 60 for v in P])),
    "17 digits": File(table(p=[repr(float(v)) for v in P / 3]), value=cal.calibration_error(Y, P / 3)),
    "decimal comma": File(table(p=[f'"{v}"'.replace(".", ",") for v in P]), refused="y_prob"),
    "per cent": File(table(p=[f"{100 * v:.4f}%" for v in P]), refused="y_prob"),
    "percentages": File(table(p=100 * P), refused="y_prob"),
    "thousands in weights": File(table(w=['"1,000"'] * N), options=WEIGHTED, refused="w"),
    "thousands with underscores": File(table(w=["1_000"] * N), options=WEIGHTED, refused="w"),
    "hexadecimal": File(table(w=["0x1"] * N), options=WEIGHTED, refused="w"),
    "a type's letter": File(table(w=[f"{v}f" for v in W]), options=WEIGHTED, refused="w"),
    "a double's letter": File(table(w=[f"{v}d" for v in W]), options=WEIGHTED, refused="w"),
    "digits of other scripts": File(table(w=["١"] * N), options=WEIGHTED, refused="w"),
    "true/false weights": File(table(w=spelled(["false", "true"], (W > 1).astype(int))), options=WEIGHTED, value=ones),
    "yes/no weights": File(table(w=spelled(["no", "yes"], (W > 1).astype(int))), options=WEIGHTED, refused="w"),
    "true/false scores": File(table(p=spelled(["false", "true"])), value=certain),
    "negative weight": File(table(w=np.where(without, W, -1)), options=WEIGHTED, refused="w"),
    "zero weights": File(table(w=np.zeros(N, int)), options=WEIGHTED, refused="zero"),
    "huge weights": File(table(w=["1e200"] * N), options=WEIGHTED, refused="w"),
    "float overflow": File(table(w=["1e999"] * N), options=WEIGHTED, refused="w"),
    "scores above 1": File(table(p=np.where(without, P, 1.5)), refused="y_prob"),
    "noise above 1": File(
        table(p=np.where(Y == 1, 1 + 1e-12, P)), value=cal.calibration_error(Y, np.where(Y == 1, 1, P))
    ),
    "the first number late": File(table(p=["0.5" if i < 50 else "x" for i in range(N)]), refused="y_prob"),
    # Names.
    "two labels": File(table(header="y_true,y_true,y_prob", p=Y, w=P), refused="y_true"),
    "two scores": File(table(header="y_true,y_prob,y_prob"), refused="y_prob"),
    "twice, not read": File(
        table(header="y_true,y_prob,w,w").replace(b"\n", b",1\n").replace(b"w,1\n", b"w\n"), refused="w"
    ),
    "twice but for spaces": File(table(header="y_true,y_prob, y_prob "), refused="y_prob"),
    "a name that Polars makes": File(table(header="y_true,y_prob,y_prob_duplicated_0")),
    "a case apart": File(table(header="y_true,y_prob,Y_PROB")),
    "a case apart, classes": File(
        of_classes(["p_a", "p_A", "p_b"], spelled(["a", "A", "b"], CODES)), value=many, alone=("duckdb", "spark")
    ),
    "no name": File(table(header="y_true,y_prob,")),
    "a dot in a name": File(table(header="y.true,y_prob,w"), options=("--label", "y.true"), alone=("spark",)),
    "a back tick in a name": File(table(header="y`true,y_prob,w"), options=("--label", "y`true"), alone=("spark",)),
    "a long name": File(table(header=f"y_true,y_prob,{'w' * 100_000}")),
    "semicolons": File(table().replace(b",", b";"), refused="separated by ';'"),
    "tabs in a .tsv": File(table().replace(b",", b"\t"), name="rows.tsv"),
    "tabs in a .csv": File(table().replace(b",", b"\t"), refused="separated by '\\t'"),
    # Rows that do not sum to 1.
    "classes": File(of_classes(["p_0", "p_1", "p_2"], CODES), value=many),
    "classes, 00": File(of_classes(["p_0", "p_1", "p_2"], [f"0{v}" for v in CODES]), value=many),
    "classes, text": File(of_classes(["p_a", "p_b", "p_c"], spelled(["a", "b", "c"], CODES)), value=many),
    "classes, spaces": File(of_classes([" p_a", "p_b ", "p_c"], spelled([" a", "b ", "c"], CODES)), value=many),
    "classes, true and false": File(
        of_classes(["p_false", "p_true"], spelled(["false", "true"]), np.column_stack([1 - P, P]).round(6)),
        value=cal.calibration_error(Y, np.column_stack([1 - P, P])),
    ),
    "sums of 0.9": File(of_classes(["p_0", "p_1", "p_2"], CODES, 0.9 * MANY), refused="sum to 1"),
    "one sum of 1.1": File(
        of_classes(["p_0", "p_1", "p_2"], CODES, MANY + 0.1 * ~without[:, None]), refused="sum to 1"
    ),
    "sums off by 4e-6": File(
        of_classes(["p_0", "p_1", "p_2"], CODES, MANY + 4e-6 * np.eye(3)[0]),
        value=cal.calibration_error(CODES, MANY + 4e-6 * np.eye(3)[0]),
    ),
    "a label without column": File(of_classes(["p_a", "p_b", "p_c"], spelled(["a", "b", "d"], CODES)), refused="'d'"),
    # Contents.
    "long fields": File(table(w=["x" * 1_000_000 if i == 7 else "y" for i in range(N)])),
    "a long score": File(
        table(p=["0." + "3" * 1_000_000 if i == 7 else v for i, v in enumerate(P)]),
        value=cal.calibration_error(Y, np.where(without, P, 1 / 3)),
    ),
    "a long word as a score": File(
        table(p=["x" * 1_000_000 if i == 7 else v for i, v in enumerate(P)]), refused="y_prob"
    ),
    "Latin-1": File(
        table(y=spelled(["nein", "größer"])).decode().encode("latin-1"),
        options=("--pos-label", "nein"),
        refused="UTF-8",
    ),
    "Latin-1 in a column that is not read": File(table(w=["ö"] * N).decode().encode("latin-1"), refused="UTF-8"),
    "NUL bytes": File(table(w=["a\0b"] * N)),
    "NUL in labels": File(table(y=spelled(["n\0o", "yes"])), options=YES),
    "UTF-16": File(table().decode().encode("utf-16"), refused="UTF-16"),
    "gz": File(gzip.compress(table()), name="rows.csv.gz"),
    "gz, TSV": File(gzip.compress(table().replace(b",", b"\t")), name="rows.tsv.gz"),
    "gz that ends early": File(gzip.compress(table())[:200], name="rows.csv.gz", refused="not a complete gzip file"),
    "CSV called .txt": File(table(), name="rows.txt"),
    "CSV without suffix": File(table(), name="rows"),
    "text called Parquet": File(table(), name="rows.parquet", refused="rows.parquet"),
    # Other formats with the same contents.
    "Parquet": File(as_file(BASE, "parquet"), name="rows.parquet", options=WEIGHTED, value=with_weights),
    "Parquet, Boolean weights": File(
        as_file(BASE.with_columns(pl.col("w") > 1), "parquet"), name="rows.parquet", options=WEIGHTED, value=ones
    ),
    "Parquet, Boolean labels": File(as_file(BASE.with_columns(pl.col("y_true") > 0), "parquet"), name="rows.parquet"),
    "Parquet, float labels": File(
        as_file(BASE.with_columns(pl.col("y_true").cast(pl.Float64)), "parquet"), name="rows.parquet"
    ),
    "Parquet, unsigned labels": File(
        as_file(BASE.with_columns(pl.col("y_true").cast(pl.UInt8)), "parquet"), name="rows.parquet"
    ),
    "Parquet, text scores": File(
        as_file(BASE.with_columns(pl.col("y_prob").cast(pl.String)), "parquet"), name="rows.parquet", refused="y_prob"
    ),
    "Parquet, text labels": File(
        as_file(BASE.with_columns(pl.col("y_true").replace_strict({0: "no", 1: "yes"})), "parquet"),
        name="rows.parquet",
        options=YES,
    ),
    "Parquet, categories": File(
        as_file(
            BASE.with_columns(pl.col("y_true").replace_strict({0: "no", 1: "yes"}).cast(pl.Categorical)), "parquet"
        ),
        name="rows.parquet",
        options=YES,
    ),
    "Parquet, a null score": File(
        as_file(BASE.with_columns(y_prob=pl.when(pl.int_range(N) != 7).then("y_prob")), "parquet"),
        name="rows.parquet",
        refused="y_prob",
    ),
    "Parquet, a null label": File(
        as_file(BASE.with_columns(y_true=pl.when(pl.int_range(N) != 7).then("y_true")), "parquet"),
        name="rows.parquet",
        refused="y_true",
    ),
    "Parquet, a null weight": File(
        as_file(BASE.with_columns(w=pl.when(pl.int_range(N) != 7).then("w")), "parquet"),
        name="rows.parquet",
        options=WEIGHTED,
        refused="w",
    ),
    "Parquet, NaN": File(
        as_file(
            BASE.with_columns(y_prob=pl.when(pl.int_range(N) != 7).then("y_prob").otherwise(float("nan"))), "parquet"
        ),
        name="rows.parquet",
        refused="y_prob",
    ),
    "Parquet, dates as labels": File(
        as_file(BASE.with_columns(y_true=pl.date(2026, 1, 1)), "parquet"), name="rows.parquet", refused="y_true"
    ),
    "Parquet, lists as labels": File(
        as_file(BASE.with_columns(y_true=pl.concat_list("y_true")), "parquet"), name="rows.parquet", refused="y_true"
    ),
    "Parquet, decimals": File(
        as_file(BASE.with_columns(pl.col("y_prob").cast(pl.Decimal(10, 6))), "parquet"), name="rows.parquet"
    ),
    "Parquet, float32": File(
        as_file(BASE.with_columns(pl.col("y_prob").cast(pl.Float32)), "parquet"),
        name="rows.parquet",
        value=cal.calibration_error(Y, P.astype(np.float32)),
    ),
    "Parquet, integer scores": File(
        as_file(BASE.with_columns(y_prob=pl.col("y_true")), "parquet"), name="rows.parquet", value=certain
    ),
    "Parquet, no rows": File(as_file(BASE.head(0), "parquet"), name="rows.parquet", refused="rows"),
    "Parquet, sums of 0.9": File(
        as_file(pl.DataFrame({"y_true": CODES} | {f"p_{k}": 0.9 * MANY[:, k] for k in range(3)}), "parquet"),
        name="rows.parquet",
        refused="sum to 1",
    ),
    "Parquet, cut off": File(as_file(BASE, "parquet")[:-100], name="rows.parquet", refused="rows.parquet"),
    "Arrow": File(as_file(BASE, "ipc"), name="rows.arrow", options=WEIGHTED, value=with_weights),
    "Arrow, streamed": File(as_file(BASE, "ipc_stream"), name="rows.arrow", options=WEIGHTED, value=with_weights),
    "NDJSON": File(json_lines(), name="rows.ndjson", options=WEIGHTED, value=with_weights),
    "NDJSON, gz": File(gzip.compress(json_lines()), name="rows.ndjson.gz"),
    "NDJSON, CRLF": File(json_lines().replace(b"\n", b"\r\n"), name="rows.ndjson"),
    "NDJSON, blank lines": File(json_lines().replace(b"\n", b"\n\n"), name="rows.ndjson"),
    "NDJSON, BOM": File(b"\xef\xbb\xbf" + json_lines(), name="rows.ndjson", refused="byte order mark"),
    "NDJSON, true and false": File(json_lines(y=[bool(v) for v in Y]), name="rows.ndjson"),
    "NDJSON, text labels": File(json_lines(y=spelled(["no", "yes"])), name="rows.ndjson", options=YES),
    "NDJSON, numbers as text": File(json_lines(p=[str(v) for v in P]), name="rows.ndjson", refused="y_prob"),
    "NDJSON, labels as text": File(json_lines(y=[str(v) for v in Y]), name="rows.ndjson", refused="pos"),
    "NDJSON, mixed int/float": File(
        json_lines(y=[float(v) if i % 2 else int(v) for i, v in enumerate(Y)]), name="rows.ndjson"
    ),
    "NDJSON, one text label": File(
        json_lines(y=["1" if i == 7 else int(v) for i, v in enumerate(Y)]), name="rows.ndjson", refused="pos"
    ),
    "NDJSON, one true label": File(
        json_lines(y=[True if i == 7 else int(v) for i, v in enumerate(Y)]), name="rows.ndjson", refused="true"
    ),
    "NDJSON, one text score": File(
        json_lines(p=["0.5" if i == 7 else v for i, v in enumerate(P)]), name="rows.ndjson", refused="y_prob"
    ),
    "NDJSON, a null": File(
        json_lines(p=[None if i == 7 else v for i, v in enumerate(P)]), name="rows.ndjson", refused="y_prob"
    ),
    "NDJSON, a missing key": File(
        json_lines().replace(b'"y_true": ', b'"z": ', 1), name="rows.ndjson", refused="y_true"
    ),
    "NDJSON, NaN": File(
        json_lines(p=[float("nan") if i == 7 else v for i, v in enumerate(P)]), name="rows.ndjson", refused="line 8"
    ),
    "NDJSON, a key twice": File(json_lines().replace(b'"w"', b'"y_true"'), name="rows.ndjson", refused="y_true"),
    "NDJSON, a late key": File(
        json_lines() + b'{"y_true": 1, "y_prob": 0.5, "w": 1, "new": 3}\n',
        name="rows.ndjson",
        n=N + 1,
        value=cal.calibration_error([*Y, 1], [*P, 0.5]),
    ),
    "NDJSON, keys in any order": File(
        b"".join(
            json.dumps(
                {"w": int(w), "y_prob": p, "y_true": int(y)} if i % 2 else {"y_true": int(y), "w": int(w), "y_prob": p}
            ).encode()
            + b"\n"
            for i, (y, p, w) in enumerate(zip(Y, P, W, strict=True))
        ),
        name="rows.ndjson",
    ),
    "NDJSON, Boolean weights": File(
        json_lines(w=[bool(v > 1) for v in W]), name="rows.ndjson", options=WEIGHTED, value=ones
    ),
    "NDJSON, not JSON": File(json_lines() + b"oops\n", name="rows.ndjson", refused="line 61"),
    "NDJSON, nested": File(json_lines(y=[{"a": int(v)} for v in Y]), name="rows.ndjson", refused="y_true"),
    "NDJSON, large integers": File(
        json_lines(y=[2**60 + int(v) for v in Y]), name="rows.ndjson", options=("--pos-label", str(2**60 + 1))
    ),
    "JSON array": File(b"[" + json_lines().strip().replace(b"\n", b",") + b"]", name="rows.json", refused="JSON array"),
}

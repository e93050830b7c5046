"""The field's words: no private ones in the source, on the pages, or in what the program prints."""

import ast
import io
import re
import tokenize
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.calibrators import Identity, PlattScaling

from ..commands import run

ROOT = Path(__file__).parents[2]
SOURCE = sorted((ROOT / "src").rglob("*.py"))
TEMPLATES = sorted([*(ROOT / "src").rglob("*.html"), *(ROOT / "src").rglob("*.js")])
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    # The history has the names and words of its time.
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "history.md"),
    *sorted((ROOT / "docs").glob("*.ipynb")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]
WRITERS = [path for folder in ("docs/examples", "benchmarks") for path in sorted((ROOT / folder).rglob("*.py"))]

#: A private word, and what the field says.
INSTEAD = {
    r"\blaws?\b": "distribution",
    r"\breadings?\b": "estimate, value",
    r"\breads (0|noise|low|high|too|above|below|about|an error)\b": "gives",
    r"\b(speaks?|spoke|speaking)\b": "has, is of; samples within the kernel; is evidence against",
    r"\bone voice\b": "one value",
    r"\b(what|class that) was drawn\b": "the name of what was sampled or plotted",
    r"\bclass(es)? that came\b": "observed class",
    r"\bthe winner('s)?\b": "predicted class",
    r"\b(holds?|held) the (truth|true (one|value|error|difference|curve))\b": "covers",
}
#: Constructions of no sentence of the source, with the plain form.
PLAINLY = {
    r"\A(#:? )?What\b(?! must\b)": "the thing's name: Rows that …, Result of …, Options of …",
    r"\A(#:? )?Of\b|[.;] Of\b(?! course)": "From, With, For, or a noun first",
    r"\banew\b": "again; resampled, refitted",
    r"\b(columns?|values?|numbers?|rows?|scores?|one|problem|candidates?|seconds) an? "
    r"(class|column|bin|node|cell|component|knot|sample|subgroup|estimate|candidate)\b"
    r"|\b(value|one) a row\b(?! has)": "per class, per row",
    r"\b(is|are) no (JSON|array|size|sum|label|regular|margins?|probabilit\w+|part|choice)\b"
    r"|\bno whole numbers?\b": "is not a",
    r"\bof (before|now)\b": "earlier, present",
    r"\bless (that|those) of\b": "minus",
    r"\brows held out\b": "held-out rows",
    r"\b(rising|falling) (map|curve|order|function)": "increasing, decreasing",
    r"\bwhat (they|it) leaves?\b|\bwhat so (few|many)\b": "the rest, by its name",
    r"\bhang(s)? together\b": "correlated",
    r"\bholds? the truth\b": "covers the true value",
    r"\bis no matter\b": "does not matter",
    r"\blooks? at rows one by one\b": "needs single rows",
    r"\bassumed away\b": "excluded",
}
#: Where such a word is none of ours. Names are a contract: a parameter, columns.
FINE = (
    r"power law",
    r"``law``|\blaw : ScoreLaw|\\sim law\b|\blaw of a BinaryDistribution\b|\bfit_data_vs_law\b",
    r"\.law\(low\)|\.(reading|readings)\b",  # methods and modules
    r"\breading (rows|with|files?|names?|of names)\b|\bleave the reading to\b|\b[Rr]eading (a|the) (report|file)",
    r"spoken vowels",  # what a data set holds
)
PRIVATE = re.compile("|".join(f"(?:{word})" for word in INSTEAD), re.IGNORECASE)
EXEMPT = re.compile("|".join(FINE), re.MULTILINE)


def private(text):
    """Private words of a text, each with its surroundings and what to say instead."""
    bare = EXEMPT.sub(" ", text)
    return [
        f"{bare[max(0, hit.start() - 40) : hit.end() + 40]!r}: say {say}"
        for word, say in INSTEAD.items()
        for hit in re.finditer(word, bare, re.IGNORECASE)
    ]


def prose(code):
    """Texts (f-strings without their fields) and comments of Python code, with their lines."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def in_code(path):
    code = path.read_text(encoding="utf-8")
    if not PRIVATE.search(code):  # most files: parsing all of them takes seconds
        return []
    return [f"{path.relative_to(ROOT)}:{line}: {word}" for line, text in prose(code) for word in private(text)]


def in_text(path):
    return [f"{path.relative_to(ROOT)}: {word}" for word in private(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("text", "many"),
    [
        ("its law is normal", 1),
        ("intervals that hold the truth, and held the true one", 2),
        ("by the limit laws", 1),
        ("the mean reading", 1),
        ("reads 0 for calibrated models", 1),
        ("half a sample speaks, with one voice", 2),
        ("the class that was drawn", 1),
        ("a power law; reading rows; what a reader reads", 0),
        ("a flawless outlaw, spreading", 0),
    ],
)
def test_private_words_are_found_and_no_others(text, many):
    assert len(private(text)) == many


def test_texts_and_comments_are_read_and_names_are_not():
    code = 'law = 1  # its law\ndef reading(law):\n    """A reading."""\n    return f"{law} laws", law.reading\n'
    assert [word for _, text in prose(code) for word in private(text)] == [
        "'A reading.': say estimate, value",
        "' laws': say distribution",
        "'# its law': say distribution",
    ]


def test_source_says_it_in_the_fields_words():
    assert len(SOURCE) > 200
    assert [found for path in SOURCE for found in in_code(path)] == []
    assert [found for path in TEMPLATES for found in in_text(path)] == []


def oddities(text):
    """Odd constructions of a text, each with the plain form."""
    return [f"{hit[0]!r}: say {say}" for form, say in PLAINLY.items() for hit in re.finditer(form, text)]


def odd(text):
    """Private words and odd constructions of what a user reads."""
    return [*private(text), *oddities(text)]


@pytest.mark.parametrize(
    ("text", "many"),
    [
        ("What a test finds.", 1),
        ("#: Of the run.", 1),
        ("It is drawn. Of two classes, the first.", 1),
        ("one row a class; weights must be one a row; fitted anew", 3),
        ("What must be calibrated. Of course rows are held out.", 0),
        ("one row per class; which one a row has; minus that of rows", 0),
    ],
)
def test_odd_constructions_are_found_and_no_others(text, many):
    assert len(oddities(text)) == many


def test_source_says_it_plainly():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {found}"
        for path in SOURCE
        for line, text in prose(path.read_text(encoding="utf-8"))
        for found in oddities(text)
    ]
    found += [f"{path.name}: {form}" for path in TEMPLATES for form in oddities(path.read_text(encoding="utf-8"))]
    assert found == []


def test_pages_say_it_in_the_fields_words():
    assert len(PAGES) > 50
    assert [found for path in PAGES for found in in_text(path)] == []
    assert [found for path in WRITERS for found in in_code(path)] == []


def test_help_says_it_in_the_fields_words(capsys):
    code, out, _ = run(capsys, "--help")
    commands = re.findall(r"^[│|] ([a-z][a-z-]+) ", out, flags=re.MULTILINE)
    assert code == 0
    assert {"report", "merge", "compare", "compare-models", "fix", "apply", "subgroups"} < set(commands)
    helps = [out, *(run(capsys, command, "--help")[1] for command in commands)]
    assert [word for text in helps for word in odd(" ".join(text.split()))] == []


@pytest.fixture(scope="module")
def rows():
    """Predictions of two models in three regions, one of them over-confident."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.standard_normal(600)
    y = (rng.random(600) < 1 / (1 + np.exp(-0.6 * z))).astype(int)
    p = 1 / (1 + np.exp(-z))
    return pl.DataFrame({"y_true": y, "y_prob": p, "other": p**1.2, "region": rng.choice(["n", "s", "e"], 600)})


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("report",),
        ("subgroups", "--by", "region"),
        ("compare-models", "--model", "a=y_prob", "--model", "b=other", "--resamples", 50),
        ("compare", "--calibrators", "identity,platt"),
    ],
    ids=lambda command: command[0],
)
def test_commands_say_it_in_the_fields_words(command, rows, tmp_path, capsys):
    rows.write_csv(tmp_path / "rows.csv")
    page = tmp_path / "page.html"
    code, out, err = run(capsys, command[0], tmp_path / "rows.csv", *command[1:], "--html", page)
    assert code == 0
    assert len(out) > 300
    assert odd(" ".join(f"{out} {err}".split())) == []
    assert odd(page.read_text(encoding="utf-8")) == []


@pytest.mark.slow
def test_results_say_it_in_the_fields_words(rows):
    y, p, other, region = (rows[name].to_numpy() for name in ("y_true", "y_prob", "other", "region"))
    q = np.stack([0.5 * p, 0.5 * p, 1 - p], axis=1)
    results = [
        cal.estimate(y, p),
        cal.reliability_curve(y, p, level=0.95, random_state=0),
        cal.reliability_curve(2 * (1 - y), q, notion="confidence"),
        cal.report(y, p),
        cal.report(2 * (1 - y), q, notion="classwise"),
        cal.calibration_test(y, p, n_resamples=50),
        cal.significance.calibration_belt(y, p),
        cal.significance.kernel_test(y[:100], p[:100], algorithm="asymptotic"),
        cal.significance.hosmer_lemeshow_test(y, p),
        cal.decompose(y, p, level=0.95, random_state=0),
        cal.calibration_measures(y, p),
        cal.compare_models(y, {"a": p, "b": other}, n_resamples=50),
        cal.compare_calibrators(y, p, candidates={"identity": Identity(), "platt": PlattScaling()}),
        cal.subgroup_calibration(y, p, by=region),
        cal.significance.confidence_direction(2 * (1 - y), q, notion="confidence"),
        cal.Accumulator().update(y, p),
    ]
    for result in results:
        text = f"{result} {result!r} {result._repr_html_()} {getattr(result, 'warnings', '')}"
        assert (type(result).__name__, odd(" ".join(text.split()))) == (type(result).__name__, [])

"""The script that writes the benchmark's page: its tables are recomputed here in another way."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.benchmark import Config, Entry, paper_curves, run
from calibrant.benchmark.track_runner import run_tracks
from calibrant.benchmark.tracks import distributions

pytest.importorskip("matplotlib")
pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TINY = Config(
    classes=(2, 3),
    dimensions=(2,),
    mixtures=3,
    trainings=1,
    train_size=60,
    models=("logistic", "bayes"),
    pool=9000,
    rows=6000,
    sizes=(30, 120, 300),
    sets=20,
    seed=3,
)
CURVES = list(paper_curves())
READ = {
    **paper_curves(),
    "empirical-bayes": Entry(cal.EmpiricalBayes()),
    "binned15": Entry(cal.Binned(15)),
    "binned15-l2": Entry(cal.Binned(15, debias=True), norm=2),
}
BY = ["notion", "size", "estimator"]
DISTRIBUTION = ["classes", "mixture", "model"]


@pytest.fixture
def parts(monkeypatch):
    """The script's helper modules."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from benchmark_parts import claims, runs, stats

    return claims, runs, stats


def write(docs, folder, *more):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "benchmark_page.py"), str(folder), *map(str, more), "--docs", str(docs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (docs / "benchmark.md").read_text(encoding="utf-8")


def tables(text, heading):
    """Tables below a heading as lists of rows; the first row is the header."""
    level = heading.split(" ")[0]
    section = text.split(f"\n{heading}\n", 1)[1]
    section = re.split(rf"\n#{{1,{len(level)}}} ", section, maxsplit=1)[0]
    found, rows = [], []
    for line in [*section.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            found.append([rows[0], *rows[2:]])
            rows = []
    return found


def number(cell):
    """The first number of a cell: its value, with its own share for percents."""
    return float(re.search(r"[-+−]?\d+(\.\d+)?", cell).group().replace("−", "-"))


def doubt(cell):
    return float(re.search(r"± (\d+(\.\d+)?)", cell).group(1))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    logger, handler = logging.getLogger("calibrant.benchmark"), logging.FileHandler(folder / "run.log")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        frame = run(out=folder / "run", config=TINY, n_jobs=1, estimators=READ, progress=False)
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        handler.close()
    published = Config(**{**vars(TINY), "mode": "as-published"})
    run(out=folder / "published", config=published, n_jobs=1, progress=False, estimators=paper_curves("as-published"))
    tracks = run_tracks(
        ["beta", "consistency"],
        out=folder / "tracks",
        sizes=(30, 120),
        large_sizes=(1000, 2000),
        n_sets=10,
        names=[d.name for track in ("beta", "consistency") for d in distributions(track)[:4]],
        estimators=READ,
    )
    docs = folder / "docs"
    more = ("--tracks", folder / "tracks", "--published", folder / "published", "--log", folder / "run.log")
    text = write(docs, folder / "run", *more)
    return folder, docs, text, frame, tracks


def test_files_and_no_placeholder(finished):
    _, docs, text, _, _ = finished
    names = ["relative", "absolute", "readme", "published"]
    pages = [text, *((docs / f"benchmark_{name}.md").read_text("utf-8") for name in ("as_published", "tracks"))]
    for name in names:
        assert (docs / "images" / f"benchmark_{name}.png").stat().st_size > 20_000
    assert set(re.findall(r"\]\(([^)]+)\)", "".join(pages))) == {
        *(f"images/benchmark_{name}.png" for name in names if name != "readme"),
        "benchmark/summary.csv",
        "benchmark/config.json",
        "../benchmarks/arena/reporting.md",
        "benchmark.md",
        "benchmark_as_published.md",
        "benchmark_tracks.md",
    }
    for page in pages:
        for wrong in (r"\bnan\b", r"\bNone\b", r"[{}]", r"\binf\b", "TODO", r"np\.", "unfinished"):
            assert not re.search(wrong, page), wrong
        for line in page.splitlines():
            if line.startswith("|"):
                assert "||" not in line
    # Every table has as many cells in a row as in its header.
    for heading in re.findall(r"^#{2,3} .*", text, flags=re.MULTILINE):
        for rows in tables(text, heading):
            assert {len(row) for row in rows} == {len(rows[0])}, heading


def test_small_files(finished):
    _, docs, _, frame, _ = finished
    summed = pl.read_csv(docs / "benchmark" / "summary.csv")
    assert summed.height == 2 * 3 * len(READ)
    assert set(summed["distributions"]) == {12}
    again = frame.group_by(BY).agg(pl.col("rel_p95", "bias", "rmse").median().name.suffix("_again"))
    both = summed.join(again, on=BY)
    assert both.height == summed.height
    for measure in ("rel_p95", "bias", "rmse"):
        np.testing.assert_allclose(both[measure], both[f"{measure}_again"], rtol=1e-3)
        # Debiased bins of norm 2 may read 0 everywhere.
        assert (both.filter(pl.col("estimator") != "binned15-l2")[f"{measure}_se"] > 0).all()
    config = json.loads((docs / "benchmark" / "config.json").read_text(encoding="utf-8"))
    assert config["distributions"] == config["distributions_wanted"] == 12
    assert config["config"] == {k: v for k, v in TINY.to_dict().items() if k != "versions"}
    assert config["versions"] == {**TINY.to_dict()["versions"], "calibrant": cal.__version__}
    assert config["estimators"] == {name: entry.definition for name, entry in READ.items()}


def test_default_against_the_best(finished):
    _, _, text, frame, _ = finished
    found = tables(text, "## The default against the best of the 15")
    medians = frame.group_by(BY).agg(pl.col("rel_p95", "rmse").median())
    bias = frame.with_columns(pl.col("bias") / pl.col("truth")).group_by(BY).agg(pl.col("bias").median())
    for notion, rows in zip(("confidence", "classwise"), found, strict=True):
        assert [int(row[0]) for row in rows[1:]] == [30, 120, 300]
        for row in rows[1:]:
            here = pl.col("notion").eq(notion) & pl.col("size").eq(int(row[0]))
            ours = medians.filter(here, pl.col("estimator") == "empirical-bayes")
            rest = medians.filter(here, pl.col("estimator").is_in(CURVES))
            for measure, cell, best in (("rel_p95", row[3], row[1].split()[0]), ("rmse", row[5], row[4])):
                least = rest.sort(measure).row(0, named=True)
                ratio = ours[measure].item() / least[measure]
                assert best == least["estimator"]
                assert number(cell) == pytest.approx(ratio, abs=6e-4)
                bar = 0.7 if measure == "rel_p95" and int(row[0]) <= 120 else 0.95
                assert ("✓" in cell) == (ratio <= bar)
                assert ("?" in cell) == (abs(number(cell) - bar) < 2 * doubt(cell))
            assert number(row[2]) == pytest.approx(ours["rel_p95"].item(), abs=6e-4)
            signed = bias.filter(here, pl.col("estimator") == "empirical-bayes")["bias"].item()
            assert number(row[6]) == pytest.approx(100 * signed, abs=0.06)
        met = sum("✓" in row[3] for row in rows[1:])
        assert f"bar for the relative error is met at {met} of 3 sizes" in text


def test_every_estimator(finished):
    _, _, text, frame, _ = finished
    section = text[text.index("## Every estimator") :]
    for notion, heading in (("confidence", "### Confidence"), ("classwise", "### Class-wise")):
        (rows,) = tables(section, heading)
        assert rows[0] == ["estimator", "N = 30", "N = 120", "N = 300", "bias 30", "bias 120", "bias 300"]
        assert sorted(row[0].strip("*`") for row in rows[1:]) == sorted(READ)
        for row in rows[1:]:
            for size, error, bias in zip((30, 120, 300), row[1:4], row[4:], strict=True):
                cells = frame.filter(notion=notion, size=size, estimator=row[0].strip("*`"))
                assert number(error) == pytest.approx(np.median(cells["rel_p95"]), abs=6e-3)
                assert number(bias) == pytest.approx(100 * np.median(cells["bias"] / cells["truth"]), abs=0.6)
    (times,) = tables(section, "### Time")
    cells = frame.filter(notion="classwise", size=300, estimator="acsqrt")
    (row,) = [row for row in times[1:] if row[0] == "`acsqrt`"]
    assert number(row[-1]) == pytest.approx(1e6 * np.median(cells["seconds"]), abs=0.6)


def logs_of(frame, notion, one, other):
    """Log ratio of two estimators by (mixture, row) and size, from the relative errors."""
    wide = (
        frame.filter(pl.col("notion") == notion, pl.col("estimator").is_in([one, other]))
        .pivot(on="estimator", index=[*DISTRIBUTION, "size"], values="rel_p95")
        .with_columns((pl.col(one) / pl.col(other)).log().alias("log"))
    )
    return wide.select(*DISTRIBUTION, "size", "log")


def verdict(value, se, sign):
    """Said again: the word for a log ratio."""
    if abs(value) <= 2 * se:
        return "undecided"
    return "holds" if value * sign > 0 else "does not hold"


@pytest.mark.parametrize(
    ("heading", "pairs"),
    [
        ("### Linear or hard mapping", [("c10", "l10"), ("csqrt", "lsqrt"), ("ac30", "a30")]),
        ("### Quantile or uniform edges", [("a10", "l10"), ("acsqrt", "csqrt"), ("ac30", "c30")]),
    ],
)
def test_pairs(finished, heading, pairs):
    _, _, text, frame, _ = finished
    for notion, rows in zip(("confidence", "classwise"), tables(text, heading), strict=True):
        assert len(rows) == 7
        for pair in pairs:
            (row,) = [row for row in rows if row[0] == f"`{pair[0]}` / `{pair[1]}`"]
            logs = logs_of(frame, notion, *pair)
            for size, cell in zip((30, 120, 300), row[1:], strict=True):
                of_size = logs.filter(size=size)
                ratio = np.exp(of_size["log"].mean())
                assert number(cell) == pytest.approx(ratio, abs=6e-4)
                # All mixtures have two distributions here, so the bootstrap's error has a closed form.
                by_mixture = of_size.group_by("classes", "mixture").agg(pl.col("log").mean())["log"].to_numpy()
                se = by_mixture.std() / np.sqrt(len(by_mixture))
                assert doubt(cell) == pytest.approx(ratio * se, rel=0.2, abs=6e-4)
                if abs(abs(of_size["log"].mean()) - 2 * se) > 0.5 * se:
                    assert cell.endswith(" " + verdict(of_size["log"].mean(), se, -1))


def test_verdicts_come_first(finished):
    _, _, text, frame, _ = finished
    rows = tables(text, "## What holds of the paper's claims, and what does not")[0]
    assert len(rows) == 12
    said = {row[0]: row[1:] for row in rows[1:]}
    pairs = [(f"{new}{b}", f"{old}{b}") for new, old in (("c", "l"), ("ac", "a")) for b in ("10", "30", "sqrt")]
    for j, notion in enumerate(("confidence", "classwise")):
        cell = said["The linear mapping is better than the hard one"][j]
        logs = np.mean([logs_of(frame, notion, *pair)["log"].mean() for pair in pairs])
        assert number(cell) == pytest.approx(np.exp(logs), abs=6e-4)
        cell = said["⌊√N⌋ bins are better than 30"][j]
        logs = np.mean([logs_of(frame, notion, f"{f}sqrt", f"{f}30")["log"].mean() for f in ("l", "a", "c", "ac")])
        assert number(cell) == pytest.approx(np.exp(logs), abs=6e-4)
        cell = said["Silverman's bandwidth is better than 0.1"][j]
        logs = logs_of(frame, notion, "d-silverman", "d0.1")["log"].mean()
        assert number(cell) == pytest.approx(np.exp(logs), abs=6e-4)
        word, of_wide, of_narrow = re.match(
            r"\*\*(.*)\*\*: (.*) of `d0.1`, (.*) of `d0.033`",
            said["Silverman's bandwidth underperforms class-wise (is worse than both fixed ones, for N ≤ 500)"][1],
        ).groups()
        for told, other in ((of_wide, "d0.1"), (of_narrow, "d0.033")):
            logs = logs_of(frame, "classwise", "d-silverman", other)["log"].mean()
            assert number(told) == pytest.approx(np.exp(logs), abs=6e-4)
        if number(of_wide) - 1 > 3 * doubt(of_wide) and number(of_narrow) - 1 > 3 * doubt(of_narrow):
            assert word == "holds"
        if 1 - min(number(of_wide), number(of_narrow)) > 3 * max(doubt(of_wide), doubt(of_narrow)):
            assert word == "does not hold"
        cell = said["Labels in 2000 bins give too high a truth"][j]
        ones = frame.filter(notion=notion, size=30, estimator="l10")
        ratio = np.exp((ones["label_truth"] / ones["truth"]).log().mean())
        assert number(cell.split(":")[1]) == pytest.approx(ratio, abs=6e-4)
    for cells in said.values():
        assert all(re.match(r"\*\*(holds|does not hold|undecided|not claimed)\*\*", cell) for cell in cells)


def test_bias_at_the_smallest_size(finished):
    _, _, text, frame, _ = finished
    (rows,) = tables(text, "### Bias at N = 30")
    assert [row[0].strip("`") for row in rows[1:]] == [*CURVES, "empirical-bayes"]
    for row in rows[1:]:
        for notion, bias, share in (("confidence", row[1], row[2]), ("classwise", row[3], row[4])):
            cells = frame.filter(notion=notion, size=30, estimator=row[0].strip("`"))
            relative = cells["bias"] / cells["truth"]
            assert number(bias) == pytest.approx(100 * relative.median(), abs=0.06)
            assert number(share) == pytest.approx(100 * (relative > 0).mean(), abs=0.6)


def test_tracks(finished):
    _, docs, _, _, tracks = finished
    text = (docs / "benchmark_tracks.md").read_text("utf-8")
    found = tables(text, "## Beta-distributed scores with true maps: `beta`")
    beta = tracks.filter(pl.col("track") == "beta")
    notions = sorted(beta["notion"].unique())
    assert len(found) == 2 * len(notions)
    for notion, against, alarms in zip(notions, found[::2], found[1::2], strict=True):
        for row in against[1:]:
            cells = beta.filter(pl.col("notion") == notion, pl.col("size") == int(row[0]), ~pl.col("calibrated"))
            medians = dict(cells.group_by("estimator").agg(pl.col("rel_p95").median()).iter_rows())
            least = min(medians[name] for name in CURVES)
            assert number(row[3]) == pytest.approx(medians["empirical-bayes"] / least, abs=6e-4)
        assert alarms[0][1:] == ["`empirical-bayes`", "`binned15`", "`d-silverman`"]
        for row in alarms[1:]:
            cells = beta.filter(pl.col("notion") == notion, pl.col("size") == int(row[0]), "calibrated")
            for name, cell in zip(("empirical-bayes", "binned15", "d-silverman"), row[1:], strict=True):
                assert number(cell) == pytest.approx(cells.filter(estimator=name)["mean"].mean(), abs=6e-5)
    large = tables(text, "## Samples up to a million: `consistency`")
    assert [row[0] for row in large[-1][1:]] == ["1000", "2000"]


def test_an_unfinished_run_says_so(finished, tmp_path):
    """Half of the pieces, one of them without the default: the page is of the others and says how many."""
    folder, _, _, frame, _ = finished
    part = tmp_path / "run"
    (part / "pieces").mkdir(parents=True)
    for name in ("config.json", "estimators.json"):
        (part / name).write_bytes((folder / "run" / name).read_bytes())
    pieces = sorted((folder / "run" / "pieces").glob("*.parquet"))[:7]
    for i, piece in enumerate(pieces):
        rows = pl.read_parquet(piece)
        if i == 0:
            rows = rows.filter(pl.col("estimator") != "empirical-bayes")
        if i == 1:
            rows = rows.filter(pl.col("estimator") != "binned15")
        rows.write_parquet(part / "pieces" / piece.name)
    text = write(tmp_path / "docs", part)
    assert "6 of 12 distributions, a random subset" in "".join(text.splitlines()[:3])
    assert "| not read everywhere, in tables of their own | `binned15` |" in text
    assert "`binned15`: read on 5 of 12 distributions, a random subset" in text
    names = [piece.name.split(".")[0] for piece in pieces[1:]]
    kept = frame.with_columns(
        pl.format("c{}-d{}-m{}-t{}-{}", "classes", "dimensions", "mixture", "training", "model").alias("name")
    ).filter(pl.col("name").is_in(names))
    late = kept.filter(pl.col("name") != names[0]).filter(notion="classwise", size=120)
    for line in tables(text, "#### Class-wise")[0][1:]:
        of = late.filter(estimator=line[0].strip("*`"))
        assert of.height == 5
        assert number(line[2].strip("*")) == pytest.approx(of["rel_p95"].median(), abs=6e-3)
    assert line[0] == "`binned15`"
    row = tables(text, "## The default against the best of the 15")[0][1]
    ours = kept.filter(notion="confidence", size=30, estimator="empirical-bayes")["rel_p95"].median()
    assert number(row[2]) == pytest.approx(ours, abs=6e-4)
    # Three or four mixtures give no standard error, and without one nothing is decided.
    assert "±" not in row[3]
    assert row[3].endswith("?")
    said = tables(text, "## What holds of the paper's claims, and what does not")[0]
    assert all(cell.startswith(("**undecided**", "**not claimed**")) for line in said[1:] for cell in line[1:])


def test_words(parts):
    _, _, stats = parts
    for value, se, word in (
        (0.8, 0.05, "holds"),
        (1.2, 0.05, "does not hold"),
        (0.95, 0.05, "undecided"),
        (0.8, np.nan, "undecided"),
        (np.nan, 0.1, "undecided"),
        (1.0, 0.0, "undecided"),
    ):
        assert stats.Number(value, se).beyond(1.0, -1) == word
    assert stats.Number(0.59213, 0.0132).text() == "0.592 ± 0.013"
    assert stats.Number(-0.1234, 0.01).percent() == "−12.3 % ± 1.0"
    assert stats.both("holds", "undecided") == "undecided"
    assert stats.both("holds", "does not hold") == "does not hold"


def test_bootstrap_is_of_mixtures(parts):
    """Rows that are equal within a cluster add nothing to what is known."""
    _, _, stats = parts
    values = np.random.default_rng(0).normal(size=60)
    once = stats.Resampler(np.arange(60), resamples=4000).mean(values)
    often = stats.Resampler(np.repeat(np.arange(60), 5), resamples=4000).mean(np.repeat(values, 5))
    assert once.value == pytest.approx(often.value)
    assert once.se == pytest.approx(values.std() / np.sqrt(60), rel=0.05)
    assert often.se == pytest.approx(once.se, rel=0.05)


def test_time(finished, parts, tmp_path):
    """Processor time is summed from the results; wall time from the log of every call, killed ones included."""
    folder, _, text, frame, _ = finished
    rows = dict(tables(text, "## What was run")[0][1:])
    assert number(rows["processor time of all estimates"]) == pytest.approx(20 * frame["seconds"].sum() / 60, abs=6e-3)
    passed, calls = parts[1].logged(folder / "run.log")
    assert calls == 1
    assert passed >= 20 * frame["seconds"].sum() - 1
    assert f"{passed / 60:.2f} min" in rows["wall time, by the run's log"]
    assert "--docs docs --log RUN_LOG\n" in text
    assert f" --sets {TINY.sets} --out RUN_FOLDER" in text
    assert "calls" not in rows["wall time, by the run's log"]
    log = tmp_path / "log"
    lines = [(1, 5, 3000), (2, 5, 4000), (1, 3, 10), (1, 3, 20), (2, 3, 500), (3, 3, 4000)]
    log.write_text("".join(f"x benchmark: {i} of {n} in {s} s, 1 s to go (last: 1 s)\n" for i, n, s in lines))
    assert parts[1].logged(log) == (8010.0, 3)
    assert "| 2.23 h, pools and draws included; in 3 calls |" in write(tmp_path / "docs", folder / "run", "--log", log)
    log.write_text("nothing")
    with pytest.raises(ValueError, match="holds no line"):
        parts[1].logged(log)


def test_the_page_as_published_alone(finished, tmp_path):
    """It is the same as with the other pages, and nothing else is written."""
    folder, docs = finished[:2]
    command = [sys.executable, str(EXAMPLES / "benchmark_page.py"), str(folder / "run"), "--docs", str(tmp_path)]
    done = subprocess.run([*command, "--only", "published"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--only published needs --published" in done.stderr
    subprocess.run([*command, "--only", "published", "--published", str(folder / "published")], check=True)
    assert [p.name for p in tmp_path.glob("*.md")] == ["benchmark_as_published.md"]
    page = "benchmark_as_published.md"
    assert (tmp_path / page).read_text("utf-8") == (docs / page).read_text("utf-8")


def test_the_tracks_page_alone(finished, tmp_path):
    """It needs no run of the mixtures."""
    folder, docs = finished[:2]
    command = [sys.executable, str(EXAMPLES / "benchmark_page.py"), "--docs", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "does without" in done.stderr
    subprocess.run([*command, "--only", "tracks", "--tracks", str(folder / "tracks")], check=True)
    page = "benchmark_tracks.md"
    assert [p.name for p in tmp_path.glob("*.md")] == [page]
    assert (tmp_path / page).read_text("utf-8") == (docs / page).read_text("utf-8")


@pytest.mark.parametrize(("more", "words"), [((), "holds no benchmark run"), (("--published",), "mode 'as-published'")])
def test_wrong_folders(finished, tmp_path, more, words):
    folder = finished[0]
    arguments = [folder / "run", "--published", folder / "run"] if more else [tmp_path / "none"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "benchmark_page.py"), *map(str, arguments), "--docs", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert words in done.stderr

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
DATA = ("default", "claims", "ratios", "bias", "truths", "estimators")
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


def data(docs, name):
    """A data file of the page."""
    return pl.read_csv(docs / "benchmark" / f"{name}.csv", comment_prefix="# ", infer_schema_length=None)


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
    names = ["relative", "readme", "published", "tracks"]
    pages = [text, *((docs / f"benchmark_{name}.md").read_text("utf-8") for name in ("as_published", "tracks"))]
    for name in names:
        assert (docs / "images" / f"benchmark_{name}.png").stat().st_size > 20_000
    assert set(re.findall(r"\]\(([^)]+)\)", "".join(pages))) == {
        *(f"images/benchmark_{name}.png" for name in names if name != "readme"),
        *(f"benchmark/{name}.csv" for name in ("summary", *DATA, "tracks", "tracks_estimators")),
        *(f"benchmark/{name}.csv" for name in ("published", "published_silverman")),
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
    summed = data(docs, "summary")
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
    assert config["processor_seconds"] == pytest.approx(20 * frame["seconds"].sum(), abs=1e-2)
    assert config["distributions"] == config["distributions_wanted"] == 12
    assert config["config"] == {k: v for k, v in TINY.to_dict().items() if k != "versions"}
    assert config["versions"] == {**TINY.to_dict()["versions"], "calibrant": cal.__version__}
    assert config["estimators"] == {name: entry.definition for name, entry in READ.items()}


def test_default_against_the_best(finished):
    _, docs, text, frame, _ = finished
    found = data(docs, "default")
    medians = frame.group_by(BY).agg(pl.col("rel_p95", "rmse").median())
    bias = frame.with_columns(pl.col("bias") / pl.col("truth")).group_by(BY).agg(pl.col("bias").median())
    for notion in ("confidence", "classwise"):
        rows = found.filter(notion=notion)
        assert rows["size"].to_list() == [30, 120, 300]
        for row in rows.to_dicts():
            here = pl.col("notion").eq(notion) & pl.col("size").eq(row["size"])
            ours = medians.filter(here, pl.col("estimator") == "empirical-bayes")
            rest = medians.filter(here, pl.col("estimator").is_in(CURVES))
            for measure in ("rel_p95", "rmse"):
                least = rest.sort(measure).row(0, named=True)
                assert row[f"{measure}_best"] == least["estimator"]
                assert row[f"{measure}_ratio"] == pytest.approx(ours[measure].item() / least[measure], rel=1e-4)
                assert row[f"{measure}_bar"] == (0.7 if measure == "rel_p95" and row["size"] <= 120 else 0.95)
            signed = bias.filter(here, pl.col("estimator") == "empirical-bayes")["bias"].item()
            assert row["bias"] == pytest.approx(signed, rel=1e-4)
    met = [
        sum(row[f"{measure}_ratio"] <= row[f"{measure}_bar"] for row in found.filter(notion="confidence").to_dicts())
        for measure in ("rel_p95", "rmse")
    ]
    assert f"{met[0]} and {met[1]} of 3 sizes (confidence)" in " ".join(text.split())


def test_every_estimator(finished):
    _, docs, _, frame, _ = finished
    rows = data(docs, "estimators")
    assert len(rows) == 2 * 3 * len(READ)
    for row in rows.to_dicts():
        cells = frame.filter(notion=row["notion"], size=row["size"], estimator=row["estimator"])
        assert row["rel_p95"] == pytest.approx(np.median(cells["rel_p95"]), rel=1e-4)
        assert row["bias"] == pytest.approx(np.median(cells["bias"] / cells["truth"]), rel=1e-4)
        assert row["microseconds"] == pytest.approx(1e6 * np.median(cells["seconds"]), rel=1e-4)


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


def test_pairs(finished):
    _, docs, _, frame, _ = finished
    rows = data(docs, "ratios")
    assert set(rows["size"]) == {"30", "120", "300", "all"}
    for row in rows.filter(pl.col("pair") != "all", pl.col("size") != "all").to_dicts():
        of_size = logs_of(frame, row["notion"], *row["pair"].split(" / ")).filter(size=int(row["size"]))
        value = of_size["log"].mean()
        assert row["ratio"] == pytest.approx(np.exp(value), rel=1e-4)
        # All mixtures have two distributions here, so the bootstrap's error has a closed form.
        by_mixture = of_size.group_by("classes", "mixture").agg(pl.col("log").mean())["log"].to_numpy()
        se = by_mixture.std() / np.sqrt(len(by_mixture))
        assert row["se"] == pytest.approx(row["ratio"] * se, rel=0.2, abs=6e-4)
        if abs(abs(value) - 2 * se) > 0.5 * se:
            assert row["better"] == verdict(value, se, -1)


def test_verdicts(finished):
    _, docs, text, frame, _ = finished
    said = {(r["statement"], r["notion"]): r for r in data(docs, "claims").to_dicts()}
    assert len(said) == 22
    pairs = [(f"{new}{b}", f"{old}{b}") for new, old in (("c", "l"), ("ac", "a")) for b in ("10", "30", "sqrt")]
    for notion in ("confidence", "classwise"):
        for statement, of in (
            ("The linear mapping beats the hard one", pairs),
            ("⌊√N⌋ bins beat 30", [(f"{f}sqrt", f"{f}30") for f in ("l", "a", "c", "ac")]),
            ("Silverman's bandwidth beats 0.1", [("d-silverman", "d0.1")]),
        ):
            logs = np.mean([logs_of(frame, notion, *pair)["log"].mean() for pair in of])
            assert said[statement, notion]["value"] == pytest.approx(np.exp(logs), rel=1e-4)
        ones = frame.filter(notion=notion, size=30, estimator="l10")
        ratio = np.exp((ones["label_truth"] / ones["truth"]).log().mean())
        assert said["Labels in bins give too high a truth", notion]["value"] == pytest.approx(ratio, rel=1e-4)
    worse = said["Silverman is worse, N ≤ 500, class-wise", "classwise"]
    of_wide, of_narrow = re.match(r"(.*) of `d0.1`, (.*) of `d0.033`", worse["figures"]).groups()
    for told, other in ((of_wide, "d0.1"), (of_narrow, "d0.033")):
        logs = logs_of(frame, "classwise", "d-silverman", other)["log"].mean()
        assert number(told) == pytest.approx(np.exp(logs), abs=6e-4)
    (rows,) = tables("\n" + text, text.splitlines()[0])
    for statement, *cells in rows[1:]:
        for notion, cell in zip(("confidence", "classwise"), cells, strict=True):
            one = said[statement, notion]
            assert one["verdict"] in ("holds", "does not hold", "undecided", "not claimed")
            assert cell == one["verdict"] + ("" if one["value"] is None else f" {one['value']:.2f}")


def test_bias_at_the_smallest_size(finished):
    _, docs, _, frame, _ = finished
    rows = data(docs, "bias")
    assert rows["estimator"].to_list() == 2 * [*CURVES, "empirical-bayes"]
    for row in rows.to_dicts():
        cells = frame.filter(notion=row["notion"], size=30, estimator=row["estimator"])
        relative = cells["bias"] / cells["truth"]
        assert row["bias"] == pytest.approx(relative.median(), rel=1e-4)
        assert row["share_upward"] == pytest.approx((relative > 0).mean(), rel=1e-4)


def test_tracks(finished):
    _, docs, _, _, tracks = finished
    against, others = (data(docs, name) for name in ("tracks", "tracks_estimators"))
    beta = tracks.filter(pl.col("track") == "beta")
    for row in against.filter(track="beta").to_dicts():
        cells = beta.filter(~pl.col("calibrated"), notion=row["notion"], size=row["size"])
        medians = dict(cells.group_by("estimator").agg(pl.col("rel_p95").median()).iter_rows())
        least = min(medians[name] for name in CURVES)
        assert row["rel_p95_ratio"] == pytest.approx(medians["empirical-bayes"] / least, rel=1e-4)
    means = others.filter(track="beta", measure="mean")
    assert set(means["estimator"]) == {"empirical-bayes", "binned15", "d-silverman"}
    for row in means.to_dicts():
        cells = beta.filter("calibrated", notion=row["notion"], size=row["size"], estimator=row["estimator"])
        assert row["value"] == pytest.approx(cells["mean"].mean(), rel=1e-4)
    assert set(against.filter(track="consistency")["size"]) == {1000, 2000}
    text = (docs / "benchmark_tracks.md").read_text("utf-8")
    assert f"Of {len(against)} cells" in text


def test_unfinished_tracks_say_so(finished, parts, tmp_path):
    from benchmark_parts import tracks

    docs = finished[1]
    assert "pieces are done" not in (docs / "benchmark_tracks.md").read_text("utf-8")
    (tmp_path / "images").mkdir()
    (tmp_path / "benchmark").mkdir()
    for name in ("tracks.csv", "tracks_estimators.csv"):
        text = (docs / "benchmark" / name).read_text("utf-8")
        changed = re.sub(r"# pieces: \d+ of \d+", "# pieces: 3 of 9", text)
        assert changed != text
        (tmp_path / "benchmark" / name).write_text(changed, encoding="utf-8")
    tracks.page(tmp_path)
    assert "Only 3 of 9 pieces are done." in " ".join((tmp_path / "benchmark_tracks.md").read_text("utf-8").split())


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
    assert "unfinished: 6 of 12 distributions, a random subset" in " ".join(text.split())
    names = [piece.name.split(".")[0] for piece in pieces[1:]]
    kept = frame.with_columns(
        pl.format("c{}-d{}-m{}-t{}-{}", "classes", "dimensions", "mixture", "training", "model").alias("name")
    ).filter(pl.col("name").is_in(names))
    late = kept.filter(pl.col("name") != names[0], notion="classwise", size=120, estimator="binned15")
    assert late.height == 5
    row = data(tmp_path / "docs", "estimators").filter(notion="classwise", size=120, estimator="binned15")
    assert row["distributions"].to_list() == [5]
    assert row["rel_p95"].item() == pytest.approx(late["rel_p95"].median(), rel=1e-4)
    ours = kept.filter(notion="confidence", size=30, estimator="empirical-bayes")["rel_p95"].median()
    first = data(tmp_path / "docs", "default").filter(notion="confidence", size=30).row(0, named=True)
    assert first["rel_p95_ours"] == pytest.approx(ours, rel=1e-4)
    # Three or four mixtures give no standard error, and without one nothing is decided.
    assert first["rel_p95_ratio_se"] is None
    assert set(data(tmp_path / "docs", "claims")["verdict"]) == {"undecided", "not claimed"}


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
    from benchmark_parts import page  # `parts` says where

    assert (page._span("994", "994"), page._span("759", "5000")) == ("994", "759 to 5000")


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
    folder, docs, text, frame, _ = finished
    wall = json.loads((docs / "benchmark" / "config.json").read_text("utf-8"))["wall"]
    assert parts[1].logged(folder / "run.log") == (wall["seconds"], wall["calls"])
    assert wall["calls"] == 1
    assert wall["seconds"] >= 20 * frame["seconds"].sum() - 1
    assert f"--sets {TINY.sets} --out RUN_FOLDER" in text
    log = tmp_path / "log"
    lines = [(1, 5, 3000), (2, 5, 4000), (1, 3, 10), (1, 3, 20), (2, 3, 500), (3, 3, 4000)]
    log.write_text("".join(f"x benchmark: {i} of {n} in {s} s, 1 s to go (last: 1 s)\n" for i, n, s in lines))
    assert parts[1].logged(log) == (8010.0, 3)
    said = write(tmp_path / "docs", folder / "run", "--log", log)
    assert "the run 2.23 h in 3 call(s)" in " ".join(said.split())
    log.write_text("nothing")
    with pytest.raises(ValueError, match="holds no line"):
        parts[1].logged(log)


def test_the_page_as_published(finished):
    """Ratios are recomputed from both runs, and what the page says from them."""
    folder, docs, _, corrected, _ = finished
    rows = data(docs, "published_silverman")
    page = (docs / "benchmark_as_published.md").read_text("utf-8")
    runs = {"as-published": pl.read_parquet(folder / "published" / "results.parquet"), "corrected": corrected}
    assert rows.height == 2 * 2 * 2 * (1 + len(TINY.sizes))
    for row in rows.to_dicts():
        found = logs_of(runs[row["setting"]], row["notion"], "d-silverman", row["fixed"])
        found = found if row["size"] == "≤ 500" else found.filter(size=int(row["size"]))
        assert row["ratio"] == pytest.approx(np.exp(found["log"].mean()), rel=1e-4)
    (table,) = tables("\n" + page, page.splitlines()[0])
    assert [row[:2] for row in table[1:]] == [[w, f] for w in ("Confidence", "Class-wise") for f in ("0.1", "0.033")]
    ends = [row["ratio"] for row in rows.filter(size="≤ 500").to_dicts()]
    assert [number(cell) for cell in (*(row[-2] for row in table[1:]), *(row[-1] for row in table[1:]))] == (
        pytest.approx(ends, abs=6e-4)
    )
    at = {m: runs["as-published"].filter(notion="confidence", size=30).group_by("estimator").agg(pl.col(m).median())[m]
          for m in ("abs_p95", "rel_p95")}  # fmt: skip
    low, high = at["abs_p95"].min(), at["abs_p95"].max()
    inside = at["abs_p95"].is_between(0.13, 0.36).sum()
    said = f"absolute errors are {low:.2f} to {high:.2f} (confidence; {inside} of 15 within the published 0.13 to 0.36)"
    assert said in " ".join(page.split())


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
    subprocess.run([*command, "--only", "tracks", "--tracks", str(folder / "tracks")], check=True)
    page = "benchmark_tracks.md"
    assert [p.name for p in tmp_path.glob("*.md")] == [page]
    assert (tmp_path / page).read_text("utf-8") == (docs / page).read_text("utf-8")


@pytest.mark.parametrize(("more", "words"), [((), "does not contain"), (("--published",), "mode 'as-published'")])
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

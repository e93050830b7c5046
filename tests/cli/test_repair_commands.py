"""The commands that repair: compare, fix, apply."""

import json
import os

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.calibrators import PlattScaling, load_calibrator
from calibrant.calibrators.candidates import NAMED
from calibrant.calibrators.saving import sealed, to_dict
from calibrant.cli import repair
from calibrant.data.tables import FileTable

from ..commands import run
from .test_file_formats import WRITERS

NAMES = np.array(["cat", "dog", "owl"])


def overconfident(n, seed=2):
    """Probabilities whose log odds are twice what they should be, and outcomes."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, rng.random(n) < 1 / (1 + (1 / p - 1) ** 0.5)


@pytest.fixture(scope="module")
def binary():
    p, y = overconfident(3000)
    return pl.DataFrame({"id": np.arange(3000), "y_true": y.astype(int), "y_prob": p})


@pytest.fixture(scope="module")
def animals():
    """Columns in another order than the labels', and probabilities that are too sharp."""
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(3000, 3))
    p, q = (np.exp(f * z) / np.exp(f * z).sum(axis=1, keepdims=True) for f in (1, 2))
    y = NAMES[np.minimum((rng.random((3000, 1)) > np.cumsum(p, axis=1)).sum(axis=1), 2)]
    return pl.DataFrame({"y_true": y, "p_owl": q[:, 2], "p_cat": q[:, 0], "p_dog": q[:, 1]})


@pytest.mark.slow
def test_compare_is_the_library(binary, tmp_path, capsys):
    path = tmp_path / "b.csv"
    binary.write_csv(path)
    code, out, err = run(capsys, "compare", path, "--json")
    assert (code, err) == (0, "")
    got = json.loads(out)
    want = cal.compare_calibrators(
        binary["y_true"].to_numpy(), binary["y_prob"].to_numpy(), title="Calibrators of b.csv"
    )
    seconds = [row.pop("seconds") for row in got["calibrators"]]
    wanted = want.to_dict()
    for row in wanted["calibrators"]:
        del row["seconds"]
    assert got == json.loads(json.dumps(wanted))
    assert min(seconds) > 0
    assert got["chosen"] == "average"
    text = run(capsys, "compare", path, "--calibrators", "identity,beta,isotonic", "--rule", "best")[1]
    assert [line[2:].split()[0] for line in text.splitlines() if line[:2] in ("> ", "  ") and "0." in line] == [
        "identity",
        "beta",
        "isotonic",
    ]


@pytest.mark.slow
def test_compare_writes_a_page(animals, tmp_path, capsys):
    path, page = tmp_path / "a.parquet", tmp_path / "a.html"
    animals.write_parquet(path)
    code, _, err = run(capsys, "compare", path, "--html", page, "--goal", "brier", "--title", "<b>&")
    assert code == 0
    assert str(page) in err
    text = page.read_text(encoding="utf-8")
    assert "&lt;b&gt;&amp;" in text
    assert "<b>&" not in text
    assert text.count('class="chart"') == 2
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    names = [[view["name"] for view in chart["views"]] for chart in data["charts"]]
    assert names[0] == names[1]  # one menu for both diagrams
    assert len(names[0]) == 4
    code, _, err = run(capsys, "compare", path, "--html", page)
    assert code == 2
    assert "--force" in err
    assert run(capsys, "compare", path, "--html", page, "--force", "--calibrators", "identity")[0] == 0


FORMATS = [n for n in WRITERS if "noname" not in n]
OFTEN = ("a.csv", "a.parquet")


@pytest.mark.parametrize("name", [n if n in OFTEN else pytest.param(n, marks=pytest.mark.slow) for n in FORMATS])
def test_fix_and_apply_in_every_format(name, binary, tmp_path, capsys):
    source, model, out = tmp_path / name, tmp_path / "model.json", tmp_path / f"fixed-{name}"
    WRITERS[name](binary, source)
    code, text, err = run(capsys, "fix", source, "--save", model)
    assert code == 0, err
    assert "> average" in text
    assert run(capsys, "apply", model, source, "--out", out)[0] == 0
    with FileTable(str(out)) as table:
        table.read_as(["id"], ["y_prob"])
        got = next(table.batches())
    assert got.columns == binary.columns
    calibrator = load_calibrator(model)
    np.testing.assert_allclose(got["y_prob"], calibrator.predict_proba(binary.select("y_prob"))[:, 1], rtol=1e-12)
    assert got["id"].to_list() == binary["id"].to_list()
    before, after = (cal.calibration_error(binary["y_true"], f["y_prob"]) for f in (binary, got))
    assert after < before / 3


@pytest.mark.slow
def test_columns_in_another_order_than_labels(animals, tmp_path, capsys):
    source, model, out = tmp_path / "a.parquet", tmp_path / "m.json", tmp_path / "o.parquet"
    animals.write_parquet(source)
    code, text, err = run(capsys, "fix", source, "--save", model, "--calibrator", "vector", "--json")
    assert code == 0, err
    assert json.loads(text)["calibrator"] == "vector"
    assert run(capsys, "apply", model, source, "--out", out, "--suffix", "_new")[0] == 0
    got = pl.read_parquet(out)
    assert got.columns == [*animals.columns, "p_owl_new", "p_cat_new", "p_dog_new"]
    assert got.select(animals.columns).equals(animals)
    calibrator = load_calibrator(model)
    p = calibrator.predict_proba(animals.select("p_owl", "p_cat", "p_dog"))
    p = p[:, [calibrator.classes_.tolist().index(n) for n in NAMES]]
    np.testing.assert_array_equal(got.select(f"p_{n}_new" for n in NAMES).to_numpy(), p)
    error = cal.calibration_error(animals["y_true"], p, labels=list(NAMES), notion="classwise")
    assert error < 0.5 * cal.calibration_error(
        animals["y_true"], animals.select(f"p_{n}" for n in NAMES), labels=list(NAMES), notion="classwise"
    )


def test_positive_label_weights_and_margins(tmp_path, capsys):
    rng = np.random.default_rng(3)
    margin = rng.normal(size=2000)
    bad = rng.random(2000) < 1 / (1 + np.exp(-2 * margin))
    frame = pl.DataFrame({"y_true": np.where(bad, "bad", "good"), "m": margin, "w": rng.integers(0, 3, 2000)})
    source, model, out = tmp_path / "m.csv", tmp_path / "m.json", tmp_path / "o.csv"
    frame.write_csv(source)
    options = ("--prob", "m", "--weight", "w", "--pos-label", "bad", "--input", "margin")
    code, text, err = run(capsys, "fix", source, "--save", model, "--calibrator", "platt", *options)
    assert code == 0, err
    assert "identity" not in text  # margins are no probabilities
    repeated = frame[np.repeat(np.arange(2000), frame["w"].to_numpy())]
    want = PlattScaling(input="margin", labels=["good", "bad"]).fit(
        repeated["m"].to_numpy(), repeated["y_true"].to_numpy()
    )
    assert load_calibrator(model).coef_ == pytest.approx(want.coef_, rel=1e-6)
    assert run(capsys, "apply", model, source, "--out", out)[0] == 0
    got = pl.read_csv(out)["m"].to_numpy()
    np.testing.assert_allclose(got, want.predict_proba(margin)[:, 1], atol=1e-7)


@pytest.mark.parametrize("method", ["beta", *(pytest.param(m, marks=pytest.mark.slow) for m in NAMED if m != "beta")])
def test_every_method_is_saved_and_applied(method, binary, animals, tmp_path, capsys):
    for frame, columns in ((binary, ["y_prob"]), (animals, ["p_owl", "p_cat", "p_dog"])):
        source, model, out = (tmp_path / f"{len(columns)}{end}" for end in (".parquet", ".json", "o.parquet"))
        frame.head(600).write_parquet(source)
        code, _, err = run(capsys, "fix", source, "--save", model, "--calibrator", method, "--cv", "2")
        assert code == 0, err
        assert run(capsys, "apply", model, source, "--out", out)[0] == 0
        p = pl.read_parquet(out).select(columns).to_numpy()
        assert p.min() >= 0
        assert np.abs(p.sum(axis=1) - 1).max() < 1e-9 if len(columns) > 1 else p.max() <= 1


@pytest.mark.slow
def test_labels_go_by_the_names_of_columns(animals, tmp_path, capsys):
    """Whatever their order after --labels: the numbers are those of the report."""
    source = tmp_path / "a.parquet"
    animals.write_parquet(source)
    for labels in ("cat,dog,owl", "owl,cat,dog"):
        code, out, err = run(
            capsys, "compare", source, "--labels", labels, "--calibrators", "identity,vector", "--json"
        )
        assert code == 0, err
        found = json.loads(out)["calibrators"][0]
        report = json.loads(run(capsys, "report", source, "--labels", labels, "--json")[1])
        assert found["log_loss"] == pytest.approx(report["log_loss"], rel=1e-3)
        assert found["accuracy"] == pytest.approx(report["accuracy"])


@pytest.mark.slow
def test_which_label_a_single_column_is_of(binary, tmp_path, capsys):
    source, named = tmp_path / "b.csv", tmp_path / "n.csv"
    binary.write_csv(source)
    binary.with_columns(
        pl.when(pl.col("y_true") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("y_true")
    ).write_csv(named)
    plain, turned = (
        json.loads(run(capsys, "compare", source, "--calibrators", "identity", "--json", *more)[1])["calibrators"][0][
            "log_loss"
        ]
        for more in ((), ("--labels", "1,0"))
    )
    assert plain == turned
    assert "--pos-label must name the label" in refused(capsys, "compare", named)
    told = json.loads(run(capsys, "compare", named, "--calibrators", "identity", "--json", "--pos-label", "yes")[1])
    assert told["calibrators"][0]["log_loss"] == pytest.approx(plain)


@pytest.mark.slow
def test_a_method_that_would_not_be_chosen_is_saved_and_said_so(tmp_path, capsys):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    source, model = tmp_path / "b.parquet", tmp_path / "m.json"
    pl.DataFrame({"y_true": rng.random(2000) < p, "y_prob": p}).write_parquet(source)
    code, out, err = run(capsys, "fix", source, "--save", model, "--calibrator", "isotonic")
    assert code == 0
    assert "Leave the probabilities unchanged" in out
    assert "isotonic was saved as requested; cross-validation chose identity" in err
    assert type(load_calibrator(model)).__name__ == "IsotonicCalibrator"


@pytest.mark.slow
def test_columns_in_another_order_in_the_new_file(animals, tmp_path, capsys):
    source, other, model = tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "m.json"
    animals.write_parquet(source)
    animals.select("p_dog", "p_owl", "y_true", "p_cat").write_parquet(other)
    assert run(capsys, "fix", source, "--save", model, "--calibrator", "vector")[0] == 0
    outs = []
    for i, (file, more) in enumerate(((source, ()), (other, ()), (other, ("--prob", "p_*")))):
        out = tmp_path / f"o{i}.parquet"
        code, _, err = run(capsys, "apply", model, file, "--out", out, *more)
        assert code == 0
        assert "warning" not in err
        outs.append(pl.read_parquet(out).select("p_owl", "p_cat", "p_dog"))
    assert outs[0].equals(outs[1])
    assert outs[0].equals(outs[2])
    renamed, out = tmp_path / "r.parquet", tmp_path / "r.out.parquet"
    animals.rename({"p_owl": "a", "p_cat": "b", "p_dog": "c"}).write_parquet(renamed)
    code, _, err = run(capsys, "apply", model, renamed, "--prob", "a", "--prob", "b", "--prob", "c", "--out", out)
    assert (code, "warning" in err) == (0, False)
    assert pl.read_parquet(out).select("a", "b", "c").to_numpy().tolist() == outs[0].to_numpy().tolist()


@pytest.mark.slow
def test_what_is_not_calibrated_is_written_as_it_was(binary, tmp_path, capsys):
    model, source = tmp_path / "m.json", tmp_path / "b.csv"
    binary.write_csv(tmp_path / "fit.csv")
    assert run(capsys, "fix", tmp_path / "fit.csv", "--save", model, "--calibrator", "platt")[0] == 0
    source.write_text('id,zip,amount,flag,note,y_prob\n007,02134,1.10,True,"a, b",0.25\n008,00001,,False,,0.5\n')
    out = tmp_path / "out.csv"
    assert run(capsys, "apply", model, source, "--out", out)[0] == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "id,zip,amount,flag,note,y_prob"
    assert lines[1].startswith('007,02134,1.10,True,"a, b",0.')
    assert lines[2].startswith("008,00001,,False,,0.")
    source.write_text("id,y_prob\n1,0.5\n2,high\n")
    assert "row 1 is 'high'" in refused(capsys, "apply", model, source, "--out", tmp_path / "o.csv")
    source.write_text("id,y_prob\n1,0.5\n2,\n")
    assert "scores['y_prob'] must have no missing values; row 1 is null" in refused(
        capsys, "apply", model, source, "--out", tmp_path / "o.csv"
    )


KINDS = {"id": "Int64", "zip": "String", "amount": "Float64", "flag": "Boolean", "note": "String", "y_prob": "Float64"}


@pytest.mark.parametrize("suffix", ["", "_new"])
@pytest.mark.parametrize("name", ["o.parquet", "o.ndjson", "o.arrow"])
def test_other_columns_of_csv_keep_their_kinds_in_other_formats(name, suffix, tmp_path, capsys):
    """Numbers and truth values are no text there, or no other command could read them; names like 007 stay."""
    model, source, out = tmp_path / "m.json", tmp_path / "b.csv", tmp_path / name
    model.write_text(json.dumps(sealed(to_dict(PlattScaling().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])))))
    source.write_text('id,zip,amount,flag,note,y_prob\n7,02134,1.10,True,"a, b",0.25\n8,00001,,False,,0.5\n')
    assert run(capsys, "apply", model, source, "--out", out, "--suffix", suffix)[0] == 0
    with FileTable(str(out)) as table:
        got = next(table.batches())
    assert {n: str(kind) for n, kind in got.schema.items()} == KINDS | {f"y_prob{suffix}": "Float64"}
    assert got.rows()[0][:5] == (7, "02134", 1.1, True, "a, b")
    assert got.rows()[1][:5] == (8, "00001", None, False, None)
    source.write_text("phone,gain,y_prob\n+4912345678,-0.5,0.5\n")
    assert run(capsys, "apply", model, source, "--out", out, "--suffix", suffix, "--force")[0] == 0
    with FileTable(str(out)) as table:
        assert next(table.batches()).rows()[0][:2] == ("+4912345678", -0.5)
    source.write_text("y_prob\n0.5\n")
    assert run(capsys, "apply", model, source, "--out", out, "--force")[0] == 0


@pytest.mark.slow
def test_no_output_replaces_what_is_read(binary, tmp_path, capsys):
    source, model = tmp_path / "b.csv", tmp_path / "m.json"
    binary.write_csv(source)
    assert run(capsys, "fix", source, "--save", model, "--calibrator", "platt")[0] == 0
    before = source.read_bytes(), model.read_bytes()
    assert "the input file" in refused(capsys, "fix", source, "--save", source, "--force")
    assert "the input file" in refused(capsys, "compare", source, "--html", source, "--force")
    page = tmp_path / "same"
    assert "the page of --html" in refused(capsys, "fix", source, "--save", page, "--html", page)
    assert "the calibrator" in refused(capsys, "apply", model, source, "--out", model, "--force")
    assert "the input file" in refused(capsys, "apply", model, source, "--out", source, "--force")
    (tmp_path / "other name").hardlink_to(source)
    (tmp_path / "link").symlink_to(source)
    for name in ("other name", "link", "../" + tmp_path.name + "/b.csv"):
        assert "the input file" in refused(capsys, "report", source, "--html", tmp_path / name, "--force")
    assert (source.read_bytes(), model.read_bytes()) == before


def test_missing_numbers_and_too_few_rows(binary, tmp_path, capsys):
    source = tmp_path / "b.csv"
    binary.with_columns(pl.when(pl.col("id") == 7).then(None).otherwise("y_prob").alias("y_prob")).write_csv(source)
    assert "row 7 is null" in refused(capsys, "compare", source)
    binary.with_columns(pl.lit("a").alias("w")).write_csv(source)
    assert "column 'w' must hold numbers" in refused(capsys, "compare", source, "--weight", "w")
    binary.head(1).write_csv(source)
    assert "at least two rows" in refused(capsys, "compare", source)
    binary.with_columns(pl.col("y_prob") * 3).write_csv(source)
    assert "--input logit" in refused(capsys, "compare", source)


def refused(capsys, *args):
    code, out, err = run(capsys, *args)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1, err
    return err


@pytest.mark.slow
def test_bad_input_is_one_clear_line(binary, tmp_path, capsys):
    source, model, out = tmp_path / "b.csv", tmp_path / "m.json", tmp_path / "o.csv"
    binary.write_csv(source)
    assert run(capsys, "fix", source, "--save", model, "--calibrator", "platt")[0] == 0
    assert "--force" in refused(capsys, "fix", source, "--save", model)
    assert "venn-abers" in refused(capsys, "fix", source, "--save", tmp_path / "n.json", "--calibrator", "magic")
    assert "venn-abers" in refused(capsys, "compare", source, "--calibrators", "platt,magic")
    assert "no column 'p'" in refused(capsys, "compare", source, "--prob", "p")
    assert "label 'maybe' is not a label of the file" in refused(capsys, "compare", source, "--pos-label", "maybe")
    assert "--pos-label 7" in refused(capsys, "compare", source, "--pos-label", "7")
    assert "cv must be" in refused(capsys, "compare", source, "--cv", "1")
    assert "goal must be" in refused(capsys, "compare", source, "--goal", "mse")
    assert "no such folder" in refused(capsys, "fix", source, "--save", tmp_path / "none" / "m.json")
    assert "is a directory" in refused(capsys, "apply", model, source, "--out", tmp_path)
    twice = tmp_path / "twice.csv"
    binary.with_columns(pl.col("y_prob").alias("y_prob2")).write_csv(twice)
    assert "a column 'y_prob2' already exists" in refused(capsys, "apply", model, twice, "--out", out, "--suffix", "2")
    (tmp_path / "foreign.json").write_text('{"format": "other"}')
    assert "not a saved calibrator" in refused(capsys, "apply", tmp_path / "foreign.json", source, "--out", out)
    (tmp_path / "cut.json").write_text(model.read_text()[:-40])
    assert "not a JSON file" in refused(capsys, "apply", tmp_path / "cut.json", source, "--out", out)
    assert "does not exist" in refused(capsys, "apply", model, tmp_path / "none.csv", "--out", out)
    assert "No such file" in refused(capsys, "apply", tmp_path / "none.json", source, "--out", out)
    assert "--out-format must be" in refused(capsys, "apply", model, source, "--out", out, "--out-format", "xls")
    assert "fitted to 1 column" in refused(capsys, "apply", model, source, "--prob", "*", "--out", out)
    assert not out.exists()
    assert not [f for f in os.listdir(tmp_path) if f.endswith(".tmp")]


@pytest.mark.slow
def test_a_bad_row_is_named_by_its_number_in_the_file(binary, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(repair, "PIECE_ROWS", 700)
    frame = binary.with_columns(pl.when(pl.col("id") == 2345).then(1.7).otherwise("y_prob").alias("y_prob"))
    good, source, model, out = (tmp_path / n for n in ("g.csv", "b.csv", "m.json", "o.csv"))
    binary.write_csv(good)
    frame.write_csv(source)
    assert run(capsys, "fix", good, "--save", model)[0] == 0
    out.write_text("what was there\n")
    code, _, err = run(capsys, "apply", model, source, "--out", out, "--force")
    assert code == 2
    assert "row 2345 is 1.7" in err
    assert out.read_text() == "what was there\n"
    assert not [f for f in os.listdir(tmp_path) if f.endswith(".tmp")]
    assert "row 2345 is 1.7" in refused(capsys, "compare", source)


def test_rows_are_drawn_alike_whatever_the_pieces(binary, tmp_path):
    path = tmp_path / "b.parquet"
    binary.write_parquet(path)
    with FileTable(str(path)) as table:
        draws = [table.sample(["y_true", "y_prob"], 400, 5, size) for size in (90, 1000, 10_000)]
        every, rows = table.sample(["y_true", "y_prob"], 3000, 5, 500)
        counts = np.zeros(3000)
        for seed in range(200):
            counts[table.sample(["y_true", "y_prob"], 1500, seed, 1000)[1]] += 1
    for frame, numbers in draws:
        np.testing.assert_array_equal(numbers, draws[0][1])
        np.testing.assert_array_equal(frame["y_prob"], binary["y_prob"].to_numpy()[numbers])
        assert np.all(np.diff(numbers) > 0)
        assert len(numbers) == 400
    np.testing.assert_array_equal(rows, np.arange(3000))
    assert every["y_prob"].equals(binary["y_prob"])
    # Every row is as likely: 200 draws of one half, so 100 ± 7.1 each, whatever its third of the file.
    assert np.abs(counts.reshape(3, -1).mean(axis=1) - 100).max() < 1.5  # five standard errors
    assert counts.std() == pytest.approx(np.sqrt(50), rel=0.1)


@pytest.mark.slow
def test_a_large_file_is_sampled_and_said_so(binary, tmp_path, capsys):
    path = tmp_path / "b.parquet"
    binary.write_parquet(path)
    code, out, err = run(capsys, "compare", path, "--max-rows", 500)
    assert code == 0
    assert "using 500 of 3,000 rows, sampled at random" in err
    assert "rows       500, 5 folds" in out


def test_fix_uses_what_compare_found(binary, tmp_path, capsys, monkeypatch):
    source, told, page = tmp_path / "b.parquet", tmp_path / "found.json", tmp_path / "p.html"
    binary.write_parquet(source)
    code, out, err = run(capsys, "compare", source, "--save", told)
    assert (code, str(told) in err) == (0, True)
    found = json.loads(told.read_text())
    assert json.loads(run(capsys, "compare", source, "--json")[1])["verdict"] == found["verdict"]
    again, once = tmp_path / "again.json", tmp_path / "once.json"
    assert run(capsys, "fix", source, "--save", again)[0] == 0

    def refuse(*_, **__):
        raise AssertionError("nothing is compared again")

    monkeypatch.setattr(repair.FitOptions, "compare", refuse)
    code, out, err = run(capsys, "fix", source, "--from", told, "--save", once)
    assert code == 0, err
    assert " ".join(found["verdict"].split()) in " ".join(out.split())
    assert "rows that differ" not in err
    assert once.read_text() == again.read_text()
    code, out, err = run(
        capsys, "fix", source, "--from", told, "--save", once, "--calibrator", "beta", "--json", "--force"
    )
    assert json.loads(out)["calibrator"] == "beta"
    assert json.loads(out)["comparison"] == found
    assert "cross-validation chose average" in err
    other = tmp_path / "other.parquet"
    binary.head(2000).write_parquet(other)
    code, _, err = run(capsys, "fix", other, "--from", told, "--save", once, "--force")
    assert (code, "rows that differ from those compared" in err) == (0, True)
    assert "--html writes a page of the comparison" in refused(
        capsys, "fix", source, "--from", told, "--save", once, "--html", page, "--force"
    )
    assert "--input logit" in refused(
        capsys, "fix", source, "--from", told, "--save", once, "--force", "--input", "logit"
    )
    assert "the comparison" in refused(capsys, "fix", source, "--from", told, "--save", told, "--force")


def test_what_is_within_noise_is_saved_only_if_asked_for(tmp_path, capsys):
    p, y = overconfident(60, seed=0)
    compared = cal.compare_calibrators(y, p)
    assert compared.chosen == "average"
    assert compared.within_noise
    assert "is within sampling noise" in compared.verdict
    source, told, model = (tmp_path / name for name in ("b.parquet", "found.json", "m.json"))
    scores = pl.DataFrame({"y_prob": p})
    scores.with_columns(pl.Series("y_true", y)).write_parquet(source)
    assert run(capsys, "compare", source, "--save", told)[0] == 0
    for more in ((), ("--from", told)):
        code, _, err = run(capsys, "fix", source, "--save", model, "--force", *more)
        assert code == 0
        assert "within sampling noise: the saved calibrator leaves the probabilities unchanged" in err
        assert "--calibrator average saves the choice" in err
        np.testing.assert_array_equal(load_calibrator(model).predict_proba(scores)[:, 1], p)
        code, out, err = run(
            capsys, "fix", source, "--save", model, "--force", "--calibrator", "average", "--json", *more
        )
        assert (code, json.loads(out)["calibrator"], "unchanged" in err) == (0, "average", False)
        want = compared.calibrator().fit(p, y).predict_proba(p)
        np.testing.assert_allclose(load_calibrator(model).predict_proba(scores), want, atol=1e-12)
    found = json.loads(told.read_text())
    for change, words in (
        ({"weights": {"platt": 1.0}}, "the choice must be one of"),
        ({"weights": {"platt": 1.0, "magic": 1.0}}, "the choice must be one of"),
        ({"weights": {"platt": 1.0, "beta": -1.0}}, "weights must be"),
        ({"within_noise": None}, "within_noise missing"),
    ):
        told.write_text(json.dumps(found | change))
        assert words in refused(
            capsys, "fix", source, "--from", told, "--save", model, "--force", "--calibrator", "average"
        )


def test_a_damaged_comparison_is_one_clear_line(binary, animals, tmp_path, capsys):
    source, told, model = tmp_path / "b.parquet", tmp_path / "found.json", tmp_path / "m.json"
    binary.write_parquet(source)
    assert run(capsys, "compare", source, "--calibrators", "identity,temperature", "--save", told)[0] == 0
    found = json.loads(told.read_text())
    for change, words in (
        ({"format": "other"}, "not written by calibrant compare"),
        ({"version": 7}, "version 7"),
        ({"chosen": "magic"}, "the choice must be one of"),
        ({"chosen": 3}, "chosen missing or of the wrong type"),
        ({"digest": None}, "digest missing"),
    ):
        told.write_text(json.dumps(found | change))
        assert words in refused(capsys, "fix", source, "--from", told, "--save", model)
    told.write_text(json.dumps(found)[:-20])
    assert "not a JSON file" in refused(capsys, "fix", source, "--from", told, "--save", model)
    told.write_text("[1]")
    assert "not written by calibrant compare" in refused(capsys, "fix", source, "--from", told, "--save", model)
    told.write_text(json.dumps(found))
    other = tmp_path / "a.parquet"
    animals.write_parquet(other)
    assert "the comparison of --from is for the classes 0, 1" in refused(
        capsys, "fix", other, "--from", told, "--save", model
    )
    assert "No such file" in refused(capsys, "fix", source, "--from", tmp_path / "none", "--save", model)
    assert not model.exists()


def test_report_and_compare_have_one_brier_score(binary, tmp_path, capsys):
    source = tmp_path / "b.parquet"
    binary.write_parquet(source)
    report = json.loads(run(capsys, "report", source, "--json")[1])["brier"]
    found = json.loads(run(capsys, "compare", source, "--calibrators", "identity", "--json", "--goal", "brier")[1])
    assert found["calibrators"][0]["brier"] == pytest.approx(report)
    assert report == pytest.approx(float(((binary["y_prob"] - binary["y_true"]) ** 2).mean()))
    code, out, _ = run(capsys, "compare", source, "--goal", "calibration")
    assert code == 0
    assert "calibration error" in out

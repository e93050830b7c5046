"""Logs that lm-evaluation-harness and inspect_ai wrote, read as predictions; `logs/README.md` describes them."""

import json
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import calibrant as cal
from calibrant import llm
from calibrant.exceptions import UnreadAnswersWarning

from ..commands import run

LOGS = Path(__file__).parent / "logs"


def lines(name):
    return [json.loads(line) for line in (LOGS / name).read_text(encoding="utf-8").splitlines()]


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "score", "accuracy"),
    [
        ("harness_sums.jsonl", None, 0.75),
        ("harness_sums.jsonl", "acc_norm", 0.3125),
        ("harness_sums.jsonl", "acc_norm,none", 0.3125),
        ("harness_sums_by_text.jsonl", "acc", 0.8125),
        ("harness_sums_by_text.jsonl", "acc_norm", 0.5625),
        ("inspect_choice.eval", None, 0.5),
    ],
)
def test_accuracies_are_those_that_the_tools_printed(name, score, accuracy):
    answers = llm.read(LOGS / name, score=score)
    assert answers.codes.mean() == accuracy
    assert answers.unread == {}
    assert answers.classes == ("wrong", "correct")


@pytest.mark.parametrize("score", ["acc", "acc_norm"])
def test_confidence_is_the_largest_share_of_the_options(score):
    found = llm.read(LOGS / "harness_sums.jsonl", score=score)
    sizes = set()
    for row, confidence, right in zip(lines("harness_sums.jsonl"), found.probs, found.codes, strict=True):
        logs = np.array([float(value) for value, _ in row["filtered_resps"]])
        if score == "acc_norm":
            logs = logs / [len(text) for text in row["doc"]["choices"]]
        assert confidence == pytest.approx(softmax(logs).max(), abs=1e-12)
        assert right == (np.argmax(logs) == int(row["target"])) == row[score]
        sizes.add(len(logs))
    assert sizes == {2, 3, 4}
    assert found.groups is None  # no question twice


def test_options_of_one_number_have_a_column_each(tmp_path):
    with pytest.raises(ValueError, match=r"equally many options; got 6 with 2, 5 with 3, 5 with 4: use 'correct'"):
        llm.read(LOGS / "harness_sums.jsonl", outcome="option")
    three = written(tmp_path / "three.jsonl", [r for r in lines("harness_sums.jsonl") if len(r["filtered_resps"]) == 3])
    options, one = llm.read(three, outcome="option"), llm.read(three)
    assert options.probs.shape == (5, 3)
    assert options.classes == (0, 1, 2)
    assert np.array_equal(options.confidence, one.probs)
    assert np.array_equal(options.predicted == options.codes, one.codes == 1)
    # Bins of [0, 1] are not those of [1/K, 1]; one bin is the same.
    sides = [
        cal.calibration_error(options, notion="confidence", estimator=cal.Binned(1)),
        cal.calibration_error(one, estimator=cal.Binned(1)),
    ]
    assert sides[0] == pytest.approx(sides[1], abs=1e-12)


def test_repeats_of_a_prompt_are_groups(tmp_path):
    epochs = llm.read(LOGS / "inspect_choice.eval")
    assert (epochs.n_samples, epochs.n_groups) == (24, 12)
    assert [len(set(np.array(epochs.ids)[epochs.groups == g])) for g in range(12)] == [1] * 12
    twice = written(tmp_path / "runs.jsonl", lines("harness_sums.jsonl") * 2)
    assert llm.read(twice).n_groups == len({row["doc_hash"] for row in lines("harness_sums.jsonl")})
    # Tasks count their questions from 0 each: an id is not enough.
    tasks = written(
        tmp_path / "tasks.jsonl",
        lines("harness_sums.jsonl") + [r | {"doc_hash": f"other {r['doc_id']}"} for r in lines("harness_sums.jsonl")],
    )
    assert llm.read(tasks).groups is None


def test_likelihood_of_an_answer_is_that_of_its_tokens():
    with zipfile.ZipFile(LOGS / "inspect_choice.eval") as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        samples = [json.loads(archive.read(name)) for name in names]
    found = llm.read(LOGS / "inspect_choice.eval")
    for sample, confidence in zip(samples, found.probs, strict=True):
        # The log's texts end with the letter, which is a token; "A" is a word before it, too.
        last = sample["output"]["choices"][0]["logprobs"]["content"][-1]
        assert last["token"] == sample["scores"]["choice"]["answer"]
        assert confidence == pytest.approx(np.exp(last["logprob"]), abs=1e-15)


def test_an_answer_of_several_tokens(tmp_path):
    log = json.loads((LOGS / "inspect_stated.json").read_text(encoding="utf-8"))
    tokens = [("The", -0.5), (" 1", -0.1), ("2", -0.2), ("2", -0.3), (".", -0.7)]
    for sample in log["samples"]:
        sample["scores"]["stated"] |= {"answer": "122", "metadata": None}
        sample["output"]["choices"][0]["logprobs"] = {"content": [{"token": t, "logprob": v} for t, v in tokens]}
    log["samples"][0]["scores"]["stated"]["answer"] = "12"  # a part of a number is not that number
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    with pytest.warns(UnreadAnswersWarning, match="1 of 12 answers left out: 1 no likelihood of the answer"):
        found = llm.read(path)
    assert found.probs == pytest.approx(np.exp(-0.6))
    assert found.n_samples == 11


def test_stated_confidences_of_a_scorer_and_what_is_left_out():
    log = json.loads((LOGS / "inspect_stated.json").read_text(encoding="utf-8"))
    said = [sample["scores"]["stated"]["metadata"]["confidence"] for sample in log["samples"]]
    with pytest.warns(UnreadAnswersWarning) as caught:
        found = llm.read(LOGS / "inspect_stated.json")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found.n_samples + sum(found.unread.values()) == len(said)
    assert found.read_from == "stated, by the scorer or table"
    by_hand = {
        "85 %": 0.85,
        "8/10": 0.8,
        "very likely": 0.875,
        "likely": 0.675,
        "unlikely": 0.325,
        "about 70%": 0.7,
        "95": 0.95,
    }
    readable = [
        (s["id"], by_hand[x])
        for s, x in zip(log["samples"], said, strict=True)
        if x in by_hand and s["scores"]["stated"]["value"] != "N"
    ]
    assert list(zip(found.ids, found.probs.tolist(), strict=True)) == readable
    assert set(found.unread) <= {"refused", "on an unclear scale", "no answer"}


def test_stated_confidences_in_the_text_of_a_written_answer():
    path = LOGS / "harness_sums_written.jsonl"
    with pytest.raises(ValueError, match="score must name the filter, as in score='exact_match,first-number'"):
        llm.read(path)
    with pytest.warns(UnreadAnswersWarning, match=r"2 of 16 answers left out: 2 refused"):
        found = llm.read(path, score="exact_match,last-number")
    rows = [row for row in lines(path.name) if row["filter"] == "last-number"]
    kept = [row for row in rows if "cannot" not in row["resps"][0][0]]
    assert np.mean([row["exact_match"] for row in rows]) == 0.125  # as printed, of all answers
    assert found.codes.tolist() == [row["exact_match"] for row in kept]
    assert found.read_from == "stated, in the text"
    with pytest.raises(ValueError, match=r"no answer in the log can be read \(0 of 16\)"):
        llm.read(path, score="exact_match,last-number", confidence="likelihood")


def test_a_table_in_every_format(tmp_path):
    table = pd.DataFrame(
        {"id": ["a", "a", "b", "c"], "confidence": ["90 %", "0.9", "likely", "I can't say"], "correct": [1, 0, 1, 1]}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_json(tmp_path / "t.ndjson", orient="records", lines=True)
    table.to_parquet(tmp_path / "t.parquet")
    for log in (table, *(tmp_path / f"t.{kind}" for kind in ("csv", "ndjson", "parquet"))):
        with pytest.warns(UnreadAnswersWarning, match="1 of 4 answers left out: 1 refused"):
            found = llm.read(log)
        assert found.probs.tolist() == [0.9, 0.9, 0.675]
        assert found.codes.tolist() == [1, 0, 1]
        assert found.ids == ("a", "a", "b")
        assert found.n_groups == 2
    assert llm.read(table[["confidence", "correct"]][:3]).groups is None
    assert llm.read(table[:3]).subset([True, False, True]).ids == ("a", "b")


def test_one_stray_number_does_not_cost_the_others():
    said = np.linspace(0.31, 1, 400).round(2)
    table = pd.DataFrame({"confidence": [f"{p:.2f}" for p in said], "correct": np.arange(400) % 3 > 0})
    table.loc[17, "confidence"] = "95"
    with pytest.warns(UnreadAnswersWarning, match="1 of 400 answers left out: 1 on an unclear scale"):
        found = llm.read(table)
    assert found.probs.tolist() == np.delete(said, 17).tolist()
    assert found.ids == (*range(17), *range(18, 400))


def test_most_confidences_must_be_readable():
    def said(*others):
        return pd.DataFrame({"confidence": ["0.9", "0.7", *others], "correct": 1})

    with pytest.raises(ValueError, match=r"read \(3 of 5\): 3 unreadable; give probabilities of terms by words"):
        llm.read(said("high", "high", "medium"))
    assert llm.read(said("high", "high", "medium"), words={"high": 0.9, "medium": 0.6}).n_samples == 5
    for others in (("high", "medium"), ("I cannot say.",) * 5):  # half, and refusals
        with pytest.warns(UnreadAnswersWarning, match=f"{len(others)} of {len(others) + 2} answers left out"):
            assert llm.read(said(*others)).n_samples == 2


HARNESS = {
    "doc_id": 0,
    "target": 1,
    "filtered_resps": [["-2.0", "False"], ["-1.0", "False"]],
    "metrics": ["acc"],
    "acc": 1.0,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"acc": 0.0}, r"largest score and the target 1 do not give acc = 0.0, which the log has for doc_id 0"),
        ({"target": 7}, "no answer in the log can be read|do not give"),
        ({"filtered_resps": [["nan", "False"], ["-1.0", "False"]], "acc": None}, "no answer in the log .* not finite"),
        ({"filtered_resps": [["-1.0", "True"]], "target": 0}, "no answer .* no log-likelihoods of two options"),
        ({"filtered_resps": "lol"}, "no answer in the log .* no log-likelihoods"),
        ({"metrics": ["acc", "acc_norm"], "acc_norm": 1.0, "score": "acc_norm"}, "arguments of each option"),
        ({"score": "f1"}, "score must be one of 'acc'; got 'f1'"),
        ({"score": "acc,strict"}, "filter of score must be one of 'none'; got 'strict'"),
    ],
)
def test_hostile_lines_end_in_refusals(changed, message, tmp_path):
    options = {"score": changed["score"]} if "score" in changed else {}
    path = written(tmp_path / "log.jsonl", [HARNESS | changed])
    with pytest.raises(ValueError, match=message):
        llm.read(path, **options)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", json.dumps(HARNESS) + "\n{broken", "line 2 is not JSON"),
        ("a.json", '{"version": 2, "status": "success", "eval": {}}', "no samples"),
        ("a.json", '{"version": 2, "status": "x", "eval": {}, "samples": [{"id": 1}]}', "no scores"),
        ("a.csv", "id,confidence\n1,0.5\n", "lacks the column 'correct'"),
        ("a.csv", "confidence,correct\n,1\n", "no answer in the log can be read"),
        ("a.ndjson", '{"x": 1}\n', "not a log of"),
    ],
)
def test_hostile_files_end_in_refusals(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        llm.read(path)


def test_targets_of_several_right_options(tmp_path):
    rows = [HARNESS | {"target": "[0, 1]"}, HARNESS | {"doc_id": 1, "target": "[0]", "acc": 0.0}]
    path = written(tmp_path / "log.jsonl", rows)
    assert llm.read(path).codes.tolist() == [1, 0]
    with pytest.warns(UnreadAnswersWarning, match="1 of 2 answers left out: 1 no single right option"):
        assert llm.read(path, outcome="option").codes.tolist() == [0]


def test_a_report_of_answers_accounts_for_groups():
    answers = llm.read(LOGS / "inspect_choice.eval")
    same = cal.as_predictions(answers.codes, answers.probs, groups=list(answers.ids))
    assert cal.estimate(answers).interval == cal.estimate(same).interval
    assert cal.estimate(answers).interval != cal.estimate(answers.codes, answers.probs).interval


def test_the_command_reads_logs_as_the_library_does(capsys):
    log = LOGS / "inspect_choice.eval"
    code, out, err = run(capsys, "report", log, "--json")
    assert (code, err) == (0, "")
    want = cal.report(llm.read(log)).headline
    assert json.loads(out)["headline"]["value"] == pytest.approx(want.value, abs=1e-12)


def test_the_command_takes_a_score_and_says_what_is_left_out(capsys, tmp_path):
    log = LOGS / "harness_sums_written.jsonl"
    code, _, err = run(capsys, "report", log, "--score", "exact_match,first-number")
    assert code == 0
    assert "2 of 16 answers left out: 2 refused" in err
    assert "calibrant: score must name the filter" in run(capsys, "report", log)[2]
    table = tmp_path / "t.csv"
    table.write_text("y_true,y_prob\n1,0.5\n0,0.2\n", encoding="utf-8")
    assert "--score is for logs" in run(capsys, "report", table, "--score", "acc")[2]
    assert "engines cannot read" in run(capsys, "report", log, "--score", "acc", "--engine", "polars")[2]


def test_the_command_reads_a_table_of_answers(capsys, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,confidence,correct\n" + "".join(f"{i % 9},{50 + i} %,{i % 2}\n" for i in range(40)))
    code, out, err = run(capsys, "report", table)
    assert (code, err) == (0, "")
    assert "40 in 9 groups" in out


def test_the_code_of_the_page_runs(tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[2] / "docs" / "llm.md").read_text(encoding="utf-8")
    for name, log in (("task", "sums"), ("plain", "sums"), ("steps", "sums_by_text")):
        (tmp_path / f"samples_{name}.jsonl").write_bytes((LOGS / f"harness_{log}.jsonl").read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, flags=re.S):
        exec(code, names)
    told = capsys.readouterr().out
    assert "Answers: 16, questions: 16" in told
    assert "differences between subgroups" in told
    assert names["both"].n_groups == 16  # the same questions


def test_nothing_is_warned_of_where_nothing_is_lost():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        llm.read(LOGS / "harness_sums.jsonl")


def test_a_report_says_what_was_left_out():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 1, 60).round(2)
    stated = [f"{v:.2f}" for v in p]
    stated[5], stated[7] = "95", "no idea"
    table = pd.DataFrame({"id": range(60), "confidence": stated, "correct": (rng.random(60) < p).astype(int)})
    with pytest.warns(UnreadAnswersWarning):
        answers = llm.read(table)
    found = cal.report(answers)
    said = "Left out of 60 answers: 2 (1 on an unclear scale, 1 unreadable)."
    assert said in found.findings
    assert said in found.verdict
    assert said in found.to_html()
    with_all = llm.read(table.drop(index=[5, 7]))
    assert with_all.left_out == ""
    assert "Left out" not in cal.report(with_all).verdict


def test_refusals_are_no_unreadable_confidences():
    stated = ["", "", "", "", "no idea", "who knows", "hmm", "well", "80 %", "90 %"]
    table = pd.DataFrame({"id": range(10), "confidence": stated, "correct": [1] * 10})
    with pytest.raises(ValueError, match=r"more than half of the confidences in the log cannot be read \(4 of 6\)"):
        llm.read(table)

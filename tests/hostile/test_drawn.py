"""A sample of every kind of hostile case, and the judge of all: `python -m benchmarks.hostile` draws the rest."""

import argparse
import inspect
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

from ..surface import NAMES

pytestmark = [
    pytest.mark.skipif(not (Path(__file__).parents[2] / "benchmarks").is_dir(), reason="not in a checkout"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def outcome(group, kind, number):
    from benchmarks.hostile.__main__ import kinds_of, one

    return one(group, kind, kinds_of(group)[kind], 1, number)


def test_every_public_name_is_a_kind_or_left_out_with_its_reason():
    from benchmarks.hostile import memory

    callables = {n for n, v in NAMES.items() if callable(v) and not (inspect.isclass(v) and issubclass(v, Warning))}
    kinds = {kind.split(".")[0] for kind in memory.kinds()}
    assert kinds | set(memory.LEFT_OUT) >= callables
    assert not kinds & set(memory.LEFT_OUT)
    assert all(memory.LEFT_OUT.values())


def test_every_command_and_option_has_values():
    from benchmarks.hostile import commands

    options = {
        max(p.opts, key=len) for c in commands.COMMANDS.values() for p in c.params if not getattr(p, "is_flag", True)
    }
    known = {*commands.TAKES, *commands.WRITES, "--from", "file", "files", "model"}
    assert {option for option in options if option.startswith("--")} - known - {"--help"} == set()


def test_a_case_is_the_same_when_it_is_drawn_again():
    first, second = outcome("memory", "estimate", 5), outcome("memory", "estimate", 5)
    assert first == second
    assert outcome("memory", "estimate", 6)[1] != first[1]


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("subgroup_calibration", 470), ("from_frame", 985), ("VectorScaling", 3450), ("CalibratedModel", 474),
        ("subgroup_calibration", 508), ("subgroup_calibration", 622), ("subgroup_calibration", 627),
        ("Accumulator.report", 132), ("Accumulator.report", 133), ("from_frame", 1353), ("from_frame", 1428),
        ("shift_prior", 12794), ("OneVsOne", 3220), ("report", 221), ("read", 2799),
    ],
)  # fmt: skip
def test_cases_that_failed_once(kind, number):
    from benchmarks.hostile.__main__ import kinds_of, one

    assert one("memory", kind, kinds_of("memory")[kind], 0, number)[0] in ("result", "refused")


def bad_warning():
    warnings.warn("ours it is not", RuntimeWarning, stacklevel=1)


def changes(values):
    values[0] = 7
    return 0.0


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: float("x"), "leaked ValueError"),
        (bad_warning, "RuntimeWarning"),
        (lambda: float("nan"), "NaN without a warning"),
        (lambda: np.array([np.nan]), "NaN in an array"),
        (lambda: cal.results.Estimate(**broken_estimate()), "outside of which"),
    ],
)
def test_the_judge_can_fail(run, said):
    from benchmarks.hostile.endings import Case, ending

    assert said in ending(Case("", run))


def broken_estimate():
    good = cal.estimate([0, 1] * 20, [0.2, 0.8] * 20)
    return {f.name: getattr(good, f.name) for f in fields(good) if f.init} | {"value": good.interval.high + 0.1}


def test_the_judge_sees_input_that_changed_and_an_answer_that_did():
    from benchmarks.hostile.endings import Case, ending

    values, answers = np.zeros(3), iter([0.25, 0.5])
    assert ending(Case("", lambda: changes(values), [values])) == "what it was given changed"
    assert ending(Case("", lambda: next(answers), again=True)) == "another answer the second time"
    assert ending(Case("", lambda: cal.brier_score([0, 1], [0.5, 0.5]))) == "result"
    assert ending(Case("", lambda: cal.brier_score([0, 1], [0.5, 2]))) == "refused"


QUICK = (
    "brier_score",
    "calibration_error",
    "optimal_threshold",
    "true_map",
    "survey_distorted",
    "to_power",
)
QUICK += ("resampled_prior", "default_candidates", "Prior", "AdaptiveKernel", "survey_posterior", "Binned")
QUICK += ("TemperatureScaling", "PlattScaling", "EndSmoothing", "Identity", "BetaCalibration", "CalibrationMonitor")


def wrong_of(group, kind, numbers):
    ends = {number: outcome(group, kind, number) for number in numbers}
    return {number: (end, words) for number, (end, words) in ends.items() if end not in ("result", "refused")}


@pytest.mark.parametrize("kind", QUICK)
def test_a_sample_in_memory(kind):
    assert wrong_of("memory", kind, range(25)) == {}


def share_of_faults(group, numbers, kinds):
    """Share of cases that end wrongly; every case is drawn."""
    ends = [outcome(group, kind, number) for kind in kinds for number in numbers]
    assert not [end for end, _ in ends if end.startswith("not drawn")]
    wrong = [(end, words) for end, words in ends if end not in ("result", "refused")]
    return len(wrong) / len(ends), wrong


@pytest.mark.slow
def test_a_larger_sample_in_memory_has_few_faults():
    """What is left is on the page: less than one in a thousand cases of a million."""
    from benchmarks.hostile import memory

    slow = ("compare_calibrators", "make_survey", "report", "Accumulator.report", "AutoCalibrator")
    share, wrong = share_of_faults("memory", range(8), [kind for kind in memory.kinds() if kind not in slow])
    assert share < 0.002, wrong[:20]


@pytest.mark.slow
@pytest.mark.torch
def test_a_sample_of_tensors_has_few_faults():
    pytest.importorskip("torchmetrics")
    from benchmarks.hostile import tensors

    share, wrong = share_of_faults("tensors", range(40), tensors.kinds())
    assert share < 0.002, wrong[:20]


@pytest.mark.slow
def test_writers_that_are_killed_or_have_no_room():
    assert share_of_faults("writers", range(3), ["text, kill -9", "text, full", "JSON, kill -9", "JSON, full"])[0] == 0


def blocks_of(*kinds):
    from benchmarks.hostile.ledger import Block

    found = []
    for start, kind in enumerate(kinds):
        block = Block("memory", kind, 1, 10 * start, seconds=0.5)
        for number, end in enumerate(["result", "refused", "RuntimeError at somewhere"]):
            block.add(block.start + number, end, f"{kind}({number})")
        found.append(block)
    return found


def test_runs_that_are_kept_are_added_kind_by_kind(tmp_path, monkeypatch, capsys):
    """Counts and faults of a kind are sums over runs, and the next run starts behind all of them."""
    from benchmarks.hostile import __main__, ledger, page

    kept, store = tmp_path / "kept.jsonl", tmp_path / "run.jsonl"
    monkeypatch.setattr(__main__, "KEPT", kept)
    monkeypatch.setattr(
        __main__, "kinds_of", lambda group: {"estimate": None, "decide": None} if group == "memory" else {}
    )
    for block in blocks_of("estimate", "report", "estimate"):
        ledger.append(store, block)
    with store.open("a") as file:
        file.write('{"group": "memory", "ki')  # of a process that was killed
    __main__.keep(argparse.Namespace(store=store))
    __main__.keep(argparse.Namespace(store=store))
    found = ledger.read(kept)
    assert [(b.kind, b.n, b.results, b.refused, b.wrong, b.seconds) for b in found] == [
        ("decide", 0, 0, 0, 0, 0.0),
        ("estimate", 12, 4, 4, 4, 2.0),
        ("report", 6, 2, 2, 2, 1.0),
    ]
    assert [number for number, *_ in found[1].faults] == [2, 22, 2, 22]
    assert ledger.next_number(ledger.read(store)) == {("memory", "estimate"): 23, ("memory", "report"): 13}
    assert "18" in capsys.readouterr().out
    first = Path(page.__file__).with_name("first_run.csv")
    (tmp_path / first.name).write_bytes(first.read_bytes())
    monkeypatch.setattr(page, "AIMS", {"memory": 20})
    page.write(tmp_path, tmp_path / "hostile.md")
    text = " ".join((tmp_path / "hostile.md").read_text(encoding="utf-8").split())
    assert "Yes: 6 of 18 cases are faults, and 33 % are refused." in text
    assert "missed for memory (18 of 20); never tried: decide" in text
    assert "(hostile/faults.csv)" in text

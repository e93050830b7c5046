"""The training example trains, and says what it measured."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.mark.slow
def test_the_example_runs(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "argv", ["train_digits.py", "--seeds", "1", "--epochs", "8"])
    import train_digits

    train_digits.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["means", "over", "seeds", "accuracy", "log-loss", "canonical", "L1"]
    rows = {line[:28].strip(): [float(cell) for cell in line[28:].split()] for line in lines[1:]}
    assert list(rows) == [name + end for name in train_digits.LOSSES for end in ("", ", temperature")]
    for name in train_digits.LOSSES:
        before, after = rows[name], rows[f"{name}, temperature"]
        assert before[0] > 25  # eight epochs of four batches learn something
        # A temperature changes no accuracy, and the log-loss for the better on average.
        assert after[0] == before[0]
        assert after[1] <= before[1] + 0.02


def test_losses_differ_and_all_see_the_same_batches(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import train_digits

    (x, y), *rest = train_digits.split(0)
    assert [len(part[1]) for part in rest] == [300, 1197]
    seen = {name: [] for name in train_digits.LOSSES}
    for name, loss in train_digits.LOSSES.items():

        def watched(logits, target, loss=loss, name=name):
            seen[name].append(target)
            return loss(logits, target)

        train_digits.train(watched, x, y, 3, 1)
    first, *others = seen.values()
    assert len(first) == 4
    assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))
    logits = torch.randn(64, 10, generator=torch.Generator().manual_seed(0))
    values = {round(loss(logits, y[:64]).item(), 6) for loss in train_digits.LOSSES.values()}
    assert len(values) == len(train_digits.LOSSES)

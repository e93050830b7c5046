"""The worked example of the contributing guide runs as written."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def in_the_large():
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (source,) = (b for b in blocks if "class InTheLarge" in b)
    code = "\n".join(line.removeprefix("   ") for line in source.splitlines())
    module = types.ModuleType("a_file_of_ones_own")
    sys.modules[module.__name__] = module
    exec(compile(code, "large.py", "exec"), module.__dict__)
    yield module.InTheLarge
    del sys.modules[module.__name__]


def test_example_serves_every_scalar_notion(in_the_large):
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 600)
    y = rng.integers(0, 3, 600)
    for k in range(3):
        want = abs((y == k).mean() - q[:, k].mean())
        for norm in (1, 2, 50, np.inf):
            got = cal.calibration_error(y, q, notion=cal.notions.ClassSpecific(k), estimator=in_the_large(), norm=norm)
            assert got == pytest.approx(want, rel=1e-9)
    classwise = cal.calibration_error(y, q, notion="classwise", estimator=in_the_large())
    assert classwise == pytest.approx(np.mean([abs((y == k).mean() - q[:, k].mean()) for k in range(3)]))
    with pytest.raises(ValueError, match="does not support the notion 'canonical'"):
        cal.calibration_error(y, q, notion="canonical", estimator=in_the_large())


@pytest.mark.slow
def test_example_has_an_interval(in_the_large):
    rng = np.random.default_rng(1)
    p = rng.random(500)
    shifted = rng.random(500) < p * 0.7  # mean outcome .35 where .5 is stated
    e = cal.estimate(shifted, p, estimator=in_the_large(), random_state=0)
    assert e.interval.low < 0.15 < e.interval.high
    assert e.interval.low > 0
    calibrated = cal.estimate(rng.random(500) < p, p, estimator=in_the_large(), random_state=0)
    assert calibrated.interval.low == 0


@pytest.mark.slow
def test_example_streams_resamples_and_reports(in_the_large):
    rng = np.random.default_rng(2)
    p = rng.random(900)
    y = (rng.random(900) < 0.7 * p).astype(int)
    whole = cal.estimate(y, p, estimator=in_the_large(), random_state=0)
    pieces = cal.Accumulator()
    for a in range(0, 900, 300):
        pieces.update(y[a : a + 300], p[a : a + 300])
    assert pieces.estimate(in_the_large(), random_state=0).value == pytest.approx(whole.value, abs=1e-12)
    report = cal.report(y, p, estimator=in_the_large())
    assert report.headline.value == pytest.approx(whole.value, abs=1e-12)
    assert cal.calibration_test(y, p, estimator=in_the_large(), n_resamples=99, random_state=0).pvalue == 0.01
    from calibrant.benchmark import read_samples

    read = read_samples(in_the_large(), p.reshape(3, 300), y.reshape(3, 300))
    assert read == pytest.approx(np.abs((y - p).reshape(3, 300).mean(axis=1)), abs=1e-12)


@pytest.mark.torch
def test_example_is_read_by_the_torch_metric(in_the_large):
    torch = pytest.importorskip("torch")
    from calibrant.torch import CalibrationError

    metric = CalibrationError(in_the_large(), "class-specific")
    metric.update(torch.tensor([0.2, 0.9]), torch.tensor([0, 1]))
    metric.update(torch.tensor([0.4]), torch.tensor([1]))
    assert metric.compute().item() == pytest.approx(abs(2 - 1.5) / 3, abs=1e-6)


def test_places_that_the_guide_names_are_there():
    root = GUIDE.parent
    guide = GUIDE.read_text(encoding="utf-8")
    table = guide[guide.index("### Where does my change go?") : guide.index("## Rules")]
    places = set(re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|pyi|html))`", table)) - {
        f"{room}/{name}.py" for room in ("estimators", "calibrators", "significance") for name in ("NAME", "FAMILY")
    }
    assert len(places) >= 12
    missing = [place for place in places if not any((root / at / place).exists() for at in ("", "src/calibrant"))]
    assert not missing
    for place, name in (
        ("calibrators/candidates.py", "def default_candidates"),
        ("significance/null.py", "class Null"),
        ("cli/reports.py", "class ReportOptions"),
        ("calibrators/base.py", "class BinaryCalibrator"),
    ):
        assert name in (root / "src/calibrant" / place).read_text(encoding="utf-8")

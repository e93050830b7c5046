"""The clip level of logits and angles is judged once for all estimators that have one."""

import pytest

import calibrant as cal


@pytest.mark.parametrize("make", [cal.estimators.Parametric, cal.estimators.BetaKernel])
def test_eps(make):
    assert make(eps=0.1).eps == 0.1
    for eps in (0, -1, 0.11, 5, float("nan")):
        with pytest.raises(ValueError, match=r"eps must lie in \(0, 0.1\]"):
            make(eps=eps)
    for eps in ("small", True, None):
        with pytest.raises(TypeError, match=r"eps must be a number in \(0, 0.1\]"):
            make(eps=eps)

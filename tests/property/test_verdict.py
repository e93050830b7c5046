"""Nothing in a report contradicts anything else in it: status, p-value, intervals, power, regions and words."""

import json
import re

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cal
from calibrant.reporting.regions import LEAST_ROWS

OPENINGS = {
    "miscalibrated": "Evidence of miscalibration (p ",
    "no evidence": "No evidence of miscalibration in these ",
    "undecided": "Not enough data to tell: ",
}
NUMBER = r"([\d.,e-]*\d)"


def probabilities(rng, n, k):
    """Scores of many kinds: spread, rare, saturated, tied, constant; a matrix for k > 1."""
    if k > 1:
        p = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0])), n)
        return (p + 1e-9) / (p + 1e-9).sum(axis=1, keepdims=True)
    p = rng.beta(*[(1, 1), (0.3, 0.4), (4, 3), (0.5, 20)][rng.integers(4)], n)
    kind = rng.integers(6)
    if kind == 0:
        p = np.round(p, 1)
    elif kind == 1:
        p[:] = p[0]
    return p


def bent(rng, p):
    """A true map: none, or over-confidence, shifts, and waves of random size."""
    kind, size = rng.integers(5), rng.exponential(0.4)
    z = logit(np.clip(p, 1e-9, 1 - 1e-9))
    if kind == 1:
        return expit(z * np.exp(-size))
    if kind == 2:
        return expit(z + rng.choice([-1, 1]) * size)
    if kind == 3:
        return expit(z + size * np.sin(12 * p))
    if kind == 4:
        return np.clip(p - 0.01 * size, 0, 1)
    return p


def drawn(seed):
    """Random labels, probabilities and options of a report."""
    rng = np.random.default_rng([seed, 77])
    n, k = int(np.exp(rng.uniform(0, np.log(3000)))), int(rng.choice([1, 1, 1, 1, 2, 4]))
    p = probabilities(rng, n, k)
    truth = bent(rng, p)
    options = {"level": float(rng.choice([0.9, 0.95, 0.99])), "random_state": seed}
    if k > 1:
        truth = truth / truth.sum(axis=1, keepdims=True)
        y = np.minimum((rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1), k - 1)
        options |= {"labels": range(k)}
        options |= {
            "notion": str(rng.choice(["auto", "class-specific:1", "top-label", "classwise"], p=[0.4, 0.3, 0.2, 0.1]))
        }
    else:
        y = (rng.random(n) < truth).astype(int)
        options |= {"labels": [0, 1]}
    kind = rng.integers(4)
    if kind == 1:
        options["sample_weight"] = rng.exponential(size=n)
    elif kind == 2:
        options["sample_weight"] = rng.integers(0 if n > 5 else 1, 5, n) + (np.arange(n) == 0)
    if rng.random() < 0.3:
        options["tolerance"] = float(rng.uniform(0.001, 0.3))
    if rng.random() < 0.3:
        options["threshold"] = float(rng.uniform(0.01, 0.99))
    if rng.random() < 0.15:
        options["estimator"] = cal.Binned(int(rng.integers(1, 20)), debias=bool(rng.integers(2)))
    if rng.random() < 0.15 and n > 5:
        options["groups"] = rng.integers(0, max(2, n // 5), n) + 2 * (np.arange(n) == 0) * n
        if "sample_weight" in options:
            options["sample_weight"][:2] = 1  # of two groups
    return y, p, options


def number(text):
    return float(text.replace(",", ""))


def contradictions(report, y, p, options):
    """What contradicts something, by name."""
    e, head, words, level = report.evidence, report.headline, report.verdict, options["level"]
    low, high = head.interval
    if np.isnan(e.test.pvalue) or np.isnan(high):
        assert (e.status, e.matters) == ("undecided", None)
        assert words == "There is not enough data to say anything."
        return
    wrong = e.status == "miscalibrated"
    rejects = low > 0
    several = len(report.classes) > 2 or report.notion in ("confidence", "top-label")
    rows = [row for row in report.per_class if several]
    off = [row for row in report.per_class if row.significant]
    assert wrong == (e.pvalue <= 1 - level + 1e-9) == (rejects or bool(off))
    assert rejects == (e.test.pvalue <= (1 - level) * (0.8 if rows else 1) + 1e-9)
    assert all((row in off) == (row.adjusted <= 1 - level) for row in report.per_class)
    for estimate in report.estimates.values():
        ends = estimate.interval
        if not np.isnan(estimate.value + ends.high):
            assert (ends.low > 0) == rejects
            assert ends.low <= estimate.corrected <= ends.high
            assert estimate.value <= 0 or ends.low <= estimate.value <= ends.high
    starts = max([low, *(row.interval.low for row in rows if row in off)])
    ends = max([high, *(row.interval.high for row in rows)])
    assert e.matters is (True if starts >= e.tolerance else False if ends < e.tolerance else None)
    if rows and off:
        assert f"class {off[0].label} " in report.summary
        assert f"class {off[0].label} " in report.findings[0].lower()
    assert (e.status == "no evidence") == (not wrong and e.matters is False)
    assert words.startswith(OPENINGS[e.status])
    printed = re.search(rf"{100 * level:g} % interval {NUMBER} to {NUMBER}\)", words)
    assert (number(printed[1]) > 0) == rejects
    assert number(printed[2]) == pytest.approx(high, rel=0.06, abs=6e-4)
    p_value = float(re.search(r"\(p [=≤<] ([\d.]+)\)", words)[1])
    assert p_value <= 1 - level + 1e-9 if wrong else p_value >= 1 - level
    assert ("too small to matter" in words) == (e.matters is False)
    assert ("which is enough to matter" in words) == (e.matters is True)
    assert ("collect more rows" in words) == (e.status == "undecided")
    assert ("perfect repair" in words) == wrong
    if e.status == "undecided":
        assert e.rows_needed > report.n_samples or np.isinf(e.rows_needed)
        more = re.search(r"from about ([\d,]+) rows on", words)
        assert more is None or number(more[1]) >= report.n_samples
    elif not wrong:
        assert e.rows_needed <= report.n_samples
    for name in ("log_loss", "brier", "changed"):
        value, ends = getattr(report.gain, name), getattr(report.gain, f"{name}_interval")
        if value is not None:
            assert ends.low <= value <= ends.high
            assert (ends.low > 0) == wrong or (wrong and name == "changed")
    regions_hold(words, y, p, options)
    if options["random_state"] % 10 == 0:  # which compute the curves too
        json.dumps(report.to_dict(), allow_nan=False)
        assert max(map(len, str(report).splitlines())) <= 100


def regions_hold(words, y, p, options):
    """Named scores have rows enough, and what is said of them is so."""
    if "class-specific" in options.get("notion", ""):
        s, o = p[:, 1], y == 1
    elif p.ndim == 2:
        s, o = p.max(axis=1), p.argmax(axis=1) == y
    else:
        s, o = p, y
    w = np.asarray(options.get("sample_weight", np.ones(len(s))), dtype=float)
    whole = bool((w == np.floor(w)).all())
    percent = r"(?:under |over )?([\d.]+) %"
    said = rf" \(([\d.]+) % of rows\) are ([\w -]+): where the model says {percent}, it (?:is right|happens) {percent}"
    where = rf"(?:from {NUMBER} to {NUMBER}|near {NUMBER}|at ([\d., and]+))"
    named = re.findall(rf"scores {where}{said}", words, flags=re.IGNORECASE)
    assert len(named) == len(re.findall(r"scores (?:from|near|at) ", words, flags=re.IGNORECASE))
    for low, high, near, values, share, direction, stated, observed in named:
        if values:
            at = np.array([float(v) for v in re.findall(r"[\d.]*\d", values)])
            inside = (np.abs(s[:, None] - at) < 1e-3).any(axis=1)
        elif near:
            at = number(near)
            reach = 0.05 * min(at, 1 - at) + 1e-3
            inside = np.abs(s - at) <= reach
        else:
            inside = (s >= number(low) - 2e-5) & (s <= number(high) + 2e-5)
            # A row at an end may lie in the histogram's cell or beside it.
            one = 100 * w.max() / w[inside].sum()
            assert 100 * w[inside].sum() / w.sum() == pytest.approx(number(share), abs=0.6 + 100 * w.max() / w.sum())
            assert 100 * np.average(s[inside], weights=w[inside]) == pytest.approx(number(stated), abs=0.6 + one)
            assert 100 * np.average(o[inside], weights=w[inside]) == pytest.approx(number(observed), abs=0.6 + one)
        assert (w[inside].sum() if whole else inside.sum()) >= LEAST_ROWS
        assert (number(observed) < number(stated)) == (direction in ("too high", "over-confident"))


def check(seeds):
    for seed in seeds:
        y, p, options = drawn(seed)
        try:
            contradictions(cal.report(y, p, **options), y, p, options)
        except AssertionError as error:
            raise AssertionError(f"report {seed}: {error}") from error


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
def test_no_report_contradicts_itself(part):
    check(range(12 * part, 12 * (part + 1)))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
def test_none_of_many_reports_contradicts_itself(part):
    """More than these are checked by ``python -m benchmarks.contradictions``."""
    check(range(1000 + 25 * part, 1000 + 25 * (part + 1)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
def test_reports_that_once_went_wrong():
    """An error where an estimator finds no class of two rows; a region with the same percentage stated and observed."""
    check([6743, 6569, 7202, 7515, 9876])

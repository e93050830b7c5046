"""Tests by e-values: the guarantee by enumeration and simulation, a second implementation, streams, hard cases."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.significance import evalue

#: Rows in the order given, as a monitor takes them.
evalue_test = partial(cal.significance.evalue_test, order="given")


@pytest.fixture
def early(monkeypatch):
    """Bets from the third row on, with a new fit at each row."""
    monkeypatch.setattr(evalue, "FIRST", 2)
    monkeypatch.setattr(evalue, "GROWTH", 1.0)


def several(n, k=3, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    p = q**power
    return y, p / p.sum(axis=1, keepdims=True)


def every_outcome(n, k=2):
    return np.array(list(itertools.product(range(k), repeat=n)))


@pytest.mark.slow
def test_sequential_e_values_are_1_on_average(early):
    """Over all outcomes of 7 rows, weighted by their stated probability: E e = 1, and P(sup e ≥ c) ≤ 1/c."""
    p = np.array([0.3, 0.62, 0.05, 0.9, 0.5, 0.31, 0.97])
    outcomes = every_outcome(7)
    chance = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
    found = [evalue_test(y, p, labels=[0, 1], pos_label=1) for y in outcomes]
    e = np.array([one.details["e_value"] for one in found])
    peak = np.array([one.statistic for one in found])
    assert chance @ e == pytest.approx(1, abs=1e-9)
    assert e.std() > 0.5  # there were bets
    assert (peak >= np.maximum(e, 1) * (1 - 1e-12)).all()
    for c in (1.5, 2, 3, 5, 10, 20):
        assert chance @ (peak >= c) <= 1 / c
    # Stopping as soon as the wealth is 2, or at the end: still 1 on average.
    stopped = []
    for y in outcomes:
        monitor = cal.CalibrationMonitor(labels=[0, 1], pos_label=1)
        for row in range(7):
            monitor.update(y[[row]], p[[row]])
            if monitor.e_value >= 2:
                break
        stopped.append(monitor.e_value)
    assert chance @ np.array(stopped) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("notion", ["classwise", "confidence", cal.notions.ClassSpecific(2)], ids=str)
def test_e_values_of_classes_are_1_on_average(early, notion):
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 4)
    outcomes = every_outcome(4, 3)
    chance = np.stack([p[i, outcomes[:, i]] for i in range(4)]).prod(axis=0)
    e = [evalue_test(y, p, notion=notion, labels=[0, 1, 2]).details["e_value"] for y in outcomes]
    assert chance @ np.array(e) == pytest.approx(1, abs=1e-9)
    assert np.std(e) > 0.05


@pytest.mark.parametrize("n_splits", [1, 3])
def test_split_e_values_are_1_on_average(n_splits):
    p = np.array([0.3, 0.62, 0.05, 0.9, 0.5, 0.31, 0.31, 0.12])
    outcomes = every_outcome(8)
    chance = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
    options = {"algorithm": "split", "n_splits": n_splits, "random_state": 5, "labels": [0, 1], "pos_label": 1}
    e = np.array([evalue_test(y, p, **options).statistic for y in outcomes])
    assert chance @ e == pytest.approx(1, abs=1e-9)
    assert e.std() > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("draw", ["uniform", "sharp"])
def test_guarantee(draw):
    """Calibrated streams, looked at after every row: 20 is reached by no more than one in twenty (and some noise)."""
    rng = np.random.default_rng(0)
    p = rng.random((120, 100)) if draw == "uniform" else rng.beta(0.15, 1.5, (120, 100)).clip(1e-12, 1 - 1e-12)
    y = rng.random(p.shape) < p
    peaks = np.array([evalue_test(a, b).statistic for a, b in zip(y, p, strict=True)])
    assert (peaks >= 20).sum() <= 6 + 3 * np.sqrt(120 * 0.05 * 0.95)
    assert (peaks >= 2).any()
    splits = np.array(
        [evalue_test(a, b, algorithm="split", n_splits=3, random_state=0).statistic for a, b in zip(y, p, strict=True)]
    )
    assert (splits >= 20).sum() <= 6 + 3 * np.sqrt(120 * 0.05 * 0.95)


LAWS = {
    "overconfident": lambda s: 0.25 + 0.5 * s,
    "shift": lambda s: np.clip(s - 0.15, 0, 1),
    "waves": lambda s: np.clip(s + 0.2 * np.sin(2 * np.pi * s), 0, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("algorithm", ["sequential", "split"])
def test_power(law, algorithm):
    rng = np.random.default_rng(1)
    rejected = 0
    for i in range(20):
        p = rng.random(700)
        y = rng.random(700) < LAWS[law](p)
        rejected += evalue_test(y, p, algorithm=algorithm, random_state=i).pvalue <= 0.05
    assert rejected >= 18


def shifts_again(s, y):
    """The three maps fitted to rows by a general minimiser; functions of cells."""
    cell = np.floor((logit(s) + 12) / 24 * 512).clip(0, 511).astype(int)
    z = -12 + 24 / 512 * (np.arange(512) + 0.5)
    rank = np.array([((cell < c).sum() + (cell == c).sum() / 2) / len(s) for c in range(512)])
    for c in np.unique(cell):
        z[c] = logit(s[cell == c].mean())
    centred = (z - z[cell].mean()) / z[cell].std()
    found = []
    for sd, wave in ((0.3, 0.0), (0.3, 0.4), (0.3, 1.0)):
        terms = [sd * np.ones(512), sd * centred] + [wave / k * np.cos(k * np.pi * rank) for k in range(1, 9)]
        columns = np.array(terms)

        def loss(theta, columns=columns):
            eta = z[cell] + theta @ columns[:, cell]
            gradient = columns[:, cell] @ (expit(eta) - y) + theta
            return (np.logaddexp(0, eta) - y * eta).sum() + theta @ theta / 2, gradient

        best = minimize(loss, np.zeros(10), jac=True, method="BFGS", options={"gtol": 1e-9}).x
        found.append(best @ columns)
    return np.array(found), cell


def test_sequential_bets_again():
    """Row by row, with a fit made from scratch whenever the rows have grown by a tenth."""
    rng = np.random.default_rng(2)
    s = rng.beta(0.7, 0.7, 60)
    y = (rng.random(60) < 0.3 + 0.4 * s).astype(int)
    wealth, again, shifts = np.zeros(3), 8, np.zeros((3, 512))
    peak = 0.0
    for i in range(60):
        if i == again:
            shifts, _ = shifts_again(s[:i], y[:i])
            again = max(i + 1, int(np.ceil(1.1 * i)))
        cell = int(np.clip((logit(s[i]) + 12) / 24 * 512, 0, 511))
        q = expit(logit(s[i]) + shifts[:, cell])
        wealth += np.log(q / s[i]) if y[i] else np.log((1 - q) / (1 - s[i]))
        peak = max(peak, np.log(np.exp(wealth).mean()))
    found = evalue_test(y, s)
    assert found.details["log_e_value"] == pytest.approx(np.log(np.exp(wealth).mean()), abs=1e-5)
    assert found.details["log_e_max"] == pytest.approx(peak, abs=1e-5)
    assert found.pvalue == pytest.approx(min(1, np.exp(-peak)), rel=1e-4)
    assert abs(found.details["log_e_value"]) > 0.1


def test_split_again():
    """scikit-learn's isotonic regression on the same halves; pools drawn to what they state by five rows."""
    rng = np.random.default_rng(0)
    s = np.round(rng.random(80), 2).clip(0.01, 0.99)
    y = (rng.random(80) < s**1.5).astype(int)
    found = evalue_test(y, s, algorithm="split", n_splits=4, fraction=0.6, random_state=9)
    draws, logs = np.random.default_rng(9), []
    for _ in range(4):
        rows = draws.permutation(80)
        a, b = rows[:48], rows[48:]
        level = IsotonicRegression().fit(s[a], y[a]).predict(s[a])
        total = 0.0
        for i in b:
            gaps = np.abs(s[a] - s[i])
            near = s[a][gaps <= gaps.min() + 1e-9].min()  # the lower of two as near
            value = level[s[a] == near][0]
            pool = np.abs(level - value) < 1e-9
            q = (y[a][pool].sum() + 5 * s[a][pool].mean()) / (pool.sum() + 5)
            total += np.log(q / s[i]) if y[i] else np.log((1 - q) / (1 - s[i]))
        logs.append(total)
    assert found.details["log_e_value"] == pytest.approx(np.log(np.exp(logs).mean()), abs=1e-8)
    assert found.statistic == found.details["e_max"] == found.details["e_value"]


def test_the_order_of_rows_is_part_of_the_test():
    """Rows that come later do not change what was bet before."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    monitor = cal.CalibrationMonitor()
    early = monitor.update(y[:120], p[:120]).details["log_e_value"]
    again = cal.CalibrationMonitor().update(y[:120], p[:120])
    assert again.details["log_e_value"] == early
    monitor.update(1 - y[120:].astype(int), p[120:])
    assert monitor.e_max >= np.exp(early)


def test_classes_are_averaged():
    y, p = several(200, power=1.5)
    each = [evalue_test(y, p, notion=cal.notions.ClassSpecific(k)).details["e_value"] for k in range(3)]
    found = evalue_test(y, p, notion="classwise")
    assert found.details["e_value"] == pytest.approx(np.mean(each), rel=1e-8)


def test_scores_of_0_and_1():
    """No bet where they are right, certainty where they are wrong."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p**1.5).astype(int)
    where = np.arange(0, 200, 2)
    with_ends = np.insert(p, where, np.where(where % 4 == 0, 0.0, 1.0))
    labels = np.insert(y, where, (where % 4 != 0).astype(int))
    found = evalue_test(labels, with_ends)
    assert np.isfinite(found.statistic)
    all_ends = evalue_test([0, 1] * 20, [0.0, 1.0] * 20)
    assert (all_ends.statistic, all_ends.pvalue) == (1, 1)
    assert all_ends.details["log_e_value"] == pytest.approx(0, abs=1e-12)
    for algorithm in ("sequential", "split"):
        options = {"algorithm": algorithm, "random_state": 0}
        right = evalue_test([0, 1] * 20, [0.0, 1.0] * 20, **options)
        assert right.pvalue == pytest.approx(1, abs=1e-12)
        wrong = evalue_test([0, 1] * 19 + [1, 1], [0.0, 1.0] * 20, **(options | {"n_splits": 50}))
        assert wrong.statistic == np.inf
        assert wrong.pvalue == 0
        assert wrong.to_dict()["details"]["log_e_value"] is None
    monitor = cal.CalibrationMonitor()
    monitor.update([1], [0.0])
    monitor.update(y, p)
    assert monitor.e_value == np.inf
    assert monitor.pvalue == 0


def test_split_beside_scores_of_0_and_1():
    """Rows at 0 and 1 belong to no pool: a positive just above 0 ruins nothing, and E is still 1 on average."""
    p = np.array([0.0, 0.0, 0.01, 0.3, 0.6, 0.99, 1.0, 1.0])
    outcomes = every_outcome(8)
    chance = np.where(outcomes == 1, p, 1 - p).prod(axis=1)
    outcomes, chance = outcomes[chance > 0], chance[chance > 0]
    for seed in range(6):  # splits that part the row of 0.01 from those of 0, and others
        options = {"algorithm": "split", "n_splits": 1, "random_state": seed, "labels": [0, 1], "pos_label": 1}
        e = np.array([evalue_test(y, p, **options).statistic for y in outcomes])
        assert e.min() > 1e-6
        assert chance @ e == pytest.approx(1, abs=1e-9)


def test_scores_next_to_0_and_1():
    """Whatever rounding makes of sums and means of scores that are all but 0 or 1, E stays a number."""
    almost = np.array([5e-324, 1e-300, 1e-17, 1 - 2.3e-16, 1 - 1.2e-16])
    p = np.tile(almost, 40)
    y = (p > 0.5).astype(int)
    for algorithm in ("sequential", "split"):
        fine = evalue_test(y, p, algorithm=algorithm, random_state=0)
        assert fine.details["log_e_value"] == pytest.approx(0, abs=0.3)
        y[103] = 0
        off = evalue_test(y, p, algorithm=algorithm, random_state=1)
        assert np.isfinite(off.details["log_e_value"])
        y[103] = 1


def test_a_mean_that_rounds_to_1():
    """Scores below 1 whose sum is a whole number, one of them wrong: maps stay finite, and go down there."""
    count, score, positive = np.zeros((3, 512))
    count[511], score[511], positive[511] = 30, 30.0, 29
    theta, shifts = evalue.alternatives(np.stack([count, positive, score]), np.zeros((3, 10)))
    assert np.isfinite(theta).all()
    assert (shifts[:, 511] < -0.05).all()


def test_rows_of_certain_scores_teach_nothing():
    """The same bets on the other rows, but for when maps are fitted."""
    wealth, other = evalue.Wealth(), evalue.Wealth()
    rng = np.random.default_rng(0)
    p = rng.random(8)
    y = rng.random(8) < p
    wealth.path(np.append(p[:7], [0.0, 1.0]), np.append(y[:7], [False, True]))
    other.path(p[:7], y[:7])
    assert wealth.sums == pytest.approx(other.sums)
    assert (wealth.shifts != 0).any()
    assert not other.shifts.any()


def test_overflow():
    rng = np.random.default_rng(0)
    p = np.full(20_000, 0.9)
    found = evalue_test(rng.random(20_000) < 0.1, p)
    assert found.statistic == np.inf
    assert found.pvalue == 0
    # 20 000 rows at a relative entropy of 0.8 ln 9.
    assert found.details["log_e_value"] == pytest.approx(20_000 * 0.8 * np.log(9), rel=0.02)
    assert found.to_dict()["statistic"] is None


@pytest.mark.parametrize("algorithm", ["sequential", "split"])
def test_weights(algorithm):
    """A weight is one unit of its size: equal ones are none, their scale says nothing, and those of 0 are left out."""
    y, p = several(80, power=1.5)
    options = {"algorithm": algorithm, "random_state": 0}
    plain = evalue_test(y, p, **options).details["log_e_value"]
    assert evalue_test(y, p, sample_weight=np.full(80, 1e9), **options).details["log_e_value"] == pytest.approx(plain)
    w = np.random.default_rng(0).integers(0, 3, 80)
    one, two = (evalue_test(y, p, sample_weight=c * w, **options).details["log_e_value"] for c in (1, 0.37))
    assert one == pytest.approx(two, rel=1e-9)
    if algorithm == "sequential":
        given = {"order": "given"}
        some = w > 0
        one = evalue_test(y, p, sample_weight=w, **given)
        two = evalue_test(y[some], p[some], sample_weight=w[some], **given)
        assert one.details == two.details
        monitor = cal.CalibrationMonitor()
        monitor.update([0, 1], [0.3, 0.6], sample_weight=[2, 0])
        assert monitor.n_samples == 1


@pytest.mark.slow
def test_weighted_bets_win_nothing_on_average():
    """Over all outcomes of 9 rows, the e-value at the last row averages at most 1, whatever the weights."""
    rng = np.random.default_rng(0)
    p, w = rng.uniform(0.2, 0.8, 9), rng.uniform(0.1, 5, 9)
    total, chance = 0.0, 0.0
    for number in range(2**9):
        y = (number >> np.arange(9)) & 1
        likely = float(np.prod(np.where(y == 1, p, 1 - p)))
        total += likely * evalue_test(y, p, sample_weight=w, labels=[0, 1], order="given").details["e_value"]
        chance += likely
    assert chance == pytest.approx(1)
    assert 0.9 < total <= 1 + 1e-9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "random"}, "algorithm must be one of 'sequential', 'split'; got 'random'"),
        ({"algorithm": np.array(["split", "split"])}, "algorithm must be one of"),
        ({"algorithm": "split", "n_splits": 0}, "n_splits must be an int >= 1"),
        ({"n_splits": 2.5}, "n_splits must be an int >= 1; got 2.5"),
        ({"algorithm": "split", "n_splits": True}, "n_splits must be an int >= 1"),
        ({"algorithm": "split", "fraction": 1.0}, "fraction must lie strictly between 0 and 1"),
        ({"notion": "canonical"}, "'canonical' has no e-value test"),
        ({"notion": "top-label"}, "'top-label' has no e-value test"),
    ],
)
def test_bad_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        evalue_test(*several(20), **options)


def test_fraction_of_any_kind_of_number():
    data = several(40)
    wanted = cal.significance.evalue_test(*data, algorithm="split", fraction=0.5, random_state=0)
    assert cal.significance.evalue_test(*data, algorithm="split", fraction=np.float32(0.5), random_state=0) == wanted


def test_few_rows():
    one = evalue_test([1], [0.4])
    assert (one.statistic, one.pvalue) == (1, 1)
    assert any("too few rows to bet on" in text for text in one.warnings)
    with pytest.raises(ValueError, match="at least 2 rows; got 1"):
        evalue_test([1], [0.4], algorithm="split")
    assert evalue_test([1, 0], [0.4, 0.4], algorithm="split", random_state=0).pvalue <= 1
    constant = evalue_test([1, 0] * 100, [0.2] * 200)
    assert constant.pvalue < 1e-6


def test_results_read_well():
    y, p = several(100)
    text = str(evalue_test(y, p, notion="classwise"))
    assert "sequential e-value" in text
    assert "classwise" in text
    assert "20 splits" in evalue_test(y, p, algorithm="split", random_state=0).name


def test_files_sorted_by_label_are_shuffled():
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = (rng.random(600) < p).astype(int)
    order = np.argsort(y, kind="stable")
    assert evalue_test(y[order], p[order]).pvalue < 1e-6  # the next label was no news
    found = cal.significance.evalue_test(y[order], p[order], random_state=1)
    assert found.pvalue > 0.05
    assert cal.significance.evalue_test(y[order], p[order], random_state=1) == found
    with pytest.raises(ValueError, match="order must be one of 'random', 'given'; got 'time'"):
        cal.significance.evalue_test(y, p, order="time")


def bets_of_groups(s, o, group):
    """Log wealth after each group, group by group: the mean ratio of its rows, by maps fitted to the groups before."""
    count, positive, score = np.zeros((3, evalue.N_CELLS))
    theta = np.zeros((len(evalue.PRIORS), evalue.N_COSINES + 2))
    shifts = np.zeros((len(evalue.PRIORS), evalue.N_CELLS))
    wealth, rows, fit_at, path = np.zeros(len(evalue.PRIORS)), 0, evalue.FIRST, []
    for name in dict.fromkeys(group.tolist()):
        at = np.flatnonzero(group == name)
        z = np.log(s[at]) - np.log1p(-s[at])
        cell = evalue.cells_of(z)
        q = 1 / (1 + np.exp(-z - shifts[:, cell]))
        ratio = np.where(o[at] == 1, q / s[at], (1 - q) / (1 - s[at]))
        wealth = wealth + np.log(ratio.mean(axis=1))
        path.append(wealth)
        np.add.at(count, cell, 1)
        np.add.at(positive, cell, o[at])
        np.add.at(score, cell, s[at])
        rows += at.size
        if rows >= fit_at:
            theta, shifts = evalue.alternatives(np.stack([count, positive, score]), theta)
            fit_at = max(rows + 1, int(np.ceil(evalue.GROWTH * rows)))
    return np.array(path)


@pytest.mark.parametrize("order", ["together", "mixed"])
def test_rows_of_a_group_are_one_bet(order):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), rng.integers(1, 9, 60))
    if order == "mixed":
        group = rng.permutation(group)
    s = rng.uniform(0.02, 0.98, group.size)
    y = (rng.random(group.size) < s**2).astype(int)
    want = np.log(np.exp(bets_of_groups(s, y, group)).mean(axis=1))
    found = cal.significance.evalue_test(y, s, groups=group, order="given")
    assert found.details["log_e_value"] == pytest.approx(want[-1])
    assert found.details["log_e_max"] == pytest.approx(max(want.max(), 0))
    assert found.n_samples == group.size
    # Batches of whole groups, one of them a single group, bet the same.
    monitor, whole = cal.CalibrationMonitor(), cal.CalibrationMonitor()
    names = np.array([f"game {g}" for g in group])
    first = list(dict.fromkeys(group.tolist()))
    for some in (first[:1], first[1:20], first[20:]):
        rows = np.flatnonzero(np.isin(group, some))
        monitor.update(y[rows], s[rows], groups=names[rows])
    in_order = np.argsort([first.index(g) for g in group], kind="stable")
    whole.update(y[in_order], s[in_order], groups=names[in_order])
    assert np.log(monitor.e_value) == pytest.approx(np.log(whole.e_value))
    assert monitor.n_samples == group.size
    with pytest.raises(ValueError, match="groups must not span pieces"):
        monitor.update(y[:3], s[:3], groups=names[:3])
    with pytest.raises(ValueError, match="rows were added with groups"):
        monitor.update(y[:3], s[:3])
    assert monitor.n_samples == group.size


def test_groups_of_one_are_rows():
    rng = np.random.default_rng(1)
    s = rng.random(300)
    y = (rng.random(300) < s**1.5).astype(int)
    rows, groups = cal.CalibrationMonitor(), cal.CalibrationMonitor()
    rows.update(y, s)
    groups.update(y, s, groups=np.arange(300))
    assert groups.e_value == pytest.approx(rows.e_value)


@pytest.mark.slow
def test_what_hangs_together_is_not_won_from():
    """Twelve copies of every row: bets on rows win from calibrated models, bets on groups do not."""
    alone, held = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(40), 12)
        s = rng.random(40)[group]
        y = (rng.random(40)[group] < s).astype(int)
        alone.append(cal.significance.evalue_test(y, s, order="given").pvalue <= 0.05)
        held.append(cal.significance.evalue_test(y, s, groups=group, order="given").pvalue <= 0.05)
    assert np.mean(alone) > 0.5
    assert np.mean(held) <= 0.1


def test_splits_take_no_groups():
    with pytest.raises(ValueError, match="use algorithm='sequential' for rows in groups"):
        cal.significance.evalue_test(
            np.arange(20) % 2, np.linspace(0.1, 0.9, 20), groups=np.arange(20) // 2, algorithm="split"
        )

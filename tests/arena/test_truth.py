"""Truths of pools and of maps: beside loops, and where the calibration error is known."""

import numpy as np
import pytest
from scipy.special import expit, logit


def naive_signs(s, o, seed, parts, deals, per_bin, reaches):
    """A loop over deals, rows and neighbours, with no sums shared."""
    n = len(s)
    rng = np.random.default_rng(seed)
    distinct = sorted(set(s.tolist()))
    middle = [np.sum(s < v) + np.sum(s == v) / 2 for v in distinct]
    numbers = sorted({int(m // per_bin) for m in middle})
    at = {v: numbers.index(int(m // per_bin)) for v, m in zip(distinct, middle, strict=True)}
    number = np.array([at[v] for v in s.tolist()])
    out = np.zeros(n)
    for _ in range(deals):
        part = rng.permutation(n) % parts
        for k in range(parts):
            for b in np.unique(number[part == k]):
                best = clear = 0.0
                for width in reaches:
                    mean = noise = 0.0
                    for i in np.flatnonzero(part != k):
                        away = number[i] - b
                        if abs(away) > 4 * width:
                            continue
                        weight = np.exp(-0.5 * (away / max(width, 1)) ** 2)
                        mean += weight * (o[i] - s[i])
                        noise += weight**2 * max((o[i] - s[i]) ** 2, s[i] * (1 - s[i]))
                    z = mean / np.sqrt(noise) if noise > 0 else 0.0
                    clear = z if clear == 0 and abs(z) > 2.5 else clear
                    best = z if abs(z) > abs(best) else best
                out[(part == k) & (number == b)] += np.sign(clear or best)
    return out / deals


@pytest.mark.parametrize("atoms", [None, 7])
def test_signs_are_those_of_a_loop(arena, atoms):
    rng = np.random.default_rng(3)
    s = rng.random(150) if atoms is None else rng.integers(1, atoms, 150) / atoms
    o = (rng.random(150) < s).astype(float)  # signs are in doubt, so every row counts
    expected = naive_signs(s, o, 5, parts=5, deals=3, per_bin=arena.truth.BIN, reaches=(0, 2, 5, 15, 50))
    np.testing.assert_allclose(arena.truth.signs(s, o, 5, deals=3), expected, atol=1e-12)


@pytest.mark.slow
def test_a_row_has_no_part_in_its_own_sign(arena):
    """Another outcome of a row changes neighbours' signs and not its own."""
    rng = np.random.default_rng(2)
    s = rng.random(100)
    o = (rng.random(100) < s).astype(float)
    before = arena.truth.signs(s, o, 1)
    assert np.abs(before).min() < 0.5  # signs are in doubt
    changed = 0
    for i in range(100):
        other = o.copy()
        other[i] = 1 - o[i]
        after = arena.truth.signs(s, other, 1)
        assert after[i] == before[i]
        changed += int((after != before).sum())
    assert changed > 0


def test_equal_scores_share_a_bin(arena):
    s = np.random.default_rng(0).integers(0, 40, 1000) / 40
    number = arena.truth.bins_of(s)
    assert all(len(set(number[s == v])) == 1 for v in np.unique(s))
    order = np.argsort(s)
    assert (np.diff(number[order]) >= 0).all()
    smooth = arena.truth.bins_of(np.random.default_rng(1).random(1000))
    assert set(np.bincount(smooth)) <= {arena.truth.BIN, arena.truth.BIN - 1, arena.truth.BIN + 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("curve", "low"), [(lambda s: s, 0.0), (lambda s: expit(0.6 * logit(s)), 0.02), (lambda s: 0.1 + 0.8 * s, 0.04)]
)
def test_pools_tell_known_errors(arena, curve, low):
    """Never too high, hardly too low, and as far off as the standard error says: 60 pools of 5,000 rows."""
    big = np.random.default_rng(99).beta(0.7, 0.7, 10**6).clip(1e-6, 1 - 1e-6)
    known = np.abs(curve(big) - big).mean()
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        s = rng.beta(0.7, 0.7, 5000).clip(1e-6, 1 - 1e-6)
        y = (rng.random(5000) < curve(s)).astype(int)
        found.append(arena.truth.of_pool(np.column_stack([1 - s, s]), y, seed)["class-specific:1"])
    values = np.array([one.value for one in found])
    error = values.std(ddof=1) / np.sqrt(60)
    assert -low * known - 3 * error < values.mean() - known < 3 * error
    stated = np.mean([one.standard_error for one in found])
    assert 0.7 < values.std(ddof=1) / stated < 1.3


def test_classes_are_averaged_row_by_row(arena):
    """Of two classes each says what the other does; of three the mean of their truths is the class-wise one."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 2000)
    y = (rng.random((2000, 1)) > (p**2 / (p**2).sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    found = arena.truth.of_pool(p, y)
    classes = [found[f"class-specific:{k}"] for k in range(3)]
    assert found["classwise"].value == pytest.approx(np.mean([c.value for c in classes]))
    assert found["classwise"].standard_error <= np.mean([c.standard_error for c in classes])
    binary = arena.truth.of_pool(np.column_stack([1 - p[:, 0], p[:, 0]]), (y == 0).astype(int))
    assert binary["classwise"] == binary["class-specific:1"]
    assert set(binary) == {"confidence", "classwise", "class-specific:1"}


def test_maps_are_functions_of_the_score_with_its_atoms(arena):
    rng = np.random.default_rng(1)
    s = np.round(rng.random(800), 1)
    o = (rng.random(800) < np.where(s < 0.5, 0.1, 0.9)).astype(float)
    g = arena.truth.fitted_map(s, o)
    assert all(len(set(g[s == v].tolist())) == 1 for v in np.unique(s))
    assert g[s == 0.4][0] < 0.25  # the step is there
    assert g[s == 0.6][0] > 0.75
    assert ((g >= 0) & (g <= 1)).all()


def test_maps_of_calibrated_rows_stay_near_the_diagonal(arena):
    """What other folds do not bear out is taken back: half of the plain fit's error at least, on average."""
    shrunk, plain = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        s = rng.random(300)
        o = (rng.random(300) < s).astype(float)
        shrunk.append(np.abs(arena.truth.fitted_map(s, o) - s).mean())
        plain.append(np.abs(arena.truth._near_isotonic(s, o, s) - s).mean())
    assert np.mean(shrunk) < np.mean(plain) / 2


def test_one_outcome_alone_has_a_map(arena):
    s = np.random.default_rng(0).random(50)
    np.testing.assert_allclose(arena.truth.fitted_map(s, np.ones(50)), 1.0)

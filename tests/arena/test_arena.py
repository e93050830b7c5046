"""Building goes on where it was; experiments and samples are what was built."""

import numpy as np
import pytest
from scipy.stats import binomtest


@pytest.fixture
def built(arena, monkeypatch, tmp_path):
    """A build of two small data sets and one pool, with models that take no time, and what it trained."""
    import benchmarks.arena.build as build
    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(0)
    sizes = {"iris": (150, 3), "banana": (5200, 2), "pima": (600, 2)}

    def rows_of(name):
        n, k = sizes[name]
        y = np.arange(n) % k
        return arena.keel.Rows(rng.normal(size=(n, 2)) + y[:, None], y)

    trained = []

    def make(seed):
        trained.append(seed)
        return GaussianNB()

    monkeypatch.setattr(build, "TABLES", tuple(sizes))
    monkeypatch.setattr(build, "rows_of", rows_of)
    monkeypatch.setattr(build, "MODELS", {"bayes": arena.models.Model("naive", make)})
    return build, trained, tmp_path


def test_a_build_goes_on_where_it_was(arena, built, monkeypatch):
    build, trained, cache = built
    assert build.build(cache, None) == 0
    assert len(trained) == 5 + 2 + 5
    files = {path: path.read_bytes() for path in cache.rglob("*.npz")}
    assert len(files) == 6
    assert build.build(cache, None) == 0
    assert len(trained) == 12  # nothing again
    # A truth that is missing is found without training; predictions that are missing are made.
    (cache / "truths" / "iris.bayes.npz").unlink()
    build.build(cache, None)
    assert len(trained) == 12
    (cache / "predictions" / "iris.bayes.npz").unlink()
    build.build(cache, None)
    assert len(trained) == 17
    # Another recipe is another model.
    monkeypatch.setattr(build, "MODELS", {"bayes": arena.models.Model("naive, anew", build.MODELS["bayes"].build)})
    build.build(cache, None, only="iris")
    assert len(trained) == 22
    assert not list(cache.rglob("*.tmp"))
    said = (cache / "progress.txt").read_text().splitlines()
    assert [line.split()[2] for line in said[:3]] == ["iris.bayes", "pima.bayes", "banana.bayes"]


def test_a_stopped_write_leaves_no_file(arena, built, monkeypatch):
    build, _, cache = built

    def half(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("benchmarks.arena.store.np.savez_compressed", half)
        with pytest.raises(KeyboardInterrupt):
            build.build(cache, None)
    assert not list(cache.rglob("*.npz"))
    assert build.build(cache, None) == 0


def test_a_failure_ends_nothing_else(arena, built, monkeypatch):
    build, _, cache = built

    def broken(seed):
        raise ArithmeticError("no such model")

    both = {"broken": arena.models.Model("broken", broken), **build.MODELS}
    monkeypatch.setattr(build, "MODELS", both)
    assert build.build(cache, None) == 3
    assert len(list((cache / "truths").glob("*.bayes.npz"))) == 3
    assert "FAILED: ArithmeticError: no such model" in (cache / "progress.txt").read_text()


def test_experiments_are_of_one_half(arena, built):
    build, _, cache = built
    build.build(cache, None)
    chosen = list(arena.experiments("choosing", cache=cache))
    assert [one.name for one in chosen] == ["iris.bayes", "pima.bayes"]
    (pool,) = arena.experiments("reporting", cache=cache)
    assert pool.pool
    assert pool.largest == 1040
    assert not chosen[0].pool
    assert chosen[0].largest == 75
    assert "classwise" not in chosen[0].truths  # three classes
    assert chosen[1].truths["classwise"] == chosen[1].truths["class-specific:1"]
    assert list(arena.experiments("choosing", cache=cache, pools=True)) == []
    assert list(arena.experiments("choosing", cache=cache, kind="network")) == []
    with pytest.raises(ValueError, match="half must be one of 'choosing', 'reporting'; got 'both'"):
        list(arena.experiments("both", cache=cache))


def test_samples_of_a_pool_are_its_rows(arena, built):
    build, _, cache = built
    build.build(cache, None)
    (pool,) = arena.experiments("reporting", cache=cache)
    sample = arena.draw(pool, 300, seed=4, notion="classwise")
    pairs = {(*p.tolist(), y) for p, y in zip(pool.y_prob, pool.y_true.tolist(), strict=True)}
    drawn = {(*p.tolist(), y) for p, y in zip(sample.y_prob, sample.y_true.tolist(), strict=True)}
    assert drawn <= pairs
    assert len(drawn) == 300
    assert sample.labels == [0, 1]
    assert sample.truth.standard_error > 0
    again = arena.draw(pool, 300, seed=4, notion="classwise")
    np.testing.assert_array_equal(sample.y_true, again.y_true)
    assert (arena.draw(pool, 300, seed=5).y_prob != sample.y_prob).any()
    with pytest.raises(ValueError, match="n must be between 1 and 1040"):
        arena.draw(pool, 1041, seed=0)
    with pytest.raises(ValueError, match="notion must be one of 'confidence'"):
        arena.draw(pool, 10, seed=0, notion="canonical")


@pytest.mark.parametrize("notion", ["confidence", "class-specific:2"])
def test_labels_drawn_anew_obey_the_map(arena, notion):
    """Each row's outcome comes as often as its map says, over many draws; all labels are possible ones."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 40).astype(np.float32)
    p[0] = [0, 0, 1]  # nothing is left for the others
    chance = rng.random(40)
    one = arena.Experiment(
        "iris", "toy", "tabular", "choosing", "iris", p, np.zeros(40, int),
        {notion: arena.Truth(0.1, 0.0)}, {notion: chance},
    )  # fmt: skip
    place = {row.tobytes(): i for i, row in enumerate(p)}
    hits, seen = np.zeros(40, int), np.zeros(40, int)
    for seed in range(1000):
        sample = arena.draw(one, 20, seed, notion)
        asked = sample.y_prob.argmax(axis=1) if notion == "confidence" else 2
        at = [place[row.tobytes()] for row in sample.y_prob]
        seen[at] += 1
        hits[at] += sample.y_true == asked
        assert set(sample.y_true.tolist()) <= {0, 1, 2}
    tails = [binomtest(int(h), int(n), c).pvalue for h, n, c in zip(hits, seen, chance, strict=True)]
    assert min(tails) > 0.05 / 40 / 10

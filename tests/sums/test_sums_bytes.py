"""`Accumulator.to_bytes` and `from_bytes`: the same object again, and bytes that are damaged, foreign or newer."""

import io
import json
import tracemalloc
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.data.archive import from_archive, to_archive
from calibrant.sums import Grid

NOTIONS = ["auto", "class-specific:2", "classwise", "confidence", "top-label"]
#: Estimators of every kind of sums that there is.
KEPT = [
    cal.estimators.Isotonic(),
    cal.estimators.BetaKernel(),
    cal.estimators.Parametric(),
    cal.estimators.Sweep(),
    cal.Binned([0, 0.2, 0.7, 1]),
    cal.Binned(8, mapping="linear"),
]


def sample(n=400, k=3, seed=0, names=None):
    rng = np.random.default_rng(seed)
    if k == 2:
        p = rng.random(n)
        y = (rng.random(n) < p**1.5).astype(int)
    else:
        p = rng.dirichlet(np.ones(k), n)
        y = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), k - 1)
    return (y if names is None else np.asarray(names)[y]), p


def rewritten(data, change, files=None):
    """Bytes whose header (JSON) was changed, with a digest that is right; ``files`` are put in place of others."""
    held = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(held["header.json"])
    change(header)
    held |= {"header.json": json.dumps(header).encode()} | (files or {})
    return archived(held)


def archived(files, compression=zipfile.ZIP_DEFLATED):
    """A zip archive of files, with the digest that is its comment."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.comment = bytes(32)
        for name, raw in files.items():
            archive.writestr(name, raw)
    body = buffer.getvalue()[:-32]
    return body + sha256(body).digest()


def npy(descr, shape, raw=b""):
    """A .npy file with a header that states anything."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + raw


def same(one, again):
    """Two accumulators are equal bit by bit, and their estimates up to rounding.

    The BLAS of NumPy 1.26 sums in an order that depends on where an array begins in memory.
    """
    assert again.to_bytes() == one.to_bytes()
    assert repr(again) == repr(one)
    if one.totals is None:
        return
    for estimator in [None, one.binned, *one.estimators]:
        a, b = (x.estimate(estimator, n_resamples=20) for x in (one, again))
        numbers = [(x.value, *x.interval, x.corrected) for x in (a, b)]
        np.testing.assert_allclose(*numbers, rtol=1e-14, atol=0)


@pytest.mark.parametrize("names", [None, ["ant", "bée", "c"], [False, True], [5, -1, 0]], ids=repr)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("weights", [None, "whole", "relative"])
def test_the_same_object_again(notion, names, weights):
    k = 2 if names == [False, True] or notion == "auto" else 3
    if names is not None:
        names = names[:k]
    y, p = sample(k=k, names=names)
    if k == 2 and notion not in ("auto", "classwise", "confidence"):
        notion = "class-specific"
    elif names is not None and notion == "class-specific:2":
        notion = cal.notions.ClassSpecific(names[1])
    rng = np.random.default_rng(1)
    w = {None: None, "whole": rng.integers(0, 3, y.size), "relative": rng.random(y.size)}[weights]
    options = {"labels": names} if names is not None else {}
    if names is not None and k == 2:
        options["pos_label"] = names[0]
    one = cal.Accumulator(notion=notion, binned=cal.Binned(7), estimators=KEPT[:2], **options).update(y, p, w)
    same(one, cal.Accumulator.from_bytes(one.to_bytes()))


@pytest.mark.parametrize("estimator", KEPT, ids=repr)
@pytest.mark.parametrize("n", [1, 30, 3000])
def test_sums_of_every_kind(estimator, n):
    y, p = sample(n, 3)
    one = cal.Accumulator(notion="classwise", estimators=[estimator]).update(y, p.astype(np.float32))
    again = cal.Accumulator.from_bytes(one.to_bytes())
    assert again.to_bytes() == one.to_bytes()
    assert again.calibration_error(estimator) == pytest.approx(one.calibration_error(estimator), abs=0, nan_ok=True)
    again.update(y, p.astype(np.float32))
    assert (one + again).n_samples == 3 * n


def test_an_empty_one_keeps_its_settings():
    one = cal.Accumulator(
        notion=cal.notions.Classwise("max"),
        labels=["a", "b", "c"],
        sum_tolerance=0.1,
        from_logits=True,
        binned="binned:20",
        estimators=[cal.EmpiricalBayes(), cal.estimators.Cumulative("kuiper")],
    )
    again = cal.Accumulator.from_bytes(one.to_bytes())
    same(one, again)
    y, p = sample(names=["a", "b", "c"])
    z = np.log(p)
    assert one.update(y, z).calibration_error() == again.update(y, z).calibration_error()
    assert again.from_logits is True
    same(cal.Accumulator(), cal.Accumulator.from_bytes(cal.Accumulator().to_bytes()))


def test_it_goes_on_with_update_and_plus():
    y, p = sample(1000, 2)
    whole = cal.Accumulator().update(y, p)
    parts = [cal.Accumulator().update(y[a : a + 250], p[a : a + 250]) for a in range(0, 1000, 250)]
    back = [cal.Accumulator.from_bytes(part.to_bytes()) for part in parts]
    assert sum(back).to_bytes() == sum(parts).to_bytes()
    assert sum(back).calibration_error() == pytest.approx(whole.calibration_error(), rel=1e-10)
    for part, rest in zip(back, (250, 500, 750, 0), strict=True):
        part.update(y[rest : rest + 250], p[rest : rest + 250])
    assert sum(back).n_samples == 2000


def test_hashes_of_groups_are_kept():
    y, p = sample(200, 2)
    one = cal.Accumulator().update(y, p, groups=np.arange(200) // 4)
    again = cal.Accumulator.from_bytes(one.to_bytes())
    same(one, again)
    for estimator in ("binned", "empirical-bayes"):  # what groups share is kept too: it widens intervals
        assert again.estimate(estimator).interval == one.estimate(estimator).interval
    (grid,) = again.required().sums(Grid())
    assert grid.parts is not None
    with pytest.raises(ValueError, match="groups must not span pieces"):
        again.update(y, p, groups=np.arange(200) // 4)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_the_same_report(k):
    one = cal.Accumulator().update(*sample(k=k))
    assert cal.Accumulator.from_bytes(one.to_bytes()).report().to_dict() == one.report().to_dict()


def test_infinite_log_loss_comes_back():
    one = cal.Accumulator().update([1, 0, 1], [0.0, 0.5, 0.9])
    assert np.isinf(cal.Accumulator.from_bytes(one.to_bytes()).report().log_loss)


class Own(cal.notions.Notion):
    name = "own"

    def targets(self, predictions):
        yield cal.notions.Target(predictions.confidence, predictions.predicted)


def test_what_has_no_name_elsewhere_is_refused():
    y, p = sample()
    with pytest.raises(TypeError, match=r"notion=.*cannot be saved"):
        cal.Accumulator(notion=Own()).update(y, p).to_bytes()

    class Mine(cal.Binned):
        pass

    with pytest.raises(TypeError, match=r"cannot be saved"):
        cal.Accumulator(estimators=[Mine(3)]).to_bytes()


DATA = (
    cal.Accumulator(estimators=[cal.estimators.Isotonic()]).update(*sample(60, 3), groups=np.arange(60) // 2).to_bytes()
)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_any_changed_byte_is_refused(at, flip):
    changed = bytearray(DATA)
    changed[at] ^= flip
    with pytest.raises(ValueError, match="an Accumulator"):
        cal.Accumulator.from_bytes(bytes(changed))


def test_every_bit_of_the_front_and_end_counts():
    """All bits of prefix and digest, and of the header's beginning."""
    for at in [*range(200), *range(len(DATA) - 40, len(DATA))]:
        for bit in range(8):
            changed = bytearray(DATA)
            changed[at] ^= 1 << bit
            with pytest.raises(ValueError, match="an Accumulator"):
                cal.Accumulator.from_bytes(bytes(changed))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 20, 61, 62, 63, 100, len(DATA) - 33, len(DATA) - 1])
def test_truncated(n):
    with pytest.raises(ValueError, match=r"truncated|are not the bytes of an Accumulator"):
        cal.Accumulator.from_bytes(DATA[:n])


def test_foreign_newer_and_longer():
    with pytest.raises(ValueError, match=r"not the bytes of an Accumulator: they begin with b'PAR1"):
        cal.Accumulator.from_bytes(b"PAR1" + bytes(1000))
    with pytest.raises(TypeError, match="data must be bytes; got 'CALSUMS'"):
        cal.Accumulator.from_bytes("CALSUMS")
    with pytest.raises(ValueError, match=r"version 2 of the format, .* reads versions up to 1: upgrade it$"):
        cal.Accumulator.from_bytes(rewritten(DATA, _set("version", 2)))
    with pytest.raises(ValueError, match=r"not a saved Accumulator: 'format' must be"):
        cal.Accumulator.from_bytes(rewritten(DATA, _set("format", "calibrant-calibrator")))
    with pytest.raises(ValueError, match=r"damaged: truncated or altered"):
        cal.Accumulator.from_bytes(DATA + b"\0")


def test_numpy_reads_the_arrays():
    with np.load(io.BytesIO(DATA), allow_pickle=False) as held:
        names = [name for name in held.files if name != "header.json"]
        assert len(names) > 5
        assert all(held[name].dtype.kind in "fiub" for name in names)


def _set(*path_and_value):
    *path, last, value = path_and_value

    def change(header):
        for step in path:
            header = header[step]
        header[last] = value

    return change


GRID = ("rows", "problem_sums", "parts", 0, 1)
DAMAGE = {
    "another notion": (
        _set("settings", "notion", {"notion": {"name": "Classwise", "fields": {}}}),
        "problem_sums must be of",
    ),
    "a notion that is none": (_set("settings", "notion", "astrology"), "notion must match the rows"),
    "code for a notion": (
        _set("settings", "notion", {"notion": {"name": "Notion", "fields": {}}}),
        "notion is damaged",
    ),
    "code for an estimator": (
        _set("settings", "estimators", {"list": [{"estimator": {"name": "os.system", "fields": {}}}]}),
        "estimators is damaged",
    ),
    "an estimator with bad fields": (
        _set("settings", "binned", {"estimator": {"name": "Binned", "fields": {"n_bins": -1}}}),
        "n_bins",
    ),
    "an estimator that is not in the sums": (
        _set("settings", "estimators", {"list": [{"estimator": {"name": "Parametric", "fields": {}}}]}),
        "not a serialised",
    ),
    "bins without end": (
        _set("settings", "binned", {"estimator": {"name": "Binned", "fields": {"n_bins": 10**7}}}),
        "n_bins must not exceed the size of the sums",
    ),
    "unknown settings": (_set("settings", "colour", 1), "colour"),
    "no rows": (_set("rows", 3), "rows must be an object"),
    "other labels": (_set("rows", "classes", {"list": [0, 1]}), "not a serialised"),
    "labels of objects": (_set("rows", "classes", {"list": [{"list": []}, 1, 2]}), "labels must be plain values"),
    "negative rows": (_set("dropped", -1), "whole number >= 0"),
    "wrong weight": (_set("rows", "totals", "weight", {"array": "rows/groups"}), "not a serialised"),
    "no such array": (_set("rows", "totals", "weight", {"array": "beyond"}), "beyond"),
    "a text for an array": (_set(*GRID, "count", "1"), "must be arrays of numbers"),
    "another grid": (_set(*GRID, "cells", 8192), "must be arrays of numbers"),
    "another domain": (_set("rows", "problem_sums", "domain", [0.9, 0.2]), "domain"),
    "no fine histogram": (_set("rows", "problem_sums", "fine", None), "parts must hold"),
    "cells without end": (
        _set("rows", "problem_sums", "fine", [10**9, 0.0, 1.0]),
        "must not have more cells than the sums",
    ),
    "a number for a text": (_set("source", 3), "source must be a string"),
    "a field more": (_set(*GRID, "colour", {"array": "rows/groups"}), "unknown fields"),
    "a part less": (_set("rows", "problem_sums", "parts", []), "parts must hold all problems"),
    "an array that is none": (_set("rows", "groups", {"array": 3}), "groups"),
}
#: Files of an archive that state what is not there, or hold more than numbers.
FILES = {
    "an array of objects": ({"rows/groups.npy": npy("|O", (1,), bytes(8))}, "not an array of numbers"),
    "an array of texts": ({"rows/groups.npy": npy("<U2", (1,), bytes(8))}, "not an array of numbers"),
    "an array of structures": ({"rows/groups.npy": npy([("a", "<f8")], (1,), bytes(8))}, "not an array of numbers"),
    "an array without end": ({"rows/groups.npy": npy("<f8", (10**15,), bytes(8))}, "longer or shorter than stated"),
    "a negative array": ({"rows/groups.npy": npy("<f8", (-1,), bytes(8))}, "longer or shorter than stated"),
    "code for an array": ({"rows/groups.npy": npy("<f8", "__import__('os')")}, "damaged"),
    "what is no array": ({"rows/groups.npy": b"pickle"}, "damaged"),
    "no header": ({"header.json": b"{"}, "damaged"),
    "a header of numbers": ({"header.json": b"[1]"}, "not a saved Accumulator"),
    "a header that is too deep": ({"header.json": b"[" * 100_000}, "damaged"),
    "a number that JSON lacks": ({"header.json": b'{"a": NaN}'}, "not JSON"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_not_what_they_state(name):
    files, words = FILES[name]
    with pytest.raises(ValueError, match=words):
        cal.Accumulator.from_bytes(rewritten(DATA, lambda header: None, files))


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_with_a_digest_that_is_right(name):
    change, words = DAMAGE[name]
    with pytest.raises(ValueError, match=words):
        cal.Accumulator.from_bytes(rewritten(DATA, change))
    same(cal.Accumulator.from_bytes(DATA), cal.Accumulator.from_bytes(rewritten(DATA, lambda header: None)))


def _numbers(path, change):
    """What changes the numbers of one field of sums."""

    def changed(header):
        *steps, last = path
        for step in steps:
            header = header[step]
        header[last] = np.asarray(change(np.array(header[last])))

    return changed


def _at(index, value):
    def change(array):
        array[index] = value
        return array

    return change


BINS, RUNS, FINE = (("rows", "problem_sums", "parts", 0, i) for i in (0, 2, 3))
TOTALS = ("rows", "totals")
#: Sums that no rows have: a field of them, and what it is made to be.
NO_SUMS = {
    "more positives than rows": (
        _numbers((*GRID, "positive"), lambda a: a + 1e3),
        "positive must lie within its range",
    ),
    "a negative count": (_numbers((*GRID, "count"), lambda a: -a), "count must add up|lie within its range"),
    "a node beyond the grid": (_numbers((*GRID, "node"), lambda a: a + 4096), "node must be one of the grid's"),
    "nodes that are no numbers": (
        _numbers((*GRID, "node"), lambda a: a / 3),
        r"node must be .* array of whole numbers",
    ),
    "no number": (_numbers((*GRID, "count"), _at((0, 0), np.nan)), "count must hold finite numbers"),
    "a field of another size": (
        _numbers((*GRID, "positive"), lambda a: a[:, 1:]),
        "positive has size .*, which does not fit",
    ),
    "counts that do not add up": (_numbers((*GRID, "total"), lambda a: a + 1), "count must add up to total"),
    "scores above weights": (_numbers((*BINS, "score"), lambda a: a + 1e3), "score must lie within its range"),
    "bins less": (_numbers((*BINS, "weight"), lambda a: a[:, 1:]), "score has size 15, which does not fit"),
    "bins with other rows": (
        _numbers((*FINE, "weight"), lambda a: a * 2),
        "bins must hold all rows|within its range",
    ),
    "negative rows": (_numbers((*BINS, "n_samples"), lambda a: -a), "numbers of n_samples must be"),
    "scores that do not ascend": (
        _numbers((*RUNS, "scores"), lambda a: a[::-1]),
        "scores must increase within each problem",
    ),
    "scores above 1": (_numbers((*RUNS, "scores"), _at(-1, 1.5)), "numbers of scores must be from 0 to 1"),
    "runs without weight": (_numbers((*RUNS, "weight"), lambda a: a * 0), "weight and square must be above 0"),
    "runs of others": (_numbers((*RUNS, "bounds"), _at(-1, 3)), "bounds must go from 0 to the number of runs"),
    "hashes out of order": (_numbers(("rows", "groups"), lambda a: a[::-1]), "groups must be strictly increasing"),
    "a weight of infinity": (_numbers((*TOTALS, "weight"), lambda a: a + np.inf), "weight must hold finite numbers"),
    "a negative score": (_numbers((*TOTALS, "brier"), lambda a: -a - 1), "numbers of brier must be"),
    "classes that do not add up": (_numbers((*TOTALS, "class_weight"), lambda a: a * 2), "class_weight must add up"),
    "a class more": (_numbers((*TOTALS, "prob_sum"), lambda a: np.append(a, 0.0)), "prob_sum has size 4"),
}


@pytest.mark.parametrize("name", NO_SUMS)
def test_sums_that_no_rows_have(name):
    change, words = NO_SUMS[name]
    header = from_archive(DATA, "an Accumulator")
    change(header)
    with pytest.raises(ValueError, match=words):
        cal.Accumulator.from_bytes(to_archive(header))


@pytest.mark.parametrize(
    ("estimator", "field", "words"),
    [
        (cal.estimators.BetaKernel(), "mass", "numbers of mass must be"),
        (cal.estimators.BetaKernel(), "scores", "numbers of scores must be from 0 to 1"),
        (cal.estimators.Parametric(), "scores", "numbers of scores must be from 0 to 1"),
        (cal.estimators.Parametric(), "mass", "numbers of mass must be"),
        (cal.estimators.Parametric(), "square", "numbers of square must be"),
    ],
)
def test_sums_of_estimators_that_no_rows_have(estimator, field, words):
    data = cal.Accumulator(estimators=[estimator]).update(*sample(40, 2)).to_bytes()
    header = from_archive(data, "an Accumulator")
    _numbers((*RUNS, field), lambda a: -a * 1e3 - 1)(header)
    with pytest.raises(ValueError, match=words):
        cal.Accumulator.from_bytes(to_archive(header))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["array", "list", "float", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def _places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


HEADER = {}
rewritten(DATA, HEADER.update)
PLACES = [p for p in _places(HEADER) if p]


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), JSON)
@example(("settings", "labels"), False)
def test_no_header_does_anything_but_raise_value_error(path, value):
    """Any value in any place: the accumulator it was, or one that can be read, or ValueError; nothing else."""
    try:
        found = cal.Accumulator.from_bytes(rewritten(DATA, _set(*path, value)))
    except ValueError:
        return
    if found.totals is not None:
        found.calibration_error()
        found.to_bytes()


def test_nothing_is_made_of_a_size_that_is_only_stated():
    """A short file that says that it holds a terabyte, or unpacks to one, or to much more than it states."""
    header = {"header.json": b"{}"}
    stated = bytearray(archived(header | {"a.npy": bytes(2**26)}))
    at = stated.rindex(b"PK\x01\x02") + 24  # what the directory says of the last file: its size
    stated[at : at + 4] = (2**14).to_bytes(4, "little")
    for data in (
        archived(header | {"a.npy": npy("<f8", (2**37,))}),
        archived(header | {"a.npy": npy("<f8", (2**37,), bytes(2**20))}),
        bytes(stated[:-32]) + sha256(stated[:-32]).digest(),
        archived(header | {"a.npy": bytes(2**14)}, zipfile.ZIP_LZMA),
    ):
        tracemalloc.start()
        with pytest.raises(ValueError, match="damaged"):
            cal.Accumulator.from_bytes(data)
        assert tracemalloc.get_traced_memory()[1] < 2**22
        tracemalloc.stop()


def test_files_that_share_their_bytes_are_refused():
    """Many names for the same compressed bytes state more than a file of this length can hold."""
    data = bytearray(archived({"header.json": b"{}", "a.npy": bytes(2**20)}))
    start, end = data.rindex(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
    entry = bytes(data[start:end])
    size = int.from_bytes(data[end + 12 : end + 16], "little")
    many = bytearray(data[:end] + 200 * entry + data[end:])
    end += 200 * len(entry)
    many[end + 8 : end + 12] = 2 * (202).to_bytes(2, "little")
    many[end + 12 : end + 16] = (size + 200 * len(entry)).to_bytes(4, "little")
    with pytest.raises(ValueError, match=r"cannot expand to the stated .* bytes"):
        cal.Accumulator.from_bytes(bytes(many[:-32]) + sha256(many[:-32]).digest())


@pytest.mark.parametrize("cells", [4096, 8192])
@pytest.mark.parametrize("k", [2, 3])
def test_sums_of_a_frame(cells, k):
    """Sums that an engine made, of other cells, come back too, and are added to others."""
    import polars as pl

    y, p = sample(500, k)
    columns = {"p": p} if k == 2 else {f"p_{i}": p[:, i] for i in range(k)}
    frame = pl.DataFrame({"y": y} | columns)
    prob = "p" if k == 2 else list(columns)
    one = cal.from_frame(frame.lazy(), label="y", prob=prob, n_cells=cells)
    again = cal.Accumulator.from_bytes(one.to_bytes())
    same(one, again)
    assert again.source == one.source != ""
    assert (again + cal.Accumulator().update(y, p)).n_samples == 1000


def test_estimators_of_another_version_say_what_to_do():
    """What an earlier version called otherwise: one sentence, and what to do."""
    header = from_archive(
        cal.Accumulator(estimators=[cal.estimators.Density()]).update([0, 1], [0.2, 0.7]).to_bytes(), "an Accumulator"
    )
    text = json.dumps(header["settings"])
    for old in (text.replace('"Density"', '"Gone"'), text.replace('"bandwidth"', '"method"')):
        assert old != text
        with pytest.raises(ValueError, match=r"; if another version of calibrant saved it, create it again$"):
            cal.Accumulator.from_bytes(to_archive(header | {"settings": json.loads(old)}))

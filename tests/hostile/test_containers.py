"""Every container is read alike by measures, sums, calibrators and frames: the same to 1e-12, or the same refusal."""

import re

import numpy as np
import pytest

from .containers import (
    CALLED,
    CASES,
    COLUMNS,
    PLAIN,
    READERS,
    TABLE,
    as_frame,
    framed,
    in_engine,
    outcome,
    wanted,
    words,
)


@pytest.mark.parametrize(("role", "name"), CASES, ids=map(": ".join, CASES))
def test_one_gate(role, name):
    """The table says whether a container is read: all readers agree, and refuse by the same type in the same words.

    Words are compared after the names of arguments; each begins with the argument that is refused. What a data-frame
    library has as a column is read as that of a frame, too, whose sums `from_frame` takes.
    """
    container, said = TABLE[role][name], {}
    for reader, (read, own) in READERS.items():
        if reader == "fitted calibrator" and (role not in ("scores", "matrix") or not container.alone):
            continue
        found = outcome(read, role, name, container.make(PLAIN[role]))
        if container.read:
            assert isinstance(found, np.ndarray), (reader, found)
            np.testing.assert_allclose(found, wanted(reader, role), rtol=0, atol=1e-12, err_msg=reader)
        else:
            assert isinstance(found, tuple), (reader, found)
            assert CALLED[role][own] in found[1].split("; ")[0], (reader, found)
            said[reader] = found[0], words(found[1], own)
    assert len(set(said.values())) <= 1 or not container.alike, said
    frame = as_frame(role, container.make(PLAIN[role]))
    if frame is not None:
        judge(role, name, frame)


#: Columns that frames may refuse although other readers take them: engines have no numbers in these types. Objects are
#: text to Dask.
NO_NUMBERS = re.compile(r"(label|prob|weight|groups) must hold .*; column '\w+' holds (List|Array|Object|Categorical)")
OF_DASK = re.compile(r".* column '\w+'(, which)? holds String|label must hold labels .*; those of")
#: Categories are text in engines, whatever they are of.
CATEGORIES = {("labels", "pandas categories"), ("labels", "pandas.Categorical"), ("labels", "pyarrow dictionary")}


def judge(role, name, frame, leaks="error"):
    found = outcome(lambda *_: framed(role, name, frame), role, name, None, leaks)
    if isinstance(found, np.ndarray):
        assert TABLE[role][name].read, found
        np.testing.assert_allclose(found, wanted("sums", role), rtol=0, atol=1e-12)
    elif TABLE[role][name].read:
        plain = (role, name) in CATEGORIES and "pos_label must be given" in found[1]
        assert plain or NO_NUMBERS.match(found[1]) or (leaks == "ignore" and OF_DASK.match(found[1])), found
    else:
        assert any(one in found[1] for one in (CALLED[role][2], f"'{COLUMNS[role]}")), found


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("engine", ["duckdb", "dask", "pyspark"])
@pytest.mark.parametrize("role", TABLE)
def test_engines(role, engine, request):
    """The same frames in engines, of containers that an engine takes in."""
    pytest.importorskip(engine)
    session = request.getfixturevalue("spark") if engine == "pyspark" else None
    wrong, read = {}, 0
    for name, container in TABLE[role].items():
        frame = as_frame(role, container.make(PLAIN[role]))
        try:
            held = None if frame is None else in_engine(frame, engine, session)
        except Exception:  # the engine has no such type
            held = None
        if held is None:
            continue
        read += 1
        try:
            judge(role, name, held, "ignore")  # warnings of the engines
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error}"[:300]
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())
    assert read >= 10

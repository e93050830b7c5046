"""Standard input and named pipes, which can be read once only."""

import io
import sys
from types import SimpleNamespace

import pytest

from calibrant.data.tables import FileTable


def test_a_pipe_is_read_by_one_read_of_the_system_at_a_time(monkeypatch):
    """Between several of them Python does not look for Ctrl-C: a larger read would wait for rows that never come."""

    class Pipe(io.RawIOBase):
        pieces = iter([b"y_true,y_prob\n", b"0,0.2\n1,0.7\n" * 20, b""])
        asked = 0

        def readable(self):
            return True

        def readinto(self, into):
            self.asked += 1
            piece = next(self.pieces)
            into[: len(piece)] = piece
            return len(piece)

    class Watched(io.BufferedReader):
        def read(self, *_):
            raise AssertionError("several reads at a time")

    pipe = Pipe()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(closed=False, buffer=Watched(pipe)))
    table = FileTable("-")
    assert (table.n_rows(), pipe.asked) == (40, 3)
    table.close()


def test_a_long_name_that_is_not_there_is_not_shown_whole():
    with pytest.raises(ValueError, match="does not exist") as error:
        FileTable("x/" * 1000)
    assert len(str(error.value)) < 400

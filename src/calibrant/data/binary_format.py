r"""Numbers in bytes that are checked when they are read: a header in JSON, arrays, and a digest of all.

.. code-block:: text

    8 bytes    what it is, such as ``CALSUMS\n``
    2          version of the format                        all numbers little-endian, without a sign
    4          length of the header
    8          length of the arrays
    8          length of the arrays, compressed
    …          header: JSON in UTF-8, an object; its "arrays" are a list of [dtype, shape], or of the number of an
               earlier array that is the same
    …          the arrays that are not the same as earlier ones, each in C order and little-endian, one after the other,
               compressed together by zlib
    32         SHA-256 of all bytes before

Nothing is evaluated. Lengths are compared with what there is before anything of their size is made.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from typing import Any, NoReturn

import numpy as np

from .types import AnyArray
from .version import __version__

_PREFIX = struct.Struct("<8sHIQQ")
_DIGEST = 32
#: Bytes that zlib makes of one at most, and of none.
_LARGEST_RATIO, _SLACK = 1032, 64
_DTYPES = frozenset({"f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"})


@dataclass(frozen=True)
class BinaryFormat:
    """A format: its first eight bytes, its version, and what it holds, in words.

    Parameters
    ----------
    magic : bytes
    version : int
        What is written, and the latest that is read.
    what : str
        ``"an Accumulator"``.
    """

    magic: bytes
    version: int
    what: str

    def close(self, header: Mapping[str, Any], arrays: Sequence[AnyArray]) -> bytes:
        """Bytes of a header and arrays; equal arrays are held once."""
        seen: dict[tuple[str, tuple[int, ...], bytes], int] = {}
        listed: list[Any] = []
        parts: list[bytes] = []
        for i, array in enumerate(arrays):
            dtype = array.dtype.newbyteorder("<")
            raw = np.ascontiguousarray(array, dtype=dtype).tobytes()
            name = f"{array.dtype.kind}{array.dtype.itemsize}"
            if name not in _DTYPES:
                raise TypeError(f"arrays of {array.dtype} cannot be saved")
            first = seen.setdefault((name, array.shape, sha256(raw).digest()), i)
            listed.append([name, list(array.shape)] if first == i else first)
            if first == i:
                parts.append(raw)
        content = {"calibrant": __version__, **header, "arrays": listed}
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        packed = zlib.compress(b"".join(parts))
        lengths = len(text), sum(map(len, parts)), len(packed)
        body = _PREFIX.pack(self.magic, self.version, *lengths) + text + packed
        return body + sha256(body).digest()

    def open(self, data: Any) -> tuple[dict[str, Any], list[AnyArray]]:
        """Header and arrays of such bytes; ValueError that says what is wrong."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data must be bytes; got {type(data).__name__}")
        data = bytes(data)
        if data[:8] != self.magic[: len(data)] or not data:
            raise ValueError(f"these are not the bytes of {self.what}: they begin with {data[:8]!r}")
        if len(data) < _PREFIX.size + _DIGEST:
            self._damaged(f"truncated, to {len(data)} bytes")
        _, version, n_header, n_arrays, n_packed = _PREFIX.unpack_from(data)
        if version > self.version:
            raise ValueError(
                f"these bytes of {self.what} are in version {version} of the format, and calibrant {__version__} reads "
                f"up to {self.version}: upgrade it"
            )
        whole = _PREFIX.size + n_header + n_packed + _DIGEST
        if len(data) != whole:
            less = "truncated" if len(data) < whole else "altered"
            self._damaged(f"{less}: {len(data)} bytes, where {whole} were written")
        if sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:] or version < 1:
            self._damaged("altered: their digest does not match")
        try:
            header = json.loads(data[_PREFIX.size : _PREFIX.size + n_header], parse_constant=self._damaged)
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            self._damaged(f"their header is no JSON ({error})")
        if not isinstance(header, dict) or not isinstance(header.get("arrays"), list):
            self._damaged("their header is no object with arrays")
        listed = self._listed(header["arrays"])
        if sum(n for _, _, n in listed.values()) != n_arrays or n_arrays > _LARGEST_RATIO * n_packed + _SLACK:
            self._damaged("the lengths of their arrays do not add up")
        return header, self._arrays(header["arrays"], listed, data[-_DIGEST - n_packed : -_DIGEST], n_arrays)

    def _listed(self, entries: Sequence[Any]) -> dict[int, tuple[str, tuple[int, ...], int]]:
        """Type, shape and bytes of the arrays that are held."""
        out = {}
        for i, entry in enumerate(entries):
            if isinstance(entry, int) and not isinstance(entry, bool) and entry in out:
                continue
            match entry:
                case [str() as name, list() as shape] if (
                    name in _DTYPES and len(shape) <= 4 and all(type(n) is int and n >= 0 for n in shape)
                ):
                    out[i] = name, tuple(shape), prod(shape) * int(name[1:])
                case _:
                    self._damaged(f"array {i} is listed as {str(entry)[:40]!r}")
        return out

    def _arrays(
        self, entries: Sequence[Any], listed: Mapping[int, tuple[str, tuple[int, ...], int]], packed: bytes, size: int
    ) -> list[AnyArray]:
        unpacker = zlib.decompressobj()
        try:
            raw = unpacker.decompress(packed, size + 1)
        except zlib.error as error:
            self._damaged(f"their arrays are not compressed by zlib ({error})")
        if len(raw) != size or not unpacker.eof or unpacker.unused_data:
            self._damaged("their arrays are longer or shorter than stated")
        held: dict[int, AnyArray] = {}
        at = 0
        for i, (name, shape, n) in listed.items():
            flat = np.frombuffer(
                raw, dtype=np.dtype(f"<{'u1' if name == 'b1' else name}"), count=prod(shape), offset=at
            )
            at += n
            if name == "b1" and flat.size and flat.max() > 1:
                self._damaged(f"array {i} is not of truth values")
            native = np.dtype(name if name != "b1" else bool)
            held[i] = flat.astype(native).reshape(shape)
        return [held[i] if i in held else held[entry] for i, entry in enumerate(entries)]

    def _damaged(self, why: str) -> NoReturn:
        raise ValueError(f"these bytes of {self.what} are damaged: {why}")

"""JSON with arrays as bytes: an ``.npz`` archive that ``numpy.load(…, allow_pickle=False)`` also reads.

The archive holds ``header.json``, in which ``{"array": name}`` stands for each array, and one ``.npy`` file per array;
equal arrays share a file. The comment of the archive, and so its last 32 bytes, is the
SHA-256 of all preceding bytes. Nothing is evaluated, and stated sizes are compared with the actual ones before
memory of that size is allocated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from math import prod
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from .checks import check_type
from .types import AnyArray

_BEGINNING, _HEADER, _DIGEST = b"PK\x03\x04", "header.json", 32
#: Maximum expansion ratio of deflate.
_LARGEST_RATIO = 1032


def to_archive(header: Mapping[str, Any]) -> bytes:
    """Bytes of an object of JSON and arrays, deterministic."""
    names: dict[tuple[str, tuple[int, ...], bytes], str] = {}
    buffer = BytesIO()

    def put(value: Any, path: str) -> Any:
        if isinstance(value, Mapping):
            return {key: put(inner, f"{path}/{key}".lstrip("/")) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [put(inner, f"{path}/{i}") for i, inner in enumerate(value)]
        if not isinstance(value, np.ndarray):
            return value
        key = value.dtype.str, value.shape, sha256(value.tobytes()).digest()
        if key not in names:
            names[key] = path
            raw = BytesIO()
            np.save(raw, value, allow_pickle=False)
            archive.writestr(ZipInfo(f"{path}.npy"), raw.getvalue(), ZIP_DEFLATED)
        return {"array": names[key]}

    with ZipFile(buffer, "w") as archive:
        archive.comment = bytes(_DIGEST)
        text = json.dumps(put(header, ""), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        archive.writestr(ZipInfo(_HEADER), text.encode(), ZIP_DEFLATED)
    body = buffer.getvalue()[:-_DIGEST]
    return body + sha256(body).digest()


def from_archive(data: Any, what: str) -> Any:
    """Inverse of :func:`to_archive`; ValueError says which fault the bytes of ``what`` have."""
    data = bytes(check_type("data", data, (bytes, bytearray, memoryview), "bytes"))
    if data[:4] != _BEGINNING[: len(data)] or not data:
        raise ValueError(f"these are not the bytes of {what}: they begin with {data[:8]!r}")
    try:
        _need(sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:], "truncated or altered: their digest does not match")
        with ZipFile(BytesIO(data)) as archive:
            files = archive.infolist()
            stated = sum(file.file_size for file in files)
            _need(stated <= _LARGEST_RATIO * len(data), f"they cannot expand to the stated {stated} bytes")
            _need(all(f.compress_type in (ZIP_STORED, ZIP_DEFLATED) for f in files), "unsupported compression")
            held = {file.filename: _read(archive, file) for file in files}
        header = json.loads(held.pop(_HEADER), parse_constant=_no_number)
        return _filled(header, {name.removesuffix(".npy"): _array(name, raw) for name, raw in held.items()})
    except Exception as error:  # damaged bytes fail in any way
        raise ValueError(f"these bytes of {what} are damaged: {error}") from error


def _read(archive: ZipFile, file: ZipInfo) -> bytes:
    """Read a file of an archive, no more than its stated size."""
    with archive.open(file) as opened:
        return opened.read(file.file_size)


def _filled(value: Any, arrays: Mapping[str, AnyArray]) -> Any:
    """JSON with the arrays inserted."""
    match value:
        case {"array": str() as name}:
            return arrays[name]
        case dict():
            return {key: _filled(inner, arrays) for key, inner in value.items()}
        case list():
            return [_filled(inner, arrays) for inner in value]
    return value


def _array(name: str, raw: bytes) -> AnyArray:
    """Array of numbers from its bytes, checked for completeness."""
    stream = BytesIO(raw)
    _need(np.lib.format.read_magic(stream) == (1, 0), f"{name} has an unsupported version of the .npy format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    _need(dtype.kind in "fiub" and dtype.names is None, f"{name} is not an array of numbers")
    _need(len(raw) - stream.tell() == prod(shape) * dtype.itemsize, f"{name} is longer or shorter than stated")
    return np.asarray(np.load(BytesIO(raw), allow_pickle=False))


def _no_number(word: str) -> None:
    raise ValueError(f"{word} in their header, which is not JSON")


def _need(holds: bool, words: str) -> None:
    if not holds:
        raise ValueError(words)

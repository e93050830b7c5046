"""Fitted calibrators as JSON: a documented format that is checked when it is read and never executes anything.

.. code-block:: json

    {"format": "calibrant-calibrator", "version": 1, "calibrant": "0.1.0", "name": "PlattScaling",
     "parameters": {"smoothing": true, "input": "probability", "labels": null, "eps": 1e-12},
     "fitted": {"classes_": {"array": [0, 1], "dtype": "int64"}, "coef_": 0.93, "intercept_": -0.02, "…": 0}}

``name`` is one of the calibrators of this package. Numbers, strings, booleans and null are JSON's own; others are
objects of one key: ``{"float": "inf"}`` (or ``"-inf"``, ``"nan"``), ``{"array": nested lists, "dtype": …}``,
``{"list": […]}``, ``{"mapping": {…}}``, ``{"calibrator": {…}}`` (as the whole), and ``{"estimator": {"name": …,
"fields": {…}}}`` for an estimator of :mod:`calibrant.errors`. A later version reads earlier ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from .. import errors
from ..data.types import FloatArray
from ..data.version import __version__
from ..data.writing import check_free, write_json
from .base import BinaryCalibrator, Calibrator, predict_unnamed

FORMAT, VERSION = "calibrant-calibrator", 1
#: Values of files that were saved under earlier names.
_SPELLED = {"log": "log-loss", "log_loss": "log-loss"}
_DTYPES = ("float64", "float32", "int64", "int32", "bool")


def to_dict(calibrator: Calibrator) -> dict[str, Any]:
    """A fitted calibrator as plain numbers, strings, lists and mappings, for JSON.

    Raises
    ------
    TypeError
        For a parameter that has no such form, such as a function.
    """
    if not isinstance(calibrator, Calibrator):
        raise TypeError(f"calibrator must be a calibrator of this package; got {calibrator!r}")
    if type(calibrator).__name__ not in _known():
        raise TypeError(f"only calibrators of this package can be saved; got {type(calibrator).__qualname__}")
    check_is_fitted(calibrator)
    fitted = {name: value for name, value in vars(calibrator).items() if name.endswith("_")}
    return {
        "format": FORMAT,
        "version": VERSION,
        "calibrant": __version__,
        "name": type(calibrator).__name__,
        "parameters": {k: _encode(v, k) for k, v in calibrator.get_params(deep=False).items()},
        "fitted": {k: _encode(v, k) for k, v in fitted.items()},
    }


def from_dict(data: Any) -> Calibrator:
    """A calibrator from what :func:`to_dict` made.

    Raises
    ------
    ValueError
        Saying what is wrong: another format, a later version, an unknown name, something missing or of another kind,
        or numbers with which the calibrator gives no probabilities.
    """
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ValueError(f"this is no saved calibrator: 'format' must be {FORMAT!r}")
    version = data.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"the saved calibrator's version must be a whole number above 0; got {version!r}")
    if version > VERSION:
        raise ValueError(
            f"the calibrator was saved by calibrant {data.get('calibrant')!r} in version {version} of the format; this "
            f"is calibrant {__version__}, which reads up to {VERSION}: upgrade it"
        )
    kind = _known().get(str(data.get("name")))
    if kind is None:
        raise ValueError(f"the saved calibrator's name must be one of {', '.join(_known())}; got {data.get('name')!r}")
    parameters, fitted = (_mapping(data, key) for key in ("parameters", "fitted"))
    parameters = _named_now(kind, parameters)
    allowed = kind._get_param_names()
    unknown = sorted(set(parameters) - set(allowed))
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r}: the file is damaged, or of a later version")
    out: Calibrator = _made(kind, parameters, f"the saved {kind.__name__}")
    wanted = set(kind.state) | {"classes_", "n_features_in_", "order_"}
    extra = set(fitted) - wanted - {"feature_names_in_"}
    if extra or wanted - set(fitted):
        named = sorted(extra or wanted - set(fitted))[0]
        raise ValueError(
            f"a fitted {kind.__name__} has {'no' if extra else 'an attribute'} {named!r}: the file is damaged"
        )
    for name, value in fitted.items():
        setattr(out, name, _decode(value, name))
    try:
        out.judge_fitted()
    except ValueError as error:
        raise ValueError(f"the saved {kind.__name__} is damaged: {error}") from error
    _try(out)
    return out


def _named_now(kind: type[Calibrator], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a file by their names of now."""
    out = {kind.renamed.get(name, name): value for name, value in parameters.items()}
    if "goal" in out:
        out["goal"] = _SPELLED.get(str(out["goal"]), out["goal"])
    return out


def save_calibrator(calibrator: Calibrator, path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a fitted calibrator to a JSON file, which appears whole or not at all.

    Raises
    ------
    FileExistsError
        When there is such a file, without ``force``.
    TypeError
        See :func:`to_dict`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant.calibrators import PlattScaling, load_calibrator, save_calibrator
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_calibrator(fitted, pathlib.Path(folder) / "platt.json")
    ...     bool(load_calibrator(path).coef_ == fitted.coef_)
    True
    """
    target = Path(path)
    check_free(target, force=force)
    write_json(target, to_dict(calibrator), indent=1)
    return target


def load_calibrator(path: str | os.PathLike[str]) -> Calibrator:
    """Read what :func:`save_calibrator` wrote; ValueError names the file and what is wrong with it."""
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        return from_dict(data)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: this is no JSON, so no saved calibrator ({error})") from error
    except RecursionError as error:
        raise ValueError(f"{path}: nested too deeply to be a saved calibrator") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _known() -> dict[str, type[Calibrator]]:
    from .. import calibrators

    found = (getattr(calibrators, name) for name in calibrators.__all__ if name[0].isupper())
    return {
        kind.__name__: kind
        for kind in found
        if isinstance(kind, type) and issubclass(kind, Calibrator) and kind not in (Calibrator, BinaryCalibrator)
    }


def _encode(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "UO":
            kind = "str" if value.dtype.kind == "U" else "object"
            return {"array": [_encode(v, name) for v in value.tolist()], "dtype": kind}
        if value.dtype.name in _DTYPES:
            return {"array": _nested(value.tolist()), "dtype": value.dtype.name}
    if isinstance(value, (list, tuple, range)):
        return {"list": [_encode(v, name) for v in value]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"mapping": {key: _encode(v, name) for key, v in value.items()}}
    if isinstance(value, Calibrator):
        unfitted = not hasattr(value, "classes_")
        parameters = {k: _encode(v, k) for k, v in value.get_params(deep=False).items()}
        return {"calibrator": {"name": type(value).__name__, "parameters": parameters} if unfitted else to_dict(value)}
    if isinstance(value, errors.Estimator) and is_dataclass(value):
        held = {f.name: _encode(getattr(value, f.name), f.name) for f in fields(value) if f.init}
        return {"estimator": {"name": type(value).__name__, "fields": held}}
    raise TypeError(f"{name}={value!r} cannot be saved: only numbers, strings, arrays and parts of this package can")


def _nested(values: Any) -> Any:
    """Lists of numbers with those that JSON lacks as objects."""
    if isinstance(values, list):
        return [_nested(v) for v in values]
    return values if not isinstance(values, float) or np.isfinite(values) else {"float": str(values)}


def _decode(value: Any, name: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is damaged: {str(value)[:60]!r}")
    match dict(value):
        case {"float": ("inf" | "-inf" | "nan") as word}:
            return float(word)
        case {"array": list() as items, "dtype": ("object" | "str") as kind}:
            return np.asarray([_decode(item, name) for item in items], dtype=object if kind == "object" else str)
        case {"array": items, "dtype": str() as dtype} if dtype in _DTYPES:
            return _array(items, dtype, name)
        case {"list": list() as items}:
            return [_decode(item, name) for item in items]
        case {"mapping": Mapping() as items}:
            return {str(key): _decode(item, name) for key, item in items.items()}
        case {"calibrator": Mapping() as inner} if "fitted" in inner:
            return from_dict(inner)
        case {"calibrator": {"name": str() as kind, "parameters": Mapping() as parameters}} if kind in _known():
            return _made(_known()[kind], parameters, name)
        case {"estimator": {"name": str() as kind, "fields": Mapping() as held}} if kind in errors.__all__:
            return _made(getattr(errors, kind), held, name)
    raise ValueError(f"{name} is damaged: {str(value)[:60]!r}")


def _made(kind: Any, arguments: Mapping[str, Any], name: str) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, (Calibrator, errors.Estimator))):
        raise ValueError(f"{name} is damaged: {kind!r}")
    if issubclass(kind, Calibrator):
        arguments = _named_now(kind, arguments)
    try:
        return kind(**{str(key): _decode(value, str(key)) for key, value in arguments.items()})
    except TypeError as error:
        raise ValueError(f"{name} is damaged: {error}") from error


def _array(items: Any, dtype: str, name: str) -> FloatArray:
    """Numbers of one kind in a rectangle."""

    def plain(v: Any) -> Any:
        if isinstance(v, list):
            return [plain(item) for item in v]
        if isinstance(v, Mapping):
            v = _decode(v, name)
        if isinstance(v, (bool, int, float)) and isinstance(v, bool) == (dtype == "bool"):
            return v
        raise ValueError(f"{name} is damaged: {str(v)[:60]!r} in an array of {dtype}")

    try:
        array = np.asarray(plain(items))
        if array.size and (dtype[0] == "i") != (array.dtype.kind == "i") and dtype != "bool" and dtype[0] == "i":
            raise ValueError("fractions among whole numbers")
        return array.astype(dtype)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} is damaged: {error}") from error


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"the saved calibrator's {key!r} must be a mapping; got {str(found)[:60]!r}")
    return found


#: Log odds of the rows that a calibrator which was read must give probabilities for.
_TRIED = (0.0, 3.0, -3.0, 30.0, -30.0)


def _try(calibrator: Calibrator) -> None:
    """Rows of equal, likely and nearly certain scores must give probabilities."""
    name = type(calibrator).__name__
    try:
        if isinstance(calibrator, BinaryCalibrator):
            calibrator._check_parameters()
        with np.errstate(all="ignore"):
            p = predict_unnamed(calibrator, _rows(calibrator))
        whole = getattr(calibrator, "normalisation", "sum") == "none" or bool((abs(p.sum(axis=1) - 1) < 1e-6).all())
        good = p.shape == (len(_TRIED), len(calibrator.classes_)) and bool(((p >= 0) & (p <= 1 + 1e-9)).all()) and whole
    except Exception as error:  # damaged numbers fail in any way; the file is to blame, whatever it is
        raise ValueError(f"the saved {name} gives no probabilities, the file is damaged: {error}") from error
    if not good:
        raise ValueError(f"the saved {name} gives no probabilities: the file is damaged")


def _rows(calibrator: Calibrator) -> FloatArray:
    """Scores of the kind that a calibrator takes: of the first class from even to nearly certain or excluded."""
    z = np.array(_TRIED)
    if calibrator.n_features_in_ > 1:
        z = np.column_stack([z, *[np.zeros(z.size)] * (calibrator.n_features_in_ - 1)])
    if calibrator.input != "probability":
        return np.asarray(z)
    return np.asarray(softmax(z, axis=1) if z.ndim > 1 else expit(z))

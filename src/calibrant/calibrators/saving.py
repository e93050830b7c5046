"""Fitted calibrators as JSON: a documented format that is checked when it is read and never executes code.

.. code-block:: json

    {"format": "calibrant-calibrator", "version": 1, "calibrant": "0.1.0", "name": "PlattScaling",
     "parameters": {"smoothing": true, "input": "probability", "labels": null, "eps": 1e-12},
     "fitted": {"classes_": {"array": [0, 1], "dtype": "int64"}, "coef_": 0.93, "intercept_": -0.02, "…": 0},
     "sha256": "…"}

``sha256``, in files only, is the digest of the rest, written with sorted keys and without spaces. ``name`` is
one of the calibrators of this package. Values are encoded as described in :mod:`calibrant.data.codec`, with two
additional objects: ``{"calibrator": {…}}`` (in this format), and ``{"estimator": {"name": …, "fields": {…}}}`` for
estimators of :mod:`calibrant.estimators`. Files with names unknown to this version are refused; create them again.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from .. import estimators
from ..data.checks import check_choice
from ..data.codec import Codec, check_stamp, reading_saved, stamp
from ..data.types import FloatArray
from ..data.writing import check_free, write_json
from ..exceptions import CalibrantWarning
from .base import BinaryCalibrator, Calibrator, Later, predict_unnamed
from .model import CalibratedModel

FORMAT, VERSION = "calibrant-calibrator", 1


def to_dict(calibrator: Calibrator) -> dict[str, Any]:
    """Convert a fitted calibrator to numbers, strings, lists and mappings, for JSON.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator of :mod:`calibrant.calibrators`.

    Returns
    -------
    dict
        A mapping for :func:`from_dict`.

    Raises
    ------
    TypeError
        If a parameter cannot be saved, such as a function.

    See Also
    --------
    calibrant.calibrators.from_dict : The inverse.
    calibrant.save_calibrator : Writes the mapping to a file.

    Examples
    --------
    >>> from calibrant.calibrators import PlattScaling, from_dict, to_dict
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> from_dict(to_dict(fitted)).coef_ == fitted.coef_
    True
    """
    if not isinstance(calibrator, Calibrator):
        hint = ": pass its calibrator_" if isinstance(calibrator, CalibratedModel) else ""
        raise TypeError(f"calibrator must be a calibrator of this package; got {calibrator!r}{hint}")
    if type(calibrator).__name__ not in _known():
        raise TypeError(f"only calibrators of this package can be saved; got {type(calibrator).__qualname__}")
    check_is_fitted(calibrator)
    fitted = {name: value for name, value in vars(calibrator).items() if name.endswith("_")}
    return {
        **stamp(FORMAT, VERSION),
        "name": type(calibrator).__name__,
        "parameters": {k: _CODER.encode(v, k) for k, v in calibrator.get_params(deep=False).items()},
        "fitted": {k: _CODER.encode(v, k) for k, v in fitted.items()},
    }


@reading_saved()
def from_dict(data: Any) -> Calibrator:
    """Restore a calibrator from the output of :func:`to_dict`.

    Parameters
    ----------
    data : mapping
        The mapping returned by :func:`to_dict`, possibly after a round trip through JSON.

    Returns
    -------
    Calibrator
        The fitted calibrator.

    Raises
    ------
    ValueError
        For another format, a later version, an unknown name, missing or wrong values, or numbers with which the
        calibrator does not return probabilities.

    See Also
    --------
    calibrant.calibrators.to_dict : The inverse.
    calibrant.load_calibrator : Reads the mapping from a file.

    Examples
    --------
    >>> from calibrant.calibrators import PlattScaling, from_dict, to_dict
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> bool((from_dict(to_dict(fitted)).predict_proba([0.3]) == fitted.predict_proba([0.3])).all())
    True
    """
    check_stamp(data, FORMAT, VERSION, "saved calibrator")
    kind = _known()[check_choice("the saved calibrator's name", data.get("name"), _known())]
    parameters, fitted = (_mapping(data, key) for key in ("parameters", "fitted"))
    allowed = kind._get_param_names()
    unknown = sorted(set(parameters) - set(allowed))
    if unknown:
        raise ValueError(f"{kind.__name__} has no parameter {unknown[0]!r}")
    out: Calibrator = _CODER.call(kind, parameters, f"the saved {kind.__name__}")
    fitted = {name: None for name, field in kind._state.items() if isinstance(field, Later)} | dict(fitted)
    wanted = set(kind._state) | {"classes_", "n_features_in_", "order_"}
    extra = set(fitted) - wanted - {"feature_names_in_", "prior_", "several_"}
    if extra or wanted - set(fitted):
        named = sorted(extra or wanted - set(fitted))[0]
        raise ValueError(
            f"a fitted {kind.__name__} {'has no' if extra else 'needs the'} attribute {named!r}: the file is damaged"
        )
    for name, value in fitted.items():
        setattr(out, name, _CODER.decode(value, name))
    try:
        out._check_state()
    except ValueError as error:
        raise ValueError(f"the saved {kind.__name__} is damaged: {error}") from error
    _try(out)
    return out


def save_calibrator(
    calibrator: Calibrator | CalibratedModel, path: str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Write a fitted calibrator to a JSON file, atomically.

    For a :class:`CalibratedModel` only its ``calibrator_`` is written, which applies to scores of the classifier, with
    a warning: save the classifier separately. ``joblib.dump(model, file)`` saves the whole model, to be loaded with the
    same package versions; ``skops.io.dump`` does so without executing code on loading. With several folds each
    classifier has its own calibrator: to reproduce the original predictions, apply each
    (``calibrator_.calibrators_``, in the order of ``pairs_``) to the scores of its own classifier and average. To
    calibrate the scores of a single classifier, fit one calibrator with ``ensemble=False``.

    Parameters
    ----------
    calibrator : Calibrator or CalibratedModel
        A fitted calibrator, or a fitted model, whose calibrator is written.
    path : str or path-like
        The file to write.
    force : bool, default False
        Whether to replace an existing file.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    FileExistsError
        If the file exists and ``force`` is False.
    TypeError
        See :func:`to_dict`.

    Warns
    -----
    CalibrantWarning
        If a :class:`CalibratedModel` is given: its classifier is not saved.

    See Also
    --------
    calibrant.load_calibrator : The inverse.
    calibrant.calibrators.to_dict : The same without a file.

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
    alone = calibrator.calibrator_ if isinstance(calibrator, CalibratedModel) else calibrator
    write_json(target, sealed(to_dict(alone)), force=force, indent=1)
    if isinstance(calibrator, CalibratedModel):
        kind, number = type(calibrator.pairs_[0][0]).__name__, len(calibrator.pairs_)
        models = kind if number == 1 else f"{number} {kind}s, one per fold"
        warnings.warn(
            f"{target} contains the calibrator only, which maps the model's scores: save the model itself ({models}) "
            "with joblib.dump or skops.io.dump",
            CalibrantWarning,
            stacklevel=2,
        )
    return target


def load_calibrator(path: str | os.PathLike[str]) -> Calibrator:
    """Read a calibrator from a file written by :func:`save_calibrator`.

    Parameters
    ----------
    path : str or path-like
        The file to read.

    Returns
    -------
    Calibrator
        The fitted calibrator.

    Raises
    ------
    ValueError
        If the file is invalid; the message names the file and the fault. A file that was changed after it was saved is
        refused; pass data that you changed on purpose to :func:`from_dict`.

    See Also
    --------
    calibrant.save_calibrator : The inverse.
    calibrant.calibrators.from_dict : The same without a file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import calibrant as cal
    >>> fitted = cal.TemperatureScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = cal.save_calibrator(fitted, pathlib.Path(folder) / "temperature.json")
    ...     cal.load_calibrator(path).temperature_ == fitted.temperature_
    True
    """
    try:
        return from_dict(_unsealed(json.loads(Path(path).read_text(encoding="utf-8"))))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not a JSON file, so not a saved calibrator ({error})") from error
    except RecursionError as error:
        raise ValueError(f"{path}: nested too deeply to be a saved calibrator") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with the digest of its content."""
    rest = {key: value for key, value in data.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return {**rest, "sha256": sha256(text.encode()).hexdigest()}


def _unsealed(data: Any) -> Any:
    """Content of a file; ValueError if it was changed after it was saved."""
    check_stamp(data, FORMAT, VERSION, "saved calibrator")
    if data != sealed(data):
        raise ValueError("the digest does not match: the file was changed after it was saved")
    return data


def _known() -> dict[str, type[Calibrator]]:
    from .. import calibrators

    found = (getattr(calibrators, name) for name in dir(calibrators) if name[0].isupper())
    return {
        kind.__name__: kind
        for kind in found
        if isinstance(kind, type) and issubclass(kind, Calibrator) and kind not in (Calibrator, BinaryCalibrator)
    }


class _CalibratorCodec(Codec):
    """A codec that also encodes calibrators: fitted ones as :func:`to_dict` does."""

    def part(self, value: Any) -> dict[str, Any] | None:
        """The object for a calibrator or an estimator."""
        if not isinstance(value, Calibrator):
            return super().part(value)
        if hasattr(value, "classes_"):
            return {"calibrator": to_dict(value)}
        parameters = {k: self.encode(v, k) for k, v in value.get_params(deep=False).items()}
        return {"calibrator": {"name": type(value).__name__, "parameters": parameters}}

    def from_mapping(self, value: Mapping[str, Any], name: str) -> Any:
        """The calibrator or estimator of an object; None for other objects."""
        match value:
            case {"calibrator": Mapping() as inner} if "fitted" in inner:
                return from_dict(inner)
            case {"calibrator": {"name": str() as kind, "parameters": Mapping() as parameters}} if kind in _known():
                return self.call(_known()[kind], parameters, name)
        return super().from_mapping(value, name)


_CODER = _CalibratorCodec(estimator=estimators)


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"the saved calibrator's {key!r} must be a mapping; got {str(found)[:60]!r}")
    return found


#: Log odds of the rows for which a restored calibrator must return probabilities.
_TRIED = (0.0, 3.0, -3.0, 30.0, -30.0)


def _try(calibrator: Calibrator) -> None:
    """Raise ValueError unless rows with equal, likely and nearly certain scores are mapped to probabilities."""
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
    """Scores of the kind that a calibrator takes, with a first class from even to nearly certain or excluded."""
    z = np.array(_TRIED)
    if calibrator.n_features_in_ > 1:
        z = np.column_stack([z, *[np.zeros(z.size)] * (calibrator.n_features_in_ - 1)])
    if calibrator.input != "probability":
        return np.asarray(z)
    return np.asarray(softmax(z, axis=1) if z.ndim > 1 else expit(z))

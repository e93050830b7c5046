"""Docstrings: what `help()` shows of a public name is complete, and as numpydoc has it."""

import inspect
import re
import subprocess
import sys
import tomllib
from ast import literal_eval
from importlib import import_module
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

import calibrant as cal
from calibrant.data.docs import document

from ..surface import MODULES, NAMES, room

#: Codes that are left out, each with its reason there; the first of them is "all".
LEFT_OUT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["tool"][
    "numpydoc_validation"
]["checks"][1:]


#: Public names of the modules that need torch, read without it.
FOLDER = Path(cal.__file__).parent / "torch"
TORCH = re.findall(r"^from .* as (\w+)$", (FOLDER / "__init__.pyi").read_text("utf-8"), re.MULTILINE)
LOSSES = re.findall(r"^def ([a-z]\w+)\(\s*logits", (FOLDER / "functional.py").read_text("utf-8"), re.MULTILINE)
#: Every place of every public name.
WHERE = {f"calibrant.{name}" for name in cal.__all__ if name in NAMES} | {
    f"calibrant.{module}.{name}"
    for module, names in [
        *((module, room(module).__all__) for module in MODULES),
        ("torch", TORCH),
        ("torch.functional", LOSSES),
    ]
    for name in names
}


def value_of(path):
    module, _, name = path.rpartition(".")
    if module.startswith("calibrant.torch"):
        pytest.importorskip("torch")
    return getattr(import_module(module), name)


#: Functions and classes, each in one place.
PATHS = [
    pytest.param(path, marks=pytest.mark.torch) if path.startswith("calibrant.torch.") else path
    for path in sorted(WHERE)
    if (path.count(".") == 1 or path.rpartition(".")[2] not in cal.__all__)
    and not path.endswith((".OURS", ".PAPER_CURVES", ".torch.functional"))
]


class OfFields(Validator):
    """Fields of a result, which nobody makes by hand, are described as attributes."""

    def __init__(self, obj_name):
        super().__init__(get_doc_object(self._load_obj(obj_name)))

    @property
    def signature_parameters(self):
        return tuple(name for name in super().signature_parameters if not name.startswith("_"))

    @property
    def doc_all_parameters(self):
        fields = self._doc_parameters(["Attributes"])
        made = super().doc_all_parameters
        return made | {name: fields[name] for name in self.signature_parameters if name in fields.keys() - made.keys()}


@pytest.mark.parametrize("path", PATHS)
def test_numpydoc_finds_nothing(path):
    value_of(path)
    found = validate(path, OfFields)["errors"]
    assert [f"{code}: {what}" for code, what in found if code not in LEFT_OUT] == []


def entries_of(doc, headings="Parameters|Attributes"):
    """Names, type and description of each entry of some sections."""
    sections = re.findall(rf"^(?:{headings})\n-+\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)", doc, re.MULTILINE | re.DOTALL)
    for section in sections:
        for entry in re.split(r"\n(?=\S)", section):
            head, _, text = entry.partition("\n")
            names, _, kind = head.partition(" : ")
            yield names.split(", "), kind, text.strip()


def described(doc):
    """Parameters and attributes of a docstring that have a description."""
    return {name for names, _, text in entries_of(doc) if text for name in names}


def named(thing):
    """Parameters of a function or a class; warnings take any."""
    given = {} if inspect.isclass(thing) and issubclass(thing, Warning) else inspect.signature(thing).parameters
    names = {str(p).partition(":")[0].partition("=")[0] for p in given.values()} - {"self", "cls"}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("path", PATHS)
def test_help_describes_every_parameter(path):
    doc = inspect.getdoc(value_of(path))
    assert named(value_of(path)) - described(doc) == set()
    assert [names for names, _, text in entries_of(doc) if not text] == []


def wrong_defaults(thing):
    """Parameters whose description states another default than the signature; one of None needs no words."""
    parameters = inspect.signature(thing).parameters
    for names, kind, _ in entries_of(inspect.getdoc(thing) or "", "Parameters"):
        for default in [parameters[name].default for name in names if name in parameters]:
            stated = re.search(r"default (.+)$", kind)
            same = stated and (stated[1] == str(default) or stated[1] == repr(default).replace("'", '"'))
            none = default in (None, inspect.Parameter.empty, ()) and not stated
            if not (same or none or "optional" in kind or (stated and literal_eval(stated[1]) == default)):
                yield names, kind, default


@pytest.mark.parametrize("path", PATHS)
def test_a_stated_default_is_that_of_the_signature(path):
    value = value_of(path)
    warns = inspect.isclass(value) and issubclass(value, Warning)
    shown = [] if warns else [value, *(methods_of(value) if inspect.isclass(value) else ())]
    assert [found for one in shown for found in wrong_defaults(one)] == []


#: Methods that only those who extend the package call; their sums are explained in CONTRIBUTING.md.
FOR_EXTENSIONS = ("benchmark", "estimators")


def methods_of(kind):
    """Public methods that a class has from this package."""
    for name in dir(kind):
        function = getattr(value := getattr(kind, name, None), "__func__", value)
        if name[0] != "_" and inspect.isfunction(function) and function.__module__.startswith("calibrant."):
            yield function


@pytest.mark.parametrize("path", [path for path in PATHS if not str(path).startswith(FOR_EXTENSIONS, 10)])
def test_help_describes_every_parameter_of_methods(path):
    kind = value_of(path)
    found = {
        method.__qualname__: missing
        for method in (methods_of(kind) if inspect.isclass(kind) else ())
        if (missing := named(method) - described(inspect.getdoc(method) or ""))
    }
    assert found == {}


@pytest.mark.parametrize("path", PATHS)
def test_see_also_names_what_there_is(path):
    section = re.search(r"See Also\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(value_of(path)), re.DOTALL)
    found = re.findall(r"^(\S+) :", section[1], re.MULTILINE)
    assert 1 <= len(found) <= 4
    assert set(found) - {path} <= WHERE


def test_a_description_is_taken_where_there_is_none():
    def one(level, own, *, other=1):
        """Do.

        Parameters
        ----------
        own : int
            Its own.

        Notes
        -----
        None.
        """

    def like(other):
        """Do.

        Parameters
        ----------
        other, further : int
            The other's.
        """

    assert document(document(one), like).__doc__ == (
        "Do.\n\nParameters\n----------\nlevel : float in (0, 1), default 0.95\n    Level of the intervals.\n"
        "own : int\n    Its own.\nother : int\n    The other's.\n\nNotes\n-----\nNone.\n"
    )

    def bare(level):
        """Do."""

    assert "level : float" in document(bare).__doc__


def test_a_class_takes_descriptions_from_its_bases():
    """In the order of the signature, in which fields that are given by name come last."""
    doc = inspect.getdoc(cal.calibrators.DirichletCalibration)
    own, base, shared = (doc.index(name) for name in ("\nstrength : ", "\ninput : ", "\neps : "))
    assert own < base < shared
    assert described(inspect.getdoc(cal.calibrators.SubgroupCalibrator.fit)) == {"scores", "y", "sample_weight", "by"}


def test_without_docstrings_everything_works():
    code = "import calibrant as cal; from calibrant import plot; rooms = [getattr(cal, n) for n in {0!r}]; "
    code += "every = [getattr(room, n) for room in rooms for n in room.__all__]; "
    code += "print(cal.estimate.__doc__, cal.brier_score([0, 1], [0.0, 1.0]))"
    command = [sys.executable, "-OO", "-c", code.format(MODULES)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "None 0.0\n"

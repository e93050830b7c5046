"""Docstrings: what `help()` shows of a public name is complete, and as numpydoc has it."""

import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

import calibrant as cal
from calibrant.data.docs import document

from .surface import MODULES, NAMES, room

#: Codes that are left out, each with its reason there; the first of them is "all".
LEFT_OUT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["tool"][
    "numpydoc_validation"
]["checks"][1:]


#: Public names of the module that needs torch, read without it.
TORCH = re.findall(
    r"as (\w+)$", (Path(cal.__file__).parent / "torch" / "__init__.pyi").read_text("utf-8"), re.MULTILINE
)
#: Every place of every public name.
WHERE = {f"calibrant.{name}" for name in cal.__all__ if name in NAMES} | {
    f"calibrant.{module}.{name}"
    for module, names in [*((module, room(module).__all__) for module in MODULES), ("torch", TORCH)]
    for name in names
}


def value_of(path):
    return NAMES[path.rpartition(".")[2]]


PATHS = sorted(
    path
    for path in WHERE
    if not path.startswith("calibrant.torch.")
    and (path.count(".") == 1 or path.rpartition(".")[2] not in cal.__all__)
    and inspect.isroutine(value_of(path)) | inspect.isclass(value_of(path))
)


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
    found = validate(path, OfFields)["errors"]
    assert [f"{code}: {what}" for code, what in found if code not in LEFT_OUT] == []


def described(doc):
    """Parameters and attributes of a docstring that have a description."""
    sections = re.findall(
        r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)", doc, re.MULTILINE | re.DOTALL
    )
    entries = [entry.partition("\n") for section in sections for entry in re.split(r"\n(?=\S)", section)]
    return {name for head, _, text in entries if text.strip() for name in re.split(" ?: ?", head)[0].split(", ")}


def named(thing):
    """Parameters of a function or a class; warnings take any."""
    given = {} if inspect.isclass(thing) and issubclass(thing, Warning) else inspect.signature(thing).parameters
    names = {str(p).partition(":")[0].partition("=")[0] for p in given.values()} - {"self", "cls"}
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("path", PATHS)
def test_help_describes_every_parameter(path):
    assert named(value_of(path)) - described(inspect.getdoc(value_of(path))) == set()


def test_see_also_names_what_there_is():
    found = {
        name
        for path in PATHS
        for section in re.findall(r"See Also\n-+\n(.*?)(?:\n\n|\Z)", inspect.getdoc(value_of(path)), re.DOTALL)
        for name in re.findall(r"^(\S+) :", section, re.MULTILINE)
    }
    assert len(found) > 40
    assert found - WHERE == set()


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
    code = "import calibrant as cal; print(cal.estimate.__doc__, cal.brier_score([0, 1], [0.0, 1.0]))"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None 0.0\n"

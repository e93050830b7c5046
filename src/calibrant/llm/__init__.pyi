"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from .reading import Answers as Answers
from .reading import read as read
from .stated import stated_confidence as stated_confidence

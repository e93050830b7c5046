"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from .config import Config as Config
from .config import Distribution as Distribution
from .curves import OURS as OURS
from .curves import PAPER_CURVES as PAPER_CURVES
from .curves import Entry as Entry
from .curves import paper_curves as paper_curves
from .read import read_samples as read_samples
from .runner import forget as forget
from .runner import load as load
from .runner import predict as predict
from .runner import run as run
from .runner import summary as summary

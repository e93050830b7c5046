"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from .decomposition import decompose as decompose
from .grouping import grouping_loss as grouping_loss
from .murphy import brier_curve as brier_curve
from .murphy import murphy_curve as murphy_curve
from .proper import BetaFamily as BetaFamily
from .proper import Brier as Brier
from .proper import CostWeighted as CostWeighted
from .proper import Log as Log
from .proper import RankedProbability as RankedProbability
from .proper import ScoringRule as ScoringRule
from .proper import Spherical as Spherical
from .proper import brier_score as brier_score
from .proper import log_loss as log_loss
from .proper import mean_score as mean_score
from .proper import ranked_probability_score as ranked_probability_score
from .proper import score_samples as score_samples
from .ranks import rank_models as rank_models

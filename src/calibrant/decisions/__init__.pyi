"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from .clinical import calibration_measures as calibration_measures
from .clinical import decision_curve as decision_curve
from .cost import expected_cost as expected_cost
from .decision_error import decision_calibration_error as decision_calibration_error
from .optimism import optimism_corrected as optimism_corrected
from .priors import estimate_prior as estimate_prior
from .priors import resampled_prior as resampled_prior
from .priors import shift_prior as shift_prior
from .selective import risk_coverage as risk_coverage
from .thresholds import decide as decide
from .thresholds import optimal_threshold as optimal_threshold

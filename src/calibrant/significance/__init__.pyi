"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from .adaptive_bins import adaptive_test as adaptive_test
from .belt import calibration_belt as calibration_belt
from .chi_squared import hosmer_lemeshow_test as hosmer_lemeshow_test
from .chi_squared import pearson_test as pearson_test
from .classical import cox_test as cox_test
from .classical import spiegelhalter_test as spiegelhalter_test
from .cumulative_sums import cumulative_test as cumulative_test
from .direction import confidence_direction as confidence_direction
from .evalue import evalue_test as evalue_test
from .kernel import kernel_test as kernel_test
from .resampling import calibration_test as calibration_test
from .result import TestResult as TestResult

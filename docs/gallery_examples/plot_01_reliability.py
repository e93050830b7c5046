"""
A reliability diagram with a band
=================================

Naive Bayes on handwritten digits says whether a digit is even. The band covers the true curve at each score in 95 % of
samples; where the diagonal lies outside it, there is evidence of miscalibration at that score.
"""

import calibrant as cal

digits = cal.datasets.load_even_digits_predictions()
shown = cal.ReliabilityDisplay.from_predictions(digits.y_true, digits.y_prob, pos_label="even", name="naive Bayes")

# %%
# The same as a sentence, with the test and an interval of the error.

print(cal.report(digits.y_true, digits.y_prob, pos_label="even").verdict)

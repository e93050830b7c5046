"""
Which of ten classes are bad?
=============================

Each class against the rest; p-values are corrected for the number of classes.
"""

import calibrant as cal

digits = cal.datasets.load_digits_predictions()
report = cal.report(digits.y_true, digits.y_prob)
print([row.label for row in report.per_class if row.significant])

# %%
# The page of a report begins with the class that is worst.

report.plot()

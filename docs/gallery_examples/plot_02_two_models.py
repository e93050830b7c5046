"""
Two models in one picture
=========================

As in scikit-learn: one call for each model, into given axes.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import calibrant as cal

X_train, X_test, y_train, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
models = {
    "naive Bayes": GaussianNB().fit(X_train, y_train),
    "random forest": RandomForestClassifier(random_state=0).fit(X_train, y_train),
}
fig, axes = plt.subplots(1, 2, figsize=(9, 5), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    cal.ReliabilityDisplay.from_estimator(model, X_test, y_test, ax=ax, histogram=None)
    ax.set_title(name)

# %%
# With 143 rows the bands are wide. A comparison asks whether the difference is more than chance.

p = {name: model.predict_proba(X_test)[:, 1] for name, model in models.items()}
print(cal.compare_models(y_test, p))

"""The README's picture: naive Bayes and logistic regression on the same held-out samples.

Run from the repository's root: ``python docs/examples/readme_figure.py``. It writes docs/images/reliability.png.

The data are generated, and ten of the twenty measurements repeat what the others say. Naive Bayes counts each
repetition as new evidence and so is far too sure of itself; logistic regression is not.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import calibrant as cal

IMAGES = Path(__file__).resolve().parents[1] / "images"


def main() -> None:
    """Fit, draw and save."""
    X, y = make_classification(12_000, n_features=20, n_informative=2, n_redundant=10, random_state=42)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=4000, random_state=42)
    ax = None
    for name, model in (("Naive Bayes", GaussianNB()), ("Logistic regression", LogisticRegression())):
        fitted = model.fit(X_train, y_train)
        display = cal.ReliabilityDisplay.from_estimator(fitted, X_test, y_test, name=name, ax=ax, random_state=0)
        ax = display.ax_
    ax.set_title("When it says 0.9, how often is it right?")
    IMAGES.mkdir(parents=True, exist_ok=True)
    display.figure_.savefig(IMAGES / "reliability.png", dpi=130)


if __name__ == "__main__":
    main()

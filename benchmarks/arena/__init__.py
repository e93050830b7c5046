"""Predictions of real models with calibration errors that are known: what priors, intervals and calibrators face.

    from benchmarks.arena import draw, experiments

    for one in experiments(half="choosing"):
        sample = draw(one, n=300, seed=0, notion="confidence")
        error = calibrant.calibration_error(sample.y_true, sample.y_prob, notion="confidence", labels=sample.labels)
        print(one.name, error - sample.truth.value, sample.truth.standard_error)

It is built once, by ``python -m benchmarks.arena.build``; ``README.md`` beside this file says what is in it.
"""

from .reading import Experiment, Sample, draw, experiments
from .truth import Truth

__all__ = ["Experiment", "Sample", "Truth", "draw", "experiments"]

"""Decisions made from probabilities: thresholds, costs, net benefit, and errors where decisions turn."""

"""What of a mean score is miscalibration, what discrimination, and what a better model could gain."""

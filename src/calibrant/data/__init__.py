"""User input, validated once: converts containers and files to `Predictions`, and notions to problems."""

__version__ = "0.1.0"

"""User input, judged once: containers and files to `Predictions`; the problems that notions pose."""

__version__ = "0.1.0"

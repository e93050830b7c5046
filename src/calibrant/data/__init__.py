"""User input, judged once: containers and files to `Predictions`; the problems that notions pose."""

"""User input, judged once: containers and files to `Predictions`; notions of calibration; the problems they pose."""

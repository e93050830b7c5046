"""Whether a model is still calibrated, as rows arrive."""

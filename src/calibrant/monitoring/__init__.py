"""Sequential tests of whether a model is still calibrated."""

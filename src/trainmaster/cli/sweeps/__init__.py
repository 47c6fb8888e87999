"""Commands for sweeps of hyperparameters."""

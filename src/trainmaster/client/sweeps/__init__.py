"""Sweeps: trials of one request with other hyperparameters, run by the queue."""

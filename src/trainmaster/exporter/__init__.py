"""Serves the queue's state to Prometheus from a process on the user's machine, signed as the command line is."""

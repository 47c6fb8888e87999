"""Checks before a request becomes a job."""

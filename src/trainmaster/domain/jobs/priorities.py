"""Priorities of jobs."""

MAX_PRIORITY = 1_000_000
"""Highest priority of a job; the lowest is its negative."""

"""Traces of jobs."""

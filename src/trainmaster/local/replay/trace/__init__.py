"""Traces of jobs: CSV files, the history of an account, requests."""

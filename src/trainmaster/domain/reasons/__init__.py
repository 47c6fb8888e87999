"""Reasons why a job waits."""

"""Metrics of what the manager did and found."""

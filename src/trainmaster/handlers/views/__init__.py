"""Responses built from domain values."""

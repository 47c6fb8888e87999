"""Lanes of waiting jobs in the table."""
